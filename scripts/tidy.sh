#!/usr/bin/env bash
# Runs clang-tidy-19 with the committed .clang-tidy over the sources of the library.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/tidy.sh [--jobs N] [--seconds N] [FILE]...

Checks the named sources and the headers that they include. Without a name: all of src/, most recently
changed files first, and all public headers. Each source takes half a minute or more.

  --seconds N  starts no further source after N seconds, and prints how many were checked: for CI
  --jobs N     sources at once (default: $(default_jobs) here)
  --help       this text
END
}

jobs=$(default_jobs)
seconds=
parse_options jobs=number seconds=number -- "$@"
files=("${arguments[@]}")

want clang-tidy-19 have clang-tidy-19
want clang-19 compiler_is_usable clang++-19
want libgmock-dev have_header gmock/gmock.h
CXX=clang++-19 want_build_tools
install_wanted
end_on_signals
cd "$root"

# Only configured: nothing has to be built.
if [[ ! -e build/clang/compile_commands.json ]]; then
    cmake --preset clang >/dev/null || die "CMake could not configure build/clang."
fi

# Most recently changed first; by name in a clone without history.
by_age() {
    { git log --format= --name-only --diff-filter=d -- 'src/*.cpp' 2>/dev/null || true
        find src -name '*.cpp' | sort; } | awk 'NF && !seen[$0]++' | while IFS= read -r file; do
        if [[ -e $file ]]; then printf '%s\n' "$file"; fi
    done
}
if ((${#files[@]} == 0)); then
    mapfile -t files < <(by_age)
    files+=(docs/snippets/first.cpp) # includes every public header; src/ leaves some out
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-tidy.XXXXXX")
trap 'rm -rf "$work"' EXIT

# One source. Its output is printed in one piece.
cat >"$work/one" <<'END'
#!/usr/bin/env bash
if [[ -n $3 ]] && (($(date +%s) >= $3)); then
    touch "$2/left.$(basename "$1")"
    exit 0
fi
if ! clang-tidy-19 --quiet --warnings-as-errors='*' -p build/clang "$1" >"$2/$$" 2>/dev/null; then
    cat "$2/$$"
    exit 1
fi
END
chmod +x "$work/one"

until=
if [[ -n $seconds ]]; then until=$(($(date +%s) + seconds)); fi
status=0
printf '%s\0' "${files[@]}" |
    xargs -0 -P "$jobs" -I '{}' "$work/one" '{}' "$work" "$until" || status=1

left=$(find "$work" -name 'left.*' | wc -l)
((status == 0)) || die "clang-tidy reported problems."
say "tidy: no problems in $((${#files[@]} - left)) of ${#files[@]} sources"

#!/usr/bin/env bash
# Runs clang-tidy-19 with the committed .clang-tidy over the sources of the library.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/tidy.sh [--jobs N] [--seconds N] [FILE]...

Looks at the sources named, or at all of src/, with the public headers that they include. Those that were
changed last come first. Takes half a minute and more for each.

  --seconds N  begins no further source after N seconds, and says how many are left: for CI
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

# The latest first. A clone without history has them by name.
by_age() {
    { git log --format= --name-only --diff-filter=d -- 'src/*.cpp' 2>/dev/null || true
        find src -name '*.cpp' | sort; } | awk 'NF && !seen[$0]++' | while IFS= read -r file; do
        if [[ -e $file ]]; then printf '%s\n' "$file"; fi
    done
}
if ((${#files[@]} == 0)); then mapfile -t files < <(by_age); fi

work=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-tidy.XXXXXX")
trap 'rm -rf "$work"' EXIT

# One source: its words are printed together.
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
((status == 0)) || die "clang-tidy has something to say."
say "tidy: nothing to say about $((${#files[@]} - left)) of ${#files[@]} sources"

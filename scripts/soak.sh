#!/usr/bin/env bash
# Builds the tests that have a full form and runs that form: for hours rather than seconds.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/soak.sh [--preset NAME]... [--minutes M] [--seed N] [--jobs N] [--no-install]
                       [-- CTEST-OPTIONS]

Builds the tests with the label \`soak\`, runs them with SIMPLENET_FULL=1, and prints the figures of each
test. Ends at the first failure, with its output and the seed that reproduces it.

  --preset NAME  a preset of CMakePresets.json, in build/NAME; may be repeated (default: dev). The full
                 forms are meant for asan and tsan in particular
  --minutes M    repeats the tests with new seeds until M minutes have passed; at least once
  --seed N       begins with this seed, as a failure prints it
  --jobs N       compilations at once (default: $(default_jobs) here). The tests run one at a time, because
                 some measure processor time
  --no-install   list missing packages instead of installing them
  --help         this text
  -- ...         the rest is passed to ctest, for example: -- -R cancel_chaos

docs/development/testing.md describes each test and has the figures.
END
}

presets=()
minutes=0
seed=
jobs=$(default_jobs)
no_install=no
parse_options preset=+preset minutes=count seed=count jobs=number no-install -- "$@"
((${#arguments[@]} == 0)) || wrong_usage "unknown argument: ${arguments[0]}"
if [[ -n $seed ]]; then export SIMPLENET_SEED=$seed; fi
if [[ $no_install == yes ]]; then export SIMPLENET_NO_INSTALL=1; fi
ctest_options=("${behind[@]}")
if ((${#presets[@]} == 0)); then presets=(dev); fi

work=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-soak.XXXXXX")
log=$work/log
trap 'rm -rf "$work"' EXIT
end_on_signals

headline "Tools"
want_build_tools
want libgmock-dev have_header gmock/gmock.h
for preset in "${presets[@]}"; do
    if [[ $preset == clang ]]; then want clang-19 compiler_is_usable clang++-19; fi
done
install_wanted
choose_compiler
say "$(compiler_name "$CXX")"

# If the kernel randomises addresses by many bits, sanitizers of older compilers cannot place their shadow.
# Some sandboxes refuse personality(2): then randomisation stays on.
without_aslr=()
if setarch "$(uname -m)" -R true 2>/dev/null; then without_aslr=(setarch "$(uname -m)" -R); fi

build_preset() {
    local preset=$1 compiler=$CXX fresh
    if [[ $preset == clang ]]; then compiler=clang++-19; fi
    headline "$preset: configure and build (build/$preset)"
    fresh=$(fresh_if_moved "$root/build/$preset" "$compiler")
    if ! cmake --preset "$preset" ${fresh:+"$fresh"} >"$log" 2>&1; then
        cat "$log" >&2
        die "CMake could not configure $preset."
    fi
    cmake --build "build/$preset" --parallel "$jobs" --target simplenet_soak_tests ||
        die "$preset does not build."
}

# Prints the figures of each test, with the time it took.
print_table() {
    awk -v preset="$1" '
        /^[0-9]+\/[0-9]+ Testing: / { name = $3; figures = "" }
        /^FIGURES / { sub(/^FIGURES [^:]*: /, ""); figures = figures (figures ? "; " : "") $0 }
        /^Test time = / { printf "%-6s %7.1f s  %s\n", preset, $4, name
                          if (figures) printf "%18s%s\n", "", figures }
    ' "$root/build/$1/Testing/Temporary/LastTest.log"
}

run_preset() {
    local preset=$1 status=0 command
    headline "$preset: all tests in full, seed ${SIMPLENET_SEED:-from the clock}"
    command=(ctest --test-dir "build/$preset" --label-regex '^soak$' --stop-on-failure
        --output-on-failure --no-tests=error "${ctest_options[@]}")
    "${without_aslr[@]}" "${command[@]}" >"$log" 2>&1 || status=$?
    if ((status != 0)); then
        cat "$log"
        die "a test failed in its full form; if it has a seed, the line 'to reproduce' names it."
    fi
    print_table "$preset"
}

export SIMPLENET_FULL=1
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}

cd "$root"
for preset in "${presets[@]}"; do build_preset "$preset"; done
started=$SECONDS
rounds=0
while :; do
    for preset in "${presets[@]}"; do run_preset "$preset"; done
    rounds=$((rounds + 1))
    if ((SECONDS - started >= minutes * 60)); then break; fi
done
headline "Summary"
say "$rounds rounds of ${presets[*]} in $((SECONDS - started)) s, and nothing failed."

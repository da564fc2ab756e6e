#!/usr/bin/env bash
# Breaks promises of the library one by one, and shows which tests fail.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/mutate.sh [--tests REGEX] [--jobs N] [--seconds N] [--list] [NAME]...

Builds a copy of the tree in build/mutations and checks that all its tests pass. Then it applies each patch
of tests/mutations (or those named), builds, runs the tests and reverts the patch. Prints a Markdown table:
the promise, how many tests failed, and the first of them. Fails if a patch no longer applies or builds, or
if no test fails with it.

  --list       prints the mutations and their promises
  --tests REGEX
               builds and runs only the test programs whose name, such as server/tcp_server_test, matches
               (ctest -R). All cases of a program run in one process, so none runs after one that hangs
  --seconds N  time for the tests of one mutation, some of which may hang; failures until then count
               (default: 240)
  --jobs N     compilations and tests at once (default: $(default_jobs) here)
  --help       this text
END
}

patches=$root/tests/mutations
jobs=$(default_jobs)
seconds=240
list=no
tests=
parse_options tests=text jobs=number seconds=number list -- "$@"
promise_of() { sed -n 's/^Promise: //p' "$patches/$1.patch"; }
if [[ $list == yes ]]; then
    for each in "$patches"/*.patch; do
        name=$(basename "$each" .patch)
        printf '%-44s %s\n' "$name" "$(promise_of "$name")"
    done
    exit 0
fi
names=("${arguments[@]}")
for each in "${names[@]}"; do
    [[ -e $patches/$each.patch ]] || wrong_usage "no mutation $each; see --list"
done
if ((${#names[@]} == 0)); then
    for each in "$patches"/*.patch; do names+=("$(basename "$each" .patch)"); done
fi

want_build_tools
want libgmock-dev have_header gmock/gmock.h
want patch have patch
install_wanted
choose_compiler
end_on_signals
# Crashes are expected here: no core files.
ulimit -c 0

copy=$root/build/mutations/source
# With --tests each unit has a program of its own, which is a test of ctest.
if [[ -z $tests ]]; then
    build=$copy/build
    options=(-DSIMPLENET_TEST_BATCH=6)
else
    build=$copy/build-programs
    options=(-DSIMPLENET_TEST_BATCH=1 -DSIMPLENET_DISCOVER_TESTS=OFF)
fi
log=$root/build/mutations/log
mkdir -p "$copy"

# Copies the tree. Files that a mutation of an earlier run touched must be newer than their objects.
put_sources() {
    find "$copy" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
    git -C "$root" ls-files -z --cached --others --exclude-standard |
        tar -C "$root" --null --ignore-failed-read -T - -cf - | tar -C "$copy" -xf -
    sed -n 's|^+++ b/||p' "$patches"/*.patch | sort -u | (cd "$copy" && xargs touch)
}

# apply <name> [patch's options]
apply() {
    local name=$1
    shift
    patch -d "$copy" -p1 --quiet --batch --no-backup-if-mismatch "$@" <"$patches/$name.patch"
}

programs=() # those of --tests
# Finds their names: the tests of ctest that are no programs, such as examples, have a dot instead of a slash.
find_programs() {
    mapfile -t programs < <(ctest --test-dir "$build" --show-only --tests-regex "$tests" |
        sed -n -E 's|^ *Test *#[0-9]+: ([a-z_]+(/[a-z0-9_]+)+)$|\1|p')
    ((${#programs[@]} > 0)) || die "no test program matches $tests"
}

# A target is called like its program, with underscores for the slashes.
build_tests() {
    local targets=()
    if ((${#programs[@]} > 0)); then targets=(--target "${programs[@]//\//_}"); fi
    cmake --build "$build" --parallel "$jobs" "${targets[@]}" >"$log" 2>&1
}

# The failed cases in the output of programs: those that began, and neither passed nor were skipped. A program
# that failed without any is printed itself.
failed_cases() {
    awk 'function tell(each, some) {
             for (each in begun) { some = 1; if (failed) print layer each }
             if (failed && !some) print program
             split("", begun)
         }
         $2 == "Test" && $3 ~ /^#[0-9]+:$/ {
             tell()
             program = layer = $4; sub(/[^\/]*$/, "", layer); failed = /\*\*\*/
         }
         /^\[ RUN      \] / { begun[$4] = 1 }
         /^\[       OK \] |^\[  SKIPPED \] / { delete begun[$4] }
         END { tell() }' "$log.tests" | sort -u
}

# run_tests <seconds for all> <seconds for one> [options of ctest]: prints the names of the failed tests.
run_tests() {
    if ((${#programs[@]} > 0)); then
        # ctest ends a program that hangs, and keeps its output.
        timeout --kill-after 10 "$1" ctest --test-dir "$build" --parallel "$jobs" \
            --timeout "$(($1 > 20 ? $1 - 10 : $1))" --no-tests=error --output-on-failure \
            --tests-regex "^($(IFS='|' && echo "${programs[*]}"))\$" >"$log.tests" 2>&1 || true
        failed_cases
        return
    fi
    timeout --kill-after 10 "$1" ctest --test-dir "$build" --parallel "$jobs" --timeout "$2" \
        --no-tests=error "${@:3}" >"$log.tests" 2>&1 || true
    # A test that aborts is "..Subprocess aborted***Exception", others are "..***Failed".
    sed -n -E 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^. ]) \.+[^.]*\*\*\*(Failed|Timeout|Exception|Not Run).*/\1/p' \
        "$log.tests" | sed -E 's/  # GetParam.*//' | sort -u
}

headline "mutations: build and test without mutations"
put_sources
cmake -S "$copy" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSIMPLENET_WERROR=ON \
    "${options[@]}" >"$log" 2>&1 || die "CMake could not configure: $(tail -n 20 "$log")"
if [[ -n $tests ]]; then find_programs; fi
build_tests || die "the tree does not build: $(tail -n 20 "$log")"
broken=$(run_tests 1200 100)
grep -q '100% tests passed' "$log.tests" || die "tests fail without a mutation: ${broken:-see $log.tests}"

rows=()
problems=()
for name in "${names[@]}"; do
    headline "mutation: $name"
    promise=$(promise_of "$name")
    if ! apply "$name"; then
        problems+=("$name does not apply")
        put_sources
        continue
    fi
    if build_tests; then
        # The crowd runs alone, and ctest begins with it: it would take a third of the time.
        mapfile -t noticed < <(run_tests "$seconds" 15 --exclude-regex '^crowd\.')
        if ((${#noticed[@]} == 0)); then
            if grep -q 'tests passed' "$log.tests"; then
                problems+=("no test fails with $name")
            else
                problems+=("no test of $name failed in time: use more --seconds, or a quieter machine")
            fi
        fi
        # The backquotes are Markdown's.
        # shellcheck disable=SC2016
        rows+=("$(printf '| %s | `%s` | %d | %s |' "$promise" "$name" "${#noticed[@]}" \
            "$(printf '`%s` ' "${noticed[@]:0:3}")")")
        say "${rows[-1]}"
    else
        problems+=("$name does not compile: $(tail -n 5 "$log")")
    fi
    apply "$name" --reverse
done

headline "mutations: summary"
say "| broken promise | mutation | tests that failed | such as |"
say "|---|---|---|---|"
printf '%s\n' ${rows[@]+"${rows[@]}"}
((${#problems[@]} == 0)) || die "$(printf '%s\n' "${problems[@]}")"

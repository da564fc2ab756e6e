#!/usr/bin/env bash
# Builds everything and runs every test.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/test.sh [--all] [--preset NAME]... [--jobs N] [--no-install] [-- CTEST-OPTIONS]

Installs missing packages with apt, builds the library, its tests and its examples, and runs the tests.

  --all          four builds: test; asan (AddressSanitizer and UndefinedBehaviorSanitizer); tsan
                 (ThreadSanitizer); clang (the second compiler, if apt has clang-19)
  --preset NAME  only this preset of CMakePresets.json, in build/NAME; may be repeated (default: test)
  --jobs N       compilations at once, and three times as many tests (default: $(default_jobs) here)
  --no-install   list missing packages instead of installing them
  --help         this text
  -- ...         the rest is passed to ctest, for example: -- -R timer_wheel. Each case is then a test of
                 ctest; without it, in most presets, each program is one, because to start a process for each
                 case takes a tenth of the time

Environment: CXX chooses the compiler of every preset for g++. SIMPLENET_REQUIRE_BACKENDS names the
backends whose tests must not be skipped (default: epoll, and io_uring if the kernel has it).
SIMPLENET_REQUIRE_NAMESPACES=1 requires the tests that need network namespaces (default: if available).
END
}

presets=()
all=no
jobs=$(default_jobs)
no_install=no
parse_options all preset=+preset jobs=number no-install -- "$@"
((${#arguments[@]} == 0)) || wrong_usage "unknown argument: ${arguments[0]}"
if [[ $no_install == yes ]]; then export SIMPLENET_NO_INSTALL=1; fi
ctest_options=("${behind[@]}")
whole_programs=()
if ((${#ctest_options[@]} == 0)); then whole_programs=(-DSIMPLENET_DISCOVER_TESTS=OFF); fi
if [[ $all == yes ]]; then presets+=(test asan tsan clang); fi
if ((${#presets[@]} == 0)); then presets=(test); fi

# A directory, because an interrupted ctest leaves a half-written log beside the requested one.
work=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-test.XXXXXX")
log=$work/log
trap 'rm -rf "$work"' EXIT
end_on_signals

# has_sanitizers <compiler>: whether their runtime libraries are installed.
has_sanitizers() {
    echo "int main() {}" | "$1" -fsanitize=address,undefined -x c++ - -o "$work/sanitized" 2>/dev/null
}

# The names localhost and http, which a minimal system does not have.
knows_names() { [[ -s /etc/hosts && -s /etc/services ]]; }

headline "Tools"
notes=()
kept=()
for preset in "${presets[@]}"; do
    if [[ $preset == clang* ]] && ! compiler_is_usable clang++-19; then
        if [[ $all == yes ]] && ! apt_knows clang-19; then
            notes+=("clang: skipped, apt has no clang-19 here")
            continue
        fi
        want clang-19 compiler_is_usable clang++-19
    fi
    if [[ $preset == clang-asan ]]; then want libclang-rt-19-dev has_sanitizers clang++-19; fi
    kept+=("$preset")
done
presets=("${kept[@]}")
want_build_tools
want libgmock-dev have_header gmock/gmock.h
want netbase knows_names
want python3 have python3
want openssl have openssl # makes the certificates of the tests
# Peers of the examples, and a library that one of them uses.
want curl have curl
want nlohmann-json3-dev have_header nlohmann/json.hpp
want netcat-openbsd have nc.openbsd
want socat have socat
want_httpd_libraries
install_wanted
# Peers whose tests are skipped without them. They bring services, or much else, so they are installed only
# in CI. Go, which takes a minute to install, is a peer where it is there.
has_php_fpm() { compgen -G "/usr/sbin/php-fpm*" >/dev/null; }
want_services() {
    want haproxy test -x /usr/sbin/haproxy
    want prometheus have promtool
    want systemd have systemd-socket-activate
    want gnutls-bin have gnutls-cli
    want python3-websockets test -d /usr/lib/python3/dist-packages/websockets
    want sslscan have sslscan
    want php-fpm has_php_fpm
    install_wanted
}
if [[ ${CI:-} == true ]] && ! (want_services); then
    notes+=("peers: some are missing, their tests are skipped")
fi
choose_compiler
say "$(compiler_name "$CXX")"
say "$(cmake --version | head -n 1)"

# If the kernel randomises addresses by more than 28 bits (Ubuntu 24.04: 32), ThreadSanitizer of GCC 12 and
# 13 cannot place its shadow. Some sandboxes refuse personality(2): then randomisation stays on.
without_aslr=()
if setarch "$(uname -m)" -R true 2>/dev/null; then without_aslr=(setarch "$(uname -m)" -R); fi

# To a file or a pipe ctest writes two lines for each test: keep every fiftieth, with the time so far, and all
# other lines. Of a program that failed, leave out the cases that passed.
condense() {
    awk 'BEGIN { started = systime() }
         /^ *Start +[0-9]+: / { next }
         /^\[ RUN      \] |^\[       OK \] / { next }
         /\*\*\*Skipped/ { next } # Listed with their reasons in the end.
         /^ *[0-9]+\/[0-9]+ Test .* Passed / {
             if (++passed % 50) next
             $0 = $0 ", after " systime() - started " s"
         }
         { sub(/ \.\.\.+ */, " ... "); print; fflush() }'
}

# run_ctest <preset>: writes its complete output to $log.
run_ctest() {
    # Three times as many as compilations: with twice as many, the processors idle for a third of the time.
    local command=(ctest --preset "$1" --parallel $((3 * jobs)) --output-log "$log" "${ctest_options[@]}")
    if [[ $1 == tsan ]]; then command=("${without_aslr[@]}" "${command[@]}"); fi
    if [[ -t 1 ]]; then
        "${command[@]}" --progress
    else
        "${command[@]}" | condense
    fi
}

# The tests skip a backend that the machine lacks. If the kernel has io_uring, that would hide a defect, so a
# skipped test of a backend named here fails.
require_backends() {
    if [[ -n ${SIMPLENET_REQUIRE_BACKENDS+set} ]]; then return; fi
    local probe=$root/build/$1/tests/simplenet_probe_io_uring
    if "$probe"; then
        export SIMPLENET_REQUIRE_BACKENDS="epoll io_uring"
    else
        export SIMPLENET_REQUIRE_BACKENDS=epoll
    fi
}

# If a process may have its own namespaces, the tests that create a network in them must run.
require_namespaces() {
    if [[ -n ${SIMPLENET_REQUIRE_NAMESPACES+set} ]]; then return; fi
    if unshare --net --mount true 2>/dev/null ||
        unshare --map-root-user --net --mount true 2>/dev/null; then
        export SIMPLENET_REQUIRE_NAMESPACES=1
    fi
}

# has_whole_programs <preset>: whether each test of ctest is a program with many cases.
has_whole_programs() { grep -q '^SIMPLENET_DISCOVER_TESTS:BOOL=OFF$' "$root/build/$1/CMakeCache.txt"; }
# count_cases <preset> <outcome>: PASSED or SKIPPED
count_cases() {
    awk -v outcome="$2" '$2 == outcome && $4 ~ /^[0-9]+$/ && $5 ~ /^tests?/ { count += $4 }
                         END { print count + 0 }' "$root/build/$1/Testing/Temporary/LastTest.log"
}

# failed_tests <preset>: a line for each test of ctest that failed, with its cases that failed or did not end.
failed_tests() {
    local whole=no
    if has_whole_programs "$1"; then whole=yes; fi
    awk -v whole="$whole" '
        function add(name) {
            if (whole == "no" || ++count[test] > 11) return
            if (count[test] > 1) cases[test] = cases[test] ", "
            cases[test] = cases[test] (count[test] == 11 ? "..." : name)
        }
        FNR == 1 { ++file }
        file == 1 && sub(/^[0-9]+\/[0-9]+ Testing: /, "") { test = $0; running = "" }
        file == 1 && /^\[ RUN      \] / { running = $4 }
        file == 1 && /^\[       OK \] |^\[  SKIPPED \] / { running = "" }
        file == 1 && /^\[  FAILED  \] .* ms\)$/ { sub(/,$/, "", $4); add($4); running = "" }
        file == 1 && /^FAIL: |^ERROR: / { add($2) } # of Python
        file == 1 && /^<end of output>/ && running != "" { add(running " (unfinished)") }
        file == 2 && listed && sub(/^[ \t]*[0-9]+ - /, "") {
            test = $0
            sub(/ \([^(]*\)$/, "", test)
            print "failed: " $0 (test in cases ? ": " cases[test] : "")
        }
        file == 2 && /^The following tests FAILED:/ { listed = 1 }
    ' "$root/build/$1/Testing/Temporary/LastTest.log" "$log"
}

# Clang asks the linker to export symbols that its AddressSanitizer has hidden: with ld.gold, 141 warnings for
# each program.
without_linker_noise() { sed -u "/warning: Cannot export local symbol '__/d"; }

export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}

summary=()
failures=()
failed=no

# run_preset <name>
run_preset() {
    local preset=$1 compiler=$CXX started=$SECONDS fresh result skipped status=0
    if [[ $preset == clang* ]]; then compiler=clang++-19; fi

    headline "$preset: configure and build (build/$preset)"
    fresh=$(fresh_if_moved "$root/build/$preset" "$compiler")
    if ! cmake --preset "$preset" ${fresh:+"$fresh"} "${whole_programs[@]}" >"$log" 2>&1; then
        cat "$log" >&2
        die "CMake could not configure $preset."
    fi
    if [[ $preset == clang-asan ]]; then
        cmake --build --preset "$preset" --parallel "$jobs" 2>&1 | without_linker_noise
    else
        cmake --build --preset "$preset" --parallel "$jobs"
    fi || die "$preset does not build."

    headline "$preset: test"
    require_backends "$preset"
    require_namespaces
    run_ctest "$preset" || status=$?
    result=$(grep -E '^[0-9]+% tests passed' "$log" || echo "ctest ended with status $status")
    skipped=$(grep -c -E '\*\*\*Skipped' "$log" || true)
    if ((skipped > 0)); then result+=", $skipped skipped"; fi
    if has_whole_programs "$preset"; then
        result+="; $(count_cases "$preset" PASSED) cases passed, $(count_cases "$preset" SKIPPED) skipped"
    fi
    say_why_skipped "$root/build/$preset"
    if ((status != 0)); then
        failed=yes
        readarray -t -O ${#failures[@]} failures < <(failed_tests "$preset" | sed "s/^failed: /&$preset: /")
    fi
    summary+=("$(printf '%-9s %s, %d s' "$preset" "$result" $((SECONDS - started)))")
}

cd "$root"
for preset in "${presets[@]}"; do run_preset "$preset"; done

headline "Summary"
printf '%s\n' "${summary[@]}" ${notes[@]+"${notes[@]}"}
say "Required backends: $SIMPLENET_REQUIRE_BACKENDS"
((${#failures[@]} == 0)) || printf '%s\n' "${failures[@]}" # last: a log that is cut keeps its end
[[ $failed == no ]] || die "some tests failed."

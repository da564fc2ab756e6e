#!/usr/bin/env bash
# Runs each fuzzer of tests/fuzz for a given time, under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

all=()
for source in "$root"/tests/fuzz/*_fuzz.cpp; do
    source=${source##*/}
    all+=("${source%_fuzz.cpp}")
done

usage() {
    cat <<END
Usage: scripts/fuzz.sh [--jobs N] [--merge] [SECONDS] [TARGET]...

Builds with clang-19 in build/fuzz and runs each target in turn for SECONDS (default 60):
  ${all[*]}

The targets begin with the files of tests/fuzz/corpus/TARGET. New inputs go to build/fuzz/corpus/TARGET,
where the next run continues; failing inputs go to build/fuzz/findings.

  --merge   afterwards adds small inputs that reach new code to tests/fuzz/corpus, to be committed
  --jobs N  compilations at once (default: $(default_jobs) here)
  --help    this text

To replay a failure, run  build/fuzz/tests/fuzz/simplenet_fuzz_TARGET FILE  or, in any other build,
tests/fuzz/simplenet_replay_TARGET. Begin a fix by adding the file to the corpus.
END
}

jobs=$(default_jobs)
seconds=60
merge=no
targets=()
parse_options jobs=number merge -- "$@"
for each in "${arguments[@]}"; do
    if is_number "$each"; then
        seconds=$each
    elif [[ " ${all[*]} " == *" $each "* ]]; then
        targets+=("$each")
    else
        wrong_usage "neither a number of seconds nor a target: $each"
    fi
done
if ((${#targets[@]} == 0)); then targets=("${all[@]}"); fi

have_libfuzzer() { compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-*.a' >/dev/null; }
want clang-19 compiler_is_usable clang++-19
want libclang-rt-19-dev have_libfuzzer
CXX=clang++-19 want_build_tools
want libgmock-dev have_header gmock/gmock.h
install_wanted
CXX=clang++-19 choose_compiler
end_on_signals

cd "$root"
cmake --preset fuzz >/dev/null
programs=()
for target in "${targets[@]}"; do
    programs+=(--target "simplenet_fuzz_$target")
done
cmake --build build/fuzz --parallel "$jobs" "${programs[@]}"

# The kernel's address randomisation may occupy the place of ASan's shadow.
run=()
if setarch "$(uname -m)" -R true 2>/dev/null; then run=(setarch "$(uname -m)" -R); fi

summary=()
failed=()
for target in "${targets[@]}"; do
    headline "fuzz: $target, $seconds s"
    found=build/fuzz/corpus/$target known=tests/fuzz/corpus/$target findings=build/fuzz/findings/$target
    log=build/fuzz/$target.log
    mkdir -p "$found" "$findings"
    dictionary=()
    if [[ -e tests/fuzz/$target.dict ]]; then dictionary=("-dict=tests/fuzz/$target.dict"); fi
    outcome=ok
    "${run[@]}" "build/fuzz/tests/fuzz/simplenet_fuzz_$target" "-max_total_time=$seconds" \
        -max_len=1024 -timeout=30 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
        "-artifact_prefix=$findings/" "${dictionary[@]}" "$found" "$known" \
        >"$log" 2>&1 </dev/null || outcome=FAILED
    if [[ $outcome != ok ]]; then
        failed+=("$target")
        grep -v -E '^#[0-9]+|^stat::' "$log" | tail -n 40
    fi
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    covered=$(sed -n -E 's/^#.* cov: ([0-9]+) .*/\1/p' "$log" | tail -n 1)
    summary+=("$(printf '%-16s %-7s %12s executions, %6s edges' "$target" "$outcome" \
        "${executed:--}" "${covered:--}")")
    say "${summary[-1]}"

    if [[ $merge == yes && $outcome == ok ]]; then
        "${run[@]}" "build/fuzz/tests/fuzz/simplenet_fuzz_$target" -set_cover_merge=1 -max_len=200 \
            "$known" "$found" >"$log.merge" 2>&1 </dev/null
    fi
done

headline "fuzz: summary"
printf '%s\n' "${summary[@]}"
((${#failed[@]} == 0)) || die "failed: ${failed[*]}; inputs in build/fuzz/findings"

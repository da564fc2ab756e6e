#!/usr/bin/env bash
# Runs the scenarios of the simulator from seeds, and prints the first failure.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/simulate.sh [N [FIRST_SEED]] [-- OPTIONS]

Builds the simulator, optimised, in build/simulate, and runs every scenario with N seeds (default: 1000),
beginning with FIRST_SEED (default: 1). Stops at the first failure and prints the command that replays it.

  -- ...  passed to the simulator: --scenario NAME, --trace (every event), --hash, --list

Environment: CXX chooses the compiler. A seed gives the same run with every compiler.
END
}

parse_options -- "$@"
numbers=("${arguments[@]}")
((${#numbers[@]} <= 2)) || wrong_usage "two numbers at most"
for each in "${numbers[@]}"; do is_count "$each" || wrong_usage "not a number: $each"; done

directory=$root/build/simulate
log=$directory/simulate.log
mkdir -p "$directory"
launcher=()
if have ccache; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
# Debug, for the seams and every check of the library, but optimised.
choose_compiler
fresh=$(fresh_if_moved "$directory" "$CXX")
cmake ${fresh:+"$fresh"} -S "$root" -B "$directory" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O2 -g1" \
    -DSIMPLENET_SEAMS=ON -DSIMPLENET_BUILD_EXAMPLES=OFF "${launcher[@]}" >"$log" 2>&1 ||
    { cat "$log" >&2; die "CMake could not configure the simulator."; }
cmake --build "$directory" --target simplenet_simulate --parallel "$(default_jobs)" >"$log" 2>&1 ||
    { cat "$log" >&2; die "the simulator does not build."; }

exec "$directory/tests/simulation/simplenet_simulate" \
    --seeds "${numbers[0]:-1000}" --first "${numbers[1]:-1}" "${behind[@]}"

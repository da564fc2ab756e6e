#!/usr/bin/env bash
# Lets the hostile crowd attack every example and every idiom of the pages, in the full form.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/crowd.sh [--refusals] [--build DIRECTORY] [OPTIONS]

Builds the examples and the idioms of the pages, optimised, in build/crowd, and lets a thousand raw clients
with every kind of misbehaviour attack each of them, on both backends. With --refusals, instead, each system
call of the library in turn is refused to every example.

  --build DIRECTORY  use the programs there, from a CMake build with tests and examples
  OPTIONS            passed to tests/crowd/crowd.py (or refusals.py): --only TARGET, --manner NAME, --clients N,
                     --seconds S, --backend NAME, --jobs N, --list, --help
END
}

driver=crowd.py
directory=
while (($# > 0)); do
    case $1 in
    --refusals) driver=refusals.py ;;
    --build)
        directory=$(cd "${2:?--build needs a directory}" && pwd)
        shift
        ;;
    --help | -h)
        usage
        exit 0
        ;;
    *) break ;;
    esac
    shift
done

if [[ -z $directory ]]; then
    directory=$root/build/crowd
    log=$directory/crowd.log
    mkdir -p "$directory"
    launcher=()
    if have ccache; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
    choose_compiler
    fresh=$(fresh_if_moved "$directory" "$CXX")
    cmake ${fresh:+"$fresh"} -S "$root" -B "$directory" -G Ninja -DCMAKE_BUILD_TYPE=Release "${launcher[@]}" >"$log" 2>&1 ||
        { cat "$log" >&2; die "CMake could not configure the crowd."; }
    targets=(examples/all crowd_idioms)
    if grep -q "^SIMPLENET_TLS:BOOL=ON" "$directory/CMakeCache.txt"; then targets+=(simplenet_test_certificates); fi
    cmake --build "$directory" --target "${targets[@]}" --parallel "$(default_jobs)" >"$log" 2>&1 ||
        { cat "$log" >&2; die "the examples and idioms do not build."; }
fi

programs=(--examples "$directory/examples")
if [[ $driver == crowd.py ]]; then
    programs+=(--idioms "$directory/tests/crowd/crowd_idioms")
    certificates=$directory/tests/tls/certificates
    if [[ -e $certificates/made ]]; then programs+=(--certificates "$certificates"); fi
else
    programs+=(--refuse "$directory/tests/crowd/libcrowd_refuse.so")
fi
exec python3 -B "$root/tests/crowd/$driver" "${programs[@]}" "$@"

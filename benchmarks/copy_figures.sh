#!/usr/bin/env bash
# CPU seconds of relays for the same transfer, in turns: ours on both backends, socat, and bare
# system calls. Usage: benchmarks/copy_figures.sh BUILD_DIRECTORY [MIB] [ROUNDS]
set -euo pipefail

build=${1:?usage: benchmarks/copy_figures.sh BUILD_DIRECTORY [MIB] [ROUNDS]}
mib=${2:-4096}
rounds=${3:-3}
bench=$build/benchmarks
forward=$build/examples/port_forward

measure() {
    local name=$1
    shift
    printf '%-22s ' "$name"
    "$bench/relay_load" "$mib" "$@"
}

for ((round = 1; round <= rounds; ++round)); do
    for backend in epoll io_uring; do
        measure "async_copy $backend" "$forward" --port '{listen}' --to '127.0.0.1:{to}' \
            --backend "$backend"
    done
    for size in 8192 131072; do
        measure "socat -b $size" socat -b "$size" 'TCP-LISTEN:{listen},bind=127.0.0.1' \
            'TCP:127.0.0.1:{to}'
    done
    for size in 16384 131072; do
        measure "recv/send $size" "$bench/raw_relay" copy "$size" '{listen}' '{to}'
    done
    for size in 65536 1048576; do
        measure "splice $size" "$bench/raw_relay" splice "$size" '{listen}' '{to}'
    done
done

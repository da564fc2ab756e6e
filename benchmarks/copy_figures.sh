#!/usr/bin/env bash
# Measures the CPU seconds of relays for the same transfer, alternating: ours on both backends, socat, nginx
# with its stream module (Debian: libnginx-mod-stream), and bare system calls.
# Usage: benchmarks/copy_figures.sh BUILD_DIRECTORY [MIB] [ROUNDS]
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

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
stream_module=$(find /usr/lib*/nginx/modules -name ngx_stream_module.so -print -quit 2>/dev/null || true)

# One process, as everything else here; the relay's ports come from relay_load.
# shellcheck disable=SC2016  # expanded by the inner shell
start_nginx='cat > "$0/nginx.conf" <<END
load_module $1;
daemon off; master_process off; worker_processes 1;
pid $0/pid; error_log $0/error crit;
events { worker_connections 64; }
stream { server { listen 127.0.0.1:$2; proxy_pass 127.0.0.1:$3; proxy_buffer_size $4; } }
END
exec nginx -p "$0" -c "$0/nginx.conf" -e "$0/error"'

for ((round = 1; round <= rounds; ++round)); do
    for backend in epoll io_uring; do
        measure "async_copy $backend" "$forward" --port '{listen}' --to '127.0.0.1:{to}' \
            --backend "$backend"
    done
    for size in 8192 131072; do
        measure "socat -b $size" socat -b "$size" 'TCP-LISTEN:{listen},bind=127.0.0.1' \
            'TCP:127.0.0.1:{to}'
    done
    for size in 16k 128k; do
        if [[ -n $stream_module ]]; then
            measure "nginx stream $size" bash -c "$start_nginx" "$place" "$stream_module" '{listen}' '{to}' "$size"
        else
            printf '%-22s skipped: nginx has no stream module here\n' "nginx stream $size"
        fi
    done
    for size in 16384 131072; do
        measure "recv/send $size" "$bench/raw_relay" copy "$size" '{listen}' '{to}'
    done
    for size in 65536 1048576; do
        measure "splice $size" "$bench/raw_relay" splice "$size" '{listen}' '{to}'
    done
done

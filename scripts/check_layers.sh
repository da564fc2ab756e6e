#!/usr/bin/env bash
# Includes point only downwards: each layer names the layers it may include. liburing and epoll
# stay where they belong.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
cd "$root"

declare -A may_include=(
    [core]="core"
    [ip]="core ip"
    [sys]="core ip sys"
    [socket]="core ip sys socket"
    [blocking]="core ip sys socket blocking"
    [nonblocking]="core ip sys socket nonblocking"
    [coro]="core coro"
    [sync]="core coro sync"
    [runtime]="core ip sys socket nonblocking coro sync runtime"
    [stream]="core ip sys socket nonblocking coro sync runtime stream"
    [testing]="core ip sys socket nonblocking coro sync runtime stream testing"
)

failures=0
complain() {
    warn "$1"
    failures=$((failures + 1))
}

while IFS= read -r file; do
    layer=${file#include/simplenet/}
    layer=${layer#src/}
    # The umbrella header lies above all layers.
    [[ $layer == */* ]] || continue
    layer=${layer%%/*}
    allowed=${may_include[$layer]-}
    if [[ -z $allowed ]]; then
        complain "$file: the layer $layer is not in scripts/check_layers.sh"
        continue
    fi
    # The two kinds of sockets convert into each other: their sources may meet, their headers not.
    if [[ $file == src/*blocking/* ]]; then allowed+=" blocking nonblocking"; fi
    while IFS= read -r target; do
        if [[ " $allowed " != *" $target "* ]]; then
            complain "$file: $layer must not include $target"
        fi
    done < <(sed -n -E 's/^#include [<"](simplenet\/)?([a-z_]+)\/[a-z_]+\.hpp[>"].*/\2/p' "$file" | sort -u)
done < <(find include/simplenet src -name '*.hpp' -o -name '*.cpp' | sort)

# only_in <what> <pattern of the include> <path prefix>...
only_in() {
    local file each
    while IFS= read -r file; do
        for each in "${@:3}"; do
            if [[ $file == "$each"* ]]; then continue 2; fi
        done
        complain "$file: only ${*:3} include $1"
    done < <(grep -rlE "^#include <$2>" include src || true)
}
only_in liburing 'liburing(/.*)?\.h' src/runtime/uring_backend
only_in epoll 'sys/epoll\.h' src/sys/epoll_calls

((failures == 0)) || die "$failures includes point the wrong way."
say "layers: every include points downwards"

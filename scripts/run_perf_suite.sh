#!/usr/bin/env bash
# Measures the library beside Boost.Asio, libuv, libevent, tokio, asyncio and bare system calls.
# Builds the programs in build/perf and leaves the rest to benchmarks/suite/.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"

have python3 || die "python3 is missing"
suite=(env PYTHONPATH="$root/benchmarks" PYTHONDONTWRITEBYTECODE=1 python3 -m suite.run --root "$root" "$@")

# The suite knows the options and reports mistakes in them before a build that takes minutes.
plan=$("${suite[@]}" --plan)
if [[ $plan != "plan "* ]]; then # --help
    say "$plan"
    exit
fi
read -r _ install build_first build <<<"$plan"

if ((install)); then
    # The newest Boost of the system: Debian 12 has both 1.81 and 1.74.
    boost=libboost-dev
    if apt_knows libboost1.81-dev; then boost=libboost1.81-dev; fi
    want "$boost" have_header boost/asio.hpp
    want libuv1-dev have_header uv.h
    want libevent-dev have_header event2/event.h
    want liburing-dev have_header liburing.h
    want libssl-dev have_header openssl/ssl.h
    want openssl have openssl
    want libbenchmark-dev have_header benchmark/benchmark.h
    want pkg-config have pkg-config
    want valgrind have valgrind
    want apache2-utils have ab
    want nginx-light have_daemon nginx
    want apache2-bin have_daemon apache2
    want php-fpm compgen -G '/usr/sbin/php-fpm*'
    want wrk have wrk
    want libtomlplusplus-dev have_header toml++/toml.h
    want libcli11-dev have_header CLI/CLI.hpp
    want libspdlog-dev have_header spdlog/spdlog.h
    install_wanted
fi

if ((build_first)); then
    say "Building in $build (Release, -O3) ..." >&2
    log=$(mktemp "${TMPDIR:-/tmp}/simplenet-perf-build.XXXXXX")
    trap 'rm -f "$log"' EXIT
    generator=()
    if have ninja && [[ ! -e $build/CMakeCache.txt ]]; then generator=(-G Ninja); fi
    cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
        -DSIMPLENET_BUILD_BENCHMARKS=ON -DSIMPLENET_BUILD_TESTS=OFF -DSIMPLENET_BUILD_EXAMPLES=OFF \
        >"$log" 2>&1 || die "cmake failed: $(tail -n 20 "$log")"
    cmake --build "$build" --parallel "$(default_jobs)" >"$log" 2>&1 ||
        die "the build failed: $(tail -n 30 "$log")"
    if have cargo; then
        # Cargo fetches the crates of Cargo.lock once and keeps them in its cache.
        say "Building benchmarks/tokio with cargo (fetches its crates the first time) ..." >&2
        cargo build --release --locked --quiet --manifest-path "$root/benchmarks/tokio/Cargo.toml" \
            --target-dir "$build/tokio" >"$log" 2>&1 || warn "no tokio: $(tail -n 3 "$log")"
    fi
    rm -f "$log" # exec keeps no trap
    trap - EXIT
fi

exec "${suite[@]}"

#!/usr/bin/env bash
# Measures the library beside Boost.Asio, libuv, libevent, tokio, asyncio and bare system calls.
# Builds what it needs in build/perf and leaves the rest to benchmarks/suite/.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"

usage() {
    cat <<END
Usage: scripts/run_perf_suite.sh [--quick | --full] [OPTIONS]

  --quick           about two minutes: does it work, and is anything far off
  --full            the default; about three quarters of an hour
  --scenario REGEX  only scenarios whose whole name matches
  --list            names the scenarios and their cases
  --save FILE       writes the run there, as JSON. Full mode with all scenarios and subjects writes
                    docs/development/perf-data/DATE-COMMIT-N.json by itself; --no-save does not.
                    A run that is stopped leaves what it has in a file beside, with -partial
  --raw FILE        writes every line there as well; a run that is saved by itself has its lines in
                    runs/ of the build directory
  --build DIR       where to build (default: build/perf)
  --no-build        take what is built there
  --install         install with apt what is missing to measure against; otherwise nothing is
                    installed, and what is missing is skipped with a PERF_SKIP line
  --parameters      the environment variables that change the runs
  --help            this text

Close everything else on the machine first. docs/development/performance.md says how to read it.
END
}

build=$root/build/perf
build_first=1
install=0
rest=()
while (($# > 0)); do
    case $1 in
    --build)
        (($# > 1)) || { warn "--build needs a directory" && exit 2; }
        build=$2 && shift
        ;;
    --no-build) build_first=0 ;;
    --install) install=1 ;;
    --parameters) rest+=(--help) ;;
    --list) rest+=(--list) && build_first=0 ;;
    --help | -h) usage && exit 0 ;;
    *) rest+=("$1") ;;
    esac
    shift
done
have python3 || die "python3 is missing"

suite=(env PYTHONPATH="$root/benchmarks" PYTHONDONTWRITEBYTECODE=1 python3 -m suite.run
    --build "$build" --root "$root" ${rest[@]+"${rest[@]}"})
# What is wrong with the command line is said before a build of minutes, and --help needs none.
"${suite[@]}" --check
case " ${rest[*]-} " in *" --help "*) exit 0 ;; esac

if ((install)); then
    # The newest Boost that the system has: Debian 12 has 1.81 beside 1.74.
    boost=libboost-dev
    if apt_knows libboost1.81-dev; then boost=libboost1.81-dev; fi
    want "$boost" have_header boost/asio.hpp
    want libuv1-dev have_header uv.h
    want libevent-dev have_header event2/event.h
    want liburing-dev have_header liburing.h
    want libbenchmark-dev have_header benchmark/benchmark.h
    want pkg-config have pkg-config
    want valgrind have valgrind
    want apache2-utils have ab
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
        # Cargo fetches the crates that Cargo.lock names, once; they stay in its cache.
        say "Building benchmarks/tokio with cargo (fetches its crates the first time) ..." >&2
        cargo build --release --locked --quiet --manifest-path "$root/benchmarks/tokio/Cargo.toml" \
            --target-dir "$build/tokio" >"$log" 2>&1 || warn "no tokio: $(tail -n 3 "$log")"
    fi
    rm -f "$log" # exec keeps no trap
    trap - EXIT
fi

exec "${suite[@]}"

#!/usr/bin/env bash
# Counts instructions, which do not depend on how busy the machine is, and compares two commits.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

usage() {
    cat <<END
Usage: scripts/perf_check.sh instructions [OPTIONS]
       scripts/perf_check.sh compare OLD [NEW]

  instructions   counts the user-space instructions of an echo server per round trip of 64 bytes. On epoll
                 with valgrind (callgrind), as the difference of a short and a long run; callgrind lacks
                 epoll_pwait2, and reading the clock is a system call there. On io_uring, which valgrind
                 does not support, by single-stepping the program.

  compare        builds two commits (default of NEW: the work tree) and compares their echo servers:
                 paired runs, and instructions on epoll. Fails if NEW is slower beyond the noise of the
                 run and by more than 1 %, twice in a row, or needs 1 % more instructions. PERF_REPEATS,
                 PERF_SECONDS, PERF_SIZES, PERF_CONNECTIONS and PERF_CHURN_CONNECTIONS are as for
                 run_perf_suite.sh.

  --build DIR       a Release build with SIMPLENET_BUILD_BENCHMARKS=ON (default: build/perf, created if
                    missing); changed sources are rebuilt
  --no-build        use the existing programs
  --cpu N           the processor on which both ends run (default: the first usable one)
  --server PROGRAM  count this program instead of DIR's echo_server; it takes the same options
  --case REGEX      only cases whose name matches
  --method NAME     callgrind or step, for every case
  --profile CASE    show the instructions of this case by function
  --help            this text
END
}

build=
server=
method=
profile=
cpu=
command=${1:-}
case $command in
--help | -h) usage && exit 0 ;;
"") wrong_usage "instructions, or compare?" ;;
esac
shift

# build_for_comparison <sources> <build>
build_for_comparison() {
    cmake -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Release -DSIMPLENET_BUILD_BENCHMARKS=ON \
        -DSIMPLENET_BUILD_TESTS=OFF -DSIMPLENET_BUILD_EXAMPLES=OFF >/dev/null
    cmake --build "$2" --parallel "$(default_jobs)" \
        --target simplenet_bench_echo_server simplenet_bench_load_client >/dev/null
}

compare() {
    local place each sources=() names=(old new)
    place=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-compare.XXXXXX")
    # shellcheck disable=SC2064 # the place as it is now
    trap "git -C '$root' worktree remove --force '$place/old' 2>/dev/null || true
        git -C '$root' worktree remove --force '$place/new' 2>/dev/null || true; rm -rf '$place'" EXIT
    end_on_signals
    for each in 0 1; do
        if (($# > each)); then
            git -C "$root" worktree add --quiet --detach "$place/${names[each]}" "${*:each+1:1}"
            sources+=("$place/${names[each]}")
        else
            sources+=("$root")
        fi
        say "Building ${names[each]} ..." >&2
        build_for_comparison "${sources[each]}" "$place/build-${names[each]}"
    done
    PYTHONPATH=$root/benchmarks PYTHONDONTWRITEBYTECODE=1 python3 -m suite.compare \
        --old "$place/build-old" --new "$place/build-new" --root "$root"
}
if [[ $command == compare ]]; then
    parse_options -- "$@"
    ((${#arguments[@]} == 1 || ${#arguments[@]} == 2)) || wrong_usage "compare needs one commit or two"
    compare "${arguments[@]}"
    exit
fi

[[ $command == instructions ]] || wrong_usage "not a command: $command"
case=. no_build=no
parse_options build=text server=text case=text method=text profile=text cpu=count no-build -- "$@"
((${#arguments[@]} == 0)) || wrong_usage "unknown argument: ${arguments[0]}"

if [[ -z $cpu ]]; then
    cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
fi
if [[ $no_build == no ]]; then
    if [[ -z $build ]]; then
        build=$root/build/perf
        # Only a new build chooses its generator; CMake refuses to change that of an existing build.
        generator=()
        if have ninja && [[ ! -e $build/CMakeCache.txt ]]; then generator=(-G Ninja); fi
        cmake -S "$root" -B "$build" ${generator[@]+"${generator[@]}"} -DCMAKE_BUILD_TYPE=Release \
            -DSIMPLENET_BUILD_BENCHMARKS=ON -DSIMPLENET_BUILD_TESTS=OFF \
            -DSIMPLENET_BUILD_EXAMPLES=OFF >/dev/null
    fi
    cmake --build "$build" --target simplenet_bench_echo_server simplenet_bench_load_client \
        simplenet_bench_count_instructions >/dev/null
fi
build=${build:-$root/build/perf}
tools=$build/benchmarks
server=${server:-$tools/echo_server}

work=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-perf.XXXXXX")
server_pid=
trap 'if [[ -n $server_pid ]]; then kill "$server_pid" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
end_on_signals

# run_once <options of the client> <command of the server...>: writes the server's standard error to
# $work/log.
run_once() {
    local client=$1 port=
    shift
    : >"$work/port"
    # Both on one processor; otherwise the number of connections ready in a turn would vary by chance.
    taskset -c "$cpu" "$@" >"$work/port" 2>"$work/log" &
    server_pid=$!
    for _ in {1..600}; do
        if port=$(head -n 1 "$work/port") && [[ -n $port ]]; then break; fi
        kill -0 "$server_pid" 2>/dev/null || die "the server did not start: $(cat "$work/log")"
        sleep 0.1
    done
    # The tool traces its child.
    local traced
    traced=$(pgrep -P "$server_pid" || echo "$server_pid")
    # shellcheck disable=SC2086 # options are words
    taskset -c "$cpu" "$tools/load_client" --port "$port" --size 64 --peer "$traced" $client >/dev/null
    wait "$server_pid" || die "the server failed: $(cat "$work/log")"
    server_pid=
}

# by_callgrind <connections> <server options...>: counts by the difference of two runs.
by_callgrind() {
    local connections=$1 each
    shift
    for each in 5000 25000; do
        run_once "--connections $connections --round-trips $each" valgrind --tool=callgrind \
            --callgrind-out-file="$work/callgrind.$each" "$server" "$@"
    done
    awk '/^summary:/ { total = $2 - total } END { print total / 20000 }' "$work"/callgrind.{5000,25000}
}

# by_steps <connections> <server options...>: counts between two marks, after a warm-up.
by_steps() {
    local connections=$1
    shift
    run_once "--connections $connections --warm-up $((connections * 50)) --round-trips $stepped --mark" \
        "$tools/count_instructions" ${profile:+--profile "$work/steps"} "$server" "$@"
    awk -F= -v n="$stepped" '/^instructions=/ { print $2 / n }' "$work/log"
}

# Attributes the instructions of by_steps() to functions: without address randomisation a relocatable
# executable is loaded at a fixed address.
show_steps() {
    nm -C -n --defined-only "$server" | awk '$2 ~ /[tTwW]/' >"$work/symbols"
    python3 - "$work/symbols" "$work/steps" "$stepped" <<'PYTHON'
import bisect, collections, sys
names, starts = [], []
for line in open(sys.argv[1]):
    address, _, name = line.rstrip("\n").split(" ", 2)
    starts.append(int(address, 16))
    names.append(name)
trips = int(sys.argv[3])
count = collections.Counter()
for line in open(sys.argv[2]):
    address, times = line.split()
    at = int(address, 16) - (0x555555554000 if starts[0] < 0x400000 else 0)
    inside = starts[0] <= at < starts[-1] + 65536
    name = names[bisect.bisect_right(starts, at) - 1] if inside else "(other objects)"
    count[name] += int(times)
for name, total in count.most_common(40):
    if total > trips / 2:
        print(f"{total / trips:8.1f}  {name[:110]}")
PYTHON
}

show_callgrind() {
    callgrind_annotate --threshold=100 "$work/callgrind.25000" |
        awk '/ir +file:function|^ *[0-9,]+ \(/ && ++lines < 45'
}

# name method connections options of the server...
cases=(
    "epoll-1 callgrind 1 --backend epoll"
    "epoll-100 callgrind 100 --backend epoll"
    "epoll-receive-1 callgrind 1 --backend epoll --read receive"
    "epoll-receive-100 callgrind 100 --backend epoll --read receive"
    "epoll-limit-1 callgrind 1 --backend epoll --limit 30"
    "epoll-limit-100 callgrind 100 --backend epoll --limit 30"
    "io_uring-1 step 1 --backend io_uring"
    "io_uring-100 step 100 --backend io_uring"
    "io_uring-receive-1 step 1 --backend io_uring --read receive"
    "io_uring-receive-100 step 100 --backend io_uring --read receive"
    "io_uring-limit-1 step 1 --backend io_uring --limit 30"
    "io_uring-limit-100 step 100 --backend io_uring --limit 30"
)
if [[ -n $profile ]]; then case="^$profile\$"; fi
for each in "${cases[@]}"; do
    read -r name how connections options <<<"$each"
    [[ $name =~ $case ]] || continue
    how=${method:-$how}
    if [[ $how == callgrind ]]; then
        have valgrind || die "install valgrind"
        # shellcheck disable=SC2086 # options are words
        figure=$(by_callgrind "$connections" $options)
    else
        # A step takes 20 us if a hypervisor intercepts each of them.
        stepped=$((connections < 100 ? 300 : 1000))
        # shellcheck disable=SC2086
        figure=$(by_steps "$connections" $options)
    fi
    printf '%-22s %-9s %8.1f instructions a round trip\n' "$name" "$how" "$figure"
    if [[ -z $profile ]]; then continue; fi
    if [[ $how == callgrind ]]; then show_callgrind; else show_steps; fi
done

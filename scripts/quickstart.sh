#!/usr/bin/env bash
# Builds the library and an echo server, lets real clients talk to the server over each backend, and checks
# every byte that comes back.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/quickstart.sh [--round-trips N] [--serve DIR] [--jobs N] [--no-install]

Installs missing packages with apt, builds the library in Release, runs the echo server over epoll and over
io_uring, and lets two clients talk to it: examples/echo_client, and a foreign one.

  --round-trips N  number of round trips to measure (default 20000)
  --serve DIR      instead build the web server simplenet-httpd, and serve DIR at http://127.0.0.1:8080/ until
                   Ctrl-C
  --jobs N         compilations at once (default: $(default_jobs) here)
  --no-install     list missing packages instead of installing them
  --help           this text

Environment: CXX chooses the compiler. All files are written to build/quickstart.
END
}

round_trips=20000
jobs=$(default_jobs)
no_install=no
serve=
parse_options round-trips=number serve=text jobs=number no-install -- "$@"
((${#arguments[@]} == 0)) || wrong_usage "unknown argument: ${arguments[0]}"
[[ -z $serve || -d $serve ]] || wrong_usage "no directory: $serve"
if [[ $no_install == yes ]]; then export SIMPLENET_NO_INSTALL=1; fi

# --- nothing stays behind ------------------------------------------------------------------------

work=''
children=()

# Background jobs of a shell ignore SIGINT, so this sends SIGTERM, only to processes started here, by id.
stop_children() {
    local pid
    for pid in "${children[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in "${children[@]}"; do
        local tries=0
        while kill -0 "$pid" 2>/dev/null && ((tries < 50)); do
            sleep 0.1
            tries=$((tries + 1))
        done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    children=()
}
clean_up() {
    stop_children
    if [[ -n $work ]]; then rm -rf "$work"; fi
}
trap clean_up EXIT
end_on_signals

# run_child <command...>: runs the command in the background and waits for it: a trap has to wait for a
# foreground command, but interrupts `wait`.
run_child() {
    # Without this a background command would lose the redirection of its input.
    "$@" <&0 &
    local pid=$! status=0
    children+=("$pid")
    wait "$pid" || status=$?
    unset 'children[-1]'
    return "$status"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-quickstart.XXXXXX")

# --- build ---------------------------------------------------------------------------------------

headline "Tools"
want_build_tools
if [[ -n $serve ]]; then want_httpd_libraries; fi
install_wanted
choose_compiler
say "$(compiler_name "$CXX")"
say "$(cmake --version | head -n 1)"

headline "Build (Release, build/quickstart)"
build=$root/build/quickstart
fresh=$(fresh_if_moved "$build" "$CXX")
# A unity build takes a fifth of the time; nothing will be changed and rebuilt here.
if ! cmake -S "$root" -B "$build" -G Ninja ${fresh:+"$fresh"} -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=30 \
    -DSIMPLENET_BUILD_TESTS=OFF -DSIMPLENET_BUILD_EXAMPLES=ON ${serve:+-DSIMPLENET_HTTPD=ON} \
    >"$work/configure.log" 2>&1; then
    cat "$work/configure.log" >&2
    die "CMake could not configure the build."
fi
if [[ -n $serve ]]; then
    cmake --build "$build" --parallel "$jobs" --target simplenet_httpd
    headline "simplenet-httpd serves $serve"
    run_child "$build/programs/httpd/simplenet-httpd" --root "$serve"
    exit
fi
cmake --build "$build" --parallel "$jobs" \
    --target simplenet_example_echo_server simplenet_example_echo_client
examples=$build/examples

# --- the clients ---------------------------------------------------------------------------------

# Only OpenBSD's nc has -N: finish sending, keep reading.
nc_can_half_close() { have nc && [[ $(nc -h 2>&1) == *OpenBSD* ]]; }

# check_with_nc <port>: 1 MiB of random bytes there and back.
check_with_nc() {
    head -c 1048576 /dev/urandom >"$work/sent"
    run_child timeout 30 nc -N 127.0.0.1 "$1" <"$work/sent" >"$work/back" || return 1
    cmp "$work/sent" "$work/back" >&2
}

# check_with_bash <port>: 200 lines of growing length, one at a time.
check_with_bash() {
    local port=$1 i line back
    # The subshell keeps a refused connection from ending this shell.
    (
        exec 4<>"/dev/tcp/127.0.0.1/$port" || exit 1
        line=
        for ((i = 0; i < 200; ++i)); do
            line+=$(printf '%05d' $((RANDOM)))
            printf '%s\n' "$line" >&4
            IFS= read -r -t 10 -u 4 back && [[ $back == "$line" ]] || exit 1
        done
    )
}

# --- one server for each backend -----------------------------------------------------------------

# start_server <backend>: sets server_port and server_backend, or returns 1 with the server's message in
# $work/server.err.
start_server() {
    local line='' tries=0 server
    : >"$work/server.out" # otherwise the output of the previous server would be read
    "$examples/echo_server" --port 0 --backend "$1" >"$work/server.out" 2>"$work/server.err" &
    server=$!
    children+=("$server")
    while ((tries < 100)); do
        line=$(grep -m 1 '^listening on ' "$work/server.out" || true)
        if [[ $line =~ ^listening\ on\ .*:([0-9]+)\ \((epoll|io_uring)\) ]]; then
            server_port=${BASH_REMATCH[1]}
            server_backend=${BASH_REMATCH[2]}
            return 0
        fi
        if ! kill -0 "$server" 2>/dev/null; then
            wait "$server" || true
            children=()
            return 1
        fi
        sleep 0.1
        tries=$((tries + 1))
    done
    die "the echo server printed nothing for ten seconds: $(cat "$work/server.out" "$work/server.err")"
}

summary=()
server_port=''
server_backend=''

# try_backend <backend>
try_backend() {
    local asked=$1 foreign rate said

    headline "Echo server on $asked"
    if ! start_server "$asked"; then
        if [[ $asked == epoll ]] || ! grep -q 'unavailable' "$work/server.err"; then
            cat "$work/server.out" "$work/server.err" >&2
            die "the echo server did not start on $asked."
        fi
        cat "$work/server.err"
        start_server automatic || die "the echo server did not start: $(cat "$work/server.err")"
    fi
    if [[ $server_backend != "$asked" ]]; then
        case " ${SIMPLENET_REQUIRE_BACKENDS:-} " in
        *" $asked "*) die "$asked was required, but the server uses $server_backend." ;;
        esac
        say "This kernel or sandbox does not offer $asked: the server uses $server_backend instead."
    fi
    say "listening on 127.0.0.1:$server_port ($server_backend)"

    run_child timeout 120 "$examples/echo_client" 127.0.0.1 "$server_port" \
        --round-trips "$round_trips" --size 64 >"$work/client.out" </dev/null ||
        die "echo_client failed: $(cat "$work/client.out")"
    said=$(grep -m 1 'round trips' "$work/client.out" || true)
    if [[ ! $said =~ round\ trips,\ ([0-9.]+)\ per\ second ]]; then
        die "echo_client did not report its rate: $(cat "$work/client.out")"
    fi
    rate=${BASH_REMATCH[1]%.*}
    say "echo_client: $said"

    if nc_can_half_close; then
        foreign="nc, 1 MiB"
        check_with_nc "$server_port" || die "the bytes that nc sent did not come back."
    else
        foreign="bash, 200 lines"
        check_with_bash "$server_port" || die "the lines that bash sent did not come back."
    fi
    say "a foreign client ($foreign): every byte came back"
    stop_children

    if [[ $server_backend != "$asked" ]]; then asked+=" (used $server_backend)"; fi
    summary+=("$(printf '%-26s %22s   echo_client, %s' "$asked" "$rate" "$foreign")")
}

try_backend epoll
try_backend io_uring

headline "Summary"
printf '%-26s %22s   %s\n' backend "round trips per second" "every byte checked by"
printf '%s\n' "${summary[@]}"
say
say "(64 bytes, one connection, client and server on this machine.)"
say "Read next: docs/usage/quickstart.md, and examples/echo_server.cpp, which you just ran."
say "A web server: scripts/quickstart.sh --serve DIR, and docs/usage/httpd-guide.md."

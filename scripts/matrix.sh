#!/usr/bin/env bash
# Builds and tests the library on other systems: each cell of a table of systems, compilers and options has
# its own minimal Debian.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"

# name              suite    compiler  library    type    kind    io_uring
cells=(
    "debian12-readme      bookworm -          libstdc++ -       static with"
    "debian13-readme      trixie   -          libstdc++ -       static with"
    "gcc12-O3-shared      bookworm g++        libstdc++ Release shared with"
    "gcc12-O0-no-uring    bookworm g++        libstdc++ Debug   static without"
    "clang19-O0-gcc12     bookworm clang++-19 libstdc++ Debug   static with"
    "gcc14-O3             trixie   g++-14     libstdc++ Release static with"
    "gcc14-O0-shared      trixie   g++-14     libstdc++ Debug   shared with"
    "clang19-O3           trixie   clang++-19 libstdc++ Release static with"
    "clang19-O0-libcxx    trixie   clang++-19 libc++    Debug   static with"
    "clang19-O3-libcxx    trixie   clang++-19 libc++    Release shared with"
    "aarch64-gcc14-O3     trixie   aarch64    libstdc++ Release static with"
)

usage() {
    cat <<END
Usage: scripts/matrix.sh [--list] [--keep] [--jobs N] [CELL]...

Runs the named cells, or all of them, one at a time, and prints a table. Needs root, for debootstrap and
chroot, and Debian's mirrors.

  -readme   runs the two commands of the README in a fresh Debian, minimal except for ccache:
            scripts/quickstart.sh and scripts/test.sh, which install missing packages
  aarch64-  builds with Debian's cross compiler and runs the tests under qemu-user, which emulates a
            process and has no io_uring; needs Linux 6.7
  others    in a minimal Debian with the packages of the cell: configures, builds everything, runs every test

  --list    prints the cells
  --keep    keeps the fresh systems of the readme cells for inspection
  --jobs N  compilations at once, and three times as many tests (default: $(default_jobs) here)
  --help    this text

Systems and logs are in \$SIMPLENET_MATRIX_DIR (default: /var/tmp/simplenet-matrix), several GB. They are
reused; to start afresh, remove the directory. If ccache is installed here, the cells share its cache.
\$SIMPLENET_MATRIX_MIRROR is a Debian mirror to use instead of debootstrap's choice.
END
}

list_cells() {
    printf '%-20s %-9s %-11s %-10s %-8s %-7s %s\n' cell suite compiler library type kind io_uring
    local cell
    for cell in "${cells[@]}"; do
        # shellcheck disable=SC2086
        printf '%-20s %-9s %-11s %-10s %-8s %-7s %s\n' $cell
    done
}

keep=no
jobs=$(default_jobs)
chosen=()
list=no
parse_options list keep jobs=number -- "$@"
if [[ $list == yes ]]; then
    list_cells
    exit 0
fi
for each in "${arguments[@]}"; do
    found=
    for cell in "${cells[@]}"; do
        if [[ ${cell%% *} == "$each" ]]; then found=$cell; fi
    done
    [[ -n $found ]] || wrong_usage "no cell $each; see --list"
    chosen+=("$found")
done
if ((${#chosen[@]} == 0)); then chosen=("${cells[@]}"); fi
((EUID == 0)) || die "debootstrap and chroot need root."
want debootstrap have debootstrap
install_wanted

where=${SIMPLENET_MATRIX_DIR:-/var/tmp/simplenet-matrix}
mkdir -p "$where/logs"
# Two runs at a time would create the same systems.
exec 9>"$where/lock"
flock -n 9 || die "another matrix.sh is running in $where."
end_on_signals

# --- systems -------------------------------------------------------------------------------------

# remove_system <name>: never through a mount, because that would remove files of this machine.
remove_system() {
    if grep -q -F " $where/$1/" /proc/self/mountinfo; then
        warn "something is still mounted below $where/$1: unmount it, and run this again."
        return 1
    fi
    rm -rf --one-file-system "${where:?}/${1:?}"
}

# base_of <suite>: a minimal system, created once. The mounts of debootstrap end with it.
base_of() {
    local base=$where/$1
    if [[ ! -e $base/.complete ]]; then
        remove_system "$1" || return 1
        # shellcheck disable=SC2086 # a mirror, or nothing
        unshare --mount --propagation private \
            debootstrap --variant=minbase "$1" "$base" ${SIMPLENET_MATRIX_MIRROR:-} || return 1
        # Remove cached packages: copies of this must be fresh systems.
        rm -f "$base"/var/cache/apt/archives/*.deb
        touch "$base/.complete"
    fi
}

# copy_of <suite> <name>: a copy of the base system.
copy_of() {
    remove_system "$2" || return 1
    cp -a --reflink=auto "$where/$1" "$where/$2"
}

ccache_dir=
ccache_size=
if have ccache; then
    ccache_dir=$(ccache --get-config cache_dir)
    ccache_size=$(ccache --get-config max_size)
fi

# The architecture whose programs inside() can run in addition to this machine's; empty: none.
emulated=

# inside <system> <command...>: runs the command in the system, with /proc, /sys and /dev. Its mounts and
# child processes end with it.
inside() {
    local system=$where/$1 namespaces=(--mount --pid)
    shift
    # Since Linux 6.7 a user namespace has a binfmt_misc of its own; the machine's stays as it is.
    if [[ -n $emulated ]]; then namespaces+=(--user --map-root-user); fi
    cp -L /etc/resolv.conf "$system/etc/resolv.conf"
    mkdir -p "$system/ccache"
    # shellcheck disable=SC2016 # expanded inside
    unshare "${namespaces[@]}" --fork --kill-child --propagation private bash -c '
        set -e
        system=$1 ccache_dir=$2 emulated=$3
        shift 3
        # A mount point, so that programs inside can have their own mounts.
        mount --bind "$system" "$system"
        mount -t proc proc "$system/proc"
        mount --rbind /sys "$system/sys"
        mount --rbind /dev "$system/dev"
        if [[ -n $ccache_dir ]]; then mount --bind "$ccache_dir" "$system/ccache"; fi
        if [[ -n $emulated ]]; then
            mount -t binfmt_misc binfmt_misc "$system/proc/sys/fs/binfmt_misc"
            chroot "$system" sh -c "cat /usr/share/qemu/binfmt.d/qemu-$emulated.conf \
                >/proc/sys/fs/binfmt_misc/register"
        fi
        exec chroot "$system" /usr/bin/env -i "$@"' inside "$system" "$ccache_dir" "$emulated" \
        HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        CCACHE_DIR=/ccache CCACHE_MAXSIZE="${ccache_size:-5G}" CCACHE_BASEDIR=/simplenet \
        CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros \
        "$@"
}

# install_into <system> <package...>
install_into() {
    local system=$1 package missing=()
    shift
    for package in "$@"; do
        # shellcheck disable=SC2016 # dpkg's variable
        if ! chroot "$where/$system" dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
            grep -q 'ok installed'; then
            missing+=("$package")
        fi
    done
    ((${#missing[@]} > 0)) || return 0
    inside "$system" bash -c 'apt-get -q update && apt-get -q install -y --no-install-recommends "$@"' \
        install "${missing[@]}"
}

# Copies this tree, with uncommitted changes, into a system.
put_sources_into() {
    local to=$where/$1/simplenet
    rm -rf "$to"
    mkdir -p "$to"
    if git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git -C "$root" ls-files -z --cached --others --exclude-standard |
            tar -C "$root" --null --ignore-failed-read -T - -cf - | tar -C "$to" -xf -
    else
        tar -C "$root" --exclude ./build -cf - . | tar -C "$to" -xf -
    fi
}

# Tests that fail because of qemu-user. docs/development/testing.md has the reasons.
beyond_qemu=(
    datagram_socket_test.members_of_a_group_receive_what_is_sent_to_it
    late_bytes_test.room_beats_the_limit_of_a_write_that_has_moved
    local_stream_test.connect_with_a_timeout_leaves_a_stream_without_timeouts
    send_file_test.an_unread_error_queue_keeps_no_loop_awake
    udp_options_test.groups_are_joined_once_and_left_once
    udp_options_test.ipv6_groups_take_the_interface_from_their_scope
    udp_options_test.joining_an_address_that_is_not_multicast_is_refused
    udp_options_test.multicast_settings_read_back_for_ipv6
    udp_options_test.options_of_a_closed_socket_fail_with_bad_file_descriptor
    udp_socket_test.a_socket_receives_from_a_group_until_it_leaves
    used_up_pool_test.an_unread_error_queue_does_not_spin_while_others_receive_ahead
)

# --- cells ---------------------------------------------------------------------------------------

# readme_cell <name> <suite>
readme_cell() {
    local system=$1.system
    base_of "$2" && copy_of "$2" "$system" || return 1
    if [[ -n $ccache_dir ]]; then install_into "$system" ccache || return 1; fi
    put_sources_into "$system"
    local status=0
    # shellcheck disable=SC2016 # expanded inside
    inside "$system" bash -c '
        cd /simplenet
        ./scripts/quickstart.sh --jobs "$1" && ./scripts/test.sh --jobs "$1" || exit 1
        echo "matrix: $(g++ --version | head -n 1)"
        echo "matrix: liburing $(dpkg-query -W -f "\${Version}" liburing-dev)"' \
        readme "$jobs" || status=1
    if [[ $keep == no ]]; then remove_system "$system" || status=1; fi
    return $status
}

# build_cell <name> <suite> <compiler> <library> <type> <kind> <io_uring>
build_cell() {
    local name=$1 suite=$2 compiler=$3 library=$4 type=$5 kind=$6 uring=$7
    local system=$suite.tools packages=(cmake ninja-build python3 curl netcat-openbsd openssl socat netbase)
    # No debug information: it takes half of the time of an unoptimised build.
    local options=(-DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DSIMPLENET_WERROR=ON)
    local foreign='' of='' left_out='' status=0

    if [[ -n $ccache_dir ]]; then
        packages+=(ccache)
        options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    case $compiler in
    aarch64)
        foreign=aarch64 of=:arm64 system+=.arm64 compiler=aarch64-linux-gnu-g++
        packages+=(g++-aarch64-linux-gnu qemu-user "libstdc++6$of")
        # The tests of the examples measure processor time, which is the emulator's. The cross compiler
        # refuses its own precompiled header when it comes from ccache (__LDBL_DENORM_MIN__ differs), and
        # reads the headers again.
        options+=(--toolchain cmake/aarch64-linux-gnu.cmake -DSIMPLENET_BUILD_EXAMPLES=OFF
            -DCMAKE_PCH_WARN_INVALID=OFF)
        left_out="/($(tr ' ' '|' <<<"${beyond_qemu[*]//./\\.}"))"
        ;;
    clang++-19) packages+=(clang-19 g++) ;; # g++: for libstdc++
    *) packages+=("$compiler") ;;
    esac
    if [[ -z $foreign ]]; then options+=(-DCMAKE_CXX_COMPILER="$compiler"); fi
    if [[ $library == libc++ ]]; then
        # Debian's GoogleTest is compiled for libstdc++.
        packages+=(libc++-19-dev libc++abi-19-dev googletest)
        options+=(-DCMAKE_CXX_FLAGS=-stdlib=libc++ -DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER
            -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest)
    else
        packages+=("libgmock-dev$of")
    fi
    # These tests are built once, so compile several together; without optimisation each is compiled alone.
    if [[ $type == Release ]]; then options+=(-DSIMPLENET_TEST_BATCH=6); fi
    if [[ $kind == shared ]]; then options+=(-DBUILD_SHARED_LIBS=ON); fi
    if [[ $uring == without ]]; then # and without TLS
        options+=(-DSIMPLENET_IO_URING=OFF -DSIMPLENET_TLS=OFF)
        system+=.no-uring
    else
        packages+=("liburing-dev$of" "libssl-dev$of")
        options+=(-DSIMPLENET_TLS=ON)
    fi

    base_of "$suite" || return 1
    if [[ ! -e $where/$system/.complete ]]; then copy_of "$suite" "$system" || return 1; fi
    if [[ -n $of ]]; then chroot "$where/$system" dpkg --add-architecture "${of#:}"; fi
    install_into "$system" "${packages[@]}" || return 1
    put_sources_into "$system"
    emulated=$foreign
    # shellcheck disable=SC2016 # expanded inside
    inside "$system" bash -c '
        set -e
        compiler=$1 jobs=$2 left_out=$3
        shift 3
        cd /simplenet
        cmake -S . -B build/matrix -G Ninja "$@"
        cmake --build build/matrix --parallel "$jobs"
        echo "matrix: $($compiler --version | head -n 1)"
        echo "matrix: liburing $(dpkg-query -W -f "\${Version}" liburing-dev 2>/dev/null || echo none)"
        export SIMPLENET_REQUIRE_BACKENDS=epoll
        if [[ " $* " != *" -DSIMPLENET_IO_URING=OFF "* ]] && build/matrix/tests/simplenet_probe_io_uring
        then SIMPLENET_REQUIRE_BACKENDS+=" io_uring"; fi
        echo "matrix: required backends: $SIMPLENET_REQUIRE_BACKENDS"
        ctest --test-dir build/matrix --parallel $((2 * jobs)) --output-on-failure --no-tests=error \
            ${left_out:+--exclude-regex "$left_out"}' \
        build "$compiler" "$jobs" "$left_out" "${options[@]}" || status=1
    say_why_skipped "$where/$system/simplenet/build/matrix" || status=1
    return $status
}

# passed_by_layer <log>: counts the tests that passed.
passed_by_layer() {
    awk '/ Test +#[0-9]+: .* Passed / { sub(/.*#[0-9]+: /, ""); sub(/[\/.].*/, ""); ++count[$0] }
         END { for (layer in count) print layer, count[layer] }' "$1" | sort | paste -s -d , | sed 's/,/, /g'
}

run_cell() {
    if [[ $1 == *-readme ]]; then readme_cell "$@"; else build_cell "$@"; fi
}

# Extracts the columns of the table from a log: compiler, liburing and tests.
described() {
    local compiler tests liburing
    compiler=$(sed -n -E 's/^matrix: (.*(clang|g\+\+).*)$/\1/p' "$1" | head -n 1)
    compiler=$(sed -E 's/^Debian //; s/ \(.*\) / /; s/ \([^()]*\)$//' <<<"$compiler")
    liburing=$(sed -n 's/^matrix: liburing //p' "$1" | head -n 1)
    tests=$(grep -E '^[0-9]+% tests passed' "$1" | tail -n 1 || true)
    tests+=$(sed -n -E 's/^([0-9]+) skipped: .*/\1/p' "$1" | awk '{ n += $1 } END { if (n) print ", " n " skipped" }')
    printf '%-24s %-8s %s' "${compiler:--}" "${liburing:--}" "${tests:-no tests}"
}

summary=()
failed=()
for cell in "${chosen[@]}"; do
    read -r -a columns <<<"$cell"
    name=${columns[0]} log=$where/logs/${columns[0]}.log
    headline "matrix: $name (log: $log)"
    started=$SECONDS outcome=ok
    # In a subshell: `set -e` has no effect in a condition.
    (run_cell "${columns[@]}") </dev/null >"$log" 2>&1 9>&- || outcome=FAILED
    if [[ $outcome != ok ]]; then
        failed+=("$name")
        tail -n 25 "$log"
    fi
    summary+=("$(printf '%-20s %-7s %5d s  %s' "$name" "$outcome" $((SECONDS - started)) \
        "$(described "$log")")")
    # Without them a green line would hide the tests that have not run.
    summary[-1]+=$(echo && sed -n -E 's/^[0-9]+ skipped: /    &/p' "$log")
    if [[ $name == aarch64-* ]]; then
        summary[-1]+=$'\n    passed: '$(passed_by_layer "$log")
        summary[-1]+=$(printf '\n    not run: %s' "${beyond_qemu[@]}")
    fi
    say "${summary[-1]}"
done

headline "matrix: summary"
printf '%-20s %-7s %7s  %-24s %-8s %s\n' cell result time compiler liburing tests
printf '%s\n' "${summary[@]}"
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"

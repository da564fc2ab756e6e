#!/usr/bin/env bash
# Installs the library into a temporary prefix, static and shared, and builds small programs, one with TLS
# and one with HTTP, against it in every way the README promises: find_package under both names, pkg-config,
# add_subdirectory, FetchContent, and from a prefix that was moved after the installation. Each program is run, and
# so is the installed simplenet-httpd.
#
# Needs cmake, ninja, pkg-config and the compiler ($CXX, else c++).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cxx=${CXX:-c++}
work=$(mktemp -d "${TMPDIR:-/tmp}/simplenet-consumer.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# This is about packaging: the optimiser, debug information, and one source at a time would cost most of the
# time.
common=(-G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD=ON
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 "-DCMAKE_CXX_COMPILER=$cxx")

# quiet <what> <command...>: one line when it works, everything when it does not. Several may run at once, each
# with a log of its own.
quiet() {
    local what=$1 log
    shift
    log=$(mktemp "$work/log.XXXXXX")
    if "$@" >"$log" 2>&1; then
        printf '  ok      %s\n' "$what"
    else
        printf '  FAILED  %s\n' "$what" >&2
        cat "$log" >&2
        return 1
    fi
}

# build_consumer <what> <cmake options...>
build_consumer() {
    local what=$1 directory
    shift
    directory=$(mktemp -d "$work/build.XXXXXX")
    quiet "$what: configure" cmake -S "$here" -B "$directory" "${common[@]}" "$@"
    quiet "$what: build" cmake --build "$directory"
    quiet "$what: run" "$directory/consumer"
    quiet "$what: run with TLS" "$directory/tls_consumer"
    quiet "$what: run with HTTP" "$directory/http_consumer"
}

# pkg_config_consumer <what> <prefix> <pkg-config options...>
pkg_config_consumer() {
    local what=$1 prefix=$2 pc
    shift 2
    pc=$(find "$prefix" -name simplenet.pc)
    local started=() each
    pkg_config_program "$what" "$pc" main.cpp simplenet "$@" &
    started+=($!)
    pkg_config_program "$what, with TLS" "$pc" tls.cpp simplenet-tls "$@" &
    started+=($!)
    pkg_config_program "$what, with HTTP" "$pc" http.cpp simplenet-http "$@" &
    started+=($!)
    for each in "${started[@]}"; do wait "$each"; done
}

# pkg_config_program <what> <directory with .pc files>/<any> <source> <module> <pkg-config options...>
pkg_config_program() {
    local what=$1 pc=$2 source=$3 module=$4 printed
    local -a flags
    shift 4
    printed=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config "$@" --cflags --libs "$module")
    # pkg-config quotes for a shell: a plain word splitting would break paths with blanks.
    eval "flags=($printed)"
    quiet "$what: build" "$cxx" -std=c++23 "$here/$source" -o "$work/$module" "${flags[@]}"
    quiet "$what: run" env LD_LIBRARY_PATH="$(dirname "$(dirname "$pc")")" "$work/$module"
}

# no_absolute_paths <prefix>: a package that names where it was built or installed cannot be moved.
no_absolute_paths() {
    # Not the end of a longer path: a clone in /simplenet is not what include/simplenet means.
    ! grep -rnP "((?<![\w}])|(?<=-[IL]))(\Q$1\E|\Q$root\E)" "$1" --include='*.cmake' --include='*.pc'
}

# program_runs <what> <prefix>: the web server, if the libraries that it needs are installed here.
program_runs() {
    local what=$1 prefix=$2 program=$2/bin/simplenet-httpd
    if [[ ! -e $program ]]; then
        printf '  not built: %s\n' "$what"
        return
    fi
    quiet "$what: --version" "$program" --version
    quiet "$what: --check of the example" \
        "$program" --config "$prefix/share/simplenet-httpd/example/httpd.toml" --check
}

# Both kinds in one build directory and with the same objects, which take most of the time.
build=$work/build
for kind in static shared; do
    shared=OFF
    [[ $kind == shared ]] && shared=ON
    prefix=$work/prefix-$kind

    echo "$kind library"
    quiet "configure" cmake -S "$root" -B "$build" "${common[@]}" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DBUILD_SHARED_LIBS=$shared -DSIMPLENET_BUILD_TESTS=OFF -DSIMPLENET_BUILD_EXAMPLES=OFF \
        "-DCMAKE_INSTALL_PREFIX=$prefix"
    quiet "build" cmake --build "$build"
    quiet "install" cmake --install "$build"
    quiet "nothing in the package says where it lies" no_absolute_paths "$prefix"
    program_runs "simplenet-httpd" "$prefix"

    build_consumer "find_package(libsimplenet)" "-DCMAKE_PREFIX_PATH=$prefix"
    build_consumer "find_package(simplenet)" "-DCMAKE_PREFIX_PATH=$prefix" -DCONSUME=simplenet
    pkg_config_consumer "pkg-config" "$prefix"
    if [[ $kind == static ]]; then
        pkg_config_consumer "pkg-config --static" "$prefix" --static
    fi

    mv "$prefix" "$work/moved"
    program_runs "simplenet-httpd, prefix moved" "$work/moved"
    build_consumer "find_package, prefix moved" "-DCMAKE_PREFIX_PATH=$work/moved"
    pkg_config_consumer "pkg-config, prefix moved" "$work/moved"
    rm -rf "$work/moved"
done

echo "sources inside another project"
build_consumer "add_subdirectory" -DCONSUME=subdirectory "-DSIMPLENET_SOURCE_DIR=$root"
# Not built: the target is the same.
quiet "FetchContent: configure" cmake -S "$here" -B "$work/fetched" "${common[@]}" \
    -DCONSUME=FetchContent "-DSIMPLENET_SOURCE_DIR=$root"

echo "consumer check: passed"

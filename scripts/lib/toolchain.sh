# shellcheck shell=bash
# Chooses the compiler and requests the packages that a build needs. Needs common.sh and packages.sh.

minimum_gcc=12.2
minimum_clang=19
minimum_cmake=3.24

# compiler_is_usable <c++ compiler>: whether it is installed and new enough.
compiler_is_usable() {
    have "$1" || return 1
    local minimum=$minimum_gcc
    if [[ $("$1" --version 2>/dev/null) == *clang* ]]; then minimum=$minimum_clang; fi
    # -dumpfullversion is GCC's; Clang ignores it.
    version_at_least "$minimum" "$("$1" -dumpfullversion -dumpversion 2>/dev/null)"
}

# Prints the first g++ that is new enough, if any.
find_gcc() {
    local candidate
    for candidate in g++ g++-15 g++-14 g++-13 g++-12; do
        if compiler_is_usable "$candidate"; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}
any_gcc_is_usable() { find_gcc >/dev/null; }

cmake_is_usable() {
    have cmake && version_at_least "$minimum_cmake" "$(cmake --version | awk 'NR == 1 { print $3 }')"
}

# want_build_tools: requests a compiler, CMake, Ninja and the libraries. Call install_wanted and
# choose_compiler next.
want_build_tools() {
    if [[ -z ${CXX:-} ]]; then want g++ any_gcc_is_usable; fi
    want cmake cmake_is_usable
    want ninja-build have ninja
    want liburing-dev have_header liburing.h
    want libssl-dev have_header openssl/ssl.h
    want zlib1g-dev have_header zlib.h
}

# want_httpd_libraries: requests what the program simplenet-httpd needs besides.
want_httpd_libraries() {
    want libtomlplusplus-dev have_header toml++/toml.h
    want libcli11-dev have_header CLI/CLI.hpp
    want libspdlog-dev have_header spdlog/spdlog.h
}

# Exports CXX (the caller's, if set), and ccache as the launcher if it is installed.
choose_compiler() {
    if [[ -n ${CXX:-} ]]; then
        compiler_is_usable "$CXX" || die "CXX=$CXX is missing or too old:" \
            "g++ >= $minimum_gcc or clang++ >= $minimum_clang is needed."
    else
        CXX=$(find_gcc)
    fi
    export CXX
    if have ccache; then
        export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
        # Without this, ccache caches nothing that uses precompiled headers (ccache(1)).
        export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}
    fi
}

compiler_name() { "$1" --version | head -n 1; }

# fresh_if_moved <build directory> <compiler>: if CMake's cache belongs to another compiler or another copy of
# the sources, prints the option that discards it.
fresh_if_moved() {
    local cache=$1/CMakeCache.txt
    [[ -e $cache ]] || return 0
    local cached_compiler cached_source
    cached_compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$cache")
    cached_source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:[^=]*=//p' "$cache")
    # shellcheck disable=SC2154 # root comes from common.sh.
    if [[ $cached_source != "$root" ||
        $(command -v "$cached_compiler") != "$(command -v "$2")" ]]; then
        echo --fresh
    fi
}

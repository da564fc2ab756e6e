#!/usr/bin/env bash
# Compares the ABI of the shared library with that of an earlier commit.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/toolchain.sh"

usage() {
    cat <<END
Usage: scripts/abi_check.sh [--jobs N] [COMMIT]

Builds the shared library of COMMIT (default: the last tag v*) and of this tree with the same compiler, and
compares them with abidiff. Types that only src/ knows are ignored.

The exit status is 1 if a program linked with the old library could break with the new one although both
have the same SOVERSION. If the SOVERSION differs, all changes are allowed and shown. Before the first
release there is no tag and no promise: then the script says so, and exits with 0.

  --jobs N  compilations at once (default: $(default_jobs) here)
  --help    this text

All files are written to build/abi.
END
}

jobs=$(default_jobs)
parse_options jobs=number -- "$@"
((${#arguments[@]} <= 1)) || wrong_usage "one commit only"
base=${arguments[0]-}

cd "$root"
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || die "this is not a clone: there is nothing to compare with."
if [[ -z $base ]] && ! base=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null); then
    say "There is no tag v* before this commit: no ABI was promised, so nothing is compared."
    say "To compare with a commit anyway: scripts/abi_check.sh COMMIT"
    exit 0
fi
commit=$(git rev-parse --verify --quiet "$base^{commit}") || die "no such commit: $base"

want abigail-tools have abidiff
want_build_tools
install_wanted
choose_compiler
end_on_signals

# build_library <name> <sources>: into build/abi/<name>/prefix.
build_library() {
    local build=$root/build/abi/$1 fresh
    fresh=$(fresh_if_moved "$build/build" "$CXX")
    # Without optimisation every function of every template would be in the report.
    if ! {
        cmake -S "$2" -B "$build/build" -G Ninja ${fresh:+"$fresh"} -DCMAKE_BUILD_TYPE=Debug \
            -DCMAKE_CXX_FLAGS_DEBUG="-Og -g" -DBUILD_SHARED_LIBS=ON -DSIMPLENET_BUILD_TESTS=OFF \
            -DSIMPLENET_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX="$build/prefix" \
            -DCMAKE_INSTALL_LIBDIR=lib &&
            cmake --build "$build/build" --parallel "$jobs" &&
            rm -rf "$build/prefix" && cmake --install "$build/build"
    } >"$build.log" 2>&1; then
        tail -n 30 "$build.log" >&2
        die "the library of $1 does not build."
    fi
}

# soname_of <library>
soname_of() { objdump -p "$1" | awk '$1 == "SONAME" { print $2 }'; }

# In a fixed place, so that a second comparison with the same commit builds nothing.
old_sources=$root/build/abi/old/sources
if [[ $(cat "$root/build/abi/old/commit" 2>/dev/null) != "$commit" ]]; then
    rm -rf "$root/build/abi/old"
    mkdir -p "$old_sources"
    git archive "$commit" | tar -C "$old_sources" -xf -
    echo "$commit" >"$root/build/abi/old/commit"
fi
mkdir -p "$root/build/abi/new"

headline "Build ($base, and this tree)"
build_library old "$old_sources"
build_library new "$root"

old=$root/build/abi/old/prefix new=$root/build/abi/new/prefix
old_soname=$(soname_of "$old/lib/libsimplenet.so") new_soname=$(soname_of "$new/lib/libsimplenet.so")

headline "$old_soname of $base, and $new_soname of this tree"
status=0
abidiff --headers-dir1 "$old/include" --headers-dir2 "$new/include" --drop-private-types \
    --no-added-syms "$old/lib/libsimplenet.so" "$new/lib/libsimplenet.so" \
    >"$root/build/abi/report" 2>&1 || status=$?
head -n 60 "$root/build/abi/report"

# abidiff(1), RETURN VALUES: bits. 1 and 2 are internal and usage errors, 4 is a change, 8 a change that
# is certainly incompatible.
((status & 3)) && die "abidiff failed."
say "The complete report is in build/abi/report"
if [[ $old_soname != "$new_soname" ]]; then
    say "The SOVERSION differs: programs have to be relinked, so everything may change."
elif ((status & 8)); then
    die "an incompatible change without a new SOVERSION."
elif ((status & 4)); then
    say "The same SOVERSION, with changes that abidiff cannot judge: read the report."
else
    say "ABI: no change that affects programs."
fi

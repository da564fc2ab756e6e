# shellcheck shell=bash
# What every script here needs: where the project is, how to speak, how to end.
# Sourced after `set -euo pipefail`.

# Used by what sources this file.
# shellcheck disable=SC2034
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
script_name=${0##*/}

say() { printf '%s\n' "$*"; }
headline() { printf '\n== %s\n' "$*"; }
warn() { printf '%s: %s\n' "$script_name" "$*" >&2; }

die() {
    warn "$@"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# version_at_least <wanted> <actual>
version_at_least() {
    [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]
}

# How many compilations at once: one for each core, and one for each GiB of memory that is free,
# because coroutines and std::expected make for hungry ones.
default_jobs() {
    local cores memory_gib
    cores=$(nproc)
    memory_gib=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || true)
    if [[ -z $memory_gib ]] || ((memory_gib > cores)); then memory_gib=$cores; fi
    if ((memory_gib < 1)); then memory_gib=1; fi
    echo "$memory_gib"
}

# An interrupted script ends through its EXIT trap, with the status a shell expects.
end_on_signals() {
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# The builds of CMakePresets.json that test.sh and soak.sh make.
# shellcheck disable=SC2034 # for those who source this
known_presets=(test dev clang release asan clang-asan tsan coverage)

# is_preset <name>
is_preset() { [[ " ${known_presets[*]} " == *" $1 "* ]]; }

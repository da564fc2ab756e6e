# shellcheck shell=bash
# Shared by all scripts: the project's root, output, options, signals.
# Sourced after `set -euo pipefail`.

# Used by the scripts that source this file.
# shellcheck disable=SC2034
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
script_name=${0##*/}

say() { printf '%s\n' "$*"; }
# With the time since scripts/check began, so that a log that ends early tells what took it.
headline() {
    local since=${SIMPLENET_CHECK_STARTED:+, after $((EPOCHSECONDS - SIMPLENET_CHECK_STARTED)) s}
    printf '\n== %s%s\n' "$*" "$since"
}
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

wrong_usage() {
    warn "$@"
    usage >&2
    exit 2
}

is_number() { [[ $1 =~ ^[1-9][0-9]*$ ]]; }
is_count() { [[ $1 =~ ^[0-9]+$ ]]; }
is_text() { [[ -n $1 ]]; }

# parse_options <option>... -- "$@": turns the command line into variables.
#
#   list              --list               list=yes
#   no-build          --no-build           no_build=yes
#   jobs=number       --jobs 3             jobs=3, if is_number accepts it
#   preset=+preset    --preset a           presets+=(a), if is_preset accepts it; may be repeated
#
# Other arguments go to the array `arguments`, and those after `--` to `behind`. --help calls usage().
parse_options() {
    local _known=() _option _each _name _kind
    while [[ $1 != -- ]]; do
        _known+=("$1")
        shift
    done
    shift
    # shellcheck disable=SC2034 # used by scripts that source this
    arguments=() behind=()
    while (($# > 0)); do
        case $1 in
        --help | -h) usage && exit 0 ;;
        --) behind=("${@:2}") && return ;;
        -*) ;;
        *) arguments+=("$1") && shift && continue ;;
        esac
        _option=
        for _each in "${_known[@]}"; do
            if [[ $1 == "--${_each%%=*}" ]]; then _option=$_each; fi
        done
        [[ -n $_option ]] || wrong_usage "unknown option: $1"
        _name=${1#--} _name=${_name//-/_} _kind=${_option#*=}
        if [[ $_option != *=* ]]; then
            printf -v "$_name" yes
            shift
            continue
        fi
        if (($# == 1)) || ! "is_${_kind#+}" "$2"; then
            case $_kind in
            number | count) wrong_usage "$1 needs a number" ;;
            +preset) wrong_usage "$1 needs one of: ${known_presets[*]}" ;;
            *) wrong_usage "$1 needs a value" ;;
            esac
        fi
        if [[ $_kind == +* ]]; then
            local -n _values=${_name}s
            _values+=("$2")
            unset -n _values
        else
            printf -v "$_name" %s "$2"
        fi
        shift 2
    done
}

# The number of compilations at once: one for each core, but no more than GiB of free memory, because
# compiling coroutines and std::expected needs much memory.
default_jobs() {
    local cores memory_gib
    cores=$(nproc)
    memory_gib=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || true)
    if [[ -z $memory_gib ]] || ((memory_gib > cores)); then memory_gib=$cores; fi
    if ((memory_gib < 1)); then memory_gib=1; fi
    echo "$memory_gib"
}

# say_why_skipped <build>: prints GoogleTest's reasons, which ctest does not show.
say_why_skipped() {
    awk '/: Skipped$/ { getline reason; ++count[reason] }
         END { for (reason in count) printf "%d skipped: %s\n", count[reason], reason }' \
        "$1/Testing/Temporary/LastTest.log"
}

# An interrupted script ends through its EXIT trap, with the status a shell expects.
end_on_signals() {
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# The presets of CMakePresets.json that test.sh and soak.sh accept.
# shellcheck disable=SC2034 # used by scripts that source this
known_presets=(test dev clang release asan clang-asan tsan coverage)

# is_preset <name>
is_preset() { [[ " ${known_presets[*]} " == *" $1 "* ]]; }

# shellcheck shell=bash
# Installs missing packages with apt, and names them. Needs common.sh.
#
#   want <package> <check...>   records the package unless the check succeeds
#   install_wanted              installs the recorded packages, or exits with instructions
#
# Set SIMPLENET_NO_INSTALL=1 to get the instructions instead.

wanted_packages=()
wanted_checks=()

# For a daemon, which Debian keeps outside a user's PATH.
have_daemon() { PATH=$PATH:/usr/sbin have "$1"; }

have_header() { [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]]; }

want() {
    local package=$1
    shift
    if ! "$@"; then
        wanted_packages+=("$package")
        wanted_checks+=("$*")
    fi
}

# as_root <command...>: directly, or with sudo.
as_root() {
    if ((EUID == 0)); then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

apt_get() {
    as_root apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@" </dev/null
}

# Reads apt's output, stores it in the file $1, and shows the progress on a terminal.
show_apt_progress() {
    local log=$1 line count=0
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        if [[ -t 1 && $line =~ ^(Get:|Unpacking|Setting\ up) ]]; then
            count=$((count + 1))
            printf '\r  %d steps: %-60.60s' "$count" "$line"
        fi
    done
    if [[ -t 1 ]] && ((count > 0)); then printf '\r%-80s\r' ''; fi
}

# apt_knows <package>: whether apt can install it. Updates the lists if they do not contain it.
apt_knows() {
    have apt-get || return 1
    [[ -z $(apt-cache show "$1" 2>/dev/null) ]] || return 0
    if can_be_root; then apt_get update >/dev/null 2>&1 || true; fi
    [[ -n $(apt-cache show "$1" 2>/dev/null) ]]
}

can_be_root() {
    ((EUID == 0)) && return 0
    have sudo || return 1
    # Without a terminal nobody can type a password, so sudo must not ask for one.
    [[ -t 0 ]] || sudo -n true 2>/dev/null
}

install_wanted() {
    ((${#wanted_packages[@]} > 0)) || return 0
    local packages=("${wanted_packages[@]}") checks=("${wanted_checks[@]}")
    wanted_packages=() wanted_checks=()
    local by_hand="Install them and try again:  sudo apt-get install ${packages[*]}"

    if [[ ${SIMPLENET_NO_INSTALL:-} == 1 ]]; then
        die "missing packages: ${packages[*]}. $by_hand"
    fi
    if ! have apt-get; then
        die "missing: ${packages[*]} (Debian's names), and this system has no apt-get." \
            "Install the equivalents and try again."
    fi
    if ! can_be_root; then
        die "missing packages: ${packages[*]}; installing needs root or sudo. $by_hand"
    fi

    say "Installing with apt: ${packages[*]}"
    local log
    log=$(mktemp "${TMPDIR:-/tmp}/simplenet-apt.XXXXXX")
    # Old lists name versions that the mirrors no longer have, so update them first. If that fails, continue
    # with the old lists: the packages may be in apt's cache.
    apt_get update 2>&1 | show_apt_progress "$log" || true
    if ! apt_get install -y --no-install-recommends "${packages[@]}" 2>&1 |
        show_apt_progress "$log"; then
        grep -E '^(E|W|Err|dpkg):?' "$log" | tail -n 8 >&2 || true
        rm -f "$log"
        die "apt-get could not install: ${packages[*]}. Check the network and the sources in" \
            "/etc/apt. $by_hand"
    fi
    rm -f "$log"

    local i
    for i in "${!packages[@]}"; do
        # Word splitting: the check was recorded as a command and its arguments, none with blanks.
        # shellcheck disable=SC2086
        if ! ${checks[i]}; then
            die "apt-get installed ${packages[i]}, but its version is too old, or it is not in the" \
                "expected place (${checks[i]} still fails)."
        fi
    done
}

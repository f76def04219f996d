#!/usr/bin/env bash
# Installs what is missing of scripts/packages.txt. Quiet when there is nothing to do; says what to do when it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -r /etc/debian_version ] || ! command -v apt-get >/dev/null; then
    echo "setup: this is not Debian; install by hand what scripts/packages.txt names (and start none of its services, opensm above all), then build with: cmake --preset dev" >&2
    exit 1
fi

missing=()
architecture=$(dpkg --print-architecture)
while read -r package only; do
    [ -z "$only" ] || [ "$only" = "[$architecture]" ] || continue
    status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    [[ "$status" == ?i* ]] || missing+=("$package")  # installed, held or not
done < <(grep -v '^#' scripts/packages.txt)
# For the identity provider that tests log in to. A Node.js from elsewhere brings its npm along, and Debian's would conflict.
command -v npm >/dev/null || missing+=(nodejs npm)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    # Not the line for apt-get itself: by hand, Debian would start the subnet manager among them, on every InfiniBand port it finds.
    echo "setup: these packages are missing: ${missing[*]}" >&2
    echo "setup: installing them needs root, and keeps their services from starting: sudo scripts/setup.sh" >&2
    exit 1
fi

echo "setup: installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
policy=/usr/sbin/policy-rc.d
clean_up() {
    rm -f "$log"
    if [ -n "${policy_is_ours:-}" ]; then rm -f "$policy"; fi
}
trap clean_up EXIT
# Tests use the programs of these packages; their services are nobody's wish, and a subnet manager on a machine with an InfiniBand
# port would be more than that. Masked, they neither start now nor at the next boot (`systemctl unmask` for whoever wants one), and
# no other package starts a daemon either.
for service in prometheus opensm; do
    unit=/etc/systemd/system/$service.service
    if [[ " ${missing[*]} " == *" $service "* ]] && [ ! -e "$unit" ] && [ ! -L "$unit" ]; then
        mkdir -p /etc/systemd/system
        ln -s /dev/null "$unit"
    fi
done
if [ ! -e "$policy" ]; then
    policy_is_ours=1
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
# A fresh machine may be at its own updates; apt-get waits for dpkg if it is told to, for its lists it never does.
update() {
    local said
    for _ in {1..40}; do
        said=$(LC_ALL=C apt-get update -qq 2>&1) && return
        printf '%s\n' "$said"
        [[ $said == *"Could not get lock"* ]] || return 1
        sleep 15
    done
    return 1
}
if ! { update && apt-get install -y -qq -o DPkg::Lock::Timeout=600 --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed (above). Offline? A Debian mirror must be reachable once; after that nothing is fetched." >&2
    exit 1
fi

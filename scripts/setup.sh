#!/usr/bin/env bash
# Installs what is missing of scripts/packages.txt. Quiet when there is nothing to do; says what to do when it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -r /etc/debian_version ] || ! command -v apt-get >/dev/null; then
    echo "setup: this is not Debian; install by hand what scripts/packages.txt names, then build with: cmake --preset dev" >&2
    exit 1
fi

missing=()
while read -r package; do
    status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    [[ "$status" == ?i* ]] || missing+=("$package")  # installed, held or not
done < <(grep -v '^#' scripts/packages.txt)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "setup: these packages are missing and installing them needs root:" >&2
    echo "  sudo sh -c 'apt-get update && apt-get install --no-install-recommends ${missing[*]}'" >&2
    exit 1
fi

echo "setup: installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed (above). Offline? A Debian mirror must be reachable once; after that nothing is fetched." >&2
    exit 1
fi

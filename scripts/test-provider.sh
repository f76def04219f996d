#!/usr/bin/env bash
# The identity provider that tests log in to: npm's oidc-provider, at the versions and hashes of testdata/oidc/package-lock.json,
# installed below a folder of the build. Prints where its modules are.
#
#     scripts/test-provider.sh [FOLDER]     exit: 0 there it is, 77 it could not be fetched, or there is no Node.js
set -euo pipefail
here=$(realpath "$(dirname "$0")/..")
folder=${1:-$here/build/test-provider}
command -v node >/dev/null && command -v npm >/dev/null || { echo "test-provider: no Node.js and npm here" >&2; exit 77; }
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
# What is there is what the lock file says.
if ! cmp -s "$here/testdata/oidc/package-lock.json" "$folder/installed-lock.json"; then
    cp "$here"/testdata/oidc/package.json "$here"/testdata/oidc/package-lock.json "$folder"
    rm -f "$folder/installed-lock.json"
    # No script of a package runs, and nothing is installed but what has the right hash.
    (cd "$folder" && timeout 120 npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier) >"$folder/npm.log" 2>&1 ||
        { echo "test-provider: npm could not fetch it:" >&2; grep -v '^npm warn' "$folder/npm.log" | head -n 3 >&2; exit 77; }
    cp "$here/testdata/oidc/package-lock.json" "$folder/installed-lock.json"
fi
echo "$folder/node_modules"

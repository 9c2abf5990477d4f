#!/usr/bin/env bash
# promtool (checks alert rules) and libfaketime (steps a process's clock) for the tests that need
# them: unpacked from Debian's packages into a folder, so that nothing is installed into the system.
# Where there is no apt, or no network, those tests are skipped, and say so.
set -euo pipefail
folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

if ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null; then
    echo "promtool and libfaketime come from Debian's packages, which this system has not;"
    echo "the tests that need them are skipped."
    exit 0
fi

downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT
chmod 755 "$downloads"
fetch() { (cd "$downloads" && apt-get download -q -o APT::Sandbox::User="$(id -un)" prometheus libfaketime); }

echo "Fetching promtool and libfaketime for the tests (20 MB) ..."
if ! fetch > "$downloads/log" 2>&1; then
    # The lists of packages may be missing or old; only root may renew them.
    apt-get update -qq > /dev/null 2>&1 || true
    if ! fetch > "$downloads/log" 2>&1; then
        echo "They could not be fetched; the tests that need them are skipped. The last words were:"
        tail -n 2 "$downloads/log"
        exit 0
    fi
fi
for package in "$downloads"/*.deb; do dpkg-deb --extract "$package" "$downloads/root"; done
cp "$downloads/root/usr/bin/promtool" "$folder/"
cp "$downloads"/root/usr/lib/*/faketime/libfaketimeMT.so.1 "$folder/libfaketime.so.1"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh Debian 12 to a running job: installs what is missing, builds hnlaunch into build/ and
# trains a small network on four ranks of this machine.
#
# usage: sh examples/quickstart.sh        as root, or as a user who may use sudo
set -eu
cd "$(dirname "$0")/.."

PACKAGES="gcc g++ meson ninja-build pkg-config libssh-dev libssl-dev libuv1-dev libinih-dev
libjansson-dev libncurses-dev libsodium-dev libsmartcols-dev uthash-dev zlib1g-dev libgloo-dev
scdoc man-db"

step() { printf '\n==> %s\n' "$*"; }

fail() { # FACT NEXT-STEP
    printf '\nquickstart: %s\n  next: %s\n' "$1" "$2" >&2
    exit 1
}

# Prints the packages that are not installed.
missing_packages() {
    for p in $PACKAGES; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf '%s ' "$p"
    done
}

# Runs a command as root; apt must never stop to ask.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

step "1/4 packages"
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "cannot install packages: this system has no apt-get" \
        "install these packages under the names of this system, then run: meson setup build && ninja -C build
        $(echo "$PACKAGES" | tr '\n' ' ')"
fi
missing=$(missing_packages)
if [ -z "$missing" ]; then
    echo "all packages are installed"
else
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        fail "cannot install packages: sudo not found" "run as root: apt-get install $missing"
    fi
    echo "installing $missing"
    as_root apt-get update -qq || fail "apt-get update failed" "check the network, then run this again"
    # shellcheck disable=SC2086
    as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        fail "apt-get install failed" "the lines above give the reason"
fi

step "2/4 configure"
if [ -f build/build.ninja ]; then
    echo "build/ is configured already"
else
    meson setup build --buildtype=release ||
        fail "meson setup failed" "build/meson-logs/meson-log.txt gives the reason"
fi

step "3/4 build"
ninja -C build || fail "the build failed" "the first error above gives the reason"
[ -x build/examples/train ] ||
    fail "build/examples/train was not built: Gloo not found" \
        "apt-get install libgloo-dev, remove build/ and run this again"

step "4/4 train on four ranks: hnlaunch -H hostfile.example build/examples/train"
build/hnlaunch -H hostfile.example build/examples/train ||
    fail "the job failed" "the last line above names the rank and the cause"

cat <<'END'

It works. Next:
  build/hnlaunch --local 4 ./your-program          more ranks, your program
  build/hnlaunch plan -w 'node[01-04]:8' true      the rank of each slot
  build/hnlaunch -H hosts.txt ./your-program       many nodes over ssh
  build/hnlaunch --help
END

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The three Debian packages are built, installed by dpkg on a copy of this system's root, used, and removed.
# Without the right to mount they are unpacked into a folder, where the same programs run.
. "$(dirname "$0")/../lib/tap.sh"

type -P dpkg-buildpackage dh >/dev/null || skip_all 'no dpkg-dev and debhelper here'
debian=$ROOT/packaging/debian
missing=$(dpkg-checkbuilddeps -P nocheck "$debian/control" 2>&1) || skip_all "${missing#*error: }"
version=$("$HNLAUNCH" version | cut -d' ' -f2)
is 'the packages have the version of the sources' "$(dpkg-parsechangelog -l "$debian/changelog" -S Version)" "$version-1"

debs=$TMP/debs
agents=hnlaunch-agent-$(uname -m)
if [[ $(uname -m) != aarch64 ]] && type -P aarch64-linux-gnu-gcc >/dev/null &&
    timeout 60 sh "$ROOT/packaging/aarch64-libs.sh" "$TMP/libs" >"$ERR" 2>&1; then
    export AARCH64_LIBS=$TMP/libs
    agents="hnlaunch-agent-aarch64 $agents"
fi
# Unoptimized and without symbols for debuggers: a third of the work.
export DEB_BUILD_OPTIONS='nocheck noautodbgsym noopt parallel=2' DEB_CFLAGS_STRIP=-g DEB_CXXFLAGS_STRIP=-g
LIMIT=700 run sh "$ROOT/packaging/deb.sh" "$debs"
exits 'packages are built' 0
lacks 'dpkg warns of nothing' <(cat "$OUT" "$ERR") 'dpkg-shlibdeps: warning'
is 'three of them' "$(cd "$debs" && printf '%s ' *.deb | sed "s/_$version-1_[a-z0-9]*//g")" \
    'hnlaunch.deb libhnlaunch-dev.deb libhnlaunch0.deb '
field() { dpkg-deb -f "$debs/$1"_*.deb "$2"; }
ok 'hnlaunch depends on libssh' grep -q 'libssh-4 (>=' <(field hnlaunch Depends)
ok 'the library depends on libc alone' grep -qE '^libc6 [^,]*$' <(field libhnlaunch0 Depends)
ok 'and recommends what its plug-in for Gloo needs' grep -q 'libgloo0' <(field libhnlaunch0 Recommends)
is "hnlaunch has the agents that could be built: ${agents//hnlaunch-agent-/}" "$(dpkg-deb -c "$debs"/hnlaunch_*.deb | grep -o 'hnlaunch-agent-.*' |
    sort | xargs)" "$agents"
is 'headers belong to their library' "$(field libhnlaunch-dev Depends)" "libhnlaunch0 (= $version-1)"
dpkg-deb -I "$debs"/libhnlaunch0_*.deb symbols >"$OUT"
has 'its symbols are known by name' "$OUT" ' hn_init@Base 0.1.0'
is 'and are hn_* alone' "$(grep -cvE '^ hn_|^libhnlaunch.so.0 libhnlaunch0|^\* Build' "$OUT")" 0
if type -P lintian >/dev/null; then
    LIMIT=200 run lintian --fail-on error,warning --allow-root "$debs"/*.deb
    exits 'lintian has neither errors nor warnings' 0
else
    skip 'lintian has neither errors nor warnings' 'no lintian here'
fi

# --- using them ---------------------------------------------------------------------------------------

# Runs in the copy of the root, or in the folder.
cat >"$TMP/use" <<'END'
set -eu
at=$1 machine=$2
lib=$(echo "$at"/usr/lib/*/libhnlaunch.so.0)
if [ -n "$at" ]; then
    export LD_LIBRARY_PATH=${lib%/*} PKG_CONFIG_LIBDIR=${lib%/*}/pkgconfig PKG_CONFIG_SYSROOT_DIR=$at
fi
"$at/usr/bin/hnlaunch" version
gcc -Wall -Werror -o hello "$at/usr/share/doc/libhnlaunch-dev/examples/hello.c" $(pkg-config --cflags --libs hnlaunch)
"$at/usr/bin/hnlaunch" --local 2 sh -c 'readlink /proc/$PPID/exe; exec ./hello'
"$at/usr/bin/hnlaunch" --local 3 sh -c 'exit $RANK' || echo "code $?"
for file in libexec/hnlaunch/hnlaunch-agent-$machine share/man/man1/hnlaunch.1.gz share/man/man7/hnlaunch-errors.7.gz share/man/man7/hnlaunch-mpi.7.gz share/man/man5/hnlaunch-ssh.5.gz share/man/man3/hn_group_split.3.gz \
    share/bash-completion/completions/hnlaunch share/zsh/vendor-completions/_hnlaunch \
    share/fish/vendor_completions.d/hnlaunch.fish; do
    [ -f "$at/usr/$file" ] || echo "no $file"
done
echo used
END

# A tmpfs on the system's root takes every change; it ends with this process.
cat >"$TMP/chroot" <<'END'
set -eu
tmp=$1 machine=$2
mkdir "$tmp/layer"
mount -t tmpfs none "$tmp/layer"
mkdir "$tmp/layer/upper" "$tmp/layer/work" "$tmp/layer/root"
root=$tmp/layer/root
mount -t overlay none -o "lowerdir=/,upperdir=$tmp/layer/upper,workdir=$tmp/layer/work" "$root"
for folder in proc dev sys; do mount --rbind "/$folder" "$root/$folder"; done
mount -t tmpfs none "$root/tmp"
mkdir "$root/tmp/x"
cp -r "$tmp/debs" "$tmp/use" "$root/tmp/x"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
rm -f "$root/var/lib/man-db/auto-update" # dpkg would index all manual pages of the system, twice
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/x DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -c "cd /tmp/x && $1"; }
names='find /usr /etc /var/lib /var/cache -name "*hnlaunch*" ! -path "*/dpkg/*"'
inside "$names >before"
inside 'dpkg -i debs/*.deb' >"$tmp/dpkg.log" 2>&1 || echo 'dpkg failed'
inside "sh use '' $machine"
inside 'dpkg -V hnlaunch libhnlaunch0 libhnlaunch-dev && echo intact'
inside 'dpkg -P hnlaunch libhnlaunch0 libhnlaunch-dev' >>"$tmp/dpkg.log" 2>&1 || echo 'purge failed'
inside "$names >after; diff before after && echo removed"
END

if ((EUID == 0)) && unshare -m --propagation private sh -c '
    mount -t tmpfs none "$1" && mkdir "$1/u" "$1/w" "$1/r" &&
    mount -t overlay none -o "lowerdir=/,upperdir=$1/u,workdir=$1/w" "$1/r"' sh "$TMP/dump" 2>/dev/null; then
    LIMIT=200 run unshare -m --propagation private sh "$TMP/chroot" "$TMP" "$(uname -m)"
    say_file 'dpkg' "$TMP/dpkg.log"
    lacks 'dpkg installs them' "$OUT" 'dpkg failed'
    has 'and finds them intact after use' "$OUT" intact
    lacks 'dpkg removes them' "$OUT" 'purge failed'
    is 'and nothing is left of them' "$(sed -n '/^intact/,$p' "$OUT" | tail -n +2)" removed
    at=
else
    skip 'dpkg installs them' 'needs root and the right to mount'
    for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$TMP/tree"; done
    at=$TMP/tree
    run sh "$TMP/use" "$at" "$(uname -m)"
fi
has 'hnlaunch runs' "$OUT" "hnlaunch $version"
has 'a program is built with the -dev package, and its ranks meet' "$OUT" '1 | hello from rank 1 of 2'
has 'with the agent of the package' "$OUT" "0 | $at/usr/libexec/hnlaunch/hnlaunch-agent-$(uname -m)"
has 'exit codes are the ranks' "$OUT" 'code '
lacks 'manual and completions are where they belong' "$OUT" 'no '
has 'all of it was done' "$OUT" used
nothing_left 'nothing is left'
done_testing

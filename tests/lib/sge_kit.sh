#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Grid Engine into a folder, from the Debian packages that apt knows (20 MB unpacked). What is there already is
# left alone; nothing is installed, and no service is started.
#
# usage: sge_kit.sh FOLDER
#
# The last line of stdout is the folder of the unpacked packages. On failure the last line of stderr says why.
set -u
kit=$1
mkdir -p "$kit" || exit 1
exec 9>"$kit/lock"
flock 9 # test files run side by side

for to in "$kit"/*/ready; do
    [[ ! -e $to ]] || { echo "${to%/ready}" && exit; }
done
version=$(apt-cache policy gridengine-exec 2>/dev/null | awk '/Candidate:/ { print $2 }')
[[ -n $version ]] || { echo "apt knows no Grid Engine" >&2; exit 1; }
to=$kit/${version%%+*}
rm -rf "${to:?}"
mkdir -p "$to/debs" && cd "$to/debs" || exit
apt-get download gridengine-master gridengine-exec gridengine-client gridengine-common libjemalloc2 libmunge2 \
    libtirpc3 libtirpc-common >/dev/null 2>"$to/log" || { tail -n 1 "$to/log" >&2; exit 1; }
for deb in ./*.deb; do
    dpkg --extract "$deb" .. || exit
done
rm -r "$to/debs" "$to/usr/share/java"
: >"$to/ready"
echo "$to"

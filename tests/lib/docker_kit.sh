#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Docker into a folder, from the Debian packages that apt knows (250 MB unpacked). What is there already is left
# alone; nothing is installed, and no service is started.
#
# usage: docker_kit.sh FOLDER
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
version=$(apt-cache policy docker.io 2>/dev/null | awk '/Candidate:/ { print $2 }')
[[ $version == [0-9]* ]] || { echo "apt knows no Docker" >&2; exit 1; }
to=$kit/${version%%+*}
rm -rf "${to:?}"
mkdir -p "$to/debs" && cd "$to/debs" || exit
apt-get download docker.io containerd runc tini >/dev/null 2>"$to/log" || { tail -n 1 "$to/log" >&2; exit 1; }
for deb in ./*.deb; do
    dpkg --extract "$deb" .. || exit
done
rm -r "$to/debs"
: >"$to/ready"
echo "$to"

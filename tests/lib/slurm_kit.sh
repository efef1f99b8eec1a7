#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Slurm and munge into a folder, from the Debian packages that apt knows (16 MB unpacked). What is there
# already is left alone; nothing is installed, and no service is started.
#
# usage: slurm_kit.sh FOLDER
#
# FOLDER/VERSION/env.sh sets PATH, LD_LIBRARY_PATH, and slurm_plugins (their folder); the last line of
# stdout is FOLDER/VERSION. On failure the last line of stderr says why.
set -u
kit=$1 wanted="slurmctld slurmd slurm-client munge"
mkdir -p "$kit" || exit 1
exec 9>"$kit/lock"
flock 9 # test files run side by side

for to in "$kit"/*/ready; do
    [[ ! -e $to ]] || { echo "${to%/ready}" && exit; }
done
# shellcheck disable=SC2086
names=$(apt-get install --no-install-recommends --simulate $wanted 2>/dev/null | awk '/^Inst/ { print $2 }')
version=$(apt-cache policy slurmd 2>/dev/null | awk '/Candidate:/ { print $2 }')
[[ -n $names && -n $version ]] || { echo "apt knows no Slurm" >&2; exit 1; }
to=$kit/${version%%-*}
rm -rf "${to:?}"
mkdir -p "$to/debs" && cd "$to/debs" || exit
# shellcheck disable=SC2086
apt-get download $names >/dev/null 2>"$to/log" || { tail -n 1 "$to/log" >&2; exit 1; }
for deb in ./*.deb; do
    dpkg --extract "$deb" .. || exit
done
rm -r "$to/debs"
# Debian chooses among builds by links that the installation makes.
for program in "$to"/usr/sbin/*-wlm; do
    ln -sf "${program##*/}" "${program%-wlm}"
done
lib=$to/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
cat >"$to/env.sh" <<END
slurm_plugins=$lib/slurm-wlm
export PATH=$to/usr/bin:$to/usr/sbin:\$PATH
export LD_LIBRARY_PATH=$lib:$lib/slurm-wlm\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
END
(. "$to/env.sh" && slurmd -V >/dev/null && munged --version >/dev/null) || exit
: >"$to/ready"
echo "$to"

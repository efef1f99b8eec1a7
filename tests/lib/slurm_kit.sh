#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Slurm and munge into a folder, from the Debian packages that apt knows (16 MB unpacked), or from those of another
# release of Debian with the libraries that they need (80 MB; patchelf must be there). What is there already is left alone;
# nothing is installed, and no service is started.
#
# usage: slurm_kit.sh FOLDER [RELEASE]
#
# FOLDER/VERSION/env.sh sets PATH, LD_LIBRARY_PATH, and slurm_plugins (their folder); the last line of
# stdout is FOLDER/VERSION. On failure the last line of stderr says why.
set -u
kit=$1 release=${2-} wanted="slurmctld slurmd slurm-client munge" state=
mkdir -p "$kit" || exit 1
exec 9>"$kit/lock"
flock 9 # test files run side by side

for to in "$kit"/*/ready; do
    [[ ! -e $to ]] || { echo "${to%/ready}" && exit; }
done

apt_options=()
# apt gets lists of its own: nothing counts as installed, so that all libraries are named.
use_release() {
    local site
    command -v patchelf >/dev/null || { echo "no patchelf, which a Slurm of $release needs" >&2 && exit 1; }
    site=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)
    state=$(mktemp -d) || exit
    trap 'rm -rf "$state"' EXIT
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    : >"$state/status"
    echo "deb $site $release main" >"$state/sources"
    apt_options=(-o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state" -o APT::Sandbox::User=
        -o "Dir::Etc::sourcelist=$state/sources" -o Dir::Etc::sourceparts=/dev/null -o Acquire::Languages=none)
    apt-get -qq "${apt_options[@]}" update >&2 || exit
}
[[ -z $release ]] || use_release

# Of the programs of a base system none is needed.
base='^(base|bash|coreutils|debconf|dpkg|fdisk|init|login|lsb|mawk|mount|passwd|perl|sed|systemd|sysv|tar|ucf|util|adduser|libperl)'
# shellcheck disable=SC2086
names=$(apt-get "${apt_options[@]}" install --no-install-recommends --simulate $wanted 2>/dev/null | awk '/^Inst/ { print $2 }' |
    if [[ -n $release ]]; then grep -vE "$base"; else cat; fi)
version=$(apt-cache "${apt_options[@]}" policy slurmd 2>/dev/null | awk '/Candidate:/ { print $2 }')
[[ -n $names && -n $version ]] || { echo "apt knows no Slurm" >&2; exit 1; }
to=$kit/${version%%-*}
rm -rf "${to:?}"
mkdir -p "$to/debs" && cd "$to/debs" || exit
# shellcheck disable=SC2086
apt-get "${apt_options[@]}" download $names >/dev/null 2>"$to/log" || { tail -n 1 "$to/log" >&2; exit 1; }
for deb in ./*.deb; do
    dpkg --extract "$deb" .. || exit
done
rm -r "$to/debs"
# Debian chooses among builds by links that the installation makes.
for program in "$to"/usr/sbin/*-wlm; do
    ln -sf "${program##*/}" "${program%-wlm}"
done
lib=$to/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
# Programs of another release find its loader and libraries by themselves: jobs must not see them.
patch_programs() {
    local loader file
    loader=$(echo "$lib"/ld-linux*)
    for file in "$to"/usr/bin/* "$to"/usr/sbin/* "$lib"/*.so* "$lib"/*/*.so*; do
        [[ -f $file && ! -L $file && $file != "$loader" && $file != */libc.so.6 ]] || continue
        patchelf --force-rpath --set-rpath "$lib:$lib/slurm-wlm" "$file" 2>/dev/null || continue
        patchelf --set-interpreter "$loader" "$file" 2>/dev/null
    done
}
{
    echo "slurm_plugins=$lib/slurm-wlm"
    echo "export PATH=$to/usr/bin:$to/usr/sbin:\$PATH"
} >"$to/env.sh"
if [[ -n $release ]]; then
    patch_programs
else
    echo "export LD_LIBRARY_PATH=$lib:$lib/slurm-wlm\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" >>"$to/env.sh"
fi
(. "$to/env.sh" && slurmd -V >/dev/null && munged --version >/dev/null) || exit
: >"$to/ready"
echo "$to"

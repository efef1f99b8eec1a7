#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the agent reads from sysfs of the machines that hwloc's developers have recorded, of 2 to 256 processors, is what
# hwloc reads: nodes with processors, sockets and cores. The trees are in Debian's source package of hwloc (3 MB).
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/source_package.sh"

trees=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/hwloc
fetch_trees() {
    exec 9>"$trees/lock"
    flock 9 # test files run side by side
    [[ ! -e $trees/ready ]] || return 0
    mkdir "$TMP/package" && cd "$TMP/package" && source_package hwloc && tar -xjf hwloc_*.orig.tar.bz2 --wildcards --strip-components=4 \
        -C "$trees" '*/tests/hwloc/linux/*.tar.bz2' && : >"$trees/ready"
}
mkdir -p "$trees"
(fetch_trees) 2>"$TMP/why" || skip_all "cannot fetch the recorded machines: $(tail -n 1 "$TMP/why")"

# What differs, and why.
declare -A kinds=(
    # hwloc corrects these cores, which share a unit for floating point, by the names of such processors.
    [64amd64-4s2n4ca2co]='node|socket'
    # The kernel told no cores, or no sockets, and hwloc makes none.
    [4fake-4gr1nu1pu]='node|socket' [2s390-2c]='node|socket' [2ps3-2t]='node|core'
    # The mask of a socket was spoilt by hand for a test of hwloc's, and the list was not.
    ["40intel64-4n10c+pci-conflicts"]='node|core'
)
for tree in "$trees"/*.tar.bz2; do
    name=$(basename "$tree" .tar.bz2)
    mkdir -p "$TMP/tree"
    python3 "$ROOT/tests/lib/sysfs_tree.py" record "$tree" "$TMP/tree" >"$TMP/judge"
    [[ $? != 77 ]] || skip_all 'needs libhwloc.so.15'
    folder=$(echo "$TMP"/tree/*)
    kind=${kinds[$name]-node|socket|core}
    want=$(grep -E "^($kind)( |:)" "$TMP/judge" | sort)
    is "$name" "$("$WORKERS/bind_probe" "$folder/sys" "$(<"$folder/sys/devices/system/cpu/online")" | grep -E "^($kind)( |:)" | sort)" "$want"
    rm -rf "$TMP/tree"
done
ok 'there are many machines' test "$(compgen -G "$trees/*.tar.bz2" | wc -l)" -ge 40
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the agent reads from sysfs of sixteen made machines is what hwloc reads, and ranks are bound as one who
# knows the machine would bind them.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
mkdir "$TMP/trees"

machines() {
    python3 "$ROOT/tests/lib/sysfs_tree.py" "$@"
}
probe() { # ALLOWED ARG...: of the tree
    "$WORKERS/bind_probe" "$tree/sys" "$@"
}
tree() { # MACHINE: sets tree, gpus and all
    tree=$TMP/trees/$1
    [[ -d $tree ]] || machines make "$1" "$tree" >"$TMP/gpus.$1"
    mapfile -t gpus <"$TMP/gpus.$1"
    all=$(<"$tree/sys/devices/system/cpu/online")
}

for machine in $(machines names); do
    tree "$machine"
    machines judge "$tree" >"$TMP/judge"
    case $? in
    77) skip "$machine: as hwloc reads it" 'needs libhwloc.so.15' ;;
    *) is "$machine: as hwloc reads it" "$(probe "$all" | sort)" "$(grep -v '^memory' "$TMP/judge" | sort)" ;;
    esac
done

bound() { # MACHINE POLICY THREADS [ADDRESSES...]: "CPUS@NODE" of each rank in one line
    tree "$1"
    # shellcheck disable=SC2086
    probe "${allowed-$all}" "$2" "$3" ${4-"${gpus[@]}"} | sed -E 's/ node=(-1)?([0-9]*) threads.*/@\2/; s/@$//' | paste -sd' '
}

low=0-55,112-167@0 high=56-111,168-223@1
is 'DGX H100: four ranks at each socket' "$(bound dgx-h100 auto 0)" "$low $low $low $low $high $high $high $high"
is 'DGX H100: fewer cores than threads are no place' "$(bound dgx-h100 auto 57)" '- - - - - - - -'
is 'DGX H100: exclusive' "$(bound dgx-h100 exclusive 0)" \
    '0-13,112-125@0 14-27,126-139@0 28-41,140-153@0 42-55,154-167@0 56-69,168-181@1 70-83,182-195@1 84-97,196-209@1 98-111,210-223@1'
is 'MI300X' "$(bound mi300x numa 0 | tr ' ' '\n' | uniq -c | sed 's/^ *//')" $'4 0-95,192-287@0\n4 96-191,288-383@1'
is 'GH200: one node with processors' "$(bound gh200 auto 0)" -
is 'GB200: NUMA 0,0,1,1' "$(bound gb200 auto 0)" '0-71@0 0-71@0 72-143@1 72-143@1'
is 'GB300: the node of a GPU has no processors, but a nearest one' "$(bound gb300 auto 0)" '0-71@0 0-71@0 72-143@1 72-143@1'
is 'two nodes are as near: no place' "$(bound memory-between auto 0)" -
is 'NPS4: the node, or the socket' "$(bound nps4 numa 0 | cut -d' ' -f1) $(bound nps4 socket 0 | cut -d' ' -f1)" \
    '48-63,176-191@3 0-63,128-191'
is 'hybrid cores: whole ones, with one or two processors' "$(bound desktop-hybrid core:4 0 '- - - -')" '0-7 8-15 16-19 -'
is 'a GPU whose node is not known' "$(bound desktop-hybrid auto 0)" -
is 'offline processors are no place' "$(bound offline-processors auto 0)" '0-2,4-7,16-18,20-23@0 9-15,24-30@1'
is 'a node that is offline' "$(bound offline-node numa 0 '- -')" '0-3 0-3'
is 'eight sockets' "$(bound eight-sockets socket 0 '- - - - - - - -' | cut -d' ' -f8)" '98-111,210-223@7'
allowed=0-7,112-119,56
is 'a cpuset: what is allowed of the node' "$(bound dgx-h100 auto 0 | cut -d' ' -f1,8)" '0-7,112-119@0 56@1'
allowed=0-7,112-119
is 'a cpuset without the node: no place' "$(bound dgx-h100 numa 0 | cut -d' ' -f1,8)" '0-7,112-119@0 -'
unset allowed

done_testing

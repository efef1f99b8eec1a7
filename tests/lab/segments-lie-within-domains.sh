#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --order topology and --segment on eight nodes with NVLink domains of a library made here: ranks of a segment are on nodes of one
# domain, spares come from it, segments that do not fit start nothing, and a launch without these options asks no driver.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

type -P cc >/dev/null || skip_all 'no compiler here'
mkdir lib
cc -shared -fPIC -o lib/libnvidia-ml.so.1 "$ROOT/tests/lib/fake_nvml.c" || skip_all 'the compiler makes no libraries'
export LAB_PRIVATE='/dev/shm /run /mnt'
LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache LD_LIBRARY_PATH=$PWD/lib FAKE_NVML=/mnt/word FAKE_NVML_GPUS=1"
lab_up 8 1

# A node with a GPU in the domain of a rack; without RACK in none.
A=aaaabbbbccccddddeeeeffff00001111 B=bbbbbbbbccccddddeeeeffff00001111
wire() { # NODE [CLUSTER CLIQUE]
    lab exec "node00$1" env TMP=/mnt bash -c '
        . "$0/tests/lib/driver_files.sh"
        echo "0 GPU-00000000-0000-0000-0000-000000000000 0000:10:00.0" >/mnt/gpus
        echo fine >/mnt/word
        : >/mnt/word.processes
        echo 0 >/mnt/word.ecc
        [ -e /dev/nvidiactl ] || driver_files /mnt/gpus
        if [ -n "$1" ]; then echo "$1 $2 3 0 0" >/mnt/word.fabric; else rm -f /mnt/word.fabric; fi' "$ROOT" "${2-}" "${3-}"
}
for i in 1 3 5 7; do wire "$i" $A 4; done
for i in 2 4 6; do wire "$i" $B 4; done
wire 8 $A 5 # of the same cluster, but another clique
asked() { for i in {1..8}; do lab exec "node00$i" sh -c 'cat /mnt/word.asked 2>/dev/null'; done | wc -l; }

exits 'a plain launch' 0 lab_hn -H "$TMP/hosts.txt" --label none sh -c 'echo $RANK $(hostname)'
is '... has the order of the list' "$(sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' ')" "$(echo node00{1..8}) "
is '... and asks no driver' "$(asked)" 0

exits '--order topology' 0 lab_hn -H "$TMP/hosts.txt" --order topology --label none sh -c 'echo $RANK $HN_NODE_RANK $(hostname)'
is 'ranks stand by domain and name' "$(sort -n "$OUT" | tr '\n' ' ')" \
    '0 0 node001 1 1 node003 2 2 node005 3 3 node007 4 4 node002 5 5 node004 6 6 node006 7 7 node008 '
is 'each driver is asked once' "$(asked)" 8

lab_hn plan --probe -H "$TMP/hosts.txt" --order topology --json true
is 'a plan tells the domains' "$(python3 -c '
import json, sys
for n in json.load(open(sys.argv[1]))["nodes"]:
    print(n["host"], n["domain"], n["switch"])' "$OUT" | sort | head -2)" "node001 $A.4 None
node002 $B.4 None"
lab_hn plan --probe -H "$TMP/hosts.txt" --segment 2 --nodes 6 true
ok '... the table, in short' grep -qE '^ +3 +node007 +aaaabbbb\.4 +3 ' "$OUT"
ok '... and which nodes stand by' grep -qE '^ +- +node008 +aaaabbbb\.5 +spare ' "$OUT"

exits 'segments of three' 0 lab_hn -H "$TMP/hosts.txt" --segment 3 --nodes 6 --label none sh -c 'echo $RANK $(hostname)'
is '... lie within domains' "$(sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' ')" 'node001 node003 node005 node002 node004 node006 '
lab_hn -H "$TMP/hosts.txt" --tree 2 --segment 3 --nodes 6 --label none sh -c 'echo $RANK $(hostname)'
is '... in a tree, too' "$(sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' ')" 'node001 node003 node005 node002 node004 node006 '
lab_hn -H "$TMP/hosts.txt" --segment 4 -n 4 --label none sh -c 'echo $RANK $(hostname)'
is '... with -n, in the domain that has four' "$(sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' ')" 'node001 node003 node005 node007 '
exits 'segments of four do not fit' 69 lab_hn -H "$TMP/hosts.txt" --segment 4 touch "$TMP/started"
has '... and are refused with the domains' "$ERR" \
    'error[HN360]: segments of 4 nodes do not fit: domain aaaabbbb.4 has 4 nodes (node[001,003,005,007]), bbbbbbbb.4 has 3 nodes (node[002,004,006]), aaaabbbb.5 has 1 node (node008)'
ok '... nothing starts' test ! -e "$TMP/started"
lab_hn -H "$TMP/hosts.txt" --segment 2 --nodes 4:7 --label none sh -c 'echo $RANK $(hostname)'
is 'with MIN:MAX as many segments as fit' "$(sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' ')" \
    'node001 node003 node005 node007 node002 node004 '

# node003 dies in the first attempt; node007 is of its domain, node002 to 008 are not.
lab_hn -H "$TMP/hosts.txt" --segment 3 --nodes 3 --spares auto --max-restarts 1 --label none sh -c '
    echo $HN_RESTART $RANK $(hostname)
    [ "$HN_RESTART$RANK" != 01 ] || kill -9 $PPID'
exits 'a node is lost' 0
is '... a spare of its domain takes the place' "$(grep '^1' "$OUT" | sort -n | tr '\n' ' ')" '1 0 node001 1 1 node007 1 2 node005 '
lab_hn -H "$TMP/hosts.txt" --segment 4 --nodes 4 --spares auto --max-restarts 1 --label none sh -c '
    echo $HN_RESTART $RANK $(hostname)
    [ "$HN_RESTART$RANK" != 01 ] || kill -9 $PPID'
exits 'a node is lost, and no spare of its domain is there' 0
has '... the job goes on with a warning' "$ERR" 'nodes 0 to 3 are a segment no longer: domain aaaabbbb.4 has 3 nodes (node[001,005,007])'

# A driver that does not answer, and a file of switches for all nodes.
lab exec node001 sh -c 'echo refuse >/mnt/word'
wire 8
printf 'leaf1: node[001-004]\nleaf2: node[005-008]\n' >net.txt
lab_hn -H "$TMP/hosts.txt" --order topology --label none sh -c 'echo $RANK $(hostname)'
is 'hosts without a domain come last' "$(sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' ')" \
    'node002 node004 node006 node003 node005 node007 node001 node008 '
has '... and are told' "$ERR" 'warning[HN361]: 2 of 8 hosts are in no known domain, and come last'
for i in {1..7}; do wire "$i"; done
lab_hn -H "$TMP/hosts.txt" --segment 4 --topology net.txt --label none sh -c 'echo $RANK $(hostname)'
is 'without NVLink switches are the domains' "$(sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' ')" "$(echo node00{1..8}) "
wire 3 $A 4
wire 8 $A 4
exits 'an NVLink domain counts more than a switch' 69 lab_hn -H "$TMP/hosts.txt" --segment 4 --topology net.txt true
lab_nothing_left 'nothing is left'
done_testing

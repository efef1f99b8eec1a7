#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check` over ssh: a small /dev/shm, a missing directory, few open files and a node without power are told with the
# node; the others pass. In a tree, too.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

export LAB_PRIVATE='/dev/shm /run /mnt'
lab_up 6 2
lab exec node002 mount -o remount,size=32m /dev/shm
for i in 1 3 4 5 6; do lab exec "node00$i" mkdir /mnt/data; done

healthy() { grep -qE "^$1 +pass +$2 " "$OUT"; } # CHECK NODES
exits 'nodes that are not fit: 69' 69 lab_hn check -H "$TMP/hosts.txt" --chdir /mnt/data true
ok 'all are reached' healthy reach 6
ok 'a small /dev/shm fails' grep -qE '^shm.size +fail +1 +node002: 33\.6 MB, expected at least 134 MB$' "$OUT"
ok '... on that node only' grep -qE '^ +pass +5 ' "$OUT"
ok 'a missing directory fails' grep -qE '^workdir +fail +1 +node002: missing, expected there$' "$OUT"
ok 'the program is the same' healthy program 6
ok 'the clocks agree' healthy clock 6
ok 'the nodes know each other by name' healthy name.peers 6
ok 'there is room in /tmp' healthy tmp.free 6
verdict_has 'the verdict counts' '2 checks failed on 1 of 6 nodes' '(exit 69)'
has 'the others are named for a run' "$ERR" "--exclude 'node002'"
exits '... and are fit' 0 lab_hn check -H "$TMP/hosts.txt" --exclude node002 --chdir /mnt/data true

# node003 knows no name of node001, and another address of node002.
lab exec node003 sh -c 'sed "/ node001\$/d; s/^[0-9.]* node002\$/10.99.9.9 node002/" /etc/hosts >/run/hosts && mount --bind /run/hosts /etc/hosts'
exits 'a node that does not know a peer by name warns' 0 lab_hn check -H "$TMP/hosts.txt" --exclude node002,node004,node005,node006
ok '... on that node only' grep -qE '^name.peers +warn +1 +node003: no address of node001, expected an address of each node$' "$OUT"
ok '... the other one knows its peer' grep -qE '^ +pass +1 +1 name$' "$OUT"
has '... with a next step' "$OUT" 'help: name.peers: name all nodes in DNS, or in /etc/hosts'
lab_hn check -H "$TMP/hosts.txt" --exclude node001,node004,node005,node006
ok 'a wrong address of a peer warns' grep -qE '^name.peers +warn +1 +node003: a wrong address of node002: 10.99.9.9, ' "$OUT"
lab exec node003 umount /etc/hosts

exits 'in a tree the same' 69 lab_hn check -H "$TMP/hosts.txt" --tree 2 --chdir /mnt/data --json true
is '... in JSON' "$(python3 -c '
import json, sys
for n in json.load(open(sys.argv[1]))["nodes"]:
    for c in n["checks"]:
        if c["result"] == "fail":
            print(n["host"], c["name"], c["value"])' "$OUT")" $'node002 shm.size 33.6 MB\nnode002 workdir missing'
is '... where clocks of two nodes are compared, and the others are not claimed' \
    "$(grep -A1 '"clock"' "$OUT" | grep -o '"result": ".*"' | sort | uniq -c | sed 's/^ *//')" $'4 "result": "not run"\n2 "result": "pass"'

lab crash node005
exits 'a node without power fails' 69 lab_hn check -H "$TMP/hosts.txt" --exclude node002 --connect-timeout 3s
ok '... and is named' grep -qE '^reach +fail +1 +node005: ' "$OUT"
ok '... the others are checked' grep -qE '^kernel +pass +4 ' "$OUT"
lab_nothing_left 'nothing is left'
done_testing

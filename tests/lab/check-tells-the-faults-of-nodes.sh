#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check` over ssh: a small /dev/shm, a missing directory, few open files and a node without power are told with the
# node; the others pass. In a tree, too.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/lab.sh
. "$ROOT/tests/lib/lab.sh" || exit 1

export LAB_PRIVATE='/dev/shm /run /mnt'
lab_up 6 2
lab exec node002 mount -o remount,size=32m /dev/shm
for i in 1 3 4 5 6; do lab exec "node00$i" mkdir /mnt/data; done

healthy() { grep -qE "^$1 +pass +$2 " "$OUT"; } # CHECK NODES
lab_hn check -H "$TMP/hosts.txt" --chdir /mnt/data true
exits 'nodes that are not fit: 69' 69
ok 'all are reached' healthy reach 6
ok 'a small /dev/shm fails' grep -qE '^shm.size +fail +1 +node002: 33\.6 MB, expected at least 134 MB$' "$OUT"
ok '... on that node only' grep -qE '^ +pass +5 ' "$OUT"
ok 'a missing directory fails' grep -qE '^workdir +fail +1 +node002: missing, expected there$' "$OUT"
ok 'the program is the same' healthy program 6
ok 'the clocks agree' healthy clock 6
ok 'there is room in /tmp' healthy tmp.free 6
verdict_has 'the verdict counts' '2 checks failed on 1 of 6 nodes' '(exit 69)'
has 'the others are named for a run' "$ERR" "--exclude 'node002'"
lab_hn check -H "$TMP/hosts.txt" --exclude node002 --chdir /mnt/data true
exits '... and are fit' 0

lab_hn check -H "$TMP/hosts.txt" --tree 2 --chdir /mnt/data --json true
exits 'in a tree the same' 69
is '... in JSON' "$(python3 -c '
import json, sys
for n in json.load(open(sys.argv[1]))["nodes"]:
    for c in n["checks"]:
        if c["result"] == "fail":
            print(n["host"], c["name"], c["value"])' "$OUT")" $'node002 shm.size 33.6 MB\nnode002 workdir missing'
is '... where clocks of two nodes are compared, and the others are not claimed' \
    "$(grep -A1 '"clock"' "$OUT" | grep -o '"result": ".*"' | sort | uniq -c | sed 's/^ *//')" $'4 "result": "not run"\n2 "result": "pass"'

lab crash node005
lab_hn check -H "$TMP/hosts.txt" --exclude node002 --connect-timeout 3s
exits 'a node without power fails' 69
ok '... and is named' grep -qE '^reach +fail +1 +node005: ' "$OUT"
ok '... the others are checked' grep -qE '^kernel +pass +4 ' "$OUT"
lab_nothing_left 'nothing is left'
done_testing

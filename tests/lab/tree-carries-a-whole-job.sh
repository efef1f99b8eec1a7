#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --tree 2 on nine nodes, three and four deep: the same world, the same bytes, the same exit codes as without.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

# Every node has a cache of its own, so each of them has to get the agent.
export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=/run/cache"
lab_up 9 2
tree=(--tree 2 -H "$TMP/hosts.txt")

hello='echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $HN_NUM_NODES $(hostname)"'
for r in {0..17}; do
    printf '%d 18 %d 2 %d 9 node%03d\n' "$r" $((r % 2)) $((r / 2)) $((r / 2 + 1))
done >want

exits 'a launch through a tree gives 0' 0 lab_hn -v "${tree[@]}" --label none sh -c "$hello"
sort -n "$OUT" >got
same 'every rank is where it belongs' got want
has '-v tells who is carried by whom' "$ERR" 'node002 is reached through node001'
has 'and behind these' "$ERR" 'node003 is reached through node002'
has 'all nodes got the agent' "$ERR" '9 uploaded'
lab_nothing_left 'nothing is left on the nodes'

# The head speaks to two nodes only: nobody else sees a connection of it.
comes_up 'eighteen ranks are up' 18 lab_start "${tree[@]}" --label none sh -c 'echo up; exec sleep 60'
is 'the head has two connections' "$(lab run ss -Htn state established dport = :22 | wc -l)" 2
exits 'Ctrl-C: 130' 130 finish_by INT
lab_nothing_left 'and nothing is left'

exits 'three megabytes per rank and stream' 0 lab_hn -q "${tree[@]}" "$WORKERS/worker_numbers" 300000
ok 'no line of stdout is torn or lost' sh -c "'$WORKERS/worker_checklines' 18 o <'$OUT'"
ok 'no line of stderr is torn or lost' sh -c "'$WORKERS/worker_checklines' 18 e <'$ERR'"

head -c 3000000 /dev/urandom >bytes
exits 'standard input for all' 0 lab_run sh -c "'$LAB_HNLAUNCH' --tree 2 -H '$TMP/hosts.txt' --stdin all --label none md5sum <bytes"
is 'it reaches every rank unchanged' "$(cut -c1-32 "$OUT" | sort | uniq -c | xargs)" "18 $(md5sum <bytes | cut -c1-32)"

exits 'groups through the store' 0 lab_hn "${tree[@]}" --label none "$PLAIN/tests/clients/groups"
is 'all of them are right' "$(cat "$OUT")" ok

for endpoint in network loopback; do
    lab_hn "${tree[@]}" --store-listen $endpoint --label none bash -c 'exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT && echo there'
    is "every rank finds PyTorch's store: $endpoint" "$(grep -c there "$OUT")" 18
done

exits 'the exit code of a rank at a leaf' 9 lab_hn "${tree[@]}" sh -c '[ "$RANK" = 7 ] && exit 9; exec sleep 60'
verdict_has 'the verdict names it' 'rank 7' node004
lab_hn --tree 1 -w 'node[001-004]:1' --label none sh -c 'echo "$RANK $(hostname)"'
is 'a chain is a tree as well' "$(sort -n "$OUT" | tr '\n' ' ')" '0 node001 1 node002 2 node003 3 node004 '
lab_hn --ssh-command 'ssh -oServerAliveInterval=5' "${tree[@]}" --label none sh -c "$hello"
sort -n "$OUT" >got
same "the site's ssh at every level" got want
lab_hn -o ssh.tree=2 -v -w 'node[001-003]:1' true
has 'the setting does the same' "$ERR" 'node002 is reached through node001'
lab_nothing_left 'nothing is left at the end'
done_testing

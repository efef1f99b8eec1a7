#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A host of --dial-in has the name of the node that runs its ranks: not that of another one which waits for the same
# node rank, and never that of another host. Both sides are told that a node waits.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

unshare --uts true 2>/dev/null || skip_all 'needs root: nodes of this machine get names of their own'
PORT=$(free_port)
export HNLAUNCH_DIAL_SECRET=0123456789abcdef
declare -A PIDS
node() { # NAME R NODES ARG...: in the background; its output is in R-NAME.out and R-NAME.err
    unshare --uts sh -c 'hostname "$0" && exec "$@"' "$1" "$HNLAUNCH" --dial-in "127.0.0.1:$PORT" --oversubscribe \
        --node-rank "$2" --nodes "${@:3}" >"$2-$1.out" 2>"$2-$1.err" &
    PIDS[$2-$1]=$!
}

# --- a second node of the same rank ---------------------------------------------------------------
start --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 0 --oversubscribe --log-dir logs \
    sh -c 'echo here; [ "$RANK" = 0 ] && exec sleep 300; until [ -e go ]; do sleep 0.1; done; exit 3'
node realhost 1 2 true
ok 'both ranks run' wait_for lines_are "$OUT" 2
node impostor 1 2 true
ok 'the second one is told what it waits for' wait_for grep -qE \
    'hnlaunch: node 1 waits: node rank 1 is taken by realhost at 127.0.0.1' 1-impostor.err
ok 'and node 0 warns' wait_for grep -qE \
    '^warning\[HN349\]: node rank 1 is taken by realhost at 127.0.0.1; impostor at 127.0.0.1 waits for it$' "$ERR"
touch go
finish
wait
exits 'the code is that of the rank' 3
has 'its host is the one where it ran' "$ERR" ': rank 1 on realhost exited with code 3  (exit 3)'
has 'so the first node says' 1-realhost.err 'rank 1 on realhost exited with code 3'
has 'and so does the log' logs/latest/summary.json '"host": "realhost"'
is 'the other name is nowhere in it' "$(grep -rl --exclude=output impostor logs)" ''
rm go

# --- the waiting one takes the place --------------------------------------------------------------
start --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 0 --oversubscribe --max-restarts 1 \
    sh -c 'echo here; [ "$HN_RESTART" = 1 ] || exec sleep 300; exit $RANK'
node realhost 1 2 --max-restarts 1 true
ok 'the ranks run' wait_for lines_are "$OUT" 2
node impostor 1 2 --max-restarts 1 true
ok 'another node waits' wait_for grep -q HN349 "$ERR"
kill -KILL "${PIDS[1-realhost]}"
finish
wait
ok 'the lost node has its own name' grep -qE 'restart 1 of 1: lost realhost: ' "$ERR"
has 'the next attempt has that of the other' "$ERR" 'rank 1 on impostor exited with code 1'

# --- names that collide ---------------------------------------------------------------------------
names_of() { # NAME...: the names that hosts of nodes 0, 1 ... get
    local name r=0
    for name; do
        node "$name" "$r" $# --label '{host}' sh -c 'echo is the host of rank $RANK'
        r=$((r + 1))
    done
    wait
    NAMES=$(sed -E 's/^(.*)is the host of rank (.*)/\2 \1/' "0-$1.out" | sort -n | cut -d' ' -f2 | xargs)
}
names_of x-2 x x
is 'the number of a name is no other name' "$NAMES" 'x-2 x x-3'
names_of x x x-1
is 'in another order, too' "$NAMES" 'x x-1 x-1-2'
names_of node2 node2 node1
is 'the names that hosts have before their nodes come are free' "$(tr ' ' '\n' <<<"$NAMES" | sort -u | wc -l)" 3
done_testing

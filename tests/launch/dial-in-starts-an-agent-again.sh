#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node that dialed in loses its agent, not its hnlaunch: the next attempt starts another agent over the same
# connection.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

PORT=$(free_port)
export HNLAUNCH_DIAL_SECRET=0123456789abcdef
cat >work.sh <<'EOF'
echo "rank $RANK attempt $HN_RESTART of agent $PPID"
[ "$HN_RESTART" = 0 ] && exec sleep 300
exit 0
EOF

timeout 100 "$HNLAUNCH" --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 1 --max-restarts 1 --oversubscribe true \
    >one.out 2>one.err &
ONE=$!
start --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 0 --max-restarts 1 --oversubscribe --label none sh work.sh
ok 'both ranks are up' wait_for lines_are "$OUT" 2
kill -KILL "$(awk '$2 == 1 { print $NF }' "$OUT")"
finish
exits 'the second attempt ends well' 0
wait "$ONE"
is 'on the node, too' $? 0
has 'its agent was lost' "$ERR" 'its agent was ended (killed by signal 9'
is 'both ranks ran again' "$(grep -c 'attempt 1' "$OUT")" 2
is 'one of them under another agent' "$(awk '$2 == 1 { print $NF }' "$OUT" | sort -u | wc -l)" 2
done_testing

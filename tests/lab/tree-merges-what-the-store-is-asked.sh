#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --tree K: nodes ask the store together with those behind them, so the head hears K of them, however many there are.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache"
lab_up 14 2
hosts=$TMP/hosts.txt
barriers=$PLAIN/tests/clients/counted_barriers
rounds=$PLAIN/tests/clients/collective_rounds

# Bytes of the head's own, without what it switches between nodes.
sent() { lab run cat /proc/net/dev | awk '/br0:/ { sub(/.*br0:/, ""); print $9 }'; }

# Sets SAID, how often the store answered, and SENT, megabytes that left the head, while 27 ranks wait for one of them.
count() { # OPTION...
    local base before
    lab_hn -vv "$@" -H "$hosts" --label none "$barriers" 0
    base=$(sed -n 's/.*messages and sent \([0-9]*\).*/\1/p' "$ERR")
    before=$(sent)
    lab_hn -vv "$@" -H "$hosts" --label none "$barriers" release
    is "${*:-no tree}: all have it" "$(cat "$OUT") $RC" 'ok 0'
    SAID=$(($(sed -n 's/.*messages and sent \([0-9]*\).*/\1/p' "$ERR") - base))
    SENT=$((($(sent) - before) / 1000000))
    printf '# %s: %d answers, %d MB\n' "${*:-no tree}" $SAID $SENT
}

lab_hn -H "$hosts" true # so that all nodes have the agent
count
ok 'without a tree all nodes are answered' test $SAID -ge 14
ok 'each with its copy' test $SENT -ge 14
# One answer is that of the SET; one more and one megabyte is what a busy machine may need.
for K in 4 2 1; do
    count --tree $K
    ok "--tree $K: so many are answered" test $SAID -le $((K + 2))
    ok "--tree $K: so many copies leave the head" test $SENT -le $((K + 1))
done

# Sets SAID, how often the head answers while 28 ranks meet nine times, and SENT, with three megabytes that one of them
# has for all.
count_meetings() { # OPTION...
    local base before
    lab_hn -vv "$@" -H "$hosts" --label none "$rounds" 0 0
    base=$(sed -n 's/.*messages and sent \([0-9]*\).*/\1/p' "$ERR")
    before=$(sent)
    lab_hn -vv "$@" -H "$hosts" --label none "$rounds" 3 1000000
    is "${*:-no tree}: all have met" "$(cat "$OUT") $RC" 'ok 0'
    SAID=$(($(sed -n 's/.*messages and sent \([0-9]*\).*/\1/p' "$ERR") - base))
    SENT=$((($(sent) - before) / 1000000))
    printf '# %s: %d answers, %d MB\n' "${*:-no tree}" $SAID $SENT
}

count_meetings
is 'a collective of 28 ranks is one answer to each of 14 nodes' $SAID $((9 * 14))
ok 'and one copy' test $SENT -le $((3 * 14 + 2))
count_meetings --tree 2
is 'in a tree it is two answers' $SAID $((9 * 2))
ok 'and two copies' test $SENT -le $((3 * 2 + 2))

# node001 is the parent of 002 to 007, node008 is the parent of 009 to 014.
lab_hn --tree 2 -H "$hosts" --label none "$barriers" 200 18
exits 'a parent whose own ranks have ended speaks for its descendants' 0
is 'and they are right' "$(cat "$OUT")" ok

cat >again.sh <<'END'
[ "$HN_RESTART.$RANK" = 0.13 ] && sleep 1 && exit 3
[ "$HN_RESTART" = 1 ] && set -- "$1" 50
exec "$@"
END
lab_hn --tree 2 -H "$hosts" --max-restarts 1 --label none bash "$PWD/again.sh" "$barriers" 1000000
exits 'an attempt finds nothing of the one before' 0
is 'and all numbers are right' "$(cat "$OUT")" ok

head -n 6 "$hosts" >six # a parent, its child and grandchild are enough: each rank starts a PyTorch
torch_lab --tree 2 -H six --ppn 1 --store-listen loopback torch_store.py
torch_ok "PyTorch's store on every node" 6
lab_nothing_left 'nothing is left at the end'
done_testing

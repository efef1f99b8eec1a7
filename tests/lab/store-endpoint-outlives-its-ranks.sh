#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The ranks of the store's node leave first, with 0: the endpoint there answers the ranks of other nodes until these
# have ended, too. The loss of that node is then a failure of the job; that of a node without the endpoint is none.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 1
export PYTHONPATH=$ROOT/tests/lib

# Rank 0 leaves at once. The others wait for the file "gone", use the store, and do what their arguments say.
cat >user.py <<'END2'
import os
import signal
import sys

from store_client import Client
from waiting import wait_for

rank, attempt = int(os.environ["RANK"]), os.environ["HN_RESTART"]
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
early = Client(address[1], address[0], timeout=60) if rank else None
print("rank", rank, "port", address[1], "of attempt", attempt, flush=True)
if rank == 0:
    sys.exit(0)
wait_for(lambda: os.path.exists("gone" + attempt))
late = Client(address[1], address[0], timeout=60)
if rank == 1:
    assert late.check(b"left") == b"\1", "the store is not empty"
    late.set(b"left", b"by rank 1")
for i in range(300):
    assert early.add(b"sum%d" % rank, 1) == i + 1
early.start_wait(b"both%d" % (3 - rank))
late.set(b"both%d" % rank, b"here")
assert early.hear(1) == b"\0"
assert late.get(b"both%d" % (3 - rank)) == b"here"
assert late.compare_set(b"swap%d" % rank, b"", b"new") == b"new"
print("rank", rank, "was answered", flush=True)
if sys.argv[1:] == ["hold"] or sys.argv[1:] == ["hold once"] and attempt == "0":
    # A rank that ended here would race with the news of the lost node.
    try:
        late.wait(b"never")
    except (EOFError, OSError):
        signal.pause()
if sys.argv[1:] == ["fail once"] and attempt == "0":
    if rank == 1:
        late.wait(b"told")  # else rank 2 may be stopped before its line
        sys.exit(3)
    late.set(b"told", b"by rank 2")
END2
count_ranks() { lab exec "$1" pgrep -c -f 'user\.py' 2>/dev/null; } # NODE
has_no_ranks() { [[ $(count_ranks "$1") == 0 ]]; }
# Waits until all ranks of attempt N are up, and those of node001 have ended; then lets the others go on.
go_on() { # ATTEMPT RANKS
    ok "attempt $1: $2 ranks are up" wait_for says_times "of attempt $1" "$2"
    ok 'those of the first node end' wait_for has_no_ranks "${3:-node001}"
    : >"gone$1"
}
says_times() { [[ $(grep -c "$1" "$OUT") == "$2" ]]; }
launch() { # ARG... what the ranks do
    rm -f gone*
    lab_start -w node001,node002,node003 --node-timeout 3s --timeout 60s --label none "$@"
}
rank=(/usr/bin/python3 "$PWD/user.py")

for options in '' '-o net.store_peers=node' '--tree 1'; do
    read -ra words <<<"$options"
    launch "${words[@]}" "${rank[@]}"
    go_on 0 3
    exits "${options:-two nodes are left}: the job ends well" 0 finish
    is 'both ranks were answered' "$(grep -c 'was answered' "$OUT")" 2
    lab_nothing_left 'nothing is left'
done

launch --max-restarts 1 "${rank[@]}" 'fail once'
go_on 0 3
go_on 1 3
exits 'a restart: the job ends well' 0 finish
is 'its store is empty, and answers, too' "$(grep -c 'was answered' "$OUT")" 4
is 'at another port' "$(sed -n 's/.*port \([0-9]*\) .*/\1/p' "$OUT" | sort -u | wc -l)" 2
lab_nothing_left 'nothing is left'

for options in '' '--tree 1'; do
    read -ra words <<<"$options"
    launch "${words[@]}" "${rank[@]}" hold
    go_on 0 3
    ok "${options:-no tree}: the others wait" wait_for says_times 'was answered' 2
    lab exec node001 pkill -KILL -x 'agent-.*'
    exits 'the agent of the endpoint is killed: the job ends' 125 finish
    verdict_has 'the verdict names the node, and what was lost' 'lost node001' 'the TCP endpoint of the store'
    lab_nothing_left 'nothing is left'
done

launch "${rank[@]}" hold
go_on 0 3
ok 'the others wait again' wait_for says_times 'was answered' 2
lab crash node001
exits 'the node of the endpoint crashes: the job ends' 125 finish
verdict_has 'the verdict says so' 'lost node001' 'silent for' 'the TCP endpoint of the store'
lab boot node001
lab_nothing_left 'nothing is left'

sed 's/^\(node003.*\)/\1 spare/' "$TMP/hosts.txt" >spare.txt
cat >pair.sh <<'END2'
echo "rank $RANK of attempt $HN_RESTART on $(hostname)"
[ "$RANK$HN_RESTART" != 10 ] || exec sleep 600 # user.py
END2
rm -f gone*
lab_start -H spare.txt --timeout 60s --max-restarts 1 --label none sh "$PWD/pair.sh"
ok 'with a spare host two ranks are up' wait_for says_times 'of attempt 0' 2
no_agent_child() { ! lab exec node001 pgrep -f pair.sh; }
wait_for no_agent_child
lab exec node001 pkill -KILL -x 'agent-.*'
exits 'the spare host takes the place of the endpoint: the second attempt ends well' 0 finish
has 'with rank 0' "$OUT" 'rank 0 of attempt 1 on node003'
lab_nothing_left 'nothing is left'

# A node without the endpoint is not needed any more.
cat >leave.sh <<'END2'
echo "rank $RANK is up"
[ "$RANK" != 1 ] || exit 0
while [ ! -e gone ]; do sleep 0.1; done
END2
for options in '--store-listen network' '--store-listen loopback'; do
    read -ra words <<<"$options"
    rm -f gone
    comes_up "$options: three ranks are up" 3 lab_start -w node001,node002,node003 --label none "${words[@]}" sh "$PWD/leave.sh"
    no_rank() { ! lab exec node002 pgrep -f leave.sh; }
    wait_for no_rank
    lab exec node002 pkill -KILL -x 'agent-.*'
    no_agent() { ! lab exec node002 pgrep -x 'agent-.*'; }
    wait_for no_agent
    : >gone
    exits 'a node without the endpoint is lost after its ranks: the job ends well' 0 finish
    lab_nothing_left 'nothing is left'
done
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ctrl-\ asks all nodes and waits a second at most: one that hangs is named, the others are listed; ranks on
# other nodes that wait for a rank are told apart from the one that does not come.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 2

# Asks, and takes the list down: are these the nodes of whose ranks it says that there is no answer? A node
# that was not given the processor within the second has not answered either; then all are asked again. A second
# question within 3 s has another answer (hnlaunch why), and the next one is a first one again.
silent_are() { # NODES
    local from
    from=$(stat -c %s "$ERR")
    kill -QUIT "$PID"
    wait_for is_answered $((from + 1)) && lists_rank_7 $((from + 1)) || return
    tail -c +$((from + 1)) "$ERR" >list
    [[ $(sed -nE 's/.*\| +[0-9]+ +(node[0-9]+) .*no answer.*/\1/p' list | sort -u) == "$1" ]]
}
is_answered() { lists_rank_7 "$1" || tail -c +"$1" "$ERR" | grep -E 'no rank is seen|no hang is visible|\(differs\)'; }
lists_rank_7() { tail -c +"$1" "$ERR" | grep -E '\| +7 +node004 +1 .'; }

comes_up 'eight ranks are up' 8 lab_start -H "$TMP/hosts.txt" --node-timeout 60s --label none sh -c 'echo up; exec sleep 100'
ok 'Ctrl-\ is answered by four nodes' wait_for silent_are ''
ok 'it lists their ranks' grep -qE '\| +7 +node004 +1 +[0-9]+ +yes' list
has 'it counts them' list 'note: 8 ranks on 4 nodes'

lab freeze node003
ok 'a frozen node is named' wait_for silent_are node003
ok 'in so many words' wait_for grep -qF 'note: no answer from node003' "$ERR"
ok 'its ranks are listed as such' grep -qE '\| +4 +node003 +0 +no answer' list
is 'those of the others are listed, too' "$(grep -cE '\| +[67] +node004 +[01] +[0-9]+ +yes' list)" 2
lab thaw node003
exits 'the job went on until Ctrl-C' 130 finish_by INT
lab_nothing_left 'nothing is left'

lab_hn -H "$TMP/hosts.txt" --node-timeout 60s --start-timeout 8s --label none "$PLAIN/tests/clients/left_waiting" 5
exits 'a rank on another node that does not join: 75' 75
verdict_has 'the verdict names rank and node' 'rank 5 on node003 did not join within 8s'
has 'it says that its neighbour has joined' "$ERR" 'note: 7 ranks joined in '
has 'it says where' "$ERR" '1 of them on node003'
lab_nothing_left 'nothing is left again'

if /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null; then
    lab_hn -H "$TMP/hosts.txt" --node-timeout 60s --ppn 1 --start-timeout 15s --label none \
        /usr/bin/python3 "$ROOT/tests/clients/torch_sleeper.py" 2 init "$TMP/imported"
    exits 'a PyTorch rank on another node that does not join: 75' 75
    verdict_has 'the verdict names it' 'rank 2 on node003 did not join within 15s'
    has 'connections from other nodes are known by their address' "$ERR" 'note: 3 ranks joined'
    has 'it says what they wait for' "$ERR" ' for `//worker/attempt_0/default_pg/0'
    lab_nothing_left 'nothing is left of PyTorch'
else
    skip 'PyTorch over nodes' 'needs PyTorch in /usr/bin/python3'
fi
done_testing

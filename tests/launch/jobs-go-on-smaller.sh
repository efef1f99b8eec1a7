#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --nodes MIN:MAX after a failure: without a spare host the job goes on with fewer nodes, from MIN on. Nodes are agents of this
# machine with names of their own.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

printf '%s slots=2\n' a b c d >hosts
# shellcheck disable=SC2054
nodes=(--oversubscribe --start-with 'env NODE={host}' --label none --log-dir logs --grace 1s --node-timeout 3s)
say='echo "$HN_RESTART: $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $HN_NUM_NODES $NODE"'
# In each attempt the last rank of the host named for it ends its agent, when all ranks have spoken; without a name the ranks
# end well.
deed() { # HOST... (by attempt)
    rm -rf spoken
    mkdir spoken
    printf '%s\n' "$say" ": >$PWD/spoken/\$HN_RESTART.\$RANK" 'set -- '"$*" 'shift $HN_RESTART' '[ $# != 0 ] || '"${END-exit 0}" \
        '[ $LOCAL_RANK = 1 ] && [ $NODE = $1 ] || exec sleep ${NAP-60}' \
        "until [ \$(ls $PWD/spoken | grep -c ^\$HN_RESTART) = \$WORLD_SIZE ]; do sleep 0.05; done" 'kill -KILL $PPID' 'sleep 60'
}
attempt() { sed -n "s/^$1: //p" "$OUT" | sort -n | cut -d' ' -f1,4- | xargs; }

hn -H hosts "${nodes[@]}" --bad-hosts none --restart auto --nodes 2:4 sh -c "$(deed b)"
exits 'a host is lost, and three are enough: the job ends well' 0
has 'one line tells it' "$ERR" 'hnlaunch: going on without b, with 6 ranks on 3 nodes'
is 'the others keep their order, without gaps' "$(attempt 1)" \
    '0/6 3 a 1/6 3 a 2/6 3 c 3/6 3 c 4/6 3 d 5/6 3 d'
is 'so do node ranks and local ranks' "$(grep '^1:' "$OUT" | sort -n -t/ | cut -d' ' -f3,4 | sort | xargs)" \
    '0/2 0/3 0/2 1/3 0/2 2/3 1/2 0/3 1/2 1/3 1/2 2/3'
is 'it is an event' "$(grep -c '"ev":"run.shrunk","nodes":3,"ranks":6,"text":"without b"}' logs/latest/events.ndjson)" 1

hn -H hosts "${nodes[@]}" --bad-hosts none --restart auto --nodes 2:4 --json=events sh -c "$(deed a d)"
exits 'twice, and the host of rank 0 first: the job ends well' 0
is 'down to two nodes' "$(attempt 2)" '0/4 2 b 1/4 2 b 2/4 2 c 3/4 2 c'
is 'with an event each' "$(grep -o '"ev":"run.shrunk".*"ranks":[0-9]' events | cut -d: -f4 | xargs)" '6 4'

hn -H hosts "${nodes[@]}" --bad-hosts none --restart auto --min-nodes 3 sh -c "$(deed b c d)"
exits 'below MIN: 125' 125
has 'with the hosts that were put out' "$ERR" 'warning[HN317]: no host is left to take the place of 2 hosts that were put out'
has 'and the least number' "$ERR" 'note: fewer than 3 nodes would be left'
has 'each host with its reason' "$ERR" '| c: c or its agent was lost'
is 'and no attempt on two nodes' "$(attempt 2)" ''

sed '$s/$/ spare/' hosts >spare
hn -H spare "${nodes[@]}" --bad-hosts none --restart auto --min-nodes 2 sh -c "$(deed b c)"
# The last lines of c go with its agent.
has 'a spare host comes first' <(attempt 1) '0/6 3 a 1/6 3 a 2/6 3 d 3/6 3 d'
is 'then the job goes on without one' "$(attempt 2)" '0/4 2 a 1/4 2 a 2/4 2 d 3/4 2 d'

hn report
has 'the report has the ranks of the last attempt' "$OUT" ': 2 nodes, 4 ranks'
has 'what ended each attempt' "$OUT" '  lost b: its agent was ended'
ok 'with the decision, its reason and the lost time' grep -qE '^ +host out: c or its agent was lost; [0-9.]+s lost$' "$OUT"
has 'which host took a place' "$OUT" 'replaced     b  d takes its place'
has 'and which one has gone' "$OUT" 'fewer nodes  without c'
hn report --json
ok 'also as JSON' python3 -c '
import json, sys
a = json.load(open(sys.argv[1], encoding="utf-8"))["attempts"]
assert [x.get("decision") for x in a] == ["host out", "host out", None]
assert all(x["lost_us"] >= x["us"] for x in a[:2]) and "lost_us" not in a[2]' "$OUT"
hn report --html page.html
has 'and on the page' page.html 'host out: c or its agent was lost; '
hn logs --ranks 5
has 'logs have ranks that are gone' "$OUT" '0: 5/6'
hn logs --ranks 2
has 'with the host of the first attempt' "$OUT" 'b:2 | 0: 2/6'
has 'and of later ones' "$OUT" 'd:2 | 1: 2/6'
hn logs --json -w d --ranks 2
is '-w chooses by the host of the time' "$(python3 -c 'import json, sys
print(*{(x["host"], x["text"][:2]) for x in map(json.loads, open(sys.argv[1], encoding="utf-8")) if x["text"][:1] < "2"})' "$OUT")" "('d', '1:')"
hn logs -w e
has 'a host that the run has not' "$ERR" 'has no host e'
hn ps
has 'ps has the sizes of the last attempt' <(grep "^$(readlink logs/latest) " "$OUT" | tr -s ' ') ' 2 4 finished'
hn ps --json
has 'also as JSON' <(tr -d '\n ' <"$OUT") '"num_nodes":2,"world_size":4,'

NAP=0 hn rerun --without-bad "$(readlink logs/latest)"
has 'rerun --without-bad leaves out both hosts' "$ERR" 'hnlaunch -o run.leave_out=b -o run.leave_out=c -H spare'
has 'in one line' "$ERR" 'hnlaunch: without b,c (run.leave_out)'
exits 'and the job ends well' 0
is 'the spare host has a place from the start' "$(attempt 0)" '0/4 2 a 1/4 2 a 2/4 2 d 3/4 2 d'

# ps while an attempt runs; the ranks of the second one wait for a file.
printf 'e slots=2 spare\n' >>spare
END="{ until [ -e $PWD/end ]; do sleep 0.1; done; exit 0; }"
"$HNLAUNCH" -H spare "${nodes[@]}" --bad-hosts none --restart auto sh -c "$(deed b)" >ps.out 2>ps.err &
PID=$!
unset END
second_is_up() { [[ $(grep -c '^1:' ps.out) == 6 ]]; }
ok 'six ranks are up again' wait_for second_is_up
hn ps
has 'ps has the attempt, and how many spare hosts are left' "$OUT" 'running, attempt 2, 1 spare left'
hn ps --json
has 'also as JSON' <(tr -d '\n ' <"$OUT") '"attempt":2,"spares":1,'
touch end
wait "$PID"

hn -H hosts "${nodes[@]}" --bad-hosts none --restart auto --nodes 2:4 --map node sh -c "$(deed b)"
is 'ranks that go round the nodes still do' "$(attempt 1)" '0/6 3 a 1/6 3 c 2/6 3 d 3/6 3 a 4/6 3 c 5/6 3 d'
nothing_left 'nothing is left of any attempt'
done_testing

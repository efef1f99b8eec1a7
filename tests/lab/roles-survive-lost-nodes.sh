#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Roles on nodes that fail, before the start and later: a spare host takes the place of a node of a role, and of the role that stands on it,
# and all worlds start again. --push, --pull and --dial-in know roles, too.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4 2
hosts=$TMP/hosts.txt

cat >work.sh <<'END'
echo "$HN_ROLE.$RANK of $WORLD_SIZE on $(hostname) attempt $HN_RESTART in $HN_WORLD_ROLES node $NODE_RANK at $MASTER_ADDR"
[ "$HN_RESTART" = 0 ] && [ $# = 0 ] && exec sleep 60
exit 0
END
addr_of() { lab hosts etc | awk -v h="$1" '$0 ~ h { print $1; exit }'; }
job=(--gpus-per-rank 0 --label none --role t --nodes 2 sh "$PWD/work.sh" : --role i --nodes 1 sh "$PWD/work.sh" : --role r --on t:last sh "$PWD/work.sh")
# Worlds: t on node001 and node002, i on node003, r beside t.

# --- a node of a role is lost ---
comes_up 'seven ranks of three roles are up' 7 lab_start -H "$hosts" --spares 1 --max-restarts 2 --node-timeout 3s "${job[@]}"
lab crash node002
exits 'the second attempt ends well' 0 finish
has 'the spare host takes the place' "$ERR" 'node004 takes the place of node002'
grep 'attempt 1' "$OUT" | sort >again
is 'all worlds start again, each as it was' "$(cut -d' ' -f1-9 again)" \
    "$(for r in 0 1 2 3; do echo "t.$r of 4 on node00$((r < 2 ? 1 : 4)) attempt 1 in t:0-3"; done | sed '1{h;s/.*/i.0 of 2 on node003 attempt 1 in i:0-1/;p;s/i.0/i.1/;p;s/.*/r.0 of 1 on node004 attempt 1 in r:0/;p;x}')"
is 'the others keep theirs' "$(awk '/^t/ { print $NF }' again | sort -u)" "$(addr_of node001)"
lab boot node002
lab_nothing_left 'nothing is left'

# --- before the start ---
lab sshd node003 stop
lab_hn -H "$hosts" --spares 1 --gpus-per-rank 0 --label none --role t --nodes 2 sh "$PWD/work.sh" once : --role i --nodes 1 sh "$PWD/work.sh" once
exits 'a node that cannot be reached is replaced' 0
has 'by the spare host' "$ERR" 'node004 takes the place of node003'
is 'which has the ranks of the role' "$(grep -c '^i.[01] of 2 on node004 .* node 0 ' "$OUT")" 2
lab sshd node003 start

# --- without a spare host ---
lab_start -H "$hosts" --max-restarts 2 --node-timeout 3s --gpus-per-rank 0 --label none --role t --nodes 3 sh "$PWD/work.sh" : --role i --nodes 1 sh "$PWD/work.sh"
ok 'eight ranks of two roles are up' wait_for lines_are "$OUT" 8
lab crash node004
exits 'a lost node without a spare one ends the job' 125 finish
has 'which is told' "$ERR" 'the job is not started again without node004'
lab boot node004

# --- a drain ---
cat >drain.sh <<'END'
trap 'echo "$HN_ROLE.$RANK saves"; exit 0' TERM
echo up
sleep 600 &
wait
END
begin=$SECONDS
lab_start -H "$hosts" --node-timeout 2s --gpus-per-rank 0 --label none --role t --nodes 3 --ppn 1 --drain 10m sh "$PWD/drain.sh" : \
    --role i --nodes 1 --ppn 1 sleep 600
ok 'a role with a drain is up on three nodes' wait_for lines_are "$OUT" 3
lab crash node002
exits 'one of them is lost' 125 finish
is 'the others have their time' "$(grep -c saves "$OUT")" 2
ok 'which does not last for the ranks of the lost node' test $((SECONDS - begin)) -lt "$(scaled 40)"
lab boot node002

# --- a linger ---
lab_start -H "$hosts" --node-timeout 2s --gpus-per-rank 0 --label none --main m --linger 10m --role m --nodes 1 --ppn 1 --after h echo 'm ends' : \
    --role h --nodes 1 --ppn 1 sh -c 'echo up; sleep 600'
ok 'the role of --main ends' wait_for lines_are "$OUT" 2
lab crash node002
exits 'a node that is lost afterwards changes nothing' 0 finish
verdict_has 'the job has succeeded' 'finished: role m exited 0'
lab boot node002

# --- files ---
mkdir files
printf '#!/bin/sh\nmkdir -p out\necho "$HN_ROLE $(cat data)" | tee out/$HN_ROLE.$RANK\n' >files/prog.sh
chmod +x files/prog.sh
echo pushed >files/data
cd files || exit 1
lab_hn -H "$hosts" --push . --pull out --gpus-per-rank 0 --label none --role t --nodes 2 --ppn 1 ./prog.sh : --role i --nodes 1 --ppn 1 ./prog.sh
exits 'roles run pushed files' 0
is 'each in the folder of its node' "$(sort "$OUT")" 'i pushed
t pushed
t pushed'
is 'and the files of all come home' "$(cat pulled/*/*/out/* | sort -u)" 'i pushed
t pushed'
cd ..

# --- nodes that dial in ---
export HNLAUNCH_DIAL_SECRET=$RANDOM-of-this-test-$RANDOM
pids=()
for r in 0 1 2; do
    "$LAB" exec "node00$((r + 1))" env --default-signal "$LAB_HNLAUNCH" --dial-in "$(addr_of node001):29411" --nodes 3 --node-rank "$r" \
        --gpus-per-rank 0 --label none --role t --nodes 2 --ppn 1 sh "$PWD/work.sh" once : --role i --nodes rest --ppn 1 sh "$PWD/work.sh" once >"out.$r" 2>"err.$r" &
    pids[r]=$!
done
codes=
for r in 0 1 2; do
    code=0
    wait "${pids[r]}" || code=$?
    codes+="$code "
done
is 'nodes that dial in run roles' "$codes" '0 0 0 '
is 'each its own' "$(sort out.0 | cut -d' ' -f1-5)" 'i.0 of 1 on node003
t.0 of 2 on node001
t.1 of 2 on node002'
lab_nothing_left 'nothing is left'
done_testing

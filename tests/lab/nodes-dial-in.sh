#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch --dial-in is the command of every node: node 0 is the head, the others connect to it, in any order; all
# end with the job's exit code. A lost node comes again in the next attempt. No sshd runs.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 4
for n in 1 2 3 4; do lab sshd node00$n stop; done
export XDG_CACHE_HOME=$TMP/cache
export HNLAUNCH_DIAL_SECRET=$RANDOM-of-this-test-$RANDOM
PLACE=$(lab hosts etc | awk '/node001/ { print $1 }'):29411
declare -a PIDS

# Starts node R with more options and the program; its output is in out.R and err.R.
dial() { # R ARG...
    local r=$1
    shift
    : >"out.$r" # lines of an earlier one are not those that are waited for
    "$LAB" exec "node00$((r + 1))" env --default-signal "$LAB_HNLAUNCH" --dial-in "$PLACE" --nodes 4 \
        --node-rank "$r" -o net.dial_timeout=60s "$@" >"out.$r" 2>"err.$r" &
    PIDS[r]=$!
}

codes() { # the exit codes of all four
    local r code all=
    for r in 0 1 2 3; do
        code=0
        wait "${PIDS[r]}" || code=$?
        all+="$code "
    done
    OUT=out.0 ERR=err.0
    echo "$all" >codes
}

waits() { grep -q 'waits for node 0' "err.$1"; }
listens() { "$LAB" exec node001 bash -c "echo >/dev/tcp/${PLACE/://}" 2>/dev/null; }
none_left() { [[ -z $(lab ps) ]]; }

# --- in any order ---
cat >hello.sh <<'EOF'
echo "rank $RANK of $WORLD_SIZE on $(hostname), node $NODE_RANK, secret ${HNLAUNCH_DIAL_SECRET-none}"
tr '\0' '\n' </proc/self/environ | grep -c DIAL_SECRET
exit 0
EOF
dial 3 --ppn 2 sh "$PWD/hello.sh"
dial 1 --ppn 2 sh "$PWD/hello.sh"
dial 0 --ppn 2 --label none sh "$PWD/hello.sh"
ok 'node 0 listens' wait_for listens
dial 2 --ppn 2 sh "$PWD/hello.sh"
codes
is 'all nodes end well' "$(cat codes)" '0 0 0 0 '
for r in 0 1 2 3; do
    is "node $r has its two ranks" "$(grep -cE "rank ($((2 * r))|$((2 * r + 1))) of 8 on node00$((r + 1)), node $r" out.0)" 2
done
is 'the ranks do not get the secret' "$(grep -c 'secret none' out.0)-$(grep -c '^0$' out.0)" 8-8
has 'the run says where its nodes come from' err.0 '4 nodes, 8 ranks, --dial-in'
has 'another node ends with the verdict' err.2 'hnlaunch: finished: 8 ranks exited 0'
lacks 'there is a secret, and no warning' err.0 HN321
wait_for none_left

# --- a mounted secret, as of Kubernetes ---
SECRET=$HNLAUNCH_DIAL_SECRET
unset HNLAUNCH_DIAL_SECRET
for n in 1 2 3 4; do
    lab exec node00$n sh -c 'mkdir -p /run/secrets/hnlaunch && echo "$0" >/run/secrets/hnlaunch/dial-secret' "$SECRET"
done
for r in 0 1 2 3; do
    dial "$r" --ppn 1 --label none hostname
done
codes
is 'a mounted secret: all nodes end well' "$(cat codes)" '0 0 0 0 '
lacks 'a mounted secret: others may read it' err.0 warning
lab exec node002 chmod o+w /run/secrets/hnlaunch/dial-secret
dial 1 true
wait "${PIDS[1]}"
is 'a mounted secret that others may write: 77' $? 77
for n in 1 2 3 4; do
    lab exec node00$n rm -r /run/secrets
done
export HNLAUNCH_DIAL_SECRET=$SECRET
wait_for none_left

# --- node 0 knows itself as localhost ---
# Starts node R as a platform does that sets RANK and WORLD_SIZE; NAME=VALUE... are for this node.
dial_auto() { # R NAME=VALUE...
    local r=$1
    "$LAB" exec "node00$((r + 1))" env --default-signal MASTER_PORT="${PLACE##*:}" RANK="$r" WORLD_SIZE=4 PET_NODE_RANK="$r" \
        "${@:2}" "$LAB_HNLAUNCH" --dial-in auto -o net.dial_timeout=60s --ppn 1 --label none sh -c 'hostname; exit 0' \
        >"out.$r" 2>"err.$r" &
    PIDS[r]=$!
}
all_four() { # NAME
    codes
    is "$1: all nodes end well" "$(cat codes)" '0 0 0 0 '
    is "$1: with a rank on each" "$(sort out.0 | xargs)" 'node001 node002 node003 node004'
    wait_for none_left
}
for self in localhost 127.0.0.1 ::1; do
    dial_auto 0 MASTER_ADDR=$self
    for r in 1 2 3; do dial_auto $r MASTER_ADDR=node001; done
    all_four "MASTER_ADDR=$self on node 0"
done
dial_auto 0 MASTER_ADDR=localhost PET_NNODES=4 PET_MASTER_ADDR=localhost PET_MASTER_PORT="${PLACE##*:}"
for r in 1 2 3; do dial_auto $r PET_NNODES=4 PET_MASTER_ADDR=node001 PET_MASTER_PORT="${PLACE##*:}"; done
all_four 'MASTER_ADDR and PET_MASTER_ADDR=localhost on node 0'
sed -E '/[[:space:]]node001([[:space:]]|$)/d' /etc/hosts >hosts.debian
printf '127.0.0.1 localhost\n127.0.1.1 node001.example node001\n' >>hosts.debian
lab hosts etc | grep -v node001 >>hosts.debian
lab exec node001 mount --bind "$PWD/hosts.debian" /etc/hosts
for r in 0 1 2 3; do dial_auto $r MASTER_ADDR=node001; done
all_four 'node 0 has its own name as 127.0.1.1'
lab exec node001 umount /etc/hosts
PLACE=127.0.0.1:${PLACE##*:} dial 0 --ppn 1 --label none hostname
for r in 1 2 3; do dial $r --ppn 1 true; done
all_four '--dial-in 127.0.0.1:PORT on node 0'
PLACE=127.0.0.1:${PLACE##*:} dial 1 -o net.dial_timeout=1s true
wait "${PIDS[1]}"
is '--dial-in 127.0.0.1:PORT on another node: 68' $? 68
has 'that is the node itself' err.1 'help: 127.0.0.1 is this machine itself'

# --- files come from node 0, which alone has them ---
mkdir -p data/empty
echo 'of node 0' >data/word
head -c 3000000 /dev/urandom >data/bytes
want=$(md5sum <data/bytes | cut -c1-32)
for n in 2 3 4; do
    lab exec node00$n mount -t tmpfs none data
done
for r in 0 1 2 3; do
    dial "$r" --push data --label none sh -c 'test -d data/empty && cat data/word && md5sum <data/bytes | cut -c1-32'
done
codes
is '--push: all nodes end well' "$(cat codes)" '0 0 0 0 '
is 'all ranks have the files of node 0' "$(sort out.0 | uniq -c | xargs)" "4 $want 4 of node 0"
has 'three nodes were sent them' err.0 'push 3/3'
wait_for none_left
ok 'the copies are gone' not grep -rqs 'of node 0' "$XDG_CACHE_HOME"
for n in 2 3 4; do
    lab exec node00$n umount data
done

# --- one exit code ---
for r in 0 1 2 3; do
    dial "$r" sh -c '[ "$RANK" = 2 ] && exit 7; sleep 300'
done
codes
is 'all nodes end with the code of the rank that failed' "$(cat codes)" '7 7 7 7 '
has 'and with its reason' err.3 'rank 2 on node003 exited with code 7'
wait_for none_left

# --- a lost node comes again ---
cat >work.sh <<'EOF'
echo "rank $RANK attempt $HN_RESTART on $(hostname)"
[ "$HN_RESTART" = 0 ] && exec sleep 300
exit 0
EOF
for r in 0 1 2 3; do
    dial "$r" --max-restarts 1 --node-timeout 3s --label none sh "$PWD/work.sh"
done
ok 'four ranks are up' wait_for lines_are out.0 4
lab crash node003
wait "${PIDS[2]}"
ok 'node 0 waits for the lost node' wait_for grep -q 'waiting for 1 lost node to dial in again' err.0
lab boot node003
dial 2 --max-restarts 1 --label none sh "$PWD/work.sh"
codes
is 'the second attempt ends well on all' "$(cat codes)" '0 0 0 0 '
is 'with all four ranks' "$(grep -c 'attempt 1' out.0)" 4
wait_for none_left

# --- a platform ends the job: TERM for all ---
cat >trap.sh <<'EOF'
trap 'echo "rank $RANK saw TERM"; exit 0' TERM
echo "rank $RANK is up"
while :; do sleep 0.1; done
EOF
for r in 0 1 2 3; do
    dial "$r" --label none sh "$PWD/trap.sh"
done
ok 'all ranks are up' wait_for lines_are out.0 4
for r in 4 3 2 1; do
    "$LAB" exec "node00$r" pkill -TERM -x hnlaunch
done
codes
is 'all nodes end with 143' "$(cat codes)" '143 143 143 143 '
is 'the ranks ended in order' "$(grep -c 'saw TERM' out.0)" 4
wait_for none_left

# --- the head is killed ---
for r in 0 1 2 3; do
    dial "$r" --label none sh "$PWD/trap.sh"
done
ok 'all ranks are up again' wait_for lines_are out.0 4
"$LAB" exec node001 pkill -KILL -x hnlaunch
codes
is 'the nodes know that they lost node 0' "$(cat codes)" '137 125 125 125 '
has 'and say it' err.2 'HN327'
lab_nothing_left 'nothing is left'
done_testing

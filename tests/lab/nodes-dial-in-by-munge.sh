#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# In steps of Slurm the nodes of --dial-in know each other by munge, without a secret: processes of the same user and
# the same job. Another user gets neither in as a node nor obeyed as node 0, and learns nothing by it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/slurm.sh" || exit 1

lab_up 2
munge_up
export XDG_CACHE_HOME=$TMP/cache
mkdir "$TMP/lib" && cp -L "$(dirname "$slurm_plugins")/libmunge.so.2" "$TMP/lib" # where every user finds it
export LD_LIBRARY_PATH=$TMP/lib:${LD_LIBRARY_PATH-}
declare -a PIDS
STRANGER=65531
export SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_STEP_NODELIST='node[001-002]' SLURM_LOCALID=0
PORT=$((20000 + 77 * 16))
# Another user may not reach the folder of the build.
chmod 711 "$TMP" && mkdir -m 755 "$TMP/bin"
cp "$LAB_HNLAUNCH" "$LAB_HNLAUNCH-agent" "$TMP/bin"
node() { # R ARG...: in the background; its output is in out.R and err.R
    local r=$1
    "$LAB" exec "node00$((r + 1))" env --default-signal SLURM_PROCID="$r" ${AS_STRANGER:+setpriv --reuid=$STRANGER --clear-groups} \
        "$TMP/bin/hnlaunch" --dial-in auto --ppn 1 --label none "${@:2}" >"out.$r" 2>"err.$r" &
    PIDS[r]=$!
}
codes_are() { # NAME R:CODE...: waits for the nodes
    local name=$1 pair code got=
    shift
    for pair; do
        code=0
        wait "${PIDS[${pair%:*}]}" || code=$?
        got+="${pair%:*}:$code "
    done
    is "$name" "$got" "$* "
}
listens() { "$LAB" exec node001 bash -c "echo >/dev/tcp/node001/$PORT" 2>/dev/null; }

# --- one user ---
for r in 1 0; do
    node $r sh -c 'echo "rank $RANK on $(hostname)"'
done
codes_are 'both nodes end well' 0:0 1:0
is 'with a rank on each' "$(sort out.0 | xargs)" 'rank 0 on node001 rank 1 on node002'
is 'there is no warning' "$(cat err.0 err.1 | grep -c warning)" 0
ok 'and no secret in the home' test ! -e "$XDG_STATE_HOME/hnlaunch/dial-in"

# --- the first attempt of an agent is lost, the node stays ---
for r in 0 1; do
    node $r --max-restarts 1 sh -c 'echo here; [ "$HN_RESTART$RANK" = 01 ] && kill -KILL $PPID; exit 0'
done
codes_are 'another attempt, over the same connection' 0:0 1:0

# --- another user takes the port of node 0 first ---
mkdir -m 777 "$TMP/stranger"
AS_STRANGER=yes XDG_STATE_HOME=$TMP/stranger XDG_CACHE_HOME=$TMP/stranger node 0 --store-listen none -o net.dial_timeout=20s --log-dir none \
    sh -c 'id -u >>ran'
ok 'another user listens as node 0' wait_for listens
node 1 -o net.dial_timeout=2s true
codes_are 'the node does not obey: 68' 1:68
has 'and says why' err.1 'error[HN325]: node 1 cannot join node 0 at node001 port'
"$LAB" exec node001 pkill -TERM -x hnlaunch
codes_are 'node 0 is ended' 0:143
has 'to node 0 the node is of another user' err.0 '[HN331]'
ok 'nothing ran' test ! -e ran

# --- another user comes as a node ---
node 0 -o net.dial_timeout=60s true
ok 'node 0 listens' wait_for listens
AS_STRANGER=yes XDG_STATE_HOME=$TMP/stranger XDG_CACHE_HOME=$TMP/stranger node 1 -o net.dial_timeout=2s true
codes_are 'a node of another user does not join: 68' 1:68
has 'because of munge' err.1 'node 0 closed the connection'
# --- a node of another job of the user, and one that says --dial-secret none ---
SLURM_CLUSTER_NAME=other node 1 -o net.dial_timeout=2s true
codes_are 'nor does a node of another job: 68' 1:68
node 1 -o net.dial_timeout=2s --dial-secret none true
codes_are 'nor does one without munge: 68' 1:68
node 1 true
codes_are 'the own node does' 1:0 0:0
has 'the others were counted' err.0 'connections to port 21232 were not from a node of the job'

# --- munged is gone ---
lab exec node002 rm /run/munge/munge.socket.2
node 1 -o net.dial_timeout=1s true
codes_are 'without munged the node looks for a secret in the home: 77' 1:77
has 'which is told' err.1 'error[HN348]'
none_left() { [[ -z $(slurm_processes) ]]; }
ok 'nothing is left' wait_for none_left
done_testing

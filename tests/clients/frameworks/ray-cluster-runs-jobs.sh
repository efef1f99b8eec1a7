#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --scheduler ray: the nodes of a running Ray cluster are the hosts, their GPUs the slots, and tasks of Ray start the agents.
# The GPUs are numbers that Ray counts; its head has none, as in many clusters. What needs no Ray is told in
# launch/ray-that-is-missing-is-told.sh.
. "$(dirname "$0")/../../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/page.sh" || exit 1

python=${TORCH_PYTHON:-python3}
if ! "$python" -c 'import ray' 2>/dev/null; then
    kit=${RAY_KIT:-${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/ray}
    python=$(timeout 300 bash "$ROOT/tests/lib/ray_kit.sh" "$kit" 2>"$TMP/ray.log") ||
        skip_all "no Ray: $(tail -n 1 "$TMP/ray.log" | cut -c1-160)"
fi
export PATH=${python%/*}:$PLAIN:$PATH PYTHONPATH=$ROOT/packaging/python
export RAY_AUTH_MODE=disabled RAY_USAGE_STATS_ENABLED=0
LIMIT=150

lab_up 3 # node003 is none of the cluster's
address=$LAB_NET.255.254
ray_start() { # NODE ARG...: the nodes of the lab have /tmp in common
    local node=$1
    shift
    lab exec "$node" ray start --object-store-memory=100000000 "$@" >>"$TMP/ray.log" 2>&1
}
mkdir "$TMP/ray"
ok 'a Ray cluster starts: its head' env RAY_TMPDIR="$TMP/ray" "$LAB" run ray start --head --num-cpus=0 --num-gpus=0 \
    --include-dashboard=false --object-store-memory=100000000 --node-ip-address="$address"
export RAY_TMPDIR=/dev/shm
for node in node001 node002; do
    ok "and $node" ray_start $node --address="$address:6379" --num-cpus=2 --num-gpus=2
done
export RAY_ADDRESS=$address:6379

ours() { lab ps | grep -E 'hnlaunch-agent|hnlaunch\._ray|hnlaunch --|sleep 1000'; }
nothing_is_left() { ! ours >/dev/null; }
nothing_of_it() { # NAME
    if wait_for nothing_is_left; then
        pass "$1"
    else
        fail "$1" "$(ours)"
    fi
}
ray_hn() { lab_hn --scheduler ray --label none --start-timeout 100s "$@"; }
ray_begin() { # COMMAND...: starts four ranks in the background
    lab_start --scheduler ray --label none --start-timeout 100s --grace 2s "$@"
    wait_for lines_are "$OUT" 4
}

# --- what runs
lab_hn plan --scheduler ray true
exits 'a plan: 0' 0
has 'its hosts are those of the cluster' "$OUT" 'hosts     Ray cluster, slots from the cluster'\''s GPUs'
has 'which starts the agents' "$OUT" 'agents    --start-with ray'
is 'the GPUs of a node are its slots, and the head has none' "$(awk '$5 == "2/2" || $4 == "2/2" { print $2 }' "$OUT" | xargs)" \
    'node001 node002'
ray_hn --ppn 2 sh -c 'echo "$(hostname) $RANK of $WORLD_SIZE: $CUDA_VISIBLE_DEVICES"; env >env.$RANK'
exits 'a job of two nodes with two ranks: 0' 0
is 'each with the GPUs that Ray gives' "$(sort "$OUT" | paste -sd,)" \
    'node001 0 of 4: 0,1,node001 1 of 4: 0,1,node002 2 of 4: 0,1,node002 3 of 4: 0,1'
is "ranks get none of the variables of Ray's workers" \
    "$(cat env.* | grep -E '^(RAY_|PYTHONBREAKPOINT|HNLAUNCH_)' | grep -vE '^RAY_(ADDRESS|AUTH_MODE|TMPDIR|USAGE_STATS_ENABLED)=')" ''
lacks "no line of Ray's" "$ERR" ray::
lacks 'nor a warning' "$ERR" '[W'
nothing_of_it 'nothing is left'
ray_hn --ppn 2 sh -c 'exit $((RANK == 3 ? 7 : 0))'
exits 'the exit code of a rank arrives' 7
verdict_has 'it is named' 'rank 3 on node002 exited with code 7'
head -c 3000000 /dev/urandom >given
ray_hn -n 1 --stdin given cat
same 'three megabytes come back as they are' given "$OUT"
run "$LAB" exec node002 "$LAB_HNLAUNCH" --scheduler ray --label none --ppn 1 sh -c 'echo "$(hostname) $CUDA_VISIBLE_DEVICES"'
exits 'a job from one of its nodes: 0' 0
is 'which gets its GPUs from Ray, too' "$(sort "$OUT" | paste -sd,)" 'node001 0,1,node002 0,1'

# Neither the programs of hnlaunch nor Ray's workers take modules from the current folder, which may be of others.
mkdir repository
for module in ray hnlaunch tempfile subprocess ctypes json; do
    echo "open('$TMP/ran', 'w').close()" >repository/$module.py
done
cd repository || exit 1
ray_hn true
exits 'a job from a folder with modules: 0' 0
ok 'whose code does not run' test ! -e "$TMP/ran"
cd ..

# --- what ends before its time
ray_hn --grace 2s sh -c 'echo up; [ $RANK != 1 ] || kill -9 $$; exec sleep 1000'
exits 'a rank that is killed ends all: 137' 137
nothing_of_it 'nothing is left'
dies() { # NAME CODE[|CODE] COMMAND...: the command ends something while four ranks run
    local name=$1 code=$2
    shift 2
    ray_begin sh -c 'echo up; exec sleep 1000'
    "$@"
    finish
    ok "$name" grep -qxE "$code" <<<"$RC"
    nothing_of_it 'nothing is left'
}
of_node() { lab ps "$1" | awk -v words="$2" 'index($0, words) { print $2; exit }'; } # NODE WORDS: a process, as seen from here
dies 'Ctrl-C: 130' 130 eval 'kill -INT $PID'
dies 'a head that is killed: its agents end' 137 eval 'kill -KILL $PID'
# The end of a worker's parent tells its agent to stop the job, unless Ray kills the agent first: a lost node.
dies 'the start of the tasks is killed: Ray ends them, and the job ends' '125|143' eval 'kill -KILL $(of_node head "start --nodes")'
dies 'so does SIGTERM to it' '125|143' eval 'kill -TERM $(of_node head "start --nodes")'
worker_of() { lab ps "$1" | awk '/hnlaunch-agent/ { print $3; exit }'; } # NODE
dies "Ray's worker is killed: the job ends" '125|143' eval 'kill -KILL $(worker_of node002)'

ray_begin sh -c 'echo up; exec sleep 1000'
holders() { # prints the processes in the lab whose environment has the secret
    lab ps | while read -r _ pid _; do
        ! grep -qszF "$secret" "/proc/$pid/environ" || tr '\0' ' ' <"/proc/$pid/cmdline"
    done
}
secret=$(tr '\0' '\n' <"/proc/$(of_node head 'start --nodes')/environ" | sed -n 's/^HNLAUNCH_CALL_SECRET=//p')
is 'the start has the secret' "${#secret}" 52
is 'in its environment alone' "$(holders)" "$(tr '\0' ' ' <"/proc/$(of_node head 'start --nodes')/cmdline")"
is 'and no command line has it' "$(lab ps | grep -cF "$secret")" 0
kill -INT "$PID"
finish

# --- a queue
cat >holds.py <<'END'
import time

import ray

ray.init(log_to_driver=False)


@ray.remote(num_gpus=1)
def hold():
    open("held", "w").close()
    time.sleep(1000)


ray.get(hold.remote())
END
"$LAB" run python3 holds.py >/dev/null 2>&1 &
holder=$!
ok 'another task of Ray takes a GPU' wait_for test -e held
lab_hn --scheduler ray --start-timeout 12s true
exits 'the job waits for it in vain: 69' 69
has 'which is told' "$ERR" 'its agent did not call within 12.0s'
has 'with the reason' "$ERR" "waits in Ray's queue: 1 of its 2 GPUs are taken by other tasks"
nothing_of_it 'nothing is left in the queue'
kill $holder
ray_hn -n 4 true
exits 'it runs when the GPU is free' 0

# --- the page
page_run() { lab_run bash -c "$1"; }
page_files "$ROOT/docs/howto/ray-cluster.md"
page_commands "$ROOT/docs/howto/ray-cluster.md"

# --- what is missing
lab_hn --start-with ray -w node001,node009 true
exits 'a host that is no node of the cluster: 69' 69
has 'is named' "$ERR" 'node009 is no node of the Ray cluster; it has node001, node002, head'
RAY_ADDRESS=$address:1 lab_hn --scheduler ray true
exits 'no cluster at the address: 69' 69
has 'is told' "$ERR" "no Ray cluster at $address:1: Connection refused"
dies 'Ray is killed on a node: the job ends' '125|143' eval 'kill -KILL $(of_node node002 raylet/raylet)'
gone() { ! lab run python3 -m hnlaunch._ray nodes 2>/dev/null | grep -q node002; }
ok 'the node leaves the cluster' wait_for gone
run "$LAB" exec node002 env -u RAY_ADDRESS RAY_TMPDIR=/run "$LAB_HNLAUNCH" --scheduler ray true
exits 'a machine without a cluster: 69' 69
has 'is told' "$ERR" 'no Ray cluster runs on this machine; run hnlaunch on one of its nodes, or set RAY_ADDRESS'
run "$LAB" exec node003 "$LAB_HNLAUNCH" --scheduler ray true
exits 'a machine that is no node of the cluster: 69' 69
has 'is told' "$ERR" 'running node of the cluster' # by Ray's end, or after 50 s without an answer
ray_hn hostname
exits 'the others go on: 0' 0
is 'with their GPUs' "$(xargs <"$OUT")" 'node001 node001'
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --bind: the masks of real ranks, read back in C and in Python. The driver's files and those of sysfs are ours, in a
# mount namespace: two GPUs, and two NUMA nodes with a processor each.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
two_numa_nodes
gpus_at 0 1

masks() { # ARG...: "RANK:CPUS:OMP_NUM_THREADS" of each rank in one line
    hn "$@" --label none "$WORKERS/worker_masks"
    sort -n "$OUT" | paste -sd' '
}
half=$((total / 2))

is 'auto: each rank at its GPU' "$(masks --local)" "0:$a:1 1:$b:1"
lacks 'nothing needs to be said' "$ERR" 'HN318'
if [[ -e /proc/self/numa_maps ]]; then
    hn --local 1 --label none sh -c 'grep -c " prefer:0 " /proc/self/numa_maps'
    ok 'memory of the node is preferred' test "$(cat "$OUT")" -gt 0
    hn --local 1 --bind none --label none sh -c 'grep -c " prefer:0 " /proc/self/numa_maps; true'
    is '... by bound ranks only' "$(cat "$OUT")" 0
else
    skip 'memory of the node is preferred' 'no /proc/self/numa_maps'
fi
gpus_at 1 0
is 'wherever it is' "$(masks --local)" "0:$b:1 1:$a:1"
is 'two ranks of a GPU share its node' "$(masks --local 4)" "0:$b:1 1:$a:1 2:$b:1 3:$a:1"
gpus_at 0 1
is 'in Python, and in what a rank starts' "$(
    hn --local 2 --label none python3 -c 'import os, subprocess, sys
print(os.environ["RANK"], *os.sched_getaffinity(0), subprocess.check_output([sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"], text=True), end="")'
    sort "$OUT" | paste -sd' ')" "0 $a $a 1 $b $b"
is 'none' "$(masks --local --bind none)" "0:$allowed:$half 1:$allowed:$half"
is 'a GPU for both nodes is no place' "$(masks --local 1 --gpus-per-rank 2)" "0:$allowed:$total"
is 'but numa has both' "$(masks --local 1 --gpus-per-rank 2 --bind numa)" "0:$a,$b:2"
is 'ranks without GPUs are not bound' "$(masks --local 2 --gpus-per-rank 0)" "0:$allowed:$half 1:$allowed:$half"
is 'nor is the program of a node' "$(masks --local --per-node)" "0:$allowed:-"
is 'but numa divides the nodes' "$(masks --local 2 --gpus-per-rank 0 --bind numa)" "0:$a:1 1:$b:1"
is 'exclusive, with its name in torchrun' "$(masks --local 2 --gpus-per-rank 0 --numa-binding exclusive)" "0:$a:1 1:$b:1"
is 'list, and again from the first on' "$(masks --local 3 --gpus-per-rank 0 --bind "list:$b;$a,$b")" "0:$b:1 1:$a,$b:2 2:$b:1"
is 'core, with its name in mpirun' "$(masks --local 1 --bind-to core | cut -d: -f2 | cut -d, -f1)" "$a"
is '... and in srun' "$(masks --local 2 --gpus-per-rank 0 --cpu-bind ldoms)" "0:$a:1 1:$b:1"
is 'OMP_NUM_THREADS of the user stays' "$(OMP_NUM_THREADS=1 masks --local)" "0:$a:1 1:$b:1"

hn --local -v "$WORKERS/worker_masks"
has '-v shows the processors' "$ERR" "rank 0: processors $a, memory of node 0"
has '... of each rank' "$ERR" "rank 1: processors $b, memory of node 1"

hn plan --probe --local true
is 'plan --probe shows them before' "$(grep '^binding' "$OUT" | tr -s ' ')" \
    "binding rank 0: processors $a, memory of node 0"$'\n'"binding rank 1: processors $b, memory of node 1"
OMP_NUM_THREADS=2 hn plan --probe --local --bind numa true
has '... or why there are none' "$OUT" 'binding   ranks 0-1: none, there are fewer cores than threads of OMP_NUM_THREADS'
hn plan --probe --local --json true
is '... and JSON' "$(jq -c '[.nodes[0].ranks[] | [.cpus, .memory_node]]' "$OUT")" "[[\"$a\",0],[\"$b\",1]]"
hn plan --probe --local --bind none true
lacks '--bind none: nothing is asked' "$OUT" binding

is 'fewer cores than threads are no place' "$(OMP_NUM_THREADS=2 masks --local)" "0:$allowed:2 1:$allowed:2"
lacks 'which auto does not warn of' "$ERR" HN318
OMP_NUM_THREADS=2 hn --local --bind numa true
has 'and numa does' "$ERR" 'warning[HN318]: localhost: ranks 0,1 are not bound: there are fewer cores than threads of OMP_NUM_THREADS'
is 'a processor that is not there' "$(masks --local 1 --gpus-per-rank 0 --bind list:16383)" "0:$allowed:$total"
has 'is told' "$ERR" 'rank 0 is not bound: none of the processors of list: is allowed here'
gpus_at -1 0
is 'a GPU whose node is not known' "$(masks --local)" "0:$allowed:$half 1:$a:$half"
lacks 'auto does not warn of it' "$ERR" HN318
gpus_at 0 1

roles() { # POLICY: masks of two roles that share this machine
    hn -w localhost:1 --gpus-per-rank 0 --bind "$1" --label none --role a -n 1 "$WORKERS/worker_masks" : --role b --on a "$WORKERS/worker_masks"
    sort "$OUT" | cut -d: -f2 | paste -sd' '
}
is 'core: no core is given to two roles' "$(roles core)" "$a $b"
hn -w localhost:1 --gpus-per-rank 0 --bind core --label none --max-restarts 1 --role a -n 1 sh -c '"$0"; until [ -e again ]; do sleep 0.05; done' "$WORKERS/worker_masks" : \
    --role b --on a --restart-scope role sh -c '"$0"; [ "$HN_RESTART" = 1 ] || exit 3; touch again' "$WORKERS/worker_masks"
is 'a role that starts again has the cores that it had' "$(cut -d: -f2 "$OUT" | sort | xargs)" "$a $b $b"
is 'exclusive: nor is one here' "$(roles exclusive)" "$a $b"
lacks '... which is no fault' "$ERR" 'not bound'
hn plan --probe -w localhost:1 --gpus-per-rank 0 --bind exclusive --role a -n 1 true : --role b --on a true
is '... and plan --probe says the same' "$(grep '^binding' "$OUT" | tr -s ' ')" \
    "binding rank 0: processors $a, memory of node 0"$'\n'"binding rank 1: processors $b, memory of node 1"
hn -w localhost:2 --gpus-per-rank 0 --bind exclusive --label none --role a -n 2 "$WORKERS/worker_masks" : --role b --on a "$WORKERS/worker_masks"
is '... also for three ranks of two roles at two nodes' "$(cut -d: -f2 "$OUT" | sort | paste -sd' ')" \
    "$(printf '%s\n' "$allowed" "$allowed" "$b" | sort | paste -sd' ')"
has '... of which two have one core' "$ERR" 'ranks 0,1 are not bound: there are fewer cores than ranks'
hn -w localhost:1 --gpus-per-rank 0 --bind exclusive --label none --role a -n 1 "$WORKERS/worker_masks" : --role b --on a --per-node "$WORKERS/worker_masks"
is 'a program of a node takes no share' "$(cut -d: -f2 "$OUT" | sort | paste -sd' ')" "$(printf '%s\n' "$a" "$allowed" | sort | paste -sd' ')"
hn -w localhost:2 --gpus-per-rank 0 --bind exclusive --label none --role a -n 2 --restart-scope role "$WORKERS/worker_masks"
is 'a single role that may start again is divided' "$(sort "$OUT" | cut -d: -f2 | paste -sd' ')" "$a $b"
hn -w localhost:1 --gpus-per-rank 0 --bind exclusive --label none --max-restarts 1 --role a -n 1 sh -c '"$0"; until [ -e again-2 ]; do sleep 0.05; done' "$WORKERS/worker_masks" : \
    --role b --on a --restart-scope role sh -c '"$0"; [ "$HN_RESTART" = 1 ] || exit 3; touch again-2' "$WORKERS/worker_masks"
is '... and has the same cores again' "$(cut -d: -f2 "$OUT" | sort | xargs)" "$a $b $b"

# Refused by the kernel.
if "$WORKERS/inject" count true 2>/dev/null; then
    run "$WORKERS/inject" -o "$TMP/report" agent-child sched_setaffinity 1 1 "$HNLAUNCH" --local --label none "$WORKERS/worker_masks"
    exits 'a refused call stops no rank' 0
    has 'the call was refused' "$TMP/report" hit
    has 'a refused call is told' "$ERR" 'is not bound: the kernel refuses the processors: Operation not permitted'
    run "$WORKERS/inject" -o "$TMP/report" agent-child set_mempolicy 1 1 "$HNLAUNCH" --local 1 --bind numa --label none "$WORKERS/worker_masks"
    is 'without memory of the node, the processors stay' "$(cut -d: -f2 "$OUT")" "$a"
    has '... which is told' "$ERR" 'prefers no memory: the kernel refuses the node: Operation not permitted'
    run "$WORKERS/inject" -o "$TMP/report" agent-child set_mempolicy 1 1 "$HNLAUNCH" --local 1 --label none "$WORKERS/worker_masks"
    lacks '... but not by itself: containers often forbid it' "$ERR" HN318
else
    skip 'a refused call is told' 'cannot hold system calls here'
fi

taskset -c "$a" true && run taskset -c "$a" "$HNLAUNCH" --local --bind numa --label none "$WORKERS/worker_masks"
is 'a mask of hnlaunch is kept' "$(sort "$OUT" | cut -d: -f2 | paste -sd' ')" "$a $a"
has '... and named where the GPU is elsewhere' "$ERR" 'rank 1 is not bound: no processor of that NUMA node is allowed here'

for word in both core:0 list: 'list:0;' ''; do
    hn_exits "--bind '$word' is refused" 64 --local 1 --bind "$word" true
done
nothing_left 'nothing is left'
done_testing

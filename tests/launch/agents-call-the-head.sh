#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --start-with srun: one start serves all nodes, and their agents call the head. What goes wrong between the two is provoked
# here by a srun that starts the agents on this machine; lab/slurm-steps-start-the-agents.sh has the real one.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# ABSENT is a node without an agent. Each agent waits for the file "go" if HOLD is set. SAY is said when all have ended.
mkdir bin
cat >bin/srun <<'END'
#!/usr/bin/env bash
echo "$@" >words
env | grep '^HNLAUNCH_CALL=' >place
env | grep '^HNLAUNCH_CALL_SECRET=' | cut -d= -f2 >secret
while [[ $1 == --* ]]; do
    [[ $1 != --nodelist=* ]] || IFS=, read -ra nodes <<<"${1#*=}"
    [[ $1 != --bcast=* ]] || copy=${1#*=}
    shift
done
cp "$1" "$copy"
echo "$copy" >copy
echo "srun: the words of srun" >&2
until [[ -z $HOLD || -e go ]]; do sleep 0.05; done
for node in "${nodes[@]}"; do
    [[ $node == "$ABSENT" ]] || HNLAUNCH_CALL_NAME=$node "$copy" "${@:2}" &
done
wait
[[ -z $SAY ]] || echo "$SAY" >&2
END
chmod +x bin/srun
# Without a cache the agent is copied to the nodes at each start.
export PATH=$PWD/bin:$PATH SLURM_JOB_ID=1 XDG_CACHE_HOME=/dev/null/cache
via=(--scheduler none --start-with srun --oversubscribe)
copy_is_gone() { ok "$1" test ! -e "$(cat copy)"; } # NAME
agents() { pgrep -f "^$(cat copy) --call" | sort -n; }
no_agents() { [[ -z $(agents) ]]; }

hn_exits 'the exit code of a rank arrives' 7 "${via[@]}" -w 'n[1-6]' sh -c 'exit $((RANK == 4 ? 7 : 0))'
hn_exits 'a job ends well' 0 "${via[@]}" -w 'n[1-6]' --label none sh -c 'echo "$RANK of $WORLD_SIZE"; env >env.$RANK'
is 'six nodes have a rank each' "$(sort "$OUT" | paste -sd,)" '0 of 6,1 of 6,2 of 6,3 of 6,4 of 6,5 of 6'
has 'one start has all nodes' words '--nodelist=n1,n2,n3,n4,n5,n6 --nodes=6 --ntasks=6'
lacks 'the secret stands in no command line' words "$(cat secret)"
is 'ranks get none of the variables' "$(cat env.* | grep -c "HNLAUNCH_CALL\|HNLAUNCH_MANAGED")" 0
copy_is_gone 'the copy of the agent is removed'
ok 'no agent is left' no_agents

head -c 3000000 /dev/urandom >given
hn_exits 'three megabytes go both ways' 0 "${via[@]}" -w n1 --label none --stdin given sh -c 'tee back'
same 'to the rank' given back
same 'and from it' given "$OUT"
hn "${via[@]}" -w n1,n2 --pull back:home true
same 'and home at the end' given home/n2/back

# --- networks
isolated() { # NAME COMMANDS: in a network of its own, which the commands set up
    if ! unshare -n true 2>/dev/null; then
        skip "$1" 'no network namespaces without root'
        return
    fi
    run unshare -n sh -c "$2"' && exec "$@"' sh "$HNLAUNCH" "${via[@]}" -w n1,n2 --label none echo here
    is "$1" "$(paste -sd, "$OUT")" 'here,here'
}
isolated 'without a network' 'ip link set lo up'
isolated 'with IPv6 only' 'ip link set lo up && ip address del 127.0.0.1/8 dev lo &&
    ip link add v0 type veth peer name v1 && ip address add fd00::7/64 dev v0 nodad && ip link set v1 up && ip link set v0 up'

# --- who else calls
cat >stranger.py <<'END'
import socket
import sys

port, address = open("place").read().split("=")[1].split()[:2]
where = (address, int(port))
if sys.argv[1] == "closed":
    try:
        socket.create_connection(where)
        sys.exit(1)
    except ConnectionRefusedError:
        sys.exit(0)
with socket.create_connection(where) as s:  # as long as a greeting
    s.sendall({"foreign": b"GET / HTTP/1.1\r\n", "guess": b"HNDIAL1\n"}[sys.argv[1]].ljust(56, b"x"))
    while s.recv(4096):
        pass
END
rm -f go place copy
HOLD=1 start "${via[@]}" -w n1,n2 --label none sh -c 'echo up; until [ -e end ]; do sleep 0.05; done'
ok 'the port is open before the agents call' wait_for test -s copy
ok 'another protocol is sent away' python3 stranger.py foreign
ok 'so is another secret' python3 stranger.py guess
: >go
ok 'the ranks start' wait_for lines_are "$OUT" 2
ok 'the port is closed then' python3 stranger.py closed
secret=$(cat secret)
in_environment() { agents | while read -r pid; do tr '\0' '\n' <"/proc/$pid/environ"; done | grep -cF "$secret"; }
is 'the secret is wiped where others of the user could read it' "$(in_environment)" 0
: >end
exits 'the job ends well' 0 finish
has 'the strangers were counted' "$ERR" '2 connections to the port for the agents were not from this job'

# --- what is missing
ABSENT=n2 hn "${via[@]}" -w n1,n2,n3 --start-timeout 2s true
exits 'a node that does not call: 69' 69
has 'is named' "$ERR" 'n2               its agent did not call within 2.0s'
has 'with the words of srun' "$ERR" 'srun: the words of srun'
wait_for no_agents
copy_is_gone 'the copy is removed'
printf '#!/bin/sh\necho "srun: error: no nodes" >&2\nexit 3\n' >bin/other
chmod +x bin/other
mv bin/srun bin/fake
mv bin/other bin/srun
hn_exits 'a start that fails: 69' 69 "${via[@]}" -w n1,n2 true
has 'its code is told' "$ERR" 'n[1-2]           srun ended with exit code 3'
has 'and its words are' "$ERR" 'srun: error: no nodes'
# Nor is there another one behind it in PATH.
printf '#!%s/nowhere/sh\n' "$TMP" >bin/srun
exits 'a program that cannot run: 69' 69 run env PATH="$PWD/bin" "$HNLAUNCH" "${via[@]}" -w n1,n2 true
has 'it is told' "$ERR" 'cannot start srun: '
mv bin/fake bin/srun

# --- what dies
die() { # NAME SIGNAL CODE COMMAND...: what the command names gets the signal
    local name=$1 signal=$2 code=$3
    shift 3
    : >"$OUT"
    start "${via[@]}" -w n1,n2 --label none sh -c 'echo up; exec sleep 1000'
    wait_for lines_are "$OUT" 2
    kill "-$signal" $("$@")
    exits "$name" "$code" finish
    wait_for no_agents
    nothing_left 'nothing is left'
    copy_is_gone 'nor is the copy'
}
first_caller() { agents | head -n 1; }
first_agent() { pgrep -P "$(pgrep -P "$(first_caller)")"; }
die 'the process that carries the bytes is killed: the node is lost' KILL 125 first_caller
has 'it is told' "$ERR" 'connection lost'
die 'the agent is killed: the node is lost' KILL 125 first_agent
has 'it is told' "$ERR" 'its agent was ended (killed by signal 9, Killed)'
cancelled='slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***'
SAY=$cancelled die 'all agents are killed' KILL 125 agents
has 'srun says why, a moment later' "$ERR" ': Slurm cancelled its step due to preemption'
has '... in words that are quoted' "$ERR" "$cancelled"
lacks '... and no node is to blame' "$ERR" '--exclude'
start_and_caller() { pgrep -P "$PID" -f bin/srun && first_caller; }
die 'srun and an agent are killed' KILL 125 start_and_caller
has 'both are told' "$ERR" ', after srun was killed by signal 9 (Killed)'
the_head() { echo "$PID"; }
die 'Ctrl-C stops the job' INT 130 the_head
die 'the head is killed: the agents end' KILL 137 the_head

ABSENT=n2 start "${via[@]}" -w n1,n2 true
one_calls() { [[ -n $(agents) ]]; }
ok 'one node is missing' wait_for one_calls
exits 'Ctrl-C while nodes are missing: 130' 130 finish_by INT
nothing_left 'nothing is left'
done_testing

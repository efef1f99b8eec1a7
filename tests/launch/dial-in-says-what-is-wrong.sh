#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --dial-in with options that do not fit, a bad secret, a port in use, nodes that do not come and nodes that do not
# fit: each has its message and exit code.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

HOST=127.0.0.1
export HNLAUNCH_DIAL_SECRET=0123456789abcdef

# --- the place ---
for place in 7777 host: :7777 host:0 host:65536 '[]:77' '[::1:77' ::1:77; do
    hn_exits "--dial-in $place is no place: 64" 64 --dial-in "$place" --nodes 2 --node-rank 0 true
    has 'which HN322 says' "$ERR" 'error[HN322]: --dial-in needs'
done
hn_exits 'the number of nodes is missing: 64' 64 --dial-in "$HOST:7777" --node-rank 0 true
has 'which HN322 says, too' "$ERR" 'needs --nodes N and --node-rank R'
hn --dial-in "$HOST:7777" --nodes 2 true
has 'so it is when the node rank is missing' "$ERR" 'needs --nodes N and --node-rank R'
hn --dial-in "$HOST:7777" --nodes 2 --node-rank 2 true
has 'node ranks are below the number of nodes' "$ERR" 'error[HN322]: --node-rank 2 with --nodes 2'
hn_exits '-w beside it: 64' 64 --dial-in "$HOST:7777" --nodes 2 --node-rank 0 -w here true
has 'they exclude each other' "$ERR" '--dial-in and -w exclude each other'
for other in '--start-with srun' '--scheduler slurm' '--tree 2'; do
    # shellcheck disable=SC2086
    hn --dial-in "$HOST:7777" --nodes 2 --node-rank 0 $other true
    has "as do --dial-in and $other" "$ERR" "--dial-in and ${other% *} exclude each other"
done
hn --local 1 --node-rank 1 true
has 'a node rank needs it' "$ERR" '--node-rank without --dial-in'
hn_exits 'there is no plan without nodes: 64' 64 plan --dial-in "$HOST:7777" --nodes 2 --node-rank 0

# --- the secret ---
HNLAUNCH_DIAL_SECRET=too-short hn --dial-in "$HOST:7777" --nodes 2 --node-rank 0 true
exits 'a secret of nine characters: 78' 78
has 'needs 16' "$ERR" 'error[HN328]: the dial-in secret has 9 characters, needs 16'
hn_exits 'a file that is not there: 66' 66 --dial-in "$HOST:7777" --nodes 2 --node-rank 0 --dial-secret none.txt true
has 'is named' "$ERR" 'error[HN328]: cannot read the dial-in secret none.txt'
unset HNLAUNCH_DIAL_SECRET
for rank in 0 1; do
    hn_exits "node $rank without a secret: 77" 77 --dial-in "$HOST:7777" --nodes 2 --node-rank $rank true
    has 'it is refused' "$ERR" 'error[HN346]: --dial-in has no secret'
    for way in HNLAUNCH_DIAL_SECRET=SECRET '--dial-secret FILE' /run/secrets/hnlaunch/dial-secret; do
        has "which names $way" "$ERR" "| $way"
    done
    has 'and how to go without' "$ERR" '--dial-secret none'
done
echo 0123456789abcdef >secret
for mode in 602 620 666; do
    chmod $mode secret
    hn_exits "a secret of mode $mode: 77" 77 --dial-in "$HOST:7777" --nodes 2 --node-rank 0 --dial-secret secret true
    has 'others may write it' "$ERR" 'error[HN328]: the dial-in secret secret can be written by others'
done
chmod 644 secret
hn --dial-in "$HOST:7777" --nodes 2 --node-rank 1 --dial-secret secret -o net.dial_timeout=1ms true
exits 'others may read it: node 0 is not there, 68' 68
has 'which is a warning' "$ERR" 'warning[HN347]: the dial-in secret secret can be read by others'
chmod 600 secret
hn --dial-in "$HOST:7777" --nodes 2 --node-rank 1 --dial-secret secret -o net.dial_timeout=1ms true
exits 'for the user alone: 68' 68
lacks 'there is no warning' "$ERR" warning
if [[ $(id -u) == 0 ]]; then
    chown 1 secret
    hn_exits 'a secret of another user: 77' 77 --dial-in "$HOST:7777" --nodes 2 --node-rank 0 --dial-secret secret true
    has 'is not used' "$ERR" 'error[HN328]: the dial-in secret secret belongs to user 1'
fi

# --- the port ---
export HNLAUNCH_DIAL_SECRET=0123456789abcdef
PORT=$(free_port)
python3 -c 'import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
print("up", flush=True)
time.sleep(600)' "$PORT" >taken &
TAKEN=$!
ok 'a port is taken' wait_for lines_are taken 1
hn_exits 'node 0 cannot have it: 69' 69 --dial-in "$HOST:$PORT" --nodes 2 --node-rank 0 true
has 'and says which' "$ERR" "error[HN323]: cannot open port $PORT of $HOST for the nodes: Address already in use"
kill "$TAKEN"
wait "$TAKEN" 2>/dev/null

# --- nodes that do not come ---
hn --dial-in "$HOST:$PORT" --nodes 3 --node-rank 0 -o net.dial_timeout=1s --dial-secret none true
exits 'two nodes do not come: 68' 68
has 'which is an error' "$ERR" 'error[HN324]: 2 nodes have not dialed in'
has 'a launch without a secret is warned of' "$ERR" "warning[HN321]: dial-in without a secret: every program that reaches port $PORT"
hn --dial-in "$HOST:$PORT" --nodes 3 --node-rank 1 -o net.dial_timeout=1s --dial-secret none true
has 'also on the other nodes' "$ERR" "warning[HN321]: dial-in without a secret: what answers at port $PORT of node 0 can run programs"
hn_exits 'node 0 is not there: 68' 68 --dial-in "$HOST:$PORT" --nodes 3 --node-rank 1 -o net.dial_timeout=1s true
has 'which the node says' "$ERR" "error[HN325]: node 1 cannot join node 0 at $HOST port $PORT: Connection refused"
hn --dial-in "name.invalid:$PORT" --nodes 3 --node-rank 1 -o net.dial_timeout=1s true
has 'a name that does not resolve is told' "$ERR" 'HN325'

# --- nodes that do not fit ---
start -v --dial-in "$HOST:$PORT" --nodes 3 --node-rank 0 -o net.dial_timeout=600s true
run_node() { timeout 60 "$HNLAUNCH" --dial-in "$HOST:$PORT" -o net.dial_timeout=60s "$@" true >node.out 2>node.err; }
ok 'a node that knows of four nodes is refused' not run_node --nodes 4 --node-rank 1
has 'with the reason' node.err 'error[HN326]: node 0 refused node 1: it was told of 4 nodes, node 0 of 3'
timeout 60 "$HNLAUNCH" --dial-in "$HOST:$PORT" -o net.dial_timeout=60s --nodes 3 --node-rank 1 true >first.out 2>first.err &
FIRST=$!
ok 'a node joins' wait_for grep -q ': node 1 is ' "$ERR"
timeout 60 "$HNLAUNCH" --dial-in "$HOST:$PORT" -o net.dial_timeout=1ms --nodes 3 --node-rank 1 true 2>node.err
has 'a second node of the same rank is told so' node.err 'node rank 1 is taken'
kill -TERM "$PID"
finish
exits 'node 0 was ended: 143' 143
wait "$FIRST"
is 'and so was the node that waited' $? 143
has 'with the last line of node 0' first.err 'nothing was started: interrupted'
done_testing

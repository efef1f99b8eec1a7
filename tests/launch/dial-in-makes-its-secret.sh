#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --dial-in in a job of a resource manager without a secret and without munge: node 0 makes one for the job in a file
# below the home, which the others read there. It is for the user alone and goes with the job; nodes without it do not
# join. Outside of a job, or without a home, --dial-in is refused.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

FOLDER=$XDG_STATE_HOME/hnlaunch/dial-in
PORT=$(free_port)
export PBS_JOBID=1234.server/x
FILE=$FOLDER/pbs-1234.server-x.$PORT

node() { # R ARG...
    timeout 100 "$HNLAUNCH" --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank "$@"
}
call() { hn --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank "$@"; }
start_node() { # R ARG...
    node "$@" >"$1.out" 2>"$1.err" &
    OTHER=$!
}
start_head() { start --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 0 --oversubscribe --label none "$@"; }
mode() { stat -c %a "$1"; }

# --- the other node comes first, and finds what an earlier start of the job has left --------------
mkdir -p "$FOLDER"
chmod 700 "$FOLDER"
printf '%064d' 7 >"$FILE"
chmod 600 "$FILE"
start_node 1 --oversubscribe true
start_head sh -c 'echo "rank $RANK"; until [ -e go ]; do sleep 0.1; done'
ok 'both ranks run' wait_for lines_are "$OUT" 2
is 'the file is for the user alone' "$(mode "$FOLDER") $(mode "$FILE")" '700 600'
is 'it has a secret of 32 random bytes' "$(grep -cE '^[0-9a-f]{64}$' "$FILE")" 1
lacks 'which no line tells' "$ERR" "$(cat "$FILE")"

# --- a second start on the same port leaves it alone ----------------------------------------------
cp "$FILE" kept
node 0 true >second.out 2>second.err
is 'the port is in use: 69' $? 69
same 'the secret is still that of the first' kept "$FILE"
touch go
exits 'the job ends well' 0 finish
wait "$OTHER"
is 'on the other node, too' $? 0
ok 'the file is gone' test ! -e "$FILE"

# --- a node whose home is another one -------------------------------------------------------------
XDG_STATE_HOME=$TMP/other start_node 1 -o net.dial_timeout=2s true
hn_exits 'node 0 alone has the secret: 77' 77 --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 0 -o net.dial_timeout=3s true
has 'which is told there' "$ERR" "error[HN348]: no node has come with the secret of $FILE"
wait "$OTHER"
is 'the other node ends with 77' $? 77
has 'and says where it looked' 1.err \
    "error[HN348]: node 1 cannot join node 0: node 0 has not put the secret of the job at $TMP/other/hnlaunch/dial-in/${FILE##*/}"
ok 'nothing was made there' test ! -e "$TMP/other"

# --- a file that node 0 has not made --------------------------------------------------------------
refuses() { # NAME
    exits "$1: 77" 77 call 1 -o net.dial_timeout=60s true
    has "$1 is not read" "$ERR" "error[HN348]: node 1 cannot join node 0: $FILE is no file of the user alone"
}
cp kept "$FILE"
chmod 640 "$FILE"
refuses 'a file that others may read'
chmod 600 "$FILE"
ln "$FILE" link
refuses 'a file with two names'
rm "$FILE"
ln -s link "$FILE"
refuses 'a link'
rm "$FILE"
mkfifo -m 600 "$FILE"
refuses 'a FIFO'
rm "$FILE"
chmod 755 "$FOLDER"
exits 'a folder that others may enter: 77' 77 call 1 -o net.dial_timeout=60s true
hn_exits 'also on node 0: 77' 77 --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 0 -o net.dial_timeout=60s true
has 'it is named' "$ERR" "error[HN348]: $FOLDER belongs to another user, or others may enter it"
chmod 700 "$FOLDER"

# --- killed, or ended while nodes are awaited -----------------------------------------------------
start_head true
ok 'node 0 waits' wait_for test -s "$FILE"
exits 'it is ended: 143' 143 finish_by TERM
ok 'its file goes with it' test ! -e "$FILE"

# --- no home, no job ------------------------------------------------------------------------------
for rank in 0 1; do
    XDG_STATE_HOME='' HOME=$TMP/none call $rank true
    exits "node $rank without a home: 77" 77
    has 'is refused' "$ERR" 'error[HN346]'
done
ok 'no home was made' test ! -e "$TMP/none"
unset PBS_JOBID
exits 'outside of a job: 77' 77 call 0 true
has 'it is refused, too' "$ERR" 'error[HN346]'
done_testing

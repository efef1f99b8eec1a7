#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --pull brings files of the nodes home at the end of a job, however it ends, to DEST/HOST/PATH and nowhere else. What
# does not come is told, and a job that succeeded without its files exits 73.
if [[ $EUID == 0 && ${1-} != inside ]] && unshare --mount true 2>/dev/null; then
    exec unshare --mount bash "$0" inside
fi
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# --- what comes ---
cat >job <<'END'
mkdir -p out/sub out/empty
echo "rank $RANK" >"out/r$RANK"
[ "$RANK" = 0 ] || exit "${CODE:-0}"
head -c 5000000 /dev/urandom >out/big
: >out/zero
echo run >out/sub/run
chmod 755 out/sub/run
printf x >"out/new
line"
ln -sf sub/run out/link
ln -sf ../sub out/sub/back
END
hn_exits 'a job that succeeds' 0 --local 2 --pull out --pull ./out/r1:copy --pull "$TMP/work/job:copy" sh job
has 'it is told where the files are' "$ERR" "--pull brought 10 files (5.0 MB) of 1 node to $PWD/pulled/"
home=$(echo pulled/*/localhost)
ok 'a folder comes with all that is in it' diff -r --no-dereference out "$home/out"
is 'with its modes and links' "$(cd "$home" && stat -c '%A %N' out/sub/run out/link out/empty)" "$(stat -c '%A %N' out/sub/run out/link out/empty)"
is 'a file with a DEST keeps its place' "$(cat copy/localhost/out/r1)" 'rank 1'
ok 'an absolute path has its last name' cmp job copy/localhost/job
is 'nothing half-written is left' "$(find pulled copy -name '.hnlaunch*')" ''

rm -rf pulled copy
hn --local 1 --pull . true
hn_exits 'the working directory itself' 0 --local 1 --pull . true
is 'comes without what was brought home' "$(find pulled -mindepth 1 -name pulled)" ''
ok 'and with the rest' test "$(find pulled -path '*/localhost/out/r0' | wc -l)" = 2
rm -rf pulled
mkdir elsewhere
hn --local 1 --chdir elsewhere --pull mine sh -c 'echo 1 >mine'
ok '--chdir: relative paths start there' test -e pulled/*/localhost/mine
hn --local 1 --pull mine:dest sh -c 'echo 2 >mine'
hn --local 1 --pull mine:dest sh -c 'echo 3 >mine'
is 'an older file is replaced' "$(cat dest/localhost/mine)" 3
mkdir -p "$TMP/config/hnlaunch" && printf '[run]\npull = mine:by-key out/zero:by-key\n' >"$TMP/config/hnlaunch/config.ini"
hn --local 1 true
is 'the key run.pull has several' "$(find by-key -type f | sort | xargs)" 'by-key/localhost/mine by-key/localhost/out/zero'
rm -r "$TMP/config/hnlaunch"
mkdir jobs
printf '[run]\npull = mine:by-job\nprogram = true\n' >jobs/job
hn --job jobs/job --local 1
is 'DEST of a job file starts at its folder' "$(find jobs -name mine)" jobs/by-job/localhost/mine
rm -r jobs

# --- however the job ends ---
rm -rf pulled
CODE=3 hn --local 2 --on-failure continue --pull out sh job
exits 'a failure keeps its code' 3
is 'and its files come' "$(cat pulled/*/localhost/out/r1)" 'rank 1'
rm -rf pulled
hn_exits 'a time limit' 124 --local 1 --timeout 1s --pull out/late sh -c 'echo x >out/late; exec sleep 600'
ok 'the files come' test -e pulled/*/localhost/out/late
rm -rf pulled out/late
start --local 1 --pull out/late sh -c 'echo x >out/late; exec sleep 600'
ok 'the rank has written' wait_for [ -e out/late ]
exits 'Ctrl-C' 130 finish_by INT
ok 'the files come, too' test -e pulled/*/localhost/out/late
rm -rf pulled
hn --local 1 --max-restarts 1 --pull out/try sh -c 'echo "$HN_RESTART" >out/try; exit 4'
is 'once, after the last attempt' "$RC $(cat pulled/*/localhost/out/try) $(grep -c 'brought' "$ERR")" '4 1 1'
rm -rf pulled
start --local 1 --grace 600s --pull out sh -c 'trap "" TERM INT; touch up; while :; do sleep 1; done'
ok 'a rank that does not end' wait_for [ -e up ]
kill -INT "$PID"
ok 'is stopped' wait_for grep -q stopping "$ERR"
sleep 0.1 # within 50 ms both would be one
finish_by INT
has 'a second Ctrl-C leaves the files there' "$ERR" 'localhost: hnlaunch was told to end at once'
ok 'all of them' test ! -e pulled

# --- nodes that dial in ---
PORT=$(free_port)
export HNLAUNCH_DIAL_SECRET=0123456789abcdef
"$HNLAUNCH" --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 1 --oversubscribe --pull other true >one.out 2>one.err &
ONE=$!
hn --dial-in "127.0.0.1:$PORT" --nodes 2 --node-rank 0 --oversubscribe --pull dialed:dialed-home sh -c 'echo in >dialed'
exits 'nodes that dial in' 0
wait "$ONE"
is 'have a folder each, at node 0' "$(find dialed-home -name dialed | wc -l) $(find . -name other)" '2 '

# --- what does not ---
hn_exits 'a path that is on no node: 73' 73 --local 1 --pull nothing --pull out/zero true
has 'is told' "$ERR" 'error[HN910]: --pull: files could not be brought home'
has 'by its name' "$ERR" 'nothing: on no node'
verdict_has 'so says the verdict' 'all ranks exited 0, but files could not be brought home (--pull)'
ok 'the others come' test -e pulled/*/localhost/out/zero
if [[ -e /sys/class/net/lo/speed ]] && ! cat /sys/class/net/lo/speed >/dev/null 2>&1; then
    hn_exits 'a file that cannot be read on the node: 73' 73 --local 1 --pull /sys/class/net/lo/speed:sys true
    has 'is not counted' "$ERR" 'brought 0 files'
else
    skip 'a file that cannot be read on the node' 'no such file here'
fi
hn_exits 'a failure before it keeps its code' 1 --local 1 --pull nothing false
has 'then it is a warning' "$ERR" 'warning[HN910]'
hn_exits 'a program that is not there' 127 --local 1 --pull nowhere no-such-program
rm -rf pulled
mkdir -p odd/in && ln -s /etc/passwd odd/abs && ln -s ../job odd/up && ln -s in/../in odd/round && mkfifo odd/pipe && echo x >odd/file
hn_exits 'links elsewhere and pipes are no failure' 0 --local 1 --pull odd true
is 'they stay' "$(find pulled/*/localhost/odd -mindepth 1 -printf '%f\n' | sort | xargs)" 'file in'
has 'and are told' "$ERR" 'warning[HN911]: --pull: 4 things stayed on the nodes'
has 'a link with its target' "$ERR" 'localhost:odd/abs, a link to /etc/passwd'
has 'a pipe' "$ERR" 'localhost:odd/pipe, neither a file nor a folder'
for word in / .. ../x/.. a/.. :dest; do
    hn_exits "--pull $word: 64" 64 --local 1 --pull "$word" touch ran
    has "$word: is told" "$ERR" 'error[HN912]'
done
mkdir -p same && ln -s same alias
for word in same:same same/:./same same:alias .:.; do
    hn_exits "--pull $word: 64" 64 --local 1 --pull "$word" touch ran
    has "$word: a folder into itself is told" "$ERR" "error[HN912]: --pull $word: PATH and DEST are the same folder"
done
hn_exits 'two with the same place' 64 --local 1 --pull a/b --pull ./a/b/ touch ran
has 'are told' "$ERR" 'error[HN912]: --pull ./a/b/: another --pull has the same place'
ok 'nothing ran' test ! -e ran
mkdir -p taken/localhost/out/zero
hn_exits 'a folder in the place of a file: 73' 73 --local 1 --pull out/zero:taken true
has 'is told' "$ERR" "cannot write $PWD/taken/localhost/out/zero: Is a directory"
ln -s "$TMP/work/elsewhere" taken/localhost/odd
hn_exits 'a link in the place of a folder: 73' 73 --local 1 --pull odd:taken true
ok 'is not followed' test ! -e elsewhere/file

if [[ ${1-} == inside ]]; then
    mkdir full ro
    mount -t tmpfs -o size=1m full full
    hn_exits 'a full disk: 73' 73 --local 2 --pull out/zero:full --pull out/big:full true
    has 'is told' "$ERR" "cannot write $PWD/full/localhost/out/big: No space left on device"
    is 'no half of a file stays' "$(find full -type f -printf '%f\n')" zero
    user=$(id -u nobody)
    mount -t tmpfs -o mode=755 none ro
    chmod 755 "$TMP" .
    mkdir -m 777 nobodys && echo secret >nobodys/secret && chmod 600 nobodys/secret && echo open >nobodys/open
    as_user() { run setpriv --reuid "$user" --clear-groups env HOME="$PWD/nobodys" XDG_STATE_HOME="$PWD/nobodys/state" "$HNLAUNCH" --chdir nobodys "$@"; }
    if setpriv --reuid "$user" --clear-groups test -x "$HNLAUNCH" -a -r "$HNLAUNCH"; then
        exits 'a file that cannot be read: 73' 73 as_user --local 1 --pull secret:nobodys/here --pull open:nobodys/here true
        has 'it is told' "$ERR" 'localhost:secret: Permission denied'
        is 'the other comes' "$(cat nobodys/here/localhost/open)" open
        exits 'a DEST that cannot be written to: 73' 73 as_user --local 1 --pull open:ro/dest touch ran
        has 'is told before anything starts' "$ERR" "error[HN913]: --pull: cannot write to $PWD/ro/dest: Permission denied"
        ok 'nothing ran' test ! -e nobodys/ran
    else
        skip 'what another user may not read' 'nobody cannot read the build folder'
    fi
else
    skip 'a full disk, unreadable files' 'needs root and a mount namespace'
fi

# --- agents that are not what they seem ---
VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export ENDPOINT_OPENED=41731 VERSION PYTHONPATH=$ROOT/tests/lib ORDERED='STARTED END EXITED GONE'
fake() { # WORDS: what the agent answers
    rm -rf pulled
    PULLED=$1 hn --agent "$ROOT/tests/lib/fake_agent.py" --local 1 "${@:2}" --pull p never-run
    exits "$1: the exit code of the rank" 3
}
fake 'PULLED PULLED-FILE PULLED-BYTES PULLED-BYTES PULLED-FILE-END PULLED-END'
is 'a file in parts' "$(cat pulled/*/localhost/p/f)" bytesbytes
fake 'PULLED PULLED-FILE PULLED-BYTES PULLED-SHORT PULLED-END'
is 'a file that became shorter comes as it is' "$(cat pulled/*/localhost/p/f)" bytes
has 'and is told' "$ERR" 'localhost:p/f: it became shorter while it was read'
fake 'PULLED PULLED-FILE PULLED-BYTES PULLED-BAD PULLED-END'
has 'a file that cannot be read to its end is told' "$ERR" 'localhost:p/f: Input/output error'
is 'and does not come' "$(find pulled -type f)" ''
fake 'PULLED PULLED-LINK PULLED-BEHIND-LINK PULLED-FILE-END PULLED-LINK-OUT PULLED-END'
has 'a file behind a link is not written' "$ERR" 'localhost/p/way/f: Not a directory'
has 'a link that leads out stays' "$ERR" 'localhost:p/d/out, a link to ../../f'
TEXT=$'a\e]0;b\nc' fake 'PULLED-NAME PULLED-END'
lacks 'names are escaped' "$ERR" $'\e'
has 'for the terminal' "$ERR" 'Permission denied'
for words in PULLED-OUT PULLED-ITEM PULLED-BYTES PULLED-FILE-END 'PULLED-FILE PULLED-FILE' 'PULLED-FILE PULLED-END' 'PULLED-END PULLED'; do
    fake "$words"
    ok "$words: is told" grep -qE 'localhost is not used again: its agent sent a (message out of turn: PULLED|malformed PULLED message)' "$ERR"
done
is 'nothing was written elsewhere' "$(find "$TMP" -name outside)" ''
PULLED=PULLED-FILE start --agent "$ROOT/tests/lib/fake_agent.py" --local 1 --pull p never-run
ok 'an agent that does not answer to the end' wait_for grep -q 'bringing files home' "$ERR"
has_begun() { [[ -n $(find pulled -name .hnlaunch-pull) ]]; }
ok 'has begun' wait_for has_begun
exits 'is left by Ctrl-C' 3 finish_by INT
has 'which is told' "$ERR" 'of 1 node: interrupted'
is 'without a half of a file' "$(find pulled -type f)" ''
if [[ ${1-} == inside ]]; then
    umount full ro
fi
nothing_left 'nothing is left'
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The report finds the cause among its echoes and shows what is known of it: the exception that Python
# wrote to the error file, memory that ran out, a core dump.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# The agent sleeps until both have ended: it hears of them in the same moment, of rank 0 first.
cat >echo.sh <<'EOF'
is_dead() { grep -q '^State:.Z' "/proc/$1/status"; }
case $RANK in
0)
    ln -s $$ zero
    until [ -e asleep ]; do sleep 0.01; done
    echo "gloo: Connection closed by peer [10.0.0.2]:4321" >&2
    exit 1
    ;;
1)
    until [ -h zero ]; do sleep 0.01; done
    kill -STOP $PPID
    : >asleep
    { until is_dead $$ && is_dead "$(readlink zero)"; do sleep 0.01; done; kill -CONT $PPID; } >/dev/null 2>&1 &
    echo "no shard 12" >&2
    exit 7
    ;;
esac
EOF
ulimit -c 0
hn --local 3 --on-failure continue --timeout 50s sh -c '[ $RANK = 2 ] && exit 0; . ./echo.sh'
exits 'the rank that broke is the cause, not the one that felt it first' 7
verdict_has 'the verdict says so' 'rank 1'
has 'the other is folded as a consequence' "$ERR" '1 rank failed because a peer was gone or had not come (a consequence): 0'

cat >recorded.sh <<'EOF'
[ $RANK = 1 ] || { sleep 60; exit; }
cat >"$TORCHELASTIC_ERROR_FILE" <<'JSON'
{"message": {"message": "ValueError: no shard 12", "extraInfo": {"timestamp": "1",
"py_callstack": "Traceback (most recent call last):\n  File \"train.py\", line 7, in main\n    load()\nValueError: no shard 12\n"}}}
JSON
exit 1
EOF
hn_exits 'an uncaught Python exception: 1' 1 --local 2 --log-dir logs sh ./recorded.sh
has 'its text is shown' "$ERR" 'rank 1 reported: python: ValueError: no shard 12'
verdict_has 'the last line says why' 'rank 1 on localhost: ValueError: no shard 12  (exit 1)'
is 'the message above has a title in place of it' "$(grep 'HN502' "$ERR")" 'error[HN502]: a rank failed'
lacks 'a stop that takes no second is not told' "$ERR" 'stopping all ranks'
has 'its call stack, too' "$ERR" 'File "train.py", line 7, in main'
json() { python3 -c "import json,sys; d=json.load(open('logs/latest/summary.json')); print($1)"; }
is 'summary.json has origin, code and rank' "$(json 'd["origin"], d["code"], d["rank"]')" 'worker 1 1'
is 'and what the rank said' "$(json 'd["failures"][0]["said"]')" 'python: ValueError: no shard 12'

printf 'not { json' >broken
hn_exits 'an error file that is no JSON does no harm' 3 --local 1 sh -c 'cat broken >$TORCHELASTIC_ERROR_FILE; echo words >&2; exit 3'
has 'the last words are shown then' "$ERR" words
verdict_has 'and quoted' 'rank 0 on localhost exited with code 3: words  (exit 3)'

hn --local 1 --label none sh -c 'python3 -c "
import json, os
json.dump({\"message\": \"x\" * 1000000}, open(os.environ[\"TORCHELASTIC_ERROR_FILE\"], \"w\"))"; exit 1'
ok 'a report of a megabyte is cut' test "$(wc -c <"$ERR")" -lt 10000
verdict_has 'and quoted with a mark' 'rank 0 on localhost: xxxx' 'xxx…  (exit 1)'

# All have met the same, and rank 5 is gone, before any of them ends.
cat >same.py <<'EOF'
import os
import time
rank = os.environ["RANK"]
if rank == "5":
    with open("left.new", "w") as f:
        f.write(str(os.getpid()))
    os.rename("left.new", "left")
    raise SystemExit(0)
open("met." + rank, "w").close()
while not all(os.path.exists(f) for f in ["left"] + ["met.%d" % i for i in (0, 1, 2, 3, 4, 6, 7)]):
    time.sleep(0.01)
while os.path.exists("/proc/" + open("left").read()):
    time.sleep(0.01)


def deep(n):
    if n:
        deep_again(n - 1)
    else:
        raise ValueError("shard 12 is empty")


def deep_again(n):
    deep(n)


deep(3)
EOF
hn --local 8 --grace 60s --log-dir same sh -c 'trap "" TERM; exec python3 same.py'
exits 'eight ranks, seven of which meet the same exception' 1
ok 'the verdict quotes it' grep -qE '^hnlaunch: failed after [^ ]+: rank [0-7] on localhost: ValueError: shard 12 is empty  \(exit 1\)$' "$ERR"
ok 'the others are folded' grep -qE 'note: 6 more ranks said the same: (0-4,[67]|0-3,6-7|0-2,4,6-7|0-1,3-4,6-7|0,2-4,6-7|1-4,6-7)$' "$ERR"
lacks 'and are not called stopped: they ended by themselves' "$ERR" 'stopped by hnlaunch'
lacks 'nor counted again' "$ERR" 'failed on their own'
ok 'the rank that had left with 0 is told' grep -qE 'note: rank 5 had already ended with 0, [0-9.]+m?s before$' "$ERR"
has 'the traceback is shown from its beginning' "$ERR" '|   Traceback (most recent call last):'
is 'summary.json has the reason' \
    "$(python3 -c "import json; print(json.load(open('same/latest/summary.json'))['failures'][0]['text'])")" 'ValueError: shard 12 is empty'

# The agent comes to look when the rank is dead and its last words are still in the pipe.
cat >late.sh <<'EOF'
kill -STOP $PPID
{ until grep -q '^State:.Z' /proc/$$/status; do sleep 0.01; done; kill -CONT $PPID; } >/dev/null 2>&1 &
echo "the last words" >&2
exit 9
EOF
hn --log-dir late --local 1 sh ./late.sh
ok 'the order to stop has the last words' grep -q '"ev":"run.stop".*: the last words"' late/latest/events.ndjson
hn --local 1 sh -c 'printf " 1%%\r 2%%\r\r 3%%\rno shard 12\r\n" >&2; exit 3'
is 'of a line that was drawn again and again the end is shown' "$(grep -A 1 'last lines of its stderr' "$ERR" | tail -n 1)" '    |   no shard 12'
hn --local 1 sh -c 'echo "only on stdout"; exit 3'
has 'without stderr the end of stdout is shown' "$ERR" '|   only on stdout'

hn_exits 'a fatal signal: 139' 139 --local 2 sh -c '[ $RANK = 1 ] || sleep 60; sleep 0.3; kill -SEGV $$'
has 'it is named' "$ERR" SIGSEGV

lacks 'its sender is no question' "$ERR" 'did not send'
hn_exits 'SIGKILL: 137' 137 --local 2 sh -c '[ $RANK = 1 ] || sleep 60; kill -KILL $$'
told_once 'it came from elsewhere' 'note: hnlaunch did not send SIGKILL, and no out-of-memory kill was counted on localhost'
hn --local 2 sh -c '[ $RANK = 1 ] || sleep 60; kill -TERM $$'
ok 'so did SIGTERM' grep -qx '    = note: hnlaunch did not send SIGTERM' "$ERR"
hn --local 2 sh -c '[ $RANK = 1 ] || sleep 60; sh -c "kill -KILL \$\$" 2>/dev/null'
verdict_has 'the exit code of a shell is explained' 'rank 1 on localhost exited with code 137 (128 + SIGKILL)  (exit 137)'

# The kernel kills who takes more than the group of the test may have.
group=/sys/fs/cgroup/memory/hnlaunch-test-$$
[[ -d /sys/fs/cgroup/memory ]] || group=/sys/fs/cgroup/hnlaunch-test-$$
if mkdir "$group" 2>/dev/null &&
    { echo 60M >"$group/memory.limit_in_bytes" || echo 60M >"$group/memory.max"; } 2>/dev/null; then
    { echo 60M >"$group/memory.memsw.limit_in_bytes" || echo 0 >"$group/memory.swap.max"; } 2>/dev/null
    run bash -c "echo \$\$ >$group/cgroup.procs && exec $PLAIN/hnlaunch --local 1 python3 -c 'b = bytearray(200 << 20)'"
    exits 'a rank that took too much memory: 137' 137
    verdict_has 'the out-of-memory killer is named' "killed by SIGKILL (the kernel's out-of-memory killer)"
    wait_for rmdir "$group"
else
    rmdir "$group" 2>/dev/null
    skip 'a rank that took too much memory' 'no control group for memory can be made here'
fi
done_testing

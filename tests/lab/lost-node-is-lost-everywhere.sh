#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# When a node is lost, the live line, hnlaunch top, ps and the metrics tell the same of its ranks and of the others, which
# take their time to end. The last line, the records and the commands that read them name the node, too.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

runtime_dir
lab_up 3 2

# Ranks end when there is a file: they do not heed SIGTERM.
cat >rank.py <<'END'
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
END
port=$((20000 + BASHPID % 10000))
"$LAB" run env TERM=xterm script -qefc "$LAB_HNLAUNCH -H $TMP/hosts.txt --node-timeout 3s --grace 60s --metrics $port python3 $PWD/rank.py $PWD/end" \
    /dev/null </dev/null >screen 2>&1 &
PID=$!

look() { "$LAB" run "$LAB_HNLAUNCH" top --json 2>"$TMP/looker.err" | head -1; }
lives() {
    look | python3 -c 'import json, sys
t = json.loads(sys.stdin.readline())
print(t["alive"], *[r["life"].replace(" ", "-") for h in sorted(t["hosts"], key=lambda h: h["node"]) for r in h["ranks"]])'
}
counts() {
    "$LAB" run python3 -c 'import re, sys, urllib.request
text = urllib.request.urlopen("http://127.0.0.1:%s/metrics" % sys.argv[1], timeout=20).read().decode()
print(*[name + "=" + n for name, n in re.findall(r"hnlaunch_ranks\{state=.(\w+).\} (\d+)", text) if n != "0"])' "$port"
}
# The number of ranks in the newest live line.
line() { tr '\r' '\n' <screen | grep -oE '  [0-9]+ ranks?' | tail -1 | tr -dc 0-9; }
# The ranks that the newest live line of a job that stops waits for.
waited_for() { tr '\r' '\n' <screen | sed -n 's/.*stopping.* ranks \([0-9,-]*\) still run.*/\1/p' | tail -1; }
told() { [[ $("$1") == "$2" ]]; }

ok 'all ranks live: top' wait_for told lives '6 alive alive alive alive alive alive'
ok 'all ranks live: metrics' wait_for told counts 'running=6'
ok 'all ranks live: live line' wait_for told line 6
lab crash node002
ok 'node002 is lost: top' wait_for told lives '4 alive alive silent silent alive alive'
ok 'node002 is lost: metrics' wait_for told counts 'running=4 failed=2'
ok 'node002 is lost: live line' wait_for told waited_for 0-1,4-5
lab_run "$LAB_HNLAUNCH" ps
ok 'node002 is lost: ps tells that the run stops' grep -q stopping "$OUT"
reason=$("$LAB" run python3 -c 'import re, sys, urllib.request
text = urllib.request.urlopen("http://127.0.0.1:%s/metrics" % sys.argv[1], timeout=20).read().decode()
print(*re.findall(r"hnlaunch_stop_info\{reason=.(.*).\} 1", text))' "$port")
touch end
wait "$PID"
is 'the exit code is that of a lost node' "$?" 125
is 'the last line has the reason of the metrics' "$(sed 's/\x1b\[[0-9;]*m//g; s/\r//g' screen | sed -n 's/^.*failed after [^:]*: \(.*\)  (exit 125).*/\1/p')" "$reason"
ok 'the reason names the node' [ "${reason#*lost node002: }" != "$reason" ]
lab_nothing_left 'nothing is left'

. "$ROOT/tests/lib/endings.sh" || exit 1
lab boot node002
endings_hn=("$LAB" run "$LAB_HNLAUNCH") endings_at=(-H "$TMP/hosts.txt" --map node -n N) ENDINGS_AT_ONCE=1
endings_run "$ROOT/tests/clients/endings/lost.rows"
done_testing

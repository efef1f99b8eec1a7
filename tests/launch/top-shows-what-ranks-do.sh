#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch top shows what hosts and ranks do, as JSON, as a table and on the whole terminal; the nodes are sampled only
# while somebody looks on.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
cp -r "$ROOT/examples/python/hnlaunch/" .
export LD_LIBRARY_PATH=$PLAIN
cat >work.py <<'END'
import os
import time
import hnlaunch as hn

hn.init()
if hn.rank() == 0:
    while not os.path.exists("end"):
        pass
elif hn.rank() == 1:
    print("rank 1 waits", flush=True)
    hn.store.get("end")
elif hn.rank() < 4:
    hn.progress(9 - 2 * hn.rank(), 50)
    while not os.path.exists("end"):
        time.sleep(0.05)
    hn.store.set("end", "")
hn.finalize()
END

looks=0
# Looks on with --json in the background; the lines go to $LINES_FILE, the process is LOOKER.
look() {
    looks=$((looks + 1)) LINES_FILE=$TMP/lines.$looks
    "$HNLAUNCH" top --json "$@" >"$LINES_FILE" 2>"$TMP/looker.err" &
    LOOKER=$!
}
# Evaluates an expression with the newest line of all as `t`, its first host as `h`, and its ranks as `r`.
field() {
    python3 -c 'import json, sys
t = json.loads(open(sys.argv[1]).read().rsplit("\n", 2)[-2])
h = (t.get("hosts") or [{}])[0]
r = h.get("ranks", [])
print(*eval("[" + sys.argv[2] + "]"))' "$LINES_FILE" "$1"
}
true_of() { [[ $(field "$1") == True ]]; } # EXPRESSION

comes_up 'the ranks run' 1 start --label none --local 5 python3 work.py

# --- JSON -------------------------------------------------------------------------------------
look
ok 'there are rates' wait_for true_of '"cpu_percent" in h'
ok 'a rank that computes' wait_for true_of 'r[0]["state"] == "R" and r[0]["cpu_percent"] > 20'
ok 'a rank that waits in the store' wait_for true_of 'r[1]["wait"] == "key" and r[1]["wait_ms"] > 1500 and r[1]["cpu_percent"] < 20'
ok 'is not busy' wait_for true_of 'r[1]["busy_percent"] < 30 and r[0]["busy_percent"] > 70'
is 'as the store tells' "$(field 'r[1]["busy_by"]')" store
ok 'the time since its last output' true_of '0 < r[1]["quiet_ms"] <= t["us"] / 1000'
is 'steps and lags' "$(field '[(k["step"], k["lag"]) for k in r[2:4]], t["step"], t["spread"], t["total"]')" \
    '[(5, 0), (3, 2)] 3 2 50'
ok 'a rank that has ended' wait_for true_of '(r[4]["life"], r[4]["exit"]) == ("ended", 0)'
is 'the run' "$(field 't["state"], t["num_nodes"], t["world_size"], t["alive"], t["attempt"]')" 'running 1 5 4 0'
ok 'memory of the machine' true_of '0 < h["memory_mib"] < h["memory_total_mib"]'
names_of() { # EXPRESSION: all names in its objects
    python3 -c 'import json, sys
names = set()
for line in open(sys.argv[1]):
    t = json.loads(line)
    for o in eval(sys.argv[2]):
        names |= set(o)
print(*sorted(names))' "$LINES_FILE" "$1"
}
# After 10 s without a step stalled_ms comes.
is 'names of the run' "$(names_of '[t.keys() - {"stalled_ms"}]')" 'alive attempt hosts num_nodes run since_step_ms spread state step step_ms total us v world_size'
is 'names of a host' "$(names_of 't["hosts"]')" \
    'age_ms cpu_percent gpus host in_kib memory_mib memory_total_mib node out_kib ranks state'
is 'names of a rank' "$(names_of 't["hosts"][0]["ranks"]')" \
    'busy_by busy_percent cpu_percent exit lag life memory_mib quiet_ms rank state step wait wait_ms'
# The manual has all of them, and those of GPUs.
manual=$(grep -o '\*[a-z_]*\*' "$ROOT/docs/hnlaunch-top.1.scd" | tr -d '*' | sort -u)
for name in $(names_of '[t] + t["hosts"] + [k for h in t["hosts"] for k in h["ranks"]]') use_percent celsius watts steps_per_s; do
    grep -qx "$name" <<<"$manual" || printf '%s\n' "$name"
done >missing
is 'the manual has all names' "$(cat missing)" ''

# --- a table, beside --------------------------------------------------------------------------
hn_exits 'a second client at the same time' 0 top
ok 'has a line of the run' grep -qE '^run [a-z0-9]{5}  [0-9.ms]+  5 ranks on 1 node  step 3-5 of 50  (running|no step for [0-9]+[sm])$' "$OUT"
ok 'has the host' grep -qE '^localhost +0-4 +4/5 +3 +-2 +key [0-9]+s +(~?[0-9]+%|-) +[0-9]+% +[0-9.]+[MG] ' "$OUT"
ok 'the only host has its ranks below' grep -qE '^  rank 1 +S +key [0-9]+s ' "$OUT"
is 'and the rank that is behind is told' "$(grep -c 'rank 3 .* behind$' "$OUT")" 1
lacks 'no GPUs, no columns of GPUs' "$OUT" 'GPU%'
ok 'no blanks at ends of lines' not grep -q ' $' "$OUT"
TERM=dumb script -qefc "stty cols 50; '$HNLAUNCH' top" /dev/null >"$OUT" 2>&1
ok 'a terminal that is dumb has the table, at its width' grep -qaE '^localhost +4/5 +3 +-2 ' "$OUT"
is 'no line of it is wider' "$(tr -d '\r' <"$OUT" | sed 's/…/./g' | awk 'length > 50' | wc -l)" 0

# --- the whole terminal -----------------------------------------------------------------------
. "$ROOT/tests/lib/tmux.sh"
screen() { # COLUMNS COMMAND...: in a new terminal of 12 rows
    new_server
    pane new-session -d -x "$1" -y 12 "trap : INT; env TERM=screen LD_LIBRARY_PATH= ${*:2}; printf '%s\n' \"code \$?\"; stty -a | grep -o ' icanon\| echo '; exec sleep 1000"
}
widest() { sed 's/…/./g' screen | awk '{ if (length > n) n = length } END { print n + 0 }'; }
given_back() { shown '^ icanon$' && shown '^ echo'; }
if command -v tmux >/dev/null; then
    screen 40 "$HNLAUNCH" top
    ok '40 columns: host and ranks' wait_for shown '^localhost +3 +-2 rank 3 behind'
    ok '40 columns: the odd rank has a note' wait_for shown '^  rank 3 +3 +-2 behind$'
    ok '40 columns: no WAIT' not shown WAIT
    ok '40 columns: the first line says that no step comes' wait_for shown '^run [a-z0-9]{5}  .*no step for [0-9]+[sm]'
    ok "40 columns: nothing is wider ($(widest))" test "$(widest)" -le 40
    screen 200 "$HNLAUNCH" top
    ok '200 columns: all columns' wait_for shown '^HOST +RANKS +UP +STEP +LAG +WAIT +BUSY +CPU +MEM +NET RX/TX +OUT +NOTE$'
    screen 80 "$HNLAUNCH" top
    ok '80 columns' wait_for shown '^  rank 1 +S +key'
    keys Left
    ok 'a host is closed' wait_for not shown '^  rank 1'
    keys Enter
    ok 'and opened' wait_for shown '^  rank 1 '
    keys '?'
    ok 'help' wait_for shown 'quit; the run goes on'
    ok 'folded to the terminal' shown '^ {34}[a-z, ]*gpu, net, out$'
    keys x
    ok 'and back' wait_for shown '^localhost'
    keys s
    ok 'another order' wait_for shown 'sort: host'
    keys / n o n e Enter
    ok 'a filter' wait_for not shown '^localhost'
    ok 'is shown' shown '/ none'
    keys Escape
    ok 'all hosts again' wait_for shown '^localhost'
    pane resize-window -x 50 -y 8
    ok 'a smaller terminal' wait_for shown '^HOST +UP +STEP +LAG +NOTE$'
    ok "nothing is wider ($(widest))" test "$(widest)" -le 50
    pane resize-window -x 100 -y 20
    ok 'a larger one' wait_for shown '^HOST.* BUSY +CPU'
    keys w
    ok 'why is asked' wait_for shown 'any key: back'
    ok 'and tells what it finds' wait_for shown '^rank 1 waits |no hang is visible|no rank is seen'
    keys x
    ok 'back from why' wait_for shown '^HOST '
    keys l
    ok 'l shows the logs' wait_for shown 'rank 1 waits$'
    keys C-c
    ok 'and Ctrl-C leads back' wait_for shown '^HOST '
    keys S
    ok 'S asks' wait_for shown 'stop run .....\? y stops it'
    keys n
    ok 'and another key leads back' wait_for shown 'q quit'
    keys q
    ok 'q quits' wait_for shown '^code 0$'
    ok 'q: the terminal is as it was' wait_for given_back
    for signal in INT TERM; do
        screen 80 "$HNLAUNCH" top
        ok "$signal: it runs" wait_for shown '^localhost'
        if [[ $signal == INT ]]; then keys C-c; else kill -TERM "$(pane display-message -p '#{pane_pid}' | xargs pgrep -P)"; fi
        ok "$signal ends it" wait_for shown "^code $((128 + $(kill -l $signal)))\$"
        ok "$signal: the terminal is as it was" wait_for given_back
    done
    screen 80 LC_ALL=C "$HNLAUNCH" top
    ok 'without UTF-8' wait_for shown '^localhost'
else
    skip 'the whole terminal' 'needs tmux'
fi

# --- without the part that draws ----------------------------------------------------------------
mkdir "$TMP/alone"
cp "$HNLAUNCH" "$TMP/alone"
NO_COLOR=1 TERM=xterm script -qefc "stty cols 100; '$TMP/alone/hnlaunch' top" /dev/null </dev/null >"$OUT" 2>&1
has 'a missing part is told' "$OUT" 'warning[HN830]'
ok 'and the table is there' grep -qaE '^localhost +0-4 ' "$OUT"
echo 'no library' >"$TMP/alone/hnlaunch-top.so"
NO_COLOR=1 TERM=xterm script -qefc "'$TMP/alone/hnlaunch' top" /dev/null </dev/null >"$OUT" 2>&1
has 'so is one that cannot be loaded' "$OUT" 'cannot load the screen: '
lacks 'no other command loads ncurses' "/proc/$PID/maps" ncurses

# --- the end --------------------------------------------------------------------------------
if command -v tmux >/dev/null; then
    screen 80 "$HNLAUNCH" top
    ok 'it looks on' wait_for shown '^localhost'
fi
id=$(field 't["run"]')
touch end
exits 'the job ends' 0 finish
WAITED=0
wait "$LOOKER" || WAITED=$?
is 'a client that looks on ends with 0' "$WAITED" 0
is 'its last line has the verdict' "$(field 'sorted(t), t["code"], "5 ranks exited 0" in t["verdict"]')" "['code', 'verdict'] 0 True"
if command -v tmux >/dev/null; then
    ok 'the screen is left with the verdict' wait_for shown "run $id: finished: 5 ranks exited 0"
    ok 'and with 0' wait_for shown '^code 0$'
    pane kill-server
fi
hn_exits 'a run that has ended' 69 top "$id"
has 'is told as such' "$ERR" "error[HN802]: run $id has ended"
hn_exits 'no such run' 66 top nothing
hn_exits 'two runs' 64 top a b

# --- what the nodes are asked -----------------------------------------------------------------
# Between head and agent stands a program that writes the head's orders down.
cat >agent.py <<END
#!/usr/bin/env python3
import os, select, socket, subprocess, sys
head, (here, there) = socket.socket(fileno=os.dup(0)), socket.socketpair()
agent = subprocess.Popen(["$BUILD/hnlaunch-agent", *sys.argv[1:]], stdin=there, stdout=there)
there.close()
other = {head: here, here: head}
with open("$PWD/orders", "ab", buffering=0) as orders:
    while True:
        for s in select.select([head, here], [], [])[0]:
            data = s.recv(1 << 16)
            if not data:
                sys.exit()
            if s is head:
                orders.write(data)
            other[s].sendall(data)
END
chmod +x agent.py
samples() {
    python3 -c 'import struct
data, at, out = open("orders", "rb").read(), 0, []
while at + 5 <= len(data):
    size, kind = struct.unpack_from("<IB", data, at)
    if kind == 20:
        out.append(struct.unpack_from("<I", data, at + 5)[0])
    elif kind == 1:
        out.append("launch")
    at += 4 + size
print(*out)'
}
samples_are() { [[ $(samples) == "$1" ]]; }
rm -f end
start --agent "$PWD/agent.py" --max-restarts 1 --local 1 --label none sh -c 'echo up
until [ -e end.$HN_RESTART ]; do sleep 0.05; done; exit $((1 - HN_RESTART))'
ok 'a rank runs' wait_for lines_are "$OUT" 1
is 'nobody looks on: no samples' "$(samples)" launch
look
first=$LOOKER
ok 'samples are ordered' wait_for samples_are 'launch 1000'
ok 'and come' wait_for true_of '"cpu_percent" in h'
look
second=$LOOKER
ok 'a second client looks on' wait_for true_of '"cpu_percent" in h'
kill -KILL "$first"
touch end.0
ok 'it sees the next attempt' wait_for true_of 't["attempt"] == 1 and "cpu_percent" in h'
is 'whose agents have the order from the start' "$(samples)" 'launch 1000 1000 launch'
kill -KILL "$second"
ok 'the last one has gone: no more samples' wait_for samples_are 'launch 1000 1000 launch 0'
look
ok 'again' wait_for samples_are 'launch 1000 1000 launch 0 1000'
touch end.1
exits 'the job ends after its restart' 0 finish
wait "$LOOKER"

# A role that starts later, on a node that is sampled by then.
rm -f end
mkfifo never
start -w localhost:2 --gpus-per-rank 0 --label none --main b --role a --nodes 1 -n 1 --ready "file:$PWD/a.is.ready" sh -c 'echo a runs; exec cat never' : \
    --role b --on a --per-node --after a sh -c 'until [ -e end ]; do :; done'
ok 'a role runs' wait_for lines_are "$OUT" 1
look
ok 'and is sampled' wait_for true_of '"cpu_percent" in h'
touch a.is.ready
busy='sorted(k.get("busy_percent", -1) for k in r)'
ok 'so is the role that follows, and how busy both are' wait_for true_of "len(r) == 2 and 0 <= $busy[0] < 30 and $busy[1] > 70"
touch end
exits 'the second role ends' 0 finish
wait "$LOOKER"
nothing_left 'nothing is left'
done_testing

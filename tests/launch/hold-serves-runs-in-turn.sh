#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hold whose agent is started by a program serves runs one after another, and ends with its process, its time or its release.
# tests/lab/runs-start-on-a-hold.sh has logins and several nodes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

export XDG_RUNTIME_DIR=$TMP/run XDG_CACHE_HOME=$TMP/cache
mkdir -m 700 "$XDG_RUNTIME_DIR"
starts=$TMP/starts # a line for each agent that is started
cat >start <<'END'
#!/bin/sh
echo "$1" >>"$STARTS"
echo $$ >"$STARTS.pid"
shift
exec "$@"
END
chmod +x start
export STARTS=$starts
on=(-w other.invalid:2 --start-with "$PWD/start {host}")

held() { "$HNLAUNCH" ps --json | python3 -c 'import json, sys; [print(*[h[k] for k in sys.argv[1:]]) for h in json.load(sys.stdin)["holds"]]' "$@"; }
run_has_hold() { [[ $(held used_by) == *\'*\'* ]] && kill -0 "$PID"; }
no_hold() { [[ ! -e $XDG_RUNTIME_DIR/hnlaunch/holds ]]; }

hn_exits 'a hold is made' 0 hold "${on[@]}" --idle 5m
HOLD=$(cat "$OUT")
is 'ps lists it' "$(held hold nodes_ready used_by)" "$HOLD 1 []"
for i in {1..5}; do
    hn "${on[@]}" --label none sh -c 'cat; echo "$RANK of $WORLD_SIZE, $1"' - "$i" </dev/null
    [[ $RC == 0 && $(sort "$OUT" | xargs) == "0 of 2, $i 1 of 2, $i" ]] || fail "run $i" "$(cat "$OUT" "$ERR")"
done
is 'five runs start no agent by the program' "$(wc -l <"$starts")" 1
hn "${on[@]}" --label none sh -c 'yes | head -c 3000000; >"$0-$RANK"; until [ -e "$0-0" ] && [ -e "$0-1" ]; do sleep 0.01; done; exit 3' "$TMP/wrote"
exits 'a run that writes much, and fails' 3
is 'loses nothing' "$(stat -c %s "$OUT")" 6000000
comes_up 'ranks are up' 2 start "${on[@]}" --label none sh -c 'echo up; exec sleep 1000.31'
is 'ps names the run' "$(held used_by | tr -d "[]'")" "$("$HNLAUNCH" ps --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')"
one=$PID
hn_exits 'a second run is refused' 69 "${on[@]}" true
has 'with a number' "$ERR" 'error[HN630]'
kill -KILL "$one"
PID=$one
finish
ok 'a killed run leaves no rank' wait_for not pgrep -xf 'sleep 1000.31'
hn "${on[@]}" --max-restarts 1 --label none sh -c 'echo "attempt $HN_RESTART"; >"$0-$HN_RESTART-$RANK"; until [ -e "$0-$HN_RESTART-$((1 - RANK))" ]; do sleep 0.01; done; exit $((1 - HN_RESTART))' "$TMP/tried"
exits 'a run with a second attempt' 0
is 'has both on the hold' "$(sort "$OUT" | uniq -c | awk '{ print $1, $3 }' | xargs) $(wc -l <"$starts")" '2 0 2 1 1'

comes_up 'ranks are up' 2 start "${on[@]}" --label none sh -c 'echo up; exec sleep 1000.31'
kill -KILL "$(held pid)"
exits 'a killed hold ends its run with 125' 125 finish
verdict_has 'which is told' "hold $HOLD (pid " ') has ended'
has 'with a step that does not blame the node' "$ERR" 'help: start again: the run then logs in'
nothing_left 'nothing is left of both'
hn_exits 'the next run starts without it' 0 "${on[@]}" --label none true
is 'by the program' "$(wc -l <"$starts")" 2

hn_exits 'a hold for a second' 0 hold "${on[@]}" --idle 1s
ok 'ends after it' wait_for no_hold
hn_exits 'a hold that is released' 0 hold "${on[@]}"
hn_exits 'is gone' 0 release
ok 'at once' wait_for no_hold
hn hold "${on[@]}"
kill -TERM "$(held pid)"
ok 'SIGTERM ends a hold, too' wait_for no_hold

# Modules are imported again for each run.
echo 'import time; time.sleep(2)' >slow.py
echo 'import sys; print("slow" in sys.modules)' >warm.py
PYTHONPATH=$PWD hn hold "${on[@]}" --warm python3:slow
exits 'a hold whose modules take long' 0
for i in 1 2; do PYTHONPATH=$PWD hn "${on[@]}" --progress tty python3 -c 'pass'; done
exits 'a run at once behind another one' 0
ok 'tells that the hold is awaited' grep -aq '0/1 nodes ready, waiting for the hold, [0-9]' "$ERR"
hn report
has 'report calls the wait by its name' "$OUT" 'critical path: hold other.invalid '
has 'also in the row of the node' "$OUT" 'C hold  A agent'
PYTHONPATH=$PWD hn -v "${on[@]}" --progress plain --log-dir logs python3 -c 'pass'
has 'so does a line' "$ERR" 'hnlaunch: hold 1/1 in '
is 'and the event' "$(grep -c '"ev":"node.connected".*"text":"hold"' logs/latest/events.ndjson)" 1
# A run may take a node before the next agent there has begun to import: here the agent that starts it is stopped.
comes_up 'ranks are up' 2 start "${on[@]}" --label none sh -c 'echo up; exec sleep 1000.31'
kill -STOP -- -"$(cat "$STARTS.pid")"
finish_by KILL
PYTHONPATH=$PWD start -v "${on[@]}" --label none python3 warm.py
ok 'a run takes the node' wait_for run_has_hold
kill -CONT -- -"$(cat "$STARTS.pid")"
exits 'a run that waits for the next agent' 0 finish
is 'has the modules' "$(sort -u "$OUT")" True
hn release
ok 'the hold ends' wait_for no_hold
nothing_left 'nothing is left'

echo 'import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()' >threads.py
PYTHONPATH=$PWD hn hold "${on[@]}" --warm python3:threads
exits 'a hold whose module starts a thread' 0
ok 'tells where the next step is' grep -q 'warning.HN641.*; hnlaunch explain HN641 tells what to do' "$ERR"
lacks 'and has none to try in vain' "$ERR" 'try there'
hn release
ok 'the hold ends, too' wait_for no_hold

# An import that has failed is tried again, but no run waits for it.
cat >fails.py <<'END'
import os, time
if not os.path.exists('failed'):
    open('failed', 'w').close()
    raise OSError('not yet')
while os.path.exists('lasts'):
    time.sleep(0.01)
END
echo 'import sys; print("fails" in sys.modules)' >warm.py
export PYTHONPATH=$PWD
is_warm() { [[ $(held nodes_warm) == 1 ]]; }
hn_exits 'a hold whose module cannot be imported' 0 hold "${on[@]}" --warm python3:fails
: >lasts
hn "${on[@]}" --label none python3 warm.py
start "${on[@]}" --label none python3 warm.py
WAIT=10 ok 'a run behind another one waits for no import' wait_for not kill -0 "$PID"
finish
is 'and has no modules' "$RC $(sort -u "$OUT")" '0 False'
rm lasts
ok 'the next import' wait_for is_warm
hn "${on[@]}" --label none python3 warm.py
is 'is of use' "$RC $(sort -u "$OUT")" '0 True'
unset PYTHONPATH
hn release
ok 'that hold ends' wait_for no_hold

printf '#!/bin/sh\nshift\necho $$ >%s/agent\nexec "$@"\n' "$PWD" >with_pid
chmod +x with_pid
echo 'import time; open("imports", "w"); time.sleep(99)' >stays.py
PYTHONPATH=$PWD start hold -w other.invalid:2 --start-with "$PWD/with_pid {host}" --warm python3:stays
ok 'modules are imported' wait_for test -e imports
kill -KILL "$(cat agent)"
exits 'a hold that loses its node before it is ready' 68 finish
has 'says so' "$ERR" 'error[HN201]: other.invalid cannot be reached'
verdict_has 'also in the last line' 'hnlaunch: nothing was started  (exit 68)'

echo 'import os; os.kill(os.getppid(), 9)' >kills.py
PYTHONPATH=$PWD hn hold "${on[@]}" --warm python3:kills
exits 'a hold whose agents end before a run takes them' 69
has 'says of the node why' "$ERR" 'cannot prepare an agent on other.invalid: the agent ended before a run took it'
has 'and of the hold that it has none' "$ERR" 'error[HN210]: no node keeps an agent for the next run'
ok 'so that none is left' wait_for no_hold

# --- a hold that does not answer, is released twice, or is there already -------------------------------------

hn hold "${on[@]}"
HOLD=$(cat "$OUT")
pid=$(held pid)
kill -STOP "$pid"
is_silent() { # NAME
    exits "$1: 69" 69
    has "$1: the process" "$ERR" "error[HN633]: a hold of yours (pid $pid) does not answer"
    has "$1: what ends it" "$ERR" "help: kill -CONT $pid lets a stopped process go on, kill -KILL $pid ends the hold"
}
hn release
is_silent 'release of a stopped hold'
hn release "$HOLD"
is_silent 'release by its name'
has 'release by its name: the name' "$ERR" "it may be hold $HOLD"
hn hold "${on[@]}"
is_silent 'another hold of the same hosts'
lacks 'another hold of the same hosts: no talk of names' "$ERR" 'same hosts and settings'
hn_exits 'a run that names it' 69 "${on[@]}" --hold "$HOLD" true
has 'is told so' "$ERR" "error[HN633]: hold $HOLD does not serve this run: a hold of yours (pid $pid) does not answer"
hn_exits 'ps' 0 ps
has 'ps warns of it' "$ERR" "warning[HN633]: a hold of yours (pid $pid) does not answer"
hn hold -w more.invalid "${on[@]:2}"
more=$(held pid)
kill -STOP "$more"
hn hold -w third.invalid "${on[@]:2}"
third=$(held pid)
kill -STOP "$third"
SECONDS=0
hn ps
is 'ps warns of each of three' "$(grep -c 'warning.HN633.: a hold of yours (pid [0-9]*) does not answer' "$ERR")" 3
ok 'after the time for one' test "$SECONDS" -lt "$(scaled 9)"
kill -KILL "$more" "$third"
kill -CONT "$pid" "$more" "$third" 2>"$TMP/gone"
ok 'two are gone' wait_for not kill -0 "$more" "$third"
sleep 2 # their sockets are no longer young ones
hn_exits 'a second hold' 69 hold "${on[@]}"
has 'is refused by the name of the first' "$ERR" "error[HN634]: cannot make a hold: hold $HOLD has the same hosts and settings"
has 'with the ways to go on' "$ERR" "help: runs on these hosts start on it; hnlaunch release $HOLD ends it"
comes_up 'ranks are up' 2 start "${on[@]}" --label none sh -c 'echo up; exec sleep 1000.31'
run=$(held used_by | tr -d "[]'")
"$HNLAUNCH" release 2>/dev/null
"$HNLAUNCH" hold "${on[@]}" >/dev/null 2>"$TMP/again"
is 'a hold while a released one is in use' $? 69
has 'tells when that ends' "$TMP/again" "error[HN634]: cannot make a hold: hold $HOLD was released and ends with run $run"
has 'and how to wait' "$TMP/again" "help: hnlaunch wait $run, and then hnlaunch hold again"
finish_by INT
ok 'it ends with the run' wait_for no_hold

hn hold "${on[@]}"
one=$(cat "$OUT")
hn hold -w more.invalid "${on[@]:2}"
two=$(cat "$OUT")
hn_exits 'a release with wrong names' 69 release "$one" nobody noone
has 'tells one' "$ERR" 'error[HN631]: there is no hold nobody'
has 'and the other' "$ERR" 'error[HN631]: there is no hold noone'
is 'and releases nothing' "$(held hold | sort | xargs)" "$(printf '%s\n' "$one" "$two" | sort | xargs)"
hn_exits 'a release of two' 0 release "$one" "$two"
has 'ends one' "$ERR" "hold $one has ended"
has 'and the other' "$ERR" "hold $two has ended"
ok 'so that none is left' wait_for no_hold

hn hold "${on[@]}"
kill -KILL "$(held pid)"
sleep 2 # the socket is no longer a young one
hn_exits 'a hold where a killed one has left its socket' 0 hold "${on[@]}"
hn release
ok 'ends as ever' wait_for no_hold

# --- a hold that dies is no fault of its hosts ---------------------------------------------------------------

both=(-w "a.invalid,b.invalid" "${on[@]:2}")
dies() { # OPTION...: of a run whose hold is killed
    hn_exits 'a hold of two hosts' 0 hold "${both[@]}"
    start "${both[@]}" --oversubscribe --label none "$@" sh -c 'echo up; [ "$HN_RESTART" = 0 ] || exit 0; exec sleep 1000.31'
    ok 'ranks are up' wait_for lines_are "$OUT" 2
    HOLD=$(held hold) pid=$(held pid)
    kill -KILL "$pid"
    finish
}
dies
exits 'its run ends with 125' 125
is 'the last line blames the hold alone' "$(verdict | sed 's/.* after [^:]*: //')" "hold $HOLD (pid $pid) has ended  (exit 125)"
lacks 'no host is called lost' "$ERR" 'lost '
lacks 'nor to be left out' "$ERR" '--without-bad'
sleep 2 # the socket is no longer a young one
hn_exits 'no host was bad' 66 rerun --without-bad
has 'as rerun says' "$ERR" 'is known to have failed'
dies --restart auto
exits 'with --restart auto the run goes on' 0
has 'on the same hosts' "$ERR" 'same hosts: the hold of the nodes has ended'
has 'which are connected' "$ERR" 'connecting to 2 nodes without the hold'
lacks 'spare hosts are none of its matters' "$ERR" 'spare'
hn bad
lacks 'and none is put out' "$OUT" invalid
nothing_left 'nothing is left of all'
done_testing

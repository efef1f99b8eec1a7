#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ps, stop, signal, wait and rerun reach runs from elsewhere; records of runs are kept, and never harm a run.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
RUNS=$XDG_STATE_HOME/hnlaunch/runs
ps_field() { "$HNLAUNCH" ps --json | python3 -c "import json, sys
runs = json.load(sys.stdin)['runs']
print(eval(sys.argv[1]))" "$1"; }
newest() { ps_field 'runs[0]["run"]'; }
runs_is() { [[ $(ps_field 'runs[0]["state"]') == "$1" ]]; }

# --- records ----------------------------------------------------------------------------------
matches() { ok "$1" grep -qaE -- "$3" "$2"; } # NAME FILE ERE

hn_exits 'without runs ps is fine' 0 ps
is 'and makes nothing' "$(ls -A "$XDG_RUNTIME_DIR")" ''
has 'and says so' "$ERR" 'you have no runs here'
export SECRET=open
hn -x SECRET=sesame -xTOKEN=sesame --env=KEY=sesame --local 2 sh -c 'echo "out $RANK"; echo "err ${#SECRET}" >&2; exit $((RANK * 3))' -x LAST=word
exits 'a run' 3
id=$(newest)
is 'it has records' "$(ls "$RUNS/$id" | xargs)" 'events.ndjson output run.json summary.json trace'
is 'that only the user can read' "$(stat -c %a "$XDG_STATE_HOME/hnlaunch" "$RUNS" "$RUNS/$id" "$RUNS/$id"/* | xargs)" '700 700 700 600 600 600 600 600'
is 'no value of -x is among them' "$(cat "$RUNS/$id"/* | grep -c sesame)" 0
matches 'the output is there, behind lines that measure it' "$RUNS/$id/output" '^[0-9]+ 1 out 6$'
matches 'of both streams' "$RUNS/$id/output" '^err 6$'
has 'the program keeps its arguments' "$RUNS/$id/run.json" '"LAST=word"'
is 'the events end with the end' "$(tail -n 1 "$RUNS/$id/events.ndjson" | grep -c '"ev":"run.end"')" 1
hn ps
matches 'ps shows it' "$OUT" "^$id +20[-0-9]+ [:0-9]+ +[0-9.ms]+ +$(uname -n) +1 +2 +failed \(3\) +sh -c"
is 'the JSON of ps has these names' "$(ps_field '" ".join(sorted(runs[0]))')" \
    'argv code cwd directory hn host num_nodes pid rank run running started state us verdict world_size'
hn --local 1 ./no-such-program
is 'a launch that started no rank leaves a record of its failure or none' "$(ls "$RUNS" | wc -l)" "$(ps_field 'len(runs)')"

# --- a run that goes on -----------------------------------------------------------------------
comes_up 'two ranks run' 2 start --local 2 --label none sh -c 'trap "echo caught" USR1; echo up; while :; do sleep 0.1; done'
id=$(newest)
hn_of() { "$HNLAUNCH" "$@" >"$TMP/of.out" 2>"$TMP/of.err"; RC_OF=$?; }
hn_of ps
is 'the socket of a run is for its user alone' "$(stat -c %a "$XDG_RUNTIME_DIR/hnlaunch/$id.sock")" 600
matches 'ps shows that' "$TMP/of.out" "^$id .* running "
is 'so does its JSON' "$(ps_field 'runs[0]["running"], runs[0]["pid"], runs[0]["world_size"]')" "(True, $PID, 2)"
is 'also from a session with another runtime folder' "$(XDG_RUNTIME_DIR=$TMP/nowhere ps_field "[r['state'] for r in runs if r['run'] == '$id']")" "['running']"
hn_of signal "$id" USR1
is 'a signal is sent' "$RC_OF" 0
ok 'and reaches all ranks' wait_for lines_are "$OUT" 4
is 'what is no request is refused, and too much of it closes the connection' "$(python3 - "$XDG_RUNTIME_DIR/hnlaunch/$id.sock" <<'END'
import socket, sys
def ask(data):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(sys.argv[1])
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        try:
            return s.makefile().read().strip()
        except ConnectionResetError:
            return ""
half = socket.socket(socket.AF_UNIX)
half.connect(sys.argv[1])
half.sendall(b'{"do":')
print([ask(data) for data in (b"nonsense\n", b'{"do":"dance"}\n', b'{"do":"signal","signal":999}\n', b"x" * 600, b"")])
END
)" "['{\"error\":\"no request\"}', '{\"error\":\"an unknown request\"}', '{\"error\":\"a malformed request\"}', '', '']"
hn_of signal "${id:0:3}" nonsense
is 'a signal that does not exist' "$RC_OF" 64
matches 'is told' "$TMP/of.err" 'error\[HN808\]: there is no signal nonsense'
for words in USR1 'USR1 '"$id" "SIGUSR1 ${id:0:3}"; do
    # shellcheck disable=SC2086
    hn_of signal $words
    is "signal $words: wrong words" "$RC_OF" 64
    signal=${words%% *} run=${words#"${words%% *}"}
    matches 'the run is missing' "$TMP/of.err" "error\[HN808\]: .signal. needs a run in front of $signal"
    matches 'and the line has it' "$TMP/of.err" "help: hnlaunch signal${run:- $id} $signal\$"
done
"$HNLAUNCH" wait "$id" >/dev/null 2>"$TMP/wait.err" &
waiting=$!
hn_of stop "$id"
is 'stop waits for the end' "$RC_OF" 0
matches 'and shows the verdict' "$TMP/of.err" "run $id: stopped after .*: hnlaunch stop \\(pid [0-9]+\\)  \\(exit 143\\)"
exits 'the run was stopped' 143 finish
wait $waiting
is 'wait exits with its code' $? 143
hn_of ps
matches 'ps shows that it was stopped' "$TMP/of.out" "^$id .* stopped \(143\) "
hn_of wait "$id"
is 'wait for a run that has ended' "$RC_OF" 143
hn_of stop "$id"
is 'a run that has ended cannot be stopped' "$RC_OF" 69
matches 'the message has its verdict' "$TMP/of.err" "error\[HN802\]: run $id has ended: stopped after"

# --- a signal that ends it ---
comes_up 'two ranks run' 2 start --local 2 sh -c 'echo up; exec sleep 600'
hn_of signal "$(newest)" USR1
exits 'a signal ends the ranks' 138 finish
ok 'the last line names the order' grep -qE '^hnlaunch: failed after .* was killed by SIGUSR1 .*; hnlaunch signal sent SIGUSR1 [0-9.]+m?s before  \(exit 138\)$' "$ERR"
lacks 'and no note looks for another sender' "$ERR" 'did not send'
hn_of report "$(newest)"
matches 'so does the report, at its time' "$TMP/of.out" '^ +[0-9.]+m?s +signal +hnlaunch signal \(pid [0-9]+\) sent SIGUSR1$'

comes_up 'a rank that ignores TERM runs' 1 start --local 1 sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'
hn_of stop --grace 100ms "$(newest)"
finish
has 'stop --grace replaces the grace time' "$ERR" '1 rank had to be killed'

# --- a run whose hnlaunch is killed -----------------------------------------------------------
comes_up 'a rank runs' 1 start --local 1 sh -c 'echo up; exec sleep 600'
id=$(newest)
"$HNLAUNCH" wait "$id" >/dev/null 2>"$TMP/wait.err" &
waiting=$!
ok 'wait is connected' wait_for sh -c "[ \$(grep -c '/$id.sock' /proc/net/unix) -ge 2 ]"
kill -KILL "$PID"
wait $waiting
is 'hnlaunch is killed: wait exits with 125' $? 125
matches 'and says so' "$TMP/wait.err" "error\[HN803\]: run $id has ended without a verdict"
finish
ok 'ps shows that it was killed' wait_for runs_is killed
socket_is_gone() { "$HNLAUNCH" ps >/dev/null 2>&1 && [[ ! -e $XDG_RUNTIME_DIR/hnlaunch/$id.sock ]]; }
ok 'its socket is removed' wait_for socket_is_gone
hn_of stop "$id"
matches 'and it cannot be stopped' "$TMP/of.err" "error\[HN802\]: run $id has ended: its hnlaunch was killed"
hn_of report "$id"
matches 'the report has the last event' "$TMP/of.out" '^no verdict: hnlaunch was killed; the last event, rank\.[a-z]+, came [0-9.ms]+ after its start$'
killed=$id

# --- records that others could have written ---------------------------------------------------
mkdir shared && chmod 1777 shared
hn --local 1 --log-dir shared true
lacks 'a folder with the sticky bit is as good as the own one' "$ERR" HN824
chmod 0777 shared
hn --local 1 --log-dir shared sh -c 'echo mine; exit 3'
has 'a --log-dir that others may write is told' "$ERR" "warning[HN824]: others may replace the records of this run: they may write in shared (mode 0777)"
id=$(newest)
hn logs "$id"
has 'its records are read as long as they are the own ones' "$OUT" mine
mv "shared/$id" shared/gone && mkdir -m 777 "shared/$id" && chmod 777 "shared/$id"
echo precious >paper.tex
cat >"shared/$id/run.json" <<END
{"run": "$id", "host": "$(uname -n)", "socket": "$PWD/paper.tex", "started": "2026-01-01T00:00:00", "argv": ["x"], "line": ["--local", "1", "touch", "$PWD/owned"]}
END
for command in ps logs report rerun wait; do
    # shellcheck disable=SC2046
    hn_of $command $([ $command = ps ] || echo "$id")
done
is 'records in a folder that others may write are not used: no file is removed' "$(cat paper.tex)" precious
is 'and no command line is started' "$(ls owned 2>&1 | grep -c 'No such')" 1
has 'which is told with the reason' "$TMP/of.err" "others may write in $RUNS/$id (mode 0777)"
is 'with exit code 66' "$RC_OF" 66
chmod 755 "shared/$id"
hn_of ps
is 'a socket that is none stays, also where the records are trusted' "$(cat paper.tex)" precious
mkdir -m 700 own && echo precious >own/x.sock
sed -i 's/paper.tex/own\/x.sock/' "shared/$id/run.json"
sleep 2.1 # a younger one would stay: it may be just being made
hn_of ps
is 'also with the name of a socket, in the own folder' "$(cat own/x.sock)" precious
python3 -c 'import os, socket, sys; os.unlink(sys.argv[1]); socket.socket(socket.AF_UNIX).bind(sys.argv[1])' own/x.sock
sleep 2.1
hn_of ps
is 'and a socket there, which nobody listens at, is removed' "$(ls own)" ''
rm -r "shared/$id"; mkdir -m 700 "shared/$id"; mkfifo "shared/$id/run.json"
ok 'a FIFO among the records does not hang ps' timeout 20 "$HNLAUNCH" ps
rm -r shared

# --- a run that cannot be reached -------------------------------------------------------------
hn --detach --log-dir kept --local 1 sh -c 'echo kept; until [ -e end ]; do sleep 0.1; done'
kept=$(cat "$OUT")
ln -s "$HNLAUNCH" other-name
run ./other-name --detach --local 1 sh -c 'echo result; until [ -e end ]; do sleep 0.1; done; exit 4'
id=$(cat "$OUT")
rm -r "$XDG_RUNTIME_DIR/hnlaunch"
is 'a run without its socket is silent' "$(ps_field "[r['state'] for r in runs if r['run'] == '$id']")" "['silent']"
mkdir "$RUNS/reused"
python3 - "$RUNS/$killed/run.json" "$RUNS/$id/run.json" >"$RUNS/reused/run.json" <<'END'
import json, sys
old, living = (json.load(open(name)) for name in sys.argv[1:])
print(json.dumps({**old, "run": "reused", "pid": living["pid"]}))
END
is 'a run whose process number another hnlaunch has is dead' "$(ps_field "[r['state'] for r in runs if r['run'] == 'reused']")" "['killed']"
hn_of wait reused
is 'nobody waits for that other one' "$RC_OF $(grep -c 'run reused has ended: its hnlaunch was killed' "$TMP/of.err")" '69 1'
rm -r "$RUNS/reused"
hn_of stop "$id"
is 'it cannot be stopped: 69' "$RC_OF" 69
has 'which is told' "$TMP/of.err" "error[HN803]: run $id does not answer: cannot connect to"
matches 'with the way to stop it' "$TMP/of.err" 'help: kill [0-9]+ stops it'
hn -o log.keep=1 --local 1 true
ok 'newer runs leave its records' test -s "$RUNS/$id/output"
ok 'and the link to those elsewhere' test -s "$RUNS/$kept/run.json"
"$HNLAUNCH" wait "$id" >/dev/null 2>"$TMP/wait.err" &
waiting=$!
touch end
wait $waiting
is 'wait knows its end' $?:"$(grep -c 'exited with code 4' "$TMP/wait.err")" 4:1
"$HNLAUNCH" wait "$kept" 2>/dev/null
is 'also in --log-dir' $? 0
hn logs "$id"
has 'its output is there' "$OUT" result
comes_up 'a rank with a long command line runs' 1 start --local 1 sh -c 'echo up; exec sleep 600' "$(seq 1 20000)"
ok 'ps shows it' wait_for runs_is running
hn_of stop "$(newest)"
is 'and it can be stopped' "$RC_OF" 0
finish
comes_up 'a rank runs again' 1 start --local 1 sh -c 'echo up; exec sleep 600'
id=$(newest)
is 'connections that ask nothing, or half of it, keep nobody out' "$(python3 - "$XDG_RUNTIME_DIR/hnlaunch/$id.sock" "$HNLAUNCH" <<'END'
import json, socket, subprocess, sys
open_ones = [socket.socket(socket.AF_UNIX) for _ in range(200)]
for i, s in enumerate(open_ones):
    s.connect(sys.argv[1])
    s.sendall(b'{"do":' if i % 2 else b"")
print(json.loads(subprocess.run([sys.argv[2], "ps", "--json"], capture_output=True).stdout)["runs"][0]["state"])
END
)" running
is 'with too many connections it is silent, not killed' "$(python3 - "$XDG_RUNTIME_DIR/hnlaunch/$id.sock" "$HNLAUNCH" <<'END'
import json, socket, subprocess, sys
open_ones = [socket.socket(socket.AF_UNIX) for _ in range(64)]
for s in open_ones:
    s.connect(sys.argv[1])
    s.sendall(b'{"do":"wait"}\n')
print(json.loads(subprocess.run([sys.argv[2], "ps", "--json"], capture_output=True).stdout)["runs"][0]["state"])
END
)" silent
hn_of stop "$id"
is 'when they are gone it can be stopped' "$RC_OF" 0
finish

# --- a run that does not answer ---------------------------------------------------------------
comes_up 'a rank runs once more' 1 start --local 1 sh -c 'echo up; exec sleep 600'
id=$(newest)
kill -STOP "$PID"
hn_of ps
matches 'a hnlaunch that is suspended is silent' "$TMP/of.out" "^$id .* silent  "
hn_of stop "$id"
is 'a hnlaunch that is stopped: 69' "$RC_OF" 69
has 'which is told' "$TMP/of.err" "error[HN803]: run $id does not answer"
ok 'also when it takes no more connections' timeout -k 1 60 python3 - "$XDG_RUNTIME_DIR/hnlaunch/$id.sock" "$HNLAUNCH" "$id" <<'END'
import json, socket, subprocess, sys
open_ones = []
try:
    while True:
        open_ones.append(socket.socket(socket.AF_UNIX))
        open_ones[-1].setblocking(False)
        open_ones[-1].connect(sys.argv[1])
except BlockingIOError:
    pass
runs = json.loads(subprocess.run([sys.argv[2], "ps", "--json"], stdout=subprocess.PIPE, check=True).stdout)["runs"]
assert [r["state"] for r in runs if r["run"] == sys.argv[3]] == ["silent"], runs
END
kill -CONT "$PID"
finish_by TERM
cp -r "$RUNS/$id" "$TMP/copy"

# --- what cannot be done ----------------------------------------------------------------------
hn_of stop zzzzz
is 'no such run' "$RC_OF" 66
matches 'is told, with the newest runs' "$TMP/of.err" "error\[HN801\]: there is no run zzzzz"
has 'one of them' "$TMP/of.err" "$id  stopped"
mkdir "$RUNS/${id}x"
cp "$RUNS/$id"/* "$RUNS/${id}x"
hn_of stop "${id:0:4}"
matches 'several runs begin so' "$TMP/of.err" "error\[HN801\]: 2 runs begin with ${id:0:4}"
is 'they are listed, and no other' "$(grep -c '^    | ' "$TMP/of.err"):$(grep -c "^    | $id" "$TMP/of.err")" 2:2
rm -r "$RUNS/${id}x"
hn_of logs 0-3
is 'logs of ranks that stand in the place of the run: 66' "$RC_OF" 66
is 'the option, and no table of runs' "$(cat "$TMP/of.err")" 'error[HN801]: there is no run 0-3
    = help: ranks 0-3 of the newest run: hnlaunch logs --ranks 0-3
    = help: hnlaunch ps lists all runs'
hn_of logs 99999
matches 'of one rank, too' "$TMP/of.err" 'help: rank 99999 of the newest run: hnlaunch logs --ranks 99999$'
cp -r "$RUNS/$id" "$RUNS/70707"
sed -i "s/\"run\": \"$id\"/\"run\": \"70707\"/" "$RUNS/70707/run.json"
hn_of logs 7070
is 'a rank that begins the name of a run: that run' "$RC_OF:$(cat "$TMP/of.out")" 0:up
is 'and the option for the rank' "$(head -n 1 "$TMP/of.err")" \
    "hnlaunch: run 70707, whose name begins with 7070; rank 7070 of the newest run: hnlaunch logs --ranks 7070"
hn_of logs -q 7070
is 'which -q leaves out' "$RC_OF:$(cat "$TMP/of.err")" 0:
rm -r "$RUNS/70707"
hn_of logs node002
matches 'logs of a host: the option' "$TMP/of.err" 'help: if it is a host: hnlaunch logs --hosts node002'
hn_of logs --head 5
matches 'logs --head: the program for it' "$TMP/of.err" 'help: hnlaunch logs | head -n N'
hn_of report --html
matches 'a value that is missing: the help on the option' "$TMP/of.err" 'help: hnlaunch help html tells what it takes'
hn_of config run.timeout 5
is 'config does not set' "$RC_OF" 64
matches 'and says where to' "$TMP/of.err" 'below \[run\]: timeout = 5'
hn_of signal TERM
matches 'no run goes on that could be named' "$TMP/of.err" 'help: hnlaunch signal RUN TERM; hnlaunch ps lists your runs'
for words in "stop a b" signal "signal $id" "wait a b" "ps $id" "rerun a b"; do
    # shellcheck disable=SC2086
    hn_of $words
    is "$words: wrong words" "$RC_OF" 64
    matches "$words: the form is shown" "$TMP/of.err" "= note: usage: hnlaunch ${words%% *} "
done

# --- a command without a run ------------------------------------------------------------------
for command in stop wait; do
    hn_of "$command"
    is "$command: none goes on" "$RC_OF" 66
    matches "$command: which is told, with the newest runs" "$TMP/of.err" 'error\[HN801\]: none of your runs goes on here'
done
comes_up 'one run goes on' 1 start --local 1 sh -c 'echo up; exec sleep 600'
id=$(newest)
hn_of why
is 'why names the run that it has chosen' "$(head -n 1 "$TMP/of.err")" "hnlaunch: run $id: sh -c 'echo up; exec sleep 600'"
hn_of why -q
is 'why -q does not' "$(wc -c <"$TMP/of.err")" 0
hn_of why "$id"
is 'nor does a command that was given one' "$(wc -c <"$TMP/of.err")" 0
hn_of top
is 'the only run is named by the first line of top' "$(head -n 1 "$TMP/of.out" | grep -oE '^run [a-z0-9]+')" "run $id"
is '... and not once more' "$(wc -c <"$TMP/of.err")" 0
"$HNLAUNCH" --local 1 sleep 600 >second.out 2>&1 &
second=$!
two_go_on() { [[ $(ps_field 'sum(r["running"] for r in runs)') == 2 ]]; }
ok 'two go on' wait_for two_go_on
other=$(newest)
for command in stop wait; do
    hn_of "$command"
    is "$command: two are too many" "$RC_OF" 64
    matches "$command: which is told" "$TMP/of.err" "error\[HN808\]: .$command. needs a run: 2 go on"
    is "$command: with both" "$(grep -cE "^ +\| ($id|$other)  running  " "$TMP/of.err")" 2
done
hn_of why
matches 'why takes the newer one, and says so' "$TMP/of.err" "^hnlaunch: run $other, the newest of 2: sleep 600"
hn_of top
matches 'so does top' "$TMP/of.err" "^hnlaunch: run $other, the newest of 2: sleep 600"
hn_of stop "$other"
wait "$second"
hn_of stop
is 'the only run is stopped' "$RC_OF" 0
matches 'and named' "$TMP/of.err" "^hnlaunch: run $id: sh -c"
finish
hn_of attach "$id"
is 'attach to a run that has ended: its code' "$RC_OF" 143
matches 'that it has ended, and how, is told first' <(head -n 1 "$TMP/of.err") "^hnlaunch: run $id has ended: stopped \(143\); .*hnlaunch logs $id prints all"
is 'then comes its output' "$(cat "$TMP/of.out")" up

mkdir "$RUNS/there"
sed 's/"host": "[^"]*"/"host": "login7"/; s/"run": "[^"]*"/"run": "there"/' "$TMP/copy/run.json" >"$RUNS/there/run.json"
hn_of ps
matches 'a run of another machine that shares the home is told' "$TMP/of.out" '^there .* login7 .* on login7 '
hn_of stop there
is 'it cannot be stopped from here' "$RC_OF" 69
matches 'the message names the machine' "$TMP/of.err" 'error\[HN804\]: run there is not on this machine, but on login7'

# --- once more --------------------------------------------------------------------------------
mkdir sub
(cd sub && "$HNLAUNCH" -x FLAVOUR=first --local 2 --label none sh -c 'echo "$FLAVOUR $RANK in ${PWD##*/}"' >/dev/null 2>&1)
export FLAVOUR=second
hn_exits 'rerun' 0 rerun
is 'gives the line once more, in its folder, with variables of this shell' "$(sort "$OUT")" "$(printf 'second 0 in sub\nsecond 1 in sub')"
has 'and shows it' "$ERR" "once more, in $PWD/sub: hnlaunch -x FLAVOUR --local 2"
again=$(sed -n 's/^hnlaunch: once more, in [^:]*: hnlaunch //p' "$ERR")
is 'quoted for a shell' "$(cd sub && eval "'$HNLAUNCH' $again" 2>/dev/null | sort)" "$(printf 'second 0 in sub\nsecond 1 in sub')"
hn_exits 'one rank of it' 0 rerun --ranks 1
is 'has its number and its world' "$(cat "$OUT")" 'second 1 in sub'
has 'only the rank that ran is counted' "$ERR" 'finished: 1 rank exited 0'
has 'by an option in front of the program' "$ERR" 'none --ranks 1 sh -c'
has 'that the other rank does not run is told' "$ERR" 'note: 1 of 2 ranks does not run the program (--ranks): a rank that waits for it'
hn --on-failure continue --ranks 2,5-6 --local 8 --wrap 'env WRAP=yes' -- sh -c 'echo "$RANK of $WORLD_SIZE $WRAP"; exit $((RANK == 6 ? 4 : 0))' 'a b'
exits '--ranks of a run: the exit code is theirs' 4
is 'these ranks run the program' "$(cut -d'|' -f2 "$OUT" | sort | xargs)" '2 of 8 yes 5 of 8 yes 6 of 8 yes'
has 'the ranks that do not run are counted' "$ERR" 'note: 5 of 8 ranks do not run the program (--ranks)'
hn rerun --ranks 5
is 'rerun replaces them' "$?:$(cut -d'|' -f2 "$OUT" | xargs)" '0:5 of 8 yes'
hn rerun --ranks 2
is 'and so in the line that is shown' "$(grep -o -- '--ranks [0-9,-]*' "$ERR" | xargs)" '--ranks 2'
LD_LIBRARY_PATH=$PLAIN hn --ranks 2 --local 4 "$PLAIN/examples/allreduce"
verdict_has 'a rank that does not run is no cause' 'failed after' ': rank 2 on localhost' 'has already exited'
hn_exits 'a rank that does not exist' 64 --ranks 8 --local 8 true
has 'the next step fits the job' "$ERR" 'for example --ranks 0-1'
matches 'is told' "$ERR" 'error\[HN[0-9]+\].*--ranks'
hn --ranks 0-1 --local 2 true
lacks 'of all ranks nothing is told' "$ERR" note:
hn -q --ranks 0 --local 2 true
is 'nor with -q' "$(cat "$ERR")" ''
(cd sub && "$HNLAUNCH" -x FLAVOUR=first --local 2 --label none sh -c 'echo "$FLAVOUR $RANK in ${PWD##*/}"' >/dev/null 2>&1)
hn rerun --without-bad "$(newest)"
matches 'no host has failed' "$ERR" 'error\[HN807\]: no host of run .* is known to have failed'
hn -w 'localhost,127.0.0.1' --oversubscribe sh -c 'exit $NODE_RANK'
bad=$(newest)
hn rerun --without-bad "$bad"
has 'a host that has failed is left out' "$ERR" 'hnlaunch -o run.leave_out=127.0.0.1 -w'
has 'in one line' "$ERR" 'hnlaunch: without 127.0.0.1 (run.leave_out)'
exits 'and the run is well' 0
hn_exits 'a start without a host that cannot be reached' 0 -w localhost,nowhere.invalid --min-nodes 1 true
hn rerun --without-bad
has 'such a host is left out, too' "$ERR" 'hnlaunch -o run.leave_out=nowhere.invalid -w'
exits 'and the run starts' 0
rm -r sub
hn_exits 'the folder is gone' 66 rerun "$(ps_field '[r["run"] for r in runs if r["directory"].endswith("/sub")][0]')"
matches 'which is told' "$ERR" 'error\[HN807\]: cannot go to .*/sub, where run .* was started'
echo '{"run":"there"}' >"$RUNS/there/run.json"
hn rerun there
matches 'records without a line are told' "$ERR" 'error\[HN807\]: the records of run there have no command line'

# --- where records go -------------------------------------------------------------------------
before=$(ls "$RUNS" | wc -l)
hn --log-dir none --local 1 true
is '--log-dir none: no records' "$(ls "$RUNS" | wc -l)" "$before"
hn --log-dir logs --local 1 echo here
id=$(newest)
is '--log-dir: a link leads there' "$(readlink "$RUNS/$id")" "$PWD/logs/$id"
is 'and ps shows the run' "$(ps_field 'runs[0]["state"]')" finished
echo mine >"$RUNS/there/mine"
hn -o log.keep=3 --local 1 true
is 'log.keep: the newest stay, and one of another machine that may go on' "$(ls "$RUNS" | grep -vc there)" 3
ok 'a file of the user stays' test -e "$RUNS/there/mine"
ok 'what a link leads to stays' test -e "logs/$id/run.json"

# --- records that cannot be kept --------------------------------------------------------------
: >"$TMP/file"
hn_exits 'a run with records' 0 -x XDG_STATE_HOME --local 2 --label none sh -c 'exit 0'
lacks 'has no warning' "$ERR" 'warning'
run env XDG_STATE_HOME="$TMP/file" "$HNLAUNCH" --local 2 --label none echo fine
exits 'the folder cannot be made: the exit code is the same' 0
matches 'a warning tells' "$ERR" "warning\[HN805\]: the records of this run are incomplete: cannot make $TMP/file/hnlaunch: Not a directory"
is 'the output is shown' "$(xargs <"$OUT")" 'fine fine'
hn_exits 'with records' 124 -x XDG_STATE_HOME --local 1 --timeout 1s sleep 100
has 'a failure has the commands that come next' "$ERR" 'next: hnlaunch report '
has 'and the file with the stacks' "$ERR" '/hang.txt'
hn_exits 'a rank that has told why' 5 --local 1 sh -c 'echo no shard 3 >&2; exit 5'
has 'its logs are offered' "$ERR" ' · logs '
hn_exits 'and one that has not' 5 --local 1 sh -c 'exit 5'
lacks 'no logs are' "$ERR" ' · logs '
exits 'without records: the exit code is the same' 124 run env XDG_STATE_HOME="$TMP/file" "$HNLAUNCH" --local 1 --timeout 1s sleep 100
lacks 'no command is named that would not find the run' "$ERR" 'next: '
lacks 'nor a file that is not there' "$ERR" 'hang.txt'
exits 'without a home' 0 run env -u HOME -u XDG_STATE_HOME "$HNLAUNCH" --local 1 true
lacks 'nothing is recorded, and nothing is said' "$ERR" 'warning'
exits 'without a runtime folder' 0 run env XDG_RUNTIME_DIR="$TMP/none" "$HNLAUNCH" --local 1 true
mkdir -m 755 "$TMP/foreign"
if chown 65534 "$TMP/foreign" 2>/dev/null; then
    run env XDG_RUNTIME_DIR="$TMP/foreign" "$HNLAUNCH" --local 1 true
    lacks 'the runtime folder of another user is passed over' "$ERR" 'HN806'
    is 'and nothing is made in it' "$(ls -A "$TMP/foreign")" ''
else
    skip 'the runtime folder of another user' 'needs root'
fi
mkdir -m 700 "$TMP/taken"
: >"$TMP/taken/hnlaunch"
exits 'no socket can be made: the run goes on' 0 run env XDG_RUNTIME_DIR="$TMP/taken" "$HNLAUNCH" --local 1 true
matches 'which a warning tells' "$ERR" "warning\[HN806\]: hnlaunch ps and stop cannot see this run: $TMP/taken/hnlaunch is not a folder"
if [[ $(id -u) == 0 ]]; then
    mkdir -m 700 "$TMP/taken2" "$TMP/taken2/hnlaunch"
    chown 65534 "$TMP/taken2/hnlaunch"
    run env XDG_RUNTIME_DIR="$TMP/taken2" "$HNLAUNCH" --local 1 true
    matches 'nor in the folder of another user' "$ERR" "warning\[HN806\].* belongs to another user"
else
    skip "another user's folder" 'only root can give a folder away'
fi

# Ranks that write faster than what is kept: the run is not held up, and what is missing is marked.
hn_exits 'much output at once' 0 --local 1 sh -c 'head -c 100000000 /dev/zero | tr "\0" x; echo; sleep 0.3; echo last'
is 'is shown' "$(head -c 100000000 "$OUT" | tr -d x | wc -c) $(tail -n 1 "$OUT")" '0 last'
lacks 'no warning is needed for that' "$ERR" 'warning['
id=$(newest)
is 'pieces and gaps are all of it' "$(python3 - "$RUNS/$id/output" <<'END'
import sys
data, at, total = open(sys.argv[1], "rb").read(), 0, 0
while at < len(data):
    end = data.index(b"\n", at)
    us, rank, stream, size = data[at:end].split()
    total += int(size)
    at = end + 1 + (int(size) + 1 if rank != b"-" else 0)
print(total)
END
)" "$(stat -c %s "$OUT")"

full=$TMP/full
mkdir "$full"
if mount -t tmpfs -o size=200k none "$full" 2>/dev/null; then
    exits 'a full disk: the exit code is the same' 0 run env XDG_STATE_HOME="$full" "$HNLAUNCH" --local 1 sh -c 'seq 100000'
    is 'the output is shown in full' "$(tail -n 1 "$OUT")" 100000
    matches 'and a warning tells' "$ERR" 'warning\[HN805\]: .*cannot write .*/output: No space left on device'
    is 'its end is recorded all the same' "$(XDG_STATE_HOME=$full "$HNLAUNCH" ps 2>&1 | grep -c ' finished ')" 1
    run env XDG_STATE_HOME="$full" "$HNLAUNCH" logs
    is 'logs has the beginning of the output' "$(head -n 2 "$OUT" | xargs)" '1 2'
    is 'and says that the rest is missing' "$(tail -n 1 "$OUT")" '(the output behind this was not kept here)'
    umount "$full"
else
    skip 'a full disk' 'no mount'
fi
if dd if=/dev/zero of="$TMP/disk" bs=1M count=0 seek=16 2>/dev/null && mkfs.ext4 -q "$TMP/disk" 2>/dev/null && mount -o loop "$TMP/disk" "$full" 2>/dev/null; then
    fsfreeze --freeze "$full"
    XDG_STATE_HOME=$full start --local 2 --label none echo fine
    ok 'a disk that does not answer: the run ends all the same' wait_for grep -q 'finished: 2 ranks exited 0' "$ERR"
    matches 'and a warning tells' "$ERR" 'warning\[HN805\]: .* is too slow'
    fsfreeze --unfreeze "$full"
    exits 'the exit code is the same' 0 finish
    is 'so is the output' "$(xargs <"$OUT")" 'fine fine'
    ok 'the disk is left' wait_for umount "$full"
else
    skip 'a disk that does not answer' 'no loop device'
fi
nothing_left 'nothing is left'
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch logs` prints the recorded output of a run: whole lines, in the order in which they came, chosen by rank,
# host, stream, pattern and time, folded, and as they come.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
matches() { ok "$1" grep -qaE -- "$3" "$2"; } # NAME FILE ERE
newest() { "$HNLAUNCH" ps --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])'; }

hn_exits 'without a run' 66 logs
has 'it is told' "$ERR" 'error[HN801]: there is no run'

hn --local 4 sh -c 'printf "be"; sleep 0.05; echo "gun"; echo "rank $RANK"; echo "err $RANK" >&2; printf end'
cp "$OUT" live
hn_exits 'the newest run' 0 logs
is 'all lines are there, put together' "$(grep -c '| begun$' "$OUT") $(grep -c '| rank [0-3]$' "$OUT") $(grep -c '| err [0-3]$' "$OUT") $(grep -c '| end$' "$OUT")" '4 4 4 4'
is 'in the order of each stream, with its rank' "$(grep '^2 | [^e]' "$OUT" | xargs)" '2 | begun 2 | rank 2'
is 'nothing is added' "$(wc -l <"$OUT")" 16
hn logs --ranks 1,3 --stderr
is 'ranks and a stream' "$(sort "$OUT")" "$(printf '1 | err 1\n3 | err 3')"
hn logs --grep 'rank [12]'
is 'a pattern' "$(sort "$OUT")" "$(printf '1 | rank 1\n2 | rank 2')"
hn logs --fold --grep 'begun|end'
is 'equal lines of several ranks once' "$(cat "$OUT")" "$(printf '0-3 | begun\n0-3 | end')"
hn logs --timestamps --grep begun --ranks 0
matches 'times' "$OUT" '^[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{3} 0 \| begun$'
hn logs --since 1h --ranks 0
is 'of the last hour' "$(wc -l <"$OUT")" 4
hn_exits 'a wrong pattern' 64 logs --grep 'a('
has 'is told' "$ERR" 'error[HN810]: cannot use the pattern a(: '
hn_exits 'a pattern with a back reference' 64 logs --grep '(a*)\1'
has 'is told' "$ERR" 'error[HN812]: cannot use the pattern (a*)\1: it has a back reference'
hn_exits 'a rank that is not there' 66 logs --ranks 7
has 'is told, with those that are' "$ERR" 'it has ranks 0 to 3'
hn --local 1 --progress none sh -c 'echo early; sleep 6; echo late; exit 3'
hn logs --around failure
is '--around failure: the lines before it' "$(xargs <"$OUT")" late
hn logs --around 0.5s
is '--around TIME: those of the time' "$(xargs <"$OUT")" early
hn logs --around 1m05.5s
is '... and no others' "$RC $(wc -l <"$OUT")" '0 0'
matches 'without a line the last one before is told' "$ERR" "^note: no chosen line is from 1m00s to 1m10s after the start; the last one before came after [0-9.]+s: hnlaunch logs --tail 20 $(newest)$"
hn logs --around 1m05.5s --grep nothing
has '... or that there is none' "$ERR" "note: no chosen line is from 1m00s to 1m10s after the start, and none from before; hnlaunch logs $(newest) shows all"
hn_exits 'no time is refused' 64 logs --around soon
has '... with the form' "$ERR" 'must be `failure`, or a time of the run such as 7.5s or 1m07s, up to 3660d, got `soon`'
hn_exits '--around and --follow exclude each other' 64 logs --around failure -f
hn --local 1 true
hn_exits 'a run that has not failed' 66 logs --around failure
has '... is told' "$ERR" "error[HN809]: run $(newest) has not failed"
hn_exits 'an option of logs elsewhere' 64 --since 1h --local 1 true
has 'is told, too' "$ERR" 'error[HN704]: --since is an option of logs'
hn --local 2 sh -c 'if [ "$RANK" = 0 ]; then echo a; echo b; touch first; else until [ -e first ]; do sleep 0.01; done; echo b; echo a; fi'
hn logs --fold
is 'folded lines keep the order of each rank' \
    "$(grep -E '^(0|0-1) ' "$OUT" | sed 's/.* //' | xargs) $(grep -E '^(1|0-1) ' "$OUT" | sed 's/.* //' | xargs)" 'a b b a'

hn -w 'localhost:2,127.0.0.1:2' --label none sh -c 'echo "$RANK"'
hn logs --host 127.0.0.1
is 'a host, whose name stands before the rank' "$(sort "$OUT")" "$(printf '127.0.0.1:2 | 2\n127.0.0.1:3 | 3')"
hn logs --fold --ranks 0,2
is 'with --fold, too' "$(sort "$OUT")" "$(printf '127.0.0.1:2 | 2\nlocalhost:0 | 0')"
hn_exits 'a host that is not there' 66 logs --host nowhere
has 'it is told with those that are there' "$ERR" "error[HN809]: run $(newest) has no host nowhere"
has 'by name' "$ERR" 'it has localhost, 127.0.0.1'
hn --local 1 sh -c 'echo alone; exec 2>&-; exit 5'
hn logs
is 'a lone rank has no prefix' "$(cat "$OUT")" alone

# --- a terminal ---------------------------------------------------------------------------------
if command -v script >/dev/null; then
    on_terminal() { script -qec "$(printf '%q ' "$HNLAUNCH" "$@")" /dev/null 2>&1 | tr -d '\r' >"$OUT"; }
    hostile='[ $RANK = 1 ] || printf "\033]0;OWNED\007\033]52;c;aGFjaw==\007\302\2332J\033[2J\033[31mred\033[0m\nx\r1 | forged\n"'
    hn --local 2 sh -c "$hostile"
    on_terminal logs -q
    is 'only text and colours reach a terminal, and no line is forged' "$(cat -v "$OUT")" "$(printf '0 | ^[[31mred^[[0m\n0 | 1 | forged')"
    on_terminal logs --raw
    has 'but with --raw' "$OUT" $'\033]0;OWNED\007'
    on_terminal logs -q --timestamps --fold
    is 'also with --fold and times' "$(sed -E 's/^[0-9:.]{12}/T/' "$OUT" | cat -v)" "$(printf 'T 0 | ^[[31mred^[[0m\nT 0 | 1 | forged')"
    hn logs
    has 'elsewhere the bytes are those of the rank' "$OUT" $'\033]0;OWNED\007'
    # The same from records that somebody has changed.
    hn -w 'localhost:1,127.0.0.1:1' echo said
    python3 - "$XDG_STATE_HOME/hnlaunch/runs/$(newest)" <<'END'
import json, sys
escape = "\033]0;OWNED\007\u009b2J"
with open(sys.argv[1] + "/run.json") as f:
    run = json.load(f)
for node in run["nodes"]:
    node["host"] += escape
run["argv"] = [escape]
with open(sys.argv[1] + "/run.json", "w") as f:
    json.dump(run, f)
text = escape.encode() + b"\n"
with open(sys.argv[1] + "/output", "ab") as f:
    f.write(b"9 -1 err %d\n" % len(text) + text + b"\n")
END
    for command in ps logs "attach $(newest)" report wait; do
        # shellcheck disable=SC2086
        on_terminal ${command/wait/wait $(newest)}
        ok "$command prints something" test -s "$OUT"
        ok "$command prints no escape sequence of a record" not grep -qaP '\x1b\]|\xc2\x9b' "$OUT"
    done
else
    skip 'logs on a terminal' 'script is not installed'
fi
hn --local 1 true $'\033]0;OWNED\007'
hn_exits 'a command line with an escape sequence runs again' 0 rerun
lacks 'and is told without it' "$ERR" $'\033'

hn --log-dir logs --local 2 sh -c 'echo "here $RANK"; echo "err $RANK" >&2; printf end'
hn_exits 'with --log-dir' 0 logs
is 'the output is printed' "$(sort "$OUT" | xargs)" '0 | end 0 | err 0 0 | here 0 1 | end 1 | err 1 1 | here 1'
for option in --follow '--since 1h' --timestamps '--tail 6'; do
    # shellcheck disable=SC2086
    hn logs $option
    is "$option, too" "$RC $(wc -l <"$OUT")" '0 6'
done
hn logs --fold
is '--fold, too' "$(grep -c '^\[0-1\]\|^0-1\|^[01] ' "$OUT")" "$(wc -l <"$OUT")"
start --log-dir logs --local 1 --label none sh -c 'echo first; until [ -e on ]; do sleep 0.05; done; echo second'
ok 'a rank has written' wait_for lines_are "$OUT" 1
: >followed
"$HNLAUNCH" logs -f >followed 2>&1 &
follower=$!
ok '-f shows it' wait_for lines_are followed 1
touch on
finish
wait $follower
is 'and goes on to the end' "$(head -n 2 followed | xargs)" 'first second'
hn --log-dir logs --local 2 sh -c 'echo "here $RANK"; echo "err $RANK" >&2; printf end'
rm "logs/$(newest)/output"
hn logs
is 'without that file those of the ranks are printed' "$(xargs <"$OUT")" '0 | here 0 0 | end 0 | err 0 1 | here 1 1 | end 1 | err 1'
hn logs --ranks 1 --stderr
is 'chosen as others' "$(cat "$OUT")" '1 | err 1'
hn_exits 'a host that is not there' 66 logs --grep here --host nowhere
for option in --follow '--since 1h' --timestamps --fold; do
    # shellcheck disable=SC2086
    hn_exits "$option" 66 logs $option
    has "$option: the folder is named" "$ERR" "error[HN809]: the output of run $(newest) is in $PWD/logs/"
    has "$option: and the option" "$ERR" "leave out ${option% *}"
done
hn --local 2 --label none sh -c 'printf "half"; sleep 0.05; echo " whole"'
output=$XDG_STATE_HOME/hnlaunch/runs/$(newest)/output
{ head -n 2 "$output" && echo '20000 - gap 12345' && tail -n +3 "$output"; } >changed
cp changed "$output"
printf '99999999 0 out 500\ncut off' >>"$output"
hn logs
is 'a gap is told in its place, and ends the lines before it; a piece that is cut off is told' \
    "$(sed 's/^[01] |/R |/' "$OUT" | sort | xargs)" '(12345 bytes of output were not kept here) (the output behind this was not kept here) R | whole R | half R | half whole'
hn logs --json
is 'as JSON, too' "$(grep -o '"lost":.*' "$OUT" | xargs)" 'lost:12345} lost:null}'
ok 'which can be read' python3 -c 'import json, sys
for line in open(sys.argv[1]): json.loads(line)' "$OUT"
hn --local 1 sh -c 'echo new'
folder=$XDG_STATE_HOME/hnlaunch/runs/$(newest)
printf '1 0 out 4\nold\n\n' >"$folder/output.old"
hn logs
is 'the file of output before comes first' "$(xargs <"$OUT")" 'old new'

# As it comes.
comes_up 'two ranks have written' 2 start --local 2 --label none sh -c 'echo first; until [ -e go ]; do sleep 0.05; done; echo second'
: >followed
"$HNLAUNCH" logs -f >followed 2>&1 &
follower=$!
ok '-f shows what was written' wait_for lines_are followed 2
touch go
finish
wait $follower
is 'and what comes, until the run has ended' "$? $(grep -c '| first$' followed) $(grep -c '| second$' followed)" '0 2 2'
if [[ $(id -u) == 0 ]] && unshare --uts true 2>/dev/null; then
    start --local 1 --label none sh -c 'echo first; until [ -e later ]; do sleep 0.05; done; echo second'
    ok 'a rank of this machine has written' wait_for lines_are "$OUT" 1
    : >followed
    unshare --uts sh -c 'hostname container && exec "$0" logs -f' "$HNLAUNCH" >followed 2>&1 &
    follower=$!
    ok 'a container that reaches its socket shows it' wait_for lines_are followed 1
    touch later
    finish
    wait $follower
    is 'and goes on to the end, too' "$? $(head -n 2 followed | xargs)" '0 first second'
else
    skip 'a container that reaches the socket follows' 'needs root (a namespace for the host name)'
fi
comes_up 'a rank is up' 1 start --local 1 sh -c 'echo up; exec sleep 600'
: >followed
"$HNLAUNCH" logs -f >followed 2>&1 &
follower=$!
ok 'its line is shown' wait_for lines_are followed 1
finish_by KILL
wait $follower
is '-f ends when hnlaunch is killed' $? 0
hn --local 1 sh -c 'yes "a line of output" | head -n 20000'
run sh -c '"$0" logs | head -n 1' "$HNLAUNCH"
is 'a reader that leaves' "$(cat "$OUT")" 'a line of output'

# --- the last lines ---------------------------------------------------------------------------
hn --local 2 sh -c 'for i in 1 2 3; do echo "line $i"; done; [ $RANK = 0 ] || { until [ -e last ]; do sleep 0.01; done; echo bad >&2; exit 3; }
    sleep 0.5; touch last; sleep 600'
id=$(newest)
hn logs "$id" -n 1
is '-n 1 behind the run: its last line' "$(cat "$OUT")" '1 | bad'
matches 'the verdict follows on standard error' "$ERR" '^hnlaunch: failed after .*: rank 1 on localhost exited with code 3: bad  \(exit 3\)$'
is 'and nothing else' "$(wc -l <"$ERR")" 1
hn logs --tail 2 --ranks 0 --quiet
is '--tail counts the lines that are chosen' "$(cat "$OUT")" $'0 | line 2\n0 | line 3'
is '--quiet: no verdict' "$(cat "$ERR")" ''
hn logs --fold --tail 2
is 'folded lines count once' "$(cat "$OUT")" $'0-1 | line 3\n1 | bad'
hn logs --tail 100
is 'more than there are: all' "$(wc -l <"$OUT")" 7
hn logs -f -n 1
is '-f of a run that has ended' "$(cat "$OUT")" '1 | bad'
hn_exits 'no lines are no number' 64 logs --tail 0
hn logs --json -n 2 --fold
is '--json: an object a line' "$(python3 -c 'import json, sys
for line in open(sys.argv[1]):
    o = json.loads(line)
    print(o.get("rank", o.get("ranks")), o.get("host"), o["stream"], o["text"], type(o["us"]).__name__)' "$OUT")" \
    $'[0, 1] None stdout line 3 int\n1 localhost stderr bad int'
hn --log-dir logs --local 2 seq 5
rm "logs/$(newest)/output"
hn logs -n 1
is '--log-dir without the file output: the last line of each rank' "$(cat "$OUT")" $'0 | 5\n1 | 5'
hn logs -n 1 --json --ranks 1
is 'without times there, as JSON, too' "$(cat "$OUT")" '{"v":1,"rank":1,"host":"localhost","stream":"stdout","text":"5"}'

hn --local 1 sh -c 'exit 9'
hn logs --around failure
has '--around of a run without output tells that' "$ERR" "note: no chosen rank of run $(newest) has written a line"
hn report
lacks 'its report does not call the failure a divergence' "$OUT" 'first divergence'
hn --local 3 sh -c '[ $RANK = 1 ] || exec sleep 60; echo "no shard" >&2; sleep 0.3; exit 9'
hn report
lacks 'nor the words that tell its reason' "$OUT" 'first divergence'
hn --local 1 python3 -c 'raise ValueError("a shard " * 25 + "is last" + " of all" * 60)'
hn report
matches 'it cuts a long reason late, and shows the cut' "$OUT" ' rank 0 on .*code 1 .*a shard is last of all.*\.\.\.$'

hn --local 2 --ranks 1 printf '\r1%%\r2%%\r\r3%%\n'
hn logs
is 'a label follows a carriage return, which would write over it' "$(tr '\r' ^ <"$OUT")" '1 | ^1 | 1%^1 | 2%^^1 | 3%'
hn logs --raw
is '... but not with --raw' "$(tr '\r' ^ <"$OUT")" '1 | ^1%^2%^^3%'

# A run of another machine whose records nobody renews.
hn --local 1 echo said
records=$XDG_STATE_HOME/hnlaunch/runs/$(newest)
rm "$records/summary.json"
sed -i "/\"ev\":\"run.end\"/d" "$records/events.ndjson"
sed -i 's/"host": *"[^"]*"/"host": "elsewhere"/' "$records/run.json"
touch -d '2 minutes ago' "$records"
"$HNLAUNCH" logs -f >followed 2>"$ERR" &
follower=$!
ok '-f of another machine shows what is there' wait_for lines_are followed 1
ok 'and waits for more' kill -0 $follower
touch -d '4 minutes ago' "$records"
wait $follower
is 'until the records show no sign of life' $? 125
has 'which is told' "$ERR" "error[HN803]: run $(newest) on elsewhere has shown no sign of life for 3 minutes"
nothing_left 'nothing is left'
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What shows a job while it runs knows its roles: the first lines count them, metrics name them, and hnlaunch why compares ranks within a role only.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/why.sh"
. "$ROOT/tests/lib/tmux.sh"

job=(-w localhost:4,127.0.0.1:2,127.0.0.2:2 --gpus-per-rank 0)
runtime_dir
mkfifo fifo

hn_exits 'three roles' 0 "${job[@]}" --role trainer --nodes 1 -n 2 true : --role infer --nodes 2 -n 4 true : --role router --on trainer true
has 'are counted in a line' "$ERR" 'hnlaunch: 3 roles: trainer 2 ranks on 1 node, infer 4 on 2, router 1 on 1'
is 'behind the first line' "$(grep -n 'run .*: 3 nodes, 7 ranks\|3 roles' "$ERR" | cut -d: -f1 | tr '\n' ' ')" '1 2 '
hn -q "${job[@]}" --role trainer --nodes 1 -n 2 true : --role infer --nodes 2 -n 4 true
is 'not with -q' "$(cat "$ERR")" ''
hn --local 2 true
lacks 'nor without roles' "$ERR" 'role'

if command -v tmux >/dev/null; then
    pane new-session -d -x 40 -y 20 "env TERM=screen XDG_STATE_HOME=$PWD/state XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR $HNLAUNCH ${job[*]} \
        --role trainer --nodes 1 -n 2 true : --role infer --nodes 2 -n 4 true : --role routers-with-a-long-name --on trainer true; exec sleep 1000"
    ok 'a job on a terminal of 40 columns ends' wait_for shown 'finished'
    is 'with one line of roles that fits' "$(sed -n 's/ *$//; /roles:/,/^hnlaunch: [^0-9]/p' screen | head -1)" 'hnlaunch: 3 roles: trainer 2, infer 4,…'
    new_server
else
    skip 'a narrow terminal' 'no tmux'
fi

# --- steps ---

start "${job[@]}" --progress-re 'step ([0-9]+)/([0-9]+)' --main trainer --role server --nodes 1 -n 2 sh -c 'echo step 700/900; exec sleep 600' : \
    --role trainer --nodes 2 -n 2 sh -c 'sleep 0.3; echo step $((5 + RANK))/50; exec sleep 600'
ok 'the roles are at their steps' wait_for lines_are "$OUT" 4
shows_step() { "$HNLAUNCH" ps --json >shown && [[ $(python3 -c 'import json; r = json.load(open("shown"))["runs"][0]; print(r.get("step_role"), r.get("step"), r.get("total"))') == "$1" ]]; }
ok 'ps has the step of the role of --main' wait_for shows_step 'trainer 5 50'
"$HNLAUNCH" top >shown 2>&1
ok 'top has it behind its name' grep -qE '^run .*  trainer step 5-6 of 50  ' shown
"$HNLAUNCH" top --json | head -n 1 >shown
is 'no rank of another role lags behind' "$(python3 -c 'import json; print(sorted((r["role"], r["role_rank"], r["step"], r.get("lag")) for h in json.load(open("shown"))["hosts"] for r in h["ranks"]))')" \
    "[('server', 0, 700, None), ('server', 1, 700, None), ('trainer', 0, 5, 1), ('trainer', 1, 6, 0)]"
kill -QUIT "$PID"
ok 'Ctrl-\ names ranks by their role' wait_for grep -qE '^ *[|] +trainer:1  127\.0\.0\.' "$ERR"
finish_by INT

{ command -v eu-stack || command -v gdb; } >/dev/null || { skip 'hnlaunch why' 'needs eu-stack (elfutils) or gdb'; done_testing; exit; }
start "${job[@]}" --metrics 0 --label none --role server --nodes 1 -n 1 sleep 1000 : --role once --on server true : \
    --role trainer --nodes 2 -n 4 "$BUILD/tests/clients/hanging" sleep 2 "$PWD/fifo"
ok 'the trainers have met' wait_for lines_are "$OUT" 4
judged() { why && [[ $(field "a['kind'], a['outliers']") == "('hang', [4])" ]]; }
ok 'why names the rank of the trainers that hangs' wait_for judged
says 'by its role' 'role trainer: ranks 0-1,3 wait in '
says 'and number there' '; rank 2 ('
is 'it does not speak of the server' "$(field "'server' in a['text'] or 'once' in a['text']")" False
is 'ranks have their role' "$(field "[(r['role'], r['role_rank']) for r in ranks]")" "[('server', 0), ('once', 0), ('trainer', 0), ('trainer', 1), ('trainer', 2), ('trainer', 3)]"
is 'and rows too' "$(field "a['table'][0]['ranks'].split(' on ')[0]")" 'role trainer, rank 2'
url=$(sed -n 's,^hnlaunch: metrics at ,,p' "$ERR")
python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "$url" >metrics
has 'metrics have the role' metrics '",role="trainer",role_rank="2",stream="stdout"}'
"$HNLAUNCH" stop --grace 1s >stop.out 2>&1
finish
has 'the last line names the rank by its role' "$ERR" 'role trainer, rank 2 on 127.0.0.'

# --- --hang-after ---

count_is() { [[ $(grep -cE "$1" "$ERR") == "$2" ]]; }
start "${job[@]}" --hang-after 1s --label none --json=events --role worker --nodes 1 -n 2 sh -c 'i=0; while :; do echo "step $((i += 1))"; sleep 0.2; done' : \
    --role trainer --nodes 2 -n 4 "$BUILD/tests/clients/hanging" sleep 2 "$PWD/fifo"
ok 'a hang in one world is found while another works' wait_for count_is 'warning.HN811.: the ranks hang: role trainer: ranks 0-1,3 wait in ' 1
has 'with the rank that differs' "$ERR" '; rank 2 ('
has 'and the time of its world' "$ERR" 'note: no rank there has gone on for 1.0s (--hang-after)'
is 'the role that works is not judged' "$(grep -c 'HN811.*worker' "$ERR")" 0
is 'the event names the rank' "$(hang_events events ms)" '(4, 1000)'
sleep 2
is 'it is told once' "$(grep -c HN811 "$ERR")" 1
"$HNLAUNCH" ps >shown 2>&1
ok 'ps tells it although lines come' grep -qE ' running, hangs for [0-9]' shown
"$HNLAUNCH" stop --grace 1s >stop.out 2>&1
finish
has 'and so does the last line' "$ERR" 'role trainer, rank 2 on 127.0.0.'

# The server has a rank that sleeps and one that waits for it, as when no request comes.
start -v "${job[@]}" --hang-after 1s --on-hang stop --main trainer --label none --role server --nodes 1 -n 2 "$BUILD/tests/clients/hanging" sleep 0 : \
    --role trainer --nodes 2 -n 2 "$BUILD/tests/clients/hanging" all-compute 9
ok 'a look finds no hang' wait_for grep -q 'no rank of a world has gone on for 1.0s, but no hang is visible: ' "$ERR"
lacks 'an idle server is none' "$ERR" HN811
is 'nor for a user who asks' "$("$HNLAUNCH" why --json 2>why.err | python3 -c 'import json, sys; a = json.load(sys.stdin); print(a["kind"], "server" in a["text"])')" 'no hang False'
exits 'and the job went on' 130 finish_by INT
done_testing

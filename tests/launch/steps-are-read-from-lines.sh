#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With --progress-re the steps of ranks are read from their lines; a report of hn_progress() wins. Without steps the
# line at the bottom has the progress bar of a rank.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

holds() { grep -qaF -- "$2" "$1"; }
steps() { # FILE RANK: step/total of each event of the rank
    python3 -c 'import json, sys
for e in map(json.loads, open(sys.argv[1])):
    if e["ev"] == "rank.progress" and e["rank"] == int(sys.argv[2]):
        print("%s/%s" % (e["step"], e["total"]))' "$@" | xargs
}

# --- lines --------------------------------------------------------------------------------------
hn --json=events --progress-re 'step ([0-9]+)/([0-9]+)' --local 2 sh -c '
    if [ "$RANK" = 0 ]; then printf "loading\nstep 1/10\nloss 0.5\nstep 2/10\nst"; printf "ep 7/10\nend\n"
    else printf "step 3/20\r" >&2; printf "\rstep 4/20\nstep 5/20" >&2; fi'
exits 'ranks that print steps end well' 0
last() { steps events "$1" | grep -o '[^ ]*$'; }
is 'each rank has the last step of its lines' "$(last 0) $(last 1)" '7/10 4/20'
has 'the lines are printed as ever' "$OUT" '0 | step 7/10'
rm -f end
start --json=events --progress-re 'step ([0-9]+)' --local 1 sh -c 'echo step 1; sleep 0.2; echo step 300; until [ -e end ]; do sleep 0.05; done'
ok 'a rank that steps no more: its last step becomes an event' wait_for grep -q '"step":300' events
: >end
finish

hn --json=events --progress-re '(iteration|iter)[: ]+([0-9]+)' --local 1 sh -c 'echo "iter: 12"'
is 'a group without a number is passed over, and a total is not needed' "$(steps events 0)" '12/None'
hn --json=events --local 1 sh -c 'echo step 1/10'
is 'without the option no line is a step' "$(steps events 0)" ''

# --- an expression that fits no line ---
told() { grep -c 'warning\[HN335\]: no line had a step' "$ERR"; }
hn_exits 'an expression that fits no line harms nothing' 0 --progress-re 'Step ([0-9]+)' --local 2 sh -c 'echo step 1; echo step 2'
is 'it is told once' "$(told)" 1
ok 'with the command that shows the lines' grep -q 'help: compare it with the lines: hnlaunch logs [a-z0-9]' "$ERR"
for how in 'echo step 1; echo other' 'exit 0' 'printf "step 1"' 'echo Traceback; exit 1'; do
    hn --progress-re 'step ([0-9]+)' --local 1 sh -c "$how"
    is "but not of: $how" "$(told)" 0
done
hn --progress-re 'Step ([0-9]+)' --timeout 1s --local 1 sh -c 'echo step 1; exec sleep 1000'
is 'also of a job that was stopped' "$(told)" 1
hn --progress-re 'Step ([0-9]+)' --log-dir none --local 1 echo step 1
lacks 'without records no command is offered' "$ERR" 'hnlaunch logs'

# --- expressions that take long -----------------------------------------------------------------
for re in '([0-9]+)/\1' '(x{1,255}){1,255}' '.*a.{400}c([0-9]+)'; do
    hn_exits "$re is refused" 64 --progress-re "$re" --local 1 true
    has 'with its number' "$ERR" 'error[HN812]: '
done
# Each of these lines takes a tenth of a second, or more.
start --progress-re '.*a.{60}c([0-9]+)' --local 1 python3 -c '
import random
while True:
    print("".join(random.choice("ab") for i in range(400)), flush=True)'
ok 'a rank writes lines that take long' wait_for lines_are "$OUT" 1000
exits 'hnlaunch obeys all the same' 143 finish_by TERM

# --- hnlaunch ps --------------------------------------------------------------------------------
runtime_dir
start --label none --progress-re 'step ([0-9]+)/([0-9]+)' --local 1 sh -c '
    for i in 11 12 13; do echo "step $i/19"; sleep 1.1; done; exec sleep 1000'
ps_has() { "$HNLAUNCH" ps >ps 2>"$TMP/ps.err" && grep -qE -- "$1" ps; }
ok 'a list of runs has the step and the time left' wait_for ps_has ' 13/19 +[0-9]+\.[1-9]s  running'
"$HNLAUNCH" ps --json >ps.json 2>"$TMP/ps.err"
ok 'as JSON, too' python3 -c 'import json
run = json.load(open("ps.json"))["runs"][0]
assert (run["step"], run["total"]) == (13, 19) and 3000 < run["left_ms"], run'
finish_by TERM
ok 'but not of a run that has ended' ps_has '^.{5}  [^/]*  (stopped|failed)'
unset XDG_RUNTIME_DIR

# --- the restart --------------------------------------------------------------------------------
hn --json=events --progress-re 'step ([0-9]+)/([0-9]+)' --max-restarts 1 --local 1 sh -c '
    if [ "$HN_RESTART" = 0 ]; then printf "step 8/9\nstep 9/"; exit 3; fi; printf "9 step 1/9\n"'
is 'an unfinished line ends with its attempt' "$(steps events 0)" '8/9 1/9'

# --- a terminal, and hn_progress() ----------------------------------------------------------------
if command -v script >/dev/null; then
    on_terminal() { # OPTION...
        rm -f end
        script -qefc "stty cols 60; TERM=xterm $(printf '%q ' "$PLAIN/hnlaunch" "$@")" /dev/null </dev/null >tty 2>&1 &
        PID=$!
    }
    leave() { # NAME
        touch end
        exits "$1" 0 finish
    }
    on_terminal --progress-re 'step ([0-9]+)/([0-9]+)' --local 2 \
        sh -c 'echo "step $((4 + RANK))/50"; until [ -e end ]; do sleep 0.1; done'
    ok 'the line at the bottom has the steps' wait_for holds tty 'step 4-5/50, rank 0 on localhost is the last'
    leave 'the job with steps ends'

    cat >bar.sh <<'END'
[ "$RANK" = 0 ] || printf '\r\033[32m12%%\033[0m|##   | 12/100\033[K'
until [ -e end ]; do sleep 0.1; done
END
    on_terminal --show 0 --local 2 sh bar.sh
    ok 'without steps it has the bar of a rank that is not shown' wait_for holds tty '2 ranks  rank 1: 12%|##   | 12/100'
    leave 'the job with a bar ends'
else
    skip 'the line at the bottom' 'needs script'
fi

cp -r "$ROOT/examples/python/hnlaunch/" .
export LD_LIBRARY_PATH=$PLAIN
HNLAUNCH=$PLAIN/hnlaunch hn --json=events --progress-re 'step ([0-9]+)/([0-9]+)' --local 1 python3 -c '
import hnlaunch as hn
print("step 1/2", flush=True)
hn.init()
hn.progress(40, 50)
hn.barrier()
print("step 2/2", flush=True)
hn.finalize()'
exits 'a program that does both ends well' 0
is 'a report of hn_progress() wins over lines' "$(steps events 0 | grep -o '40/50$')" '40/50'

# --- mistakes -------------------------------------------------------------------------------------
for re in '(' 'step [0-9]+' 'a{2'; do
    hn_exits "$re: 64" 64 --progress-re "$re" --local 1 touch started
    has "$re: HN332" "$ERR" "error[HN332]: cannot use --progress-re '$re': "
done
ok 'nothing was started' test ! -e started
hn --json=events --local 1 -o 'log.progress_re=at ([0-9]+)' sh -c 'echo at 5'
is 'the key of the configuration is the same' "$(steps events 0)" '5/None'
done_testing

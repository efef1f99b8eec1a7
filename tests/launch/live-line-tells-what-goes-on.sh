#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While ranks run, a line at the bottom of a terminal tells what goes on, and what a stop waits for, and is gone with
# the next output; elsewhere a line a minute does.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

command -v script >/dev/null || skip_all 'needs script'
cp -r "$ROOT/examples/python/hnlaunch/" .
export LD_LIBRARY_PATH=$PLAIN NO_COLOR=1
cat >steps.py <<'END'
import os
import time
import hnlaunch as hn

hn.init()
hn.progress(4 + hn.rank(), 50)
while not os.path.exists("go"):
    time.sleep(0.05)
print("a line of", hn.rank(), flush=True)
while not os.path.exists("end"):
    time.sleep(0.05)
hn.finalize()
END
holds() { grep -qF -- "$2" "$1"; }
on_terminal() { # OPTION...
    : >tty
    script -qefc "stty cols ${COLUMNS:-60}; $(printf '%q ' sh -c 'echo $$ >pid; TERM=xterm exec "$0" "$@"' "$PLAIN/hnlaunch" "$@") ${BEHIND-}" \
        /dev/null </dev/null >tty 2>&1 &
    PID=$!
}

# --- a terminal -------------------------------------------------------------------------------
# It runs beside the others, for longer than a minute.
"$HNLAUNCH" --local 2 sh -c 'while [ ! -e late ]; do sleep 0.2; done' >"$TMP/minute.out" 2>minute.err &
minute=$!

on_terminal --local 2 python3 steps.py
ok 'the line has the steps, and the rank that is behind' wait_for holds tty 'step 4-5/50, rank 0 on localhost is the last'
touch go
ok 'output goes on' wait_for holds tty '1 | a line of 1'
touch end
exits 'the job ends' 0 finish
python3 "$ROOT/tests/lib/screen.py" 60 <tty >screen
is 'the line is gone from the screen' "$(grep -c 'step 4' screen)" 0
is 'what ranks wrote is whole' "$(grep -o '^[01] | .*' screen | sort)" $'0 | a line of 0\n1 | a line of 1'
for how in -q --progress=none; do
    on_terminal "$how" --local 2 sh -c 'sleep 3; printf "no newline"'
    finish
    lacks "$how: there is no such line" tty '0s  2 ranks'
done

# The node of rank 1 gets its order when rank 0 has written.
cat >relay.py <<'END'
import os
import select
import subprocess
import sys
import time

agent = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE)
while select.select([0], [], []) and (data := os.read(0, 65536)):  # the agent shares the socket, and it does not block
    while b"short-program" in data and not os.path.exists("written"):
        time.sleep(0.05)
    agent.stdin.write(data)
    agent.stdin.flush()
agent.stdin.close()
END
cat >relay <<END
#!/bin/sh
case "\$*" in *" -- b "*) exec python3 relay.py $PLAIN/hnlaunch-agent ;; esac
exec $PLAIN/hnlaunch-agent
END
chmod +x relay
on_terminal --ssh-command ./relay -w a,b --oversubscribe --label none sh -c 'echo "$0 of rank $RANK"' short-program
ok 'a rank writes before all ranks have started' wait_for holds tty 'short-program of rank 0'
touch written
exits 'that job ends' 0 finish
python3 "$ROOT/tests/lib/screen.py" 60 <tty >screen
is 'the line of the start is above all output' "$(grep -oE '^hnlaunch: run|^ ok connect 2|^ ✔ connect 2|^short-program of rank [01]' screen | sed 's/ ✔/ ok/; s/rank [01]/rank/' | xargs)" \
    'hnlaunch: run ok connect 2 short-program of rank short-program of rank'
is 'none is below' "$(grep -cE 'start [0-9]' screen)" 0

# `hnlaunch top` shows the steps and the rate of the same second. A line of top has the time in microseconds.
cat >steady.py <<'END'
import os
import time
import hnlaunch as hn

hn.init()
step = 0
while not os.path.exists("done"):
    time.sleep(0.03 + 0.02 * hn.rank())
    step += 1
    hn.progress(step, 100000)
hn.finalize()
END
cat >agree.py <<'END'
import json
import re
import sys

line = r"(\d+\.\d)s  step ([\d-]+)/100000(?:, rank \d on localhost is the last)?(?:  ([\d.]+)/s)?"
live = {time: facts for time, *facts in re.findall(line, open("tty").read())}
same = 0
for line in open("top.json").read().splitlines()[2:]:  # the first ones do not wait for the next second
    t = json.loads(line)
    steps = str(t["step"]) + (f"-{t['step'] + t['spread']}" if t["spread"] else "")
    rate = t.get("steps_per_s")
    facts = [steps, f"{rate:.{int(rate < 10)}f}" if rate else ""]
    drawn = live.get(str(t["us"] // 100000 / 10), facts)
    same += drawn is not facts and drawn == facts
    if drawn != facts:
        print(t["us"], drawn, facts)
sys.exit(same < 3)
END
runtime_dir
COLUMNS=120
on_terminal --local 2 python3 steady.py
ok 'there is a rate' wait_for grep -qaE '[0-9]s  step [0-9-]+/100000.*  [0-9.]+/s' tty
"$HNLAUNCH" top --json >top.json 2>top.err &
top=$!
ok 'top has the steps and the rate of the live line' wait_for python3 agree.py
is 'each second' "$(python3 agree.py)" ''
touch done
finish
wait "$top"
unset COLUMNS XDG_RUNTIME_DIR

# An unfinished line of a rank stays, and nothing is drawn into it.
on_terminal --label none --local 1 sh -c 'printf "your name? "; sleep 3; echo Ann'
finish
has 'a question without a newline is not erased' tty 'your name? Ann'

# --- the end ----------------------------------------------------------------------------------
on_terminal --local 3 --grace 600s --label none sh -c 'trap "[ $RANK = 1 ] || exit 0" TERM; while [ ! -e stopped ]; do sleep 0.1; done'
ok 'three ranks run' wait_for grep -qaE '[0-9]s  3 ranks' tty
kill -TERM "$(cat pid)"
ok 'a job that stops has the rank that still runs' wait_for grep -qaE '[0-9]s  stopping for [0-9.ms]+, rank 1 still runs' tty
touch stopped
exits 'that job ends by the signal' 143 finish
python3 "$ROOT/tests/lib/screen.py" 60 <tty >screen
is 'the line is gone again' "$(grep -c 'still runs' screen)" 0

# As much as head and pipes take: the rank ends, and its last bytes wait for the reader.
BEHIND='| { while [ ! -e read ]; do sleep 0.1; done; cat >/dev/null; }'
COLUMNS=80
on_terminal --local 1 head -c 560000 /dev/zero
ok 'a reader that is waited for is told' wait_for grep -qaE '[0-9]s  all ranks have ended, waiting for their output' tty
touch read
finish
unset BEHIND COLUMNS

# --- elsewhere --------------------------------------------------------------------------------
WAIT=150
ok 'off a terminal a line a minute' wait_for holds minute.err '  2 ranks  no output for 1m0'
touch late
wait "$minute"
RC=$?
exits 'that job ends as well' 0
is 'without escape codes' "$(grep -c $'\033' minute.err)" 0
done_testing

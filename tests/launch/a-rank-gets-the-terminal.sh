#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --pty gives a rank the terminal: its keys, its size and every Ctrl-C; the terminal is as it was afterwards.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn --local 2 --pty true </dev/null
exits 'without a terminal: 64' 64
has 'with its number' "$ERR" 'error[HN160]: --pty needs a terminal: standard input is none'
for other in '--stdin 0' --detach '--max-restarts 1'; do
    # shellcheck disable=SC2086
    hn_exits "with $other: 64" 64 --local 2 --pty $other true
    has "with $other: they exclude each other" "$ERR" "--pty and ${other%% *} exclude each other"
done
command -v tmux >/dev/null || { skip 'in a terminal' 'needs tmux'; done_testing; exit; }

. "$ROOT/tests/lib/tmux.sh"
runtime_dir
begin() { # OPTIONS COMMAND: in a new terminal of 100 columns
    new_server
    printf '%s' "$2" >command
    pane new-session -d -x 100 -y 30 "trap : INT QUIT; env TERM=screen LD_LIBRARY_PATH= $HNLAUNCH $1 sh -c '. ./command'; printf '%s\n' \"code \$?\"; stty -a | grep -o -- '-*icanon\|-*isig'; exec sleep 1000"
}
given_back() { shown '^icanon$' && shown '^isig$'; }

# --- a shell ------------------------------------------------------------------------------------
begin '--local 3 --pty=1' 'if [ $RANK = 1 ]; then PS1="\$ " exec sh -i; fi; echo "rank $RANK is up"; exec sleep 1000'
ok 'a shell on rank 1 has a prompt' wait_for shown '^\$'
ok 'lines of the others have labels' wait_for shown '^ *0 \| rank 0 is up'
keys 'tty && echo "$RANK $TERM $(stty size)"' Enter
ok 'a terminal, its name and its size' wait_for shown '^1 screen 30 100'
keys 'echo asleep; sleep 1000' Enter
ok 'a program of the shell' wait_for shown '^asleep'
keys C-c
ok 'is interrupted' wait_for shown '\^C' # which empties the queue of keys
keys 'echo "after $?"' Enter
ok 'is ended by Ctrl-C, and nothing else is' wait_for shown '^after 130'
pane resize-window -x 80 -y 20
resized() { keys 'stty size' Enter && sleep 0.2 && shown '^20 80'; }
ok 'another size' wait_for resized
keys 'exit 3' Enter
ok 'its code is that of the job' wait_for shown '^code 3$'
ok 'the verdict stands on a line of its own' shown '^hnlaunch: failed after .* rank 1 on localhost exited with code 3  \(exit 3\)'
ok 'the terminal is as it was' wait_for given_back

# --- a debugger, and an end of input ----------------------------------------------------------------
begin '--local 2 --ranks 1 --pty' 'exec python3 -c "breakpoint()
print(\"went on\")"'
ok 'a debugger on the rank of --ranks' wait_for shown '^\(Pdb\)'
keys 'p 6 * 7' Enter
ok 'answers' wait_for shown '^42'
keys c Enter
ok 'and goes on' wait_for shown '^went on'
ok 'to the end' wait_for shown '^code 0$'
begin '--local 1 --pty' 'cat; echo "end of input"'
keys 'one line' Enter C-d
ok 'Ctrl-D is the end of its input' wait_for shown '^end of input'
ok 'the job ends with it' wait_for shown '^code 0$'

# --- keys that would be signals ------------------------------------------------------------------
begin '--local 2 --pty' 'trap "echo quit" QUIT; trap "echo stop" TSTP; trap "echo again" INT; echo up; while :; do sleep 0.1; done'
ok 'rank 0 without another word' wait_for shown '^up'
keys 'C-\'
ok 'Ctrl-\ goes to the rank' wait_for shown '^.*quit'
keys C-z
ok 'so does Ctrl-Z' wait_for shown '^.*stop'
keys C-c
ok 'and one Ctrl-C' wait_for shown '^.*again'
keys C-c C-c C-c
ok 'three stop the job' wait_for shown '^code 130$'
ok 'and the terminal is as it was then, too' wait_for given_back

# --- once more, and wrong ranks -------------------------------------------------------------------
begin '--local 2 --pty=0' 'echo "first $RANK"; [ $RANK = 1 ] || exit 5'
ok 'a run' wait_for shown '^code 5$'
pane kill-server
panes=$((panes + 1))
pane new-session -d -x 100 -y 30 "env TERM=screen LD_LIBRARY_PATH= $HNLAUNCH rerun --ranks 1 --pty; exec sleep 1000"
ok 'is started again with options in front of its program' wait_for shown '^hnlaunch: once more, .* --ranks 1 --pty sh -c '
ok 'and has the rank in the terminal' wait_for shown '^first 1'
begin '--local 2 --pty=2' true
ok 'a rank that there is not' wait_for shown '^error\[HN104\]: --pty 2: the ranks are 0 to 1'
ok 'ends with 64' wait_for shown '^code 64$'
pane kill-server
nothing_left 'nothing is left'
done_testing

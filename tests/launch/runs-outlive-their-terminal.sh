#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A run goes on without its terminal (--detach, --on-hup detach), and attach shows its output from where it was left.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

runtime_dir
RUNS=$XDG_STATE_HOME/hnlaunch/runs
unset XDG_SESSION_ID
state_of() { "$HNLAUNCH" ps --json | python3 -c 'import json, sys
print(*[r["state"] for r in json.load(sys.stdin)["runs"] if r["run"] == sys.argv[1]])' "$1"; }
newest() { "$HNLAUNCH" ps | awk 'NR == 2 { print $1 }'; }
state_is() { [[ $(state_of "$1") == "$2" ]]; }
holds() { grep -qF -- "$2" "$1"; }
attached() { "$HNLAUNCH" attach "$@" >att.out 2>att.err; }
# A terminal: what is written to the descriptor $KEYS is typed, the file tty is the screen. A SIGKILL hangs it up.
terminal() { # COMMAND: with exec in front, where Ctrl-\ must end no shell
    rm -f keys
    mkfifo keys
    : >tty
    env --default-signal setsid script -qefc "$1" /dev/null <keys >tty 2>&1 &
    TERMINAL=$!
    exec {KEYS}>keys
}
terminal_ends() {
    exec {KEYS}>&-
    wait "$TERMINAL"
}
hang_up() {
    kill -KILL "$TERMINAL"
    wait "$TERMINAL" 2>/dev/null
    exec {KEYS}>&-
}
go() { touch go; }

# Writes a line per rank and number; goes beyond 3 with the file "go", and beyond 6 with "on".
cat >worker.sh <<'END'
for i in 1 2 3 4 5 6 7 8 9; do
    echo "line $i of $RANK"
    while [ "$i" = 3 ] && [ ! -e go ]; do sleep 0.05; done
    while [ "$i" = 6 ] && [ ! -e on ]; do sleep 0.05; done
done
[ ! -e fail ] || { echo "no luck" >&2; exit 3; }
END
lines() { for i in $(seq "$1" "$2"); do for r in 0 1; do echo "$r | line $i of $r"; done; done | sort; }

# --- --detach ---------------------------------------------------------------------------------
touch fail
hn_exits 'the command ends when the ranks have been started' 0 --detach --on-failure continue --local 2 sh worker.sh
id=$(cat "$OUT")
has 'its output is the id of the run' "$OUT" "$(newest)"
has 'a line says how to go on' "$ERR" "run $id goes on without this terminal: hnlaunch attach $id"
ok 'the run goes on' state_is "$id" running
pid=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pid"])' "$RUNS/$id/run.json" 2>/dev/null || pgrep -f 'hnlaunch --detach')
is 'in a session of its own' "$(ps -o sid= -p "$pid" | xargs)" "$pid"
is 'with no descriptor of the terminal' "$(readlink "/proc/$pid/fd/0" "/proc/$pid/fd/1" "/proc/$pid/fd/2" | sort -u)" /dev/null

: >att.out
env --default-signal "$HNLAUNCH" attach >att.out 2>att.err &
PID=$!
ok 'attach shows what there is' wait_for lines_are att.out 6
exits 'without a terminal SIGINT leaves the run' 130 finish_by INT
is 'each line once' "$(sort att.out)" "$(lines 1 3)"
has 'and it says so' att.err "run $id goes on: hnlaunch attach $id"
ok 'the run still goes on' state_is "$id" running
go
: >att.out
env --default-signal "$HNLAUNCH" attach "${id:0:3}" >att.out 2>att.err &
PID=$!
ok 'the next attach goes on from there' wait_for lines_are att.out 6
exits 'SIGTERM leaves it, too' 143 finish_by TERM
is 'not one line is lost, none comes twice' "$(sort att.out)" "$(lines 4 6)"
: >att.out
env --default-signal "$HNLAUNCH" attach "$id" >att.out 2>att.err &
PID=$!
touch on
exits 'attach ends with the exit code of the run' 3 finish
is 'with the rest of the output' "$(sort att.out)" "$(lines 7 9)"
has 'what ranks say on stderr is on stderr' att.err '| no luck'
has 'the report of the failure is shown' att.err 'exited with code 3'
has 'and the verdict' att.err "run $id: failed after"
attached "$id"
is 'a run that has ended is attached to as well' "$?:$(wc -c <att.out)" 3:0
terminal "exec $HNLAUNCH attach $id"
terminal_ends
is 'also in a terminal' $? 3
attached --show 0 nope
is 'a run that is not there is an error' $?:"$(grep -c 'there is no run nope' att.err)" 66:1
nothing_left 'nothing is left'
rm -f fail go on

# --- how a detached launch fails --------------------------------------------------------------
hn_exits 'a program that cannot be started ends the command' 127 --detach --local 2 ./no-such-program
has 'and is told at once' "$ERR" './no-such-program'
is 'without an id' "$(cat "$OUT")" ''
rm -f reached
start --detach -w n1 --start-with 'sh -c "touch reached; exec sleep 600" {host}' true
ok 'while it connects' wait_for test -e reached
exits 'a signal to the command ends the launch' 130 finish_by INT
nothing_left 'and nothing is left'
rm -f reached
start --detach -w n1 --start-with 'sh -c "touch reached; exec sleep 600" {host}' true
ok 'while it connects once more' wait_for test -e reached
finish_by KILL
nothing_left 'a command that is killed meanwhile takes the launch with it'
SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 SLURM_NNODES=1 SLURM_TASKS_PER_NODE=1 hn --detach --local 1 true
exits '--detach inside an allocation is refused' 64
has 'with the reason' "$ERR" 'error[HN820]: --detach inside an allocation of Slurm'
for args in '--detach --log-dir none' '--on-hup detach --log-dir none' '--detach --json' '--detach --dial-in n1:7'; do
    # shellcheck disable=SC2086
    hn_exits "$args is refused" 64 $args --local 1 true
    has '... with both names' "$ERR" 'error[HN704]'
done
exits 'without descriptors there is no --detach' 125 run prlimit --nofile=4 "$HNLAUNCH" --detach --local 1 true
has 'which is told' "$ERR" 'error[HN823]: cannot start a process for --detach'
HOME= XDG_STATE_HOME= hn --detach --local 1 true
exits 'without a home there is no place for the output' 73
has 'which is told' "$ERR" 'error[HN822]'
for place in /dev/null/x /proc "$TMP/plain"; do
    echo x >"$TMP/plain"
    XDG_STATE_HOME=$place hn --detach --local 1 touch "$TMP/started"
    exits "where no records can be written ($place) nothing is started" 73
    has 'which is told with the reason' "$ERR" 'error[HN822]: the output of a run without a terminal cannot be kept: cannot make'
    told_once 'once' 'the output of a run without a terminal cannot be kept'
    lacks 'and not twice' "$ERR" HN805
done
is 'no rank ran' "$(ls "$TMP/started" 2>&1 | grep -c 'No such')" 1

# --- input ------------------------------------------------------------------------------------
hn --detach --stdin 0 --local 2 sh -c 'test "$RANK" = 1 || while read -r line; do echo "got $line"; done; echo "$RANK ends"'
id=$(cat "$OUT")
: >in.out
(echo one; wait_for holds "$TMP/work/in.out" 'got one' ) | "$HNLAUNCH" attach --stdin 0 "$id" >in.out 2>in.err &
PID=$!
ok 'what attach reads reaches the rank' wait_for holds in.out '0 | got one'
exits 'the end of the input is the end for the rank' 0 finish
has 'which sees it' in.out '0 | 0 ends'

hn --detach --stdin 0 --local 1 sh -c 'while read -r line; do echo "got $line"; done; echo ended'
id=$(cat "$OUT")
mkfifo first
: >one.out
env --default-signal "$HNLAUNCH" attach --stdin 0 "$id" <first >one.out 2>one.err &
PID=$!
exec 7>first
echo one >&7
ok 'the first attach gives input' wait_for holds one.out 'got one'
: >two.out
echo 'not me' | env --default-signal "$HNLAUNCH" attach --stdin 0 "$id" >two.out 2>two.err &
second=$!
ok 'the second one watches' wait_for holds two.out 'got one'
finish_by INT
exec 7>&-
kill -INT "$second"
wait "$second"
: >three.out
echo two | "$HNLAUNCH" attach --stdin 0 "$id" >three.out 2>three.err &
PID=$!
exits 'the next owner goes on' 0 finish
is 'from where the first one was left, and the end of the first one was no end' "$(cat three.out)" $'got two\nended'

# --- a terminal -------------------------------------------------------------------------------
rm -f go on
hn --detach --local 2 sh worker.sh
id=$(cat "$OUT")
terminal "exec $HNLAUNCH attach $id"
ok 'a terminal is attached' wait_for holds tty '1 | line 3 of 1'
printf '\003' >&"$KEYS"
ok 'Ctrl-C asks' wait_for holds tty "run $id: d detaches, s stops the run, another key goes on"
printf 'x' >&"$KEYS"
ok 'another key goes on' wait_for holds tty 'hnlaunch: goes on'
printf '\034' >&"$KEYS"
ok 'Ctrl-\ shows the ranks' wait_for holds tty 'RANK'
is_there() { [[ $(grep -c "$1" tty) == "$2" ]]; }
printf '\003' >&"$KEYS"
ok 'Ctrl-C asks again' wait_for is_there 'd detaches' 2
printf '\034' >&"$KEYS"
ok 'Ctrl-\ is another key, too' wait_for is_there 'hnlaunch: goes on' 2
printf '\003' >&"$KEYS"
ok 'Ctrl-C asks once more' wait_for is_there 'd detaches' 3
printf 'd' >&"$KEYS"
terminal_ends
is 'd detaches' $?:"$(state_of "$id")" 0:running
hn attach -h
has 'its help names these keys' "$OUT" 'Ctrl-C, then d, detaches again'
terminal "exec bash -c '$HNLAUNCH attach $id; stty -a >modes'"
ok 'a terminal is attached again' wait_for state_is "$id" running
ready() { [[ -n $(ls -l /proc/*/fd 2>/dev/null | grep -c 'output$') ]] && pgrep -f "hnlaunch attach $id" >/dev/null; }
ok 'and reads' wait_for ready
go
ok 'the output goes on' wait_for holds tty '0 | line 6 of 0'
printf '\003' >&"$KEYS"
ok 'Ctrl-C asks there, too' wait_for holds tty 's stops the run'
printf 's' >&"$KEYS"
terminal_ends
is 's stops the run, and attach ends with its code' $?:"$(state_of "$id")" '0:stopped (143)'
has 'the modes of the terminal are as before' modes ' icanon '
has 'and it echoes' modes ' echo '
has 'the verdict is shown' tty "run $id: stopped after"
nothing_left 'nothing is left of it'

rm -f go on
hn --detach --local 2 sh worker.sh
id=$(cat "$OUT")
terminal "exec $HNLAUNCH attach $id"
ok 'a terminal is attached to another run' wait_for holds tty '1 | line 3 of 1'
printf '\003' >&"$KEYS"
ok 'Ctrl-C asks while it goes on' wait_for holds tty 's stops the run'
"$HNLAUNCH" stop "$id" >/dev/null 2>&1
ok 'the question ends with the run' wait_for holds tty "run $id: stopped after"
terminal_ends

# --- --on-hup ---------------------------------------------------------------------------------
rm -f go on
terminal "exec $HNLAUNCH --on-hup detach --local 2 sh worker.sh"
ok 'a run in a terminal' wait_for holds tty '1 | line 3 of 1'
id=$(newest)
hang_up
go
ok 'goes on when the terminal hangs up' wait_for holds "$RUNS/$id/output" 'line 6 of 0'
ok 'which its output tells' wait_for holds "$RUNS/$id/output" 'the terminal is gone, and the run goes on'
touch on
attached "$id"
is 'attach ends with its code' $? 0
is 'no line is lost' "$(sort -u att.out)" "$(lines 1 9)"
has 'the loss of the terminal is told in its place' att.err 'the terminal is gone'

rm -f go on
terminal "exec $HNLAUNCH --local 2 sh worker.sh"
ok 'another run in a terminal' wait_for holds tty '1 | line 3 of 1'
id=$(newest)
hang_up
ok 'ends with it as always' wait_for state_is "$id" 'stopped (129)'

# A rank that reads the terminal: its end is no end of the input, and the next attach goes on with it.
terminal "exec $HNLAUNCH --on-hup detach --local 1 sh -c 'echo up; while read -r line; do echo \"got \$line\"; done; echo ended'"
ok 'a rank that reads the terminal' wait_for holds tty up
id=$(newest)
hang_up
ok 'outlives it' wait_for holds "$RUNS/$id/output" 'the terminal is gone'
echo late | "$HNLAUNCH" attach --stdin 0 "$id" >att.out 2>att.err
is 'and reads what attach has' $?:"$(tail -n 2 att.out | xargs)" '0:got late ended'
nothing_left 'nothing is left of these'

# --- no byte is lost --------------------------------------------------------------------------
hn --detach --local 2 sh -c 'seq -f "$RANK %.0f" 1 3000000'
id=$(cat "$OUT")
attached --label none "$id"
for r in 0 1; do
    is "of a flood all of rank $r arrives, in order" "$(grep "^$r " att.out | md5sum)" "$(seq -f "$r %.0f" 1 3000000 | md5sum)"
done
hn --detach --log-dir logs --local 2 sh -c 'echo "$RANK is here"'
id=$(cat "$OUT")
attached --label none "$id"
is 'with --log-dir, too' "$(sort att.out)" $'0 is here\n1 is here'
is 'which has its files' "$(cat "logs/$id/rank-00001.out")" '1 is here'
hn --detach --local 1 sh -c 'sleep 600'
id=$(cat "$OUT")
kill -KILL "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pid"])' "$RUNS/$id/run.json")"
attached "$id"
is 'a head that is killed still ends its job, and attach says so' $?:"$(grep -c 'killed' att.err)" 69:1
nothing_left 'nothing is left of any'

hn --detach --local 1 sh -c 'seq 1 100000'
id=$(cat "$OUT")
wait_for state_is "$id" finished
"$HNLAUNCH" attach "$id" 2>att.err | head -n 3 >att.out
is 'a reader of attach that leaves' "${PIPESTATUS[0]}:$(xargs <att.out)" '141:1 2 3'
attached "$id"
is 'takes nothing away from the next one' $?:"$(md5sum <att.out)" "0:$(seq 1 100000 | md5sum)"
"$HNLAUNCH" rerun "$id" >again 2>again.err
wait_for state_is "$(cat again)" finished
"$HNLAUNCH" attach >/dev/full 2>att.err
is 'nor does a full disk' $?:"$(grep -c 'cannot write to stdout: No space left' att.err)" 73:1
if [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null; then
    run unshare -m sh -c 'mkdir -p full && mount -t tmpfs -o size=300k none full && export XDG_STATE_HOME=$PWD/full && {
        "$1" --detach --local 1 sh -c "seq 1 200000; while [ ! -e seen ]; do sleep 0.05; done"
        : >att.out
        "$1" attach >att.out &
        while [ ! -s att.out ]; do sleep 0.05; done
        touch seen
        wait $!
    }' - "$HNLAUNCH"
    exits 'records on a full disk do not end a detached run' 0
    has 'but attach tells what is missing' "$ERR" 'warning[HN805]: the records of run'
fi

# --- logind -----------------------------------------------------------------------------------
if [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null; then
    printf '[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n' >logind.conf
    mkdir -p /etc/systemd
    run unshare -m sh -c 'mount -t tmpfs none /etc/systemd && cp logind.conf /etc/systemd/ && XDG_SESSION_ID=1 exec "$@"' - \
        "$HNLAUNCH" --on-hup detach --local 1 true
    has 'KillUserProcesses of logind is noticed' "$ERR" 'warning[HN821]: logind ends this run when you log out'
    has '... with the remedy' "$ERR" 'systemd-run --user --scope'
    run unshare -m sh -c 'mount -t tmpfs none /etc/systemd && cp logind.conf /etc/systemd/ && exec "$@"' - \
        "$HNLAUNCH" --on-hup detach --local 1 true
    lacks 'but not outside of a login session' "$ERR" HN821
    # Parts stand in the order of their names over all folders; the first folder with a name counts.
    logind_says() { # FOLDER/FILE:VALUE...
        rm -rf parts
        for part; do
            mkdir -p "parts/${part%/*}"
            printf '[Login]\nKillUserProcesses=%s\nKillExcludeUsers=\n' "${part#*:}" >"parts/${part%:*}"
        done
        run unshare -m sh -c 'for i in etc run usr/local/lib; do
            mkdir -p "/$i/systemd" && mount -t tmpfs none "/$i/systemd" && mkdir "/$i/systemd/logind.conf.d" || exit
            [ ! -d "parts/$i" ] || cp "parts/$i"/*.conf "/$i/systemd/logind.conf.d/" || exit
        done
        XDG_SESSION_ID=1 exec "$@"' - "$HNLAUNCH" --on-hup detach --local 1 true
    }
    logind_says usr/local/lib/10-a.conf:yes
    has 'a part in /usr/local/lib is read' "$ERR" HN821
    logind_says etc/10-a.conf:yes run/20-b.conf:no
    lacks '... in the order of the names over all folders' "$ERR" HN821
    logind_says etc/10-a.conf:yes run/10-a.conf:no usr/local/lib/10-a.conf:no
    has '... and of the same name that of the first folder' "$ERR" HN821
else
    skip 'KillUserProcesses of logind is noticed' 'only root may change logind.conf'
fi
hn config
has 'both options have keys' "$OUT" 'on_hup'
done_testing

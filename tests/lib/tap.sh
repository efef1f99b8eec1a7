# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# TAP for shell: source this first, assert, and end the script with done_testing.
#
#   . "$(dirname "$0")/../lib/tap.sh"
#   hn --local 2 true                      # sets RC, fills $OUT and $ERR
#   exits 'a good launch gives 0' 0        # or both at once:
#   hn_exits 'a good launch gives 0' 0 --local 2 true
#   comes_up 'two ranks run' 2 start --local 2 sh -c 'echo up; exec sleep 600'
#   exits 'Ctrl-C ends it' 130 finish_by INT
#   done_testing
#
# Every script has an empty folder $TMP, is in $TMP/work, and sees neither settings nor the umask of the user. The
# processes that it started with start() or hn(), and all of $TMP, are gone when it ends.
#
# No test sleeps until something has probably happened: wait_for CONDITION polls for it. Limits in seconds hold for a
# quiet machine and grow with the load (tests/lib/wait.sh).

set -u
umask 022
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
BUILD=${BUILD:-$ROOT/build}
HNLAUNCH=${HNLAUNCH:-$BUILD/hnlaunch}
# shellcheck disable=SC2034
WORKERS=$BUILD/tests/lib
# The same without sanitizers: for tests that look at memory.
PLAIN=${PLAIN:-$ROOT/build}
AGENT=$BUILD/hnlaunch-agent

TMP=$(mktemp -d "${TMPDIR:-/tmp}/hntest.XXXXXX")
OUT=$TMP/out ERR=$TMP/err RC=0 PID=
mkdir "$TMP/work" "$TMP/config" "$TMP/dump"
: >"$OUT"
: >"$ERR"
cd "$TMP/work" || exit 1
exec </dev/null

# What a shell has of other programs: their jobs, their Pythons, their settings.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset CDPATH VIRTUAL_ENV PYTHONPATH PYTHONHOME OMP_NUM_THREADS CUDA_VISIBLE_DEVICES "${!CONDA_@}" "${!PMI_@}" "${!PMIX_@}"
unset "${!HNLAUNCH_@}" "${!SLURM_@}" "${!SLURMD_@}" "${!PBS_@}" "${!LSB_@}" FLUX_URI PE_HOSTFILE K_MPI_JOB_ROLE SM_HOSTS TRAINING_JOB_ARN "${!OMPI_@}" "${!HN_@}" NO_COLOR
export XDG_CONFIG_HOME=$TMP/config XDG_STATE_HOME=$TMP/state HNLAUNCH_STAGE_DIR=$TMP/stage DUMP_TO=$TMP/dump TERM=dumb LC_ALL=C.UTF-8
# script runs its command with $SHELL; Python leaves __pycache__ beside what it imports.
export SHELL=/bin/sh PYTHONDONTWRITEBYTECODE=1
# Finds the processes of this script wherever they went.
export TEST_MARK=$BASHPID.$RANDOM$RANDOM

. "$ROOT/tests/lib/wait.sh"

tests=0 failures=0 finished=

# A port that is free now, below those that the kernel gives to connections: one of the kernel's may be taken by a node
# that calls it before anybody listens, whose connection then meets itself.
free_port() {
    python3 -c '
import random, socket
while True:
    port = random.randrange(20000, 30000)
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break'
}

# A runtime folder as a login has: the sockets of runs are there.
runtime_dir() {
    export XDG_RUNTIME_DIR=$TMP/runtime
    mkdir -m 700 "$XDG_RUNTIME_DIR"
}

# A PATH with all programs of the machine but these.
path_without() { # PROGRAM...
    local name
    mkdir "$TMP/path"
    for name in ${PATH//:/ }; do
        ln -sft "$TMP/path" "$name"/* 2>/dev/null
    done
    PATH=$TMP/path
    for name; do rm -f "$TMP/path/$name"; done
}

# --- results ----------------------------------------------------------------------------------

say_file() { # TITLE FILE: the end of a file as a comment
    [[ -s $2 ]] || return 0
    printf '# --- %s\n' "$1"
    tail -n 40 "$2" | cut -c1-400 | sed 's/^/#   /'
}

pass() {
    tests=$((tests + 1))
    printf 'ok %d - %s\n' "$tests" "$1"
}

fail() { # NAME [REASON]
    tests=$((tests + 1)) failures=$((failures + 1))
    printf 'not ok %d - %s\n' "$tests" "$1"
    if [[ -n ${2-} ]]; then
        printf '# %s\n' "${2//$'\n'/$'\n'# }"
    fi
    printf '# exit code %s\n' "$RC"
    say_file stdout "$OUT"
    say_file stderr "$ERR"
}

skip() { # NAME REASON
    tests=$((tests + 1))
    printf 'ok %d - %s # SKIP %s\n' "$tests" "$1" "$2"
}

skip_all() { # REASON
    finished=yes
    printf '1..0 # SKIP %s\n' "$1"
    exit 0
}

done_testing() {
    finished=yes
    printf '1..%d\n' "$tests"
    exit $((failures > 0))
}

# Runs the Python program on standard input, for which $AGENT is (fake_head.py), as the rest of the script: it prints all
# results. Its arguments are the numbers of tests and failures up to here.
python_tests() {
    finished=yes
    AGENT=$AGENT PYTHONPATH=$ROOT/tests/lib python3 - "$tests" "$failures"
    exit
}

# Runs a command that prints "ok NAME", "not ok NAME" and comments, and hands its results on.
tell_results() { # COMMAND...
    local line
    while IFS= read -r line; do
        case $line in
            'ok '*) pass "${line#ok }" ;;
            'not ok '*)
                failures=$((failures + 1)) tests=$((tests + 1))
                printf 'not ok %d - %s\n' "$tests" "${line#not ok }"
                ;;
            *) printf '%s\n' "$line" ;;
        esac
    done < <("$@" 2>&1 || printf 'not ok the command ends well: %s\n' "$1")
}

# --- assertions: the name first -----------------------------------------------------------------

# No variable of its own: a local one would hide the script's from the command.
ok() { # NAME COMMAND...
    if "${@:2}" >"$TMP/ok.log" 2>&1; then
        pass "$1"
    else
        fail "$1" "failed: ${*:2}"
        say_file 'its output' "$TMP/ok.log"
    fi
}

not() { ! "$@"; } # COMMAND...: for ok

is() { # NAME GOT WANT
    if [[ $2 == "$3" ]]; then
        pass "$1"
    else
        fail "$1" "got:  ${2:0:2000}"$'\n'"want: ${3:0:2000}"
    fi
}

# The exit code of what has run, or of a command that sets RC: run(), finish(), lab_hn(), or a function of the script.
exits() { # NAME CODE [COMMAND...]
    "${@:3}"
    is "$1" "$RC" "$2"
}

has() { # NAME FILE TEXT: the file has TEXT in one line
    if grep -qF -- "$3" "$2"; then
        pass "$1"
    else
        fail "$1" "nowhere in $2: $3"
    fi
}

lacks() { # NAME FILE TEXT
    if grep -qF -- "$3" "$2"; then
        fail "$1" "should not be in $2: $3"
    else
        pass "$1"
    fi
}

same() { # NAME FILE FILE
    if cmp "$2" "$3" >"$TMP/ok.log" 2>&1; then
        pass "$1"
    else
        fail "$1" "$(cat "$TMP/ok.log")"
    fi
}

# Blanks of stderr count as one, so that rows of tables can be named.
has_rows() { # NAME -F|-E LINE...: of grep
    local name=$1 how=$2 line
    shift 2
    tr -s ' ' <"$ERR" >squeezed
    for line in "$@"; do
        if ! grep -q "$how" -- "$line" squeezed; then
            fail "$name" "nowhere: $line"
            return
        fi
    done
    pass "$name"
}

has_row() { ok "$1" grep -qE "^$2\$" "$OUT"; } # NAME REGEX: of a whole line of stdout

verdict() { tail -n 1 "$ERR"; }

verdict_has() { # NAME TEXT...: all of them in the last line of stderr
    local name=$1 text last
    last=$(verdict)
    shift
    for text in "$@"; do
        if [[ $last != *"$text"* ]]; then
            fail "$name" "not in the last line: $text"
            return
        fi
    done
    pass "$name"
}

told_once() { # NAME TEXT: one line of stderr has TEXT
    is "$1" "$(grep -cF -- "$2" "$ERR")" 1
}

# --- running --------------------------------------------------------------------------------------

# Runs a command with its output in $OUT and $ERR and its exit code in RC. $LIMIT: seconds on a quiet machine.
run() {
    RC=0
    timeout -k 5 "$(scaled "${LIMIT:-60}")" "$@" >"$OUT" 2>"$ERR" || RC=$?
}

hn() { run "$HNLAUNCH" "$@"; }

hn_exits() { exits "$1" "$2" hn "${@:3}"; } # NAME CODE ARGUMENT...

# Starts hnlaunch in the background: PID is hnlaunch itself, with signals as in a terminal.
start() {
    : >"$OUT"
    : >"$ERR"
    env --default-signal "$HNLAUNCH" "$@" >"$OUT" 2>"$ERR" &
    PID=$!
}

# Succeeds while PID is a process of this script; the number alone may belong to another process by now.
pid_runs() { [[ -n $PID && $'\n'$(jobs -rp)$'\n' == *$'\n'"$PID"$'\n'* ]]; }

pid_ended() { ! pid_runs; }

# Waits for the process of start() and sets RC (137: it had to be killed).
finish() {
    wait_for pid_ended || kill -KILL "$PID"
    RC=0
    wait "$PID" || RC=$?
    PID=
}

finish_by() { # SIGNAL: the same after the signal
    kill -s "$1" "$PID"
    finish
}

lines_are() { # FILE N
    [[ $(wc -l <"$1") -ge $2 ]]
}

comes_up() { # NAME N COMMAND...: the command, such as start(), and N lines of output after it
    "${@:3}"
    ok "$1" wait_for lines_are "$OUT" "$2"
}

count_is() { # REGEX N: lines of $OUT
    [[ $(grep -c "$1" "$OUT") -ge $2 ]]
}

# PIDs of all processes that this script started, wherever they went. One grep looks at all processes of the machine,
# which may be many.
marked() {
    grep -slzxF "TEST_MARK=$TEST_MARK" /proc/[0-9]*/environ | while read -r file; do
        file=${file%/environ}
        printf '%s\n' "${file#/proc/}"
    done
}

# Those of them that are hnlaunch's: head, agents, workers.
processes() {
    local pid
    for pid in $(marked); do
        if { grep -qz '^HN_RUN_ID=' "/proc/$pid/environ" || [[ $(readlink "/proc/$pid/exe") == */hnlaunch* ]]; } 2>/dev/null; then
            printf '%s\n' "$pid"
        fi
    done
}

no_process() { [[ -z $(processes) ]]; }

nothing_left() { # NAME
    local pid
    if wait_for no_process; then
        pass "$1"
    else
        fail "$1" "still alive:"
        for pid in $(processes); do
            printf '#   %s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
        done
    fi
}

cleanup() {
    local code=$? pid
    # A subshell that was just forked may still have this trap.
    [[ $BASHPID == "$$" ]] || return
    ! pid_runs || kill -KILL "$PID"
    for pid in $(processes); do
        kill -KILL "$pid" 2>/dev/null
    done
    if [[ $(type -t at_end) == function ]]; then
        at_end
    fi
    # A head that was killed leaves its ssh programs, which end by themselves when they are real ones.
    for pid in $(marked); do
        kill -KILL "$pid" 2>/dev/null
    done
    cd / && rm -rf "$TMP"
    if [[ -z $finished ]]; then
        printf 'not ok %d - the script reaches its end (exit %d)\n' $((tests + 1)) "$code"
        exit 1
    fi
}
trap cleanup EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

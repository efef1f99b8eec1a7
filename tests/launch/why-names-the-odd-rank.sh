#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch why names the rank that keeps the others waiting, by what the store, the kernel and stacks tell; and calls
# nothing a hang that is none.
#
#   why-names-the-odd-rank.sh [all]    all: also hangs that differ little from others
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/why.sh"

long=${1-}
runtime_dir
mkfifo fifo "$TMP/empty.fifo"
python3 -c 'import json' || skip_all 'needs python3'
has_tool() { command -v "$1" >/dev/null; }
has_tool eu-stack || has_tool gdb || skip_all 'needs eu-stack (elfutils) or gdb'

met() { ok "$1: all ranks have met" wait_for lines_are "$OUT" "$2"; }
stop_run() {
    "$HNLAUNCH" stop --grace 1s "$("$HNLAUNCH" ps --json | python3 -c "import json, sys
print([r['run'] for r in json.load(sys.stdin)['runs'] if r['running']][0])")" 2>/dev/null
    finish
}
# A rank may still be on its way to where it waits when it is looked at.
judged() { why && [[ $(field "a['kind'], a['outliers']") == "$1" ]]; }
names() { # NAME KIND RANKS
    if wait_for judged "('$2', [$3])"; then pass "$1"; else fail "$1" "$(cat answer)"; fi
}
stack_has() { # NAME RANK TEXT
    if [[ $(field "ranks[$2]['stack']") == *"$3"* ]]; then pass "$1"; else fail "$1" "$(cat answer)"; fi
}

# --- libhnlaunch --------------------------------------------------------------------------------

hangs() { # HOW KIND TEXT: rank 2 of 4 is named
    start --local 4 --label none "$BUILD/tests/clients/hanging" "$1" 2 "$PWD/fifo"
    met "$1" 4
    names "$1: rank 2 is named" "$2" 2
    says "$1: it is told what it does" "$3"
    says "$1: and what the others do" 'ranks 0-1,3 wait in '
    [[ -n ${KEEP-} ]] || stop_run
}
KEEP=yes hangs sleep hang ' does not: it sleeps in '
stack_has 'sleep: its stack is there' 2 'load_batch'
stack_has 'sleep: and those of the others' 0 'hn_barrier'
id=$(field "a['run']")
is 'sleep: the stacks are kept with the run' "$(find "$XDG_STATE_HOME/hnlaunch/runs/$id/" -name 'why-*.txt' | wc -l | sed 's/[1-9][0-9]*/some/')" some
has 'sleep: as the tool has printed them' "$(field "a['file']")" 'load_batch'
hn_exits 'a run can be named' 0 why "$id"
has 'the finding is for people' "$OUT" 'note: ranks 0-1,3 wait in '
has 'the odd rank comes first, the others are one row' "$OUT" '| ranks 0-1,3 '
is 'in this order' "$(grep -c 'differs' "$OUT") $(grep '^ *| rank' "$OUT" | head -n 1 | grep -c 'rank 2 on localhost')" '1 1'
is 'the rows are a table' "$(sed -n 's/^ *| \(ranks\{0,1\} .* %\)  .*/\1/p' "$OUT" | awk '{ print length }' | sort -u | wc -l)" 1
again() { kill -QUIT "$PID" && grep -q 'it sleeps in ' "$ERR"; }
ok 'Ctrl-\ again and again tells it, too' wait_for again
has 'with the stacks' "$ERR" 'load_batch'
ok 'the job goes on' kill -0 "$PID"
stop_run
hn_exits 'without a run that goes on the newest is named' 69 why
has 'as ended' "$ERR" "error[HN802]: run $id has ended"
hn_exits 'a run that is not there' 66 why nothing

more() { if [[ $long == all ]]; then hangs "$@"; fi; }
hangs stop hang ' does not: it is stopped by a signal (state T)'
hangs exit hang 'rank 2 (localhost) does not: it left with exit 0'
hangs fifo hang " does not: it waits to read $PWD/fifo in read_from"
more pipe hang ' does not: it waits to read pipe:['
hangs lock hang " does not: it waits to lock $PWD/fifo (process "
says 'lock: it is told who has it' ', hanging, has it) in take_lock'
more futex hang ' does not: it waits for a mutex in take_mutex'
more child hang ' does not: it sleeps'
hangs vfork hang ' does not: it waits for a file system or a device (state D)'
more receive mismatch 'rank 2 waits '
hangs crossed mismatch 'rank 2 waits in hn_barrier (libhnlaunch), called in meet_second'
if [[ -e $PLAIN/hn_backend_gloo.so ]]; then
    export HNLAUNCH_BACKENDS=$PLAIN
    more gloo-sleep hang ' does not: it sleeps in load_batch'
    more gloo-stop hang ' does not: it is stopped by a signal (state T)'
    hangs gloo-order mismatch 'rank 2 waits in hn_broadcast (libhnlaunch), called in get_weights'
    hangs gloo-crossed mismatch 'rank 2 waits in hn_all_reduce (libhnlaunch), called in add_up'
else
    skip 'ranks that wait in Gloo' 'built without Gloo'
fi
# Of ranks without a library only those that cannot go on are known to hang.
plain_hangs() { # HOW TEXT
    start --local 4 --label none "$BUILD/tests/clients/hanging" "plain-$1" 2
    met "plain $1" 4
    names "plain $1: rank 2 is named" hang 2
    says "plain $1: it is told what it does" "$2"
    stop_run
}
[[ $long != all ]] || plain_hangs stop 'no rank is seen to wait for another, but rank 2 (localhost, pid '
plain_hangs vfork 'waits for a file system or a device (state D)'
# A function that the compiler has put into its caller.
cat >inlined.c <<'END'
#include <stdio.h>
#include <unistd.h>
static inline __attribute__((always_inline)) void load_shard(int fd)
{
        char byte;
        while (read(fd, &byte, 1) > 0)
                ;
}
int main(void)
{
        int fds[2];
        if (pipe(fds) < 0 || puts("met") < 0 || fflush(stdout))
                return 1;
        load_shard(fds[0]);
        return 0;
}
END
if type -P cc >/dev/null && cc -O2 -g -o inlined inlined.c; then
    start --local 1 --label none ./inlined
    met 'inlined' 1
    reads_shard() { why && [[ $(field "' '.join(ranks[0]['stack'])") == 'read load_shard (inlined.c:6) main (inlined.c:14)' ]]; }
    ok 'inlined: the function has its line, and its caller' wait_for reads_shard
    stop_run
else
    skip 'inlined functions' 'no compiler here'
fi
# A rank that opens a FIFO which none has open at the other end, while the others wait for something else.
mkfifo ff
cat >opens.sh <<'END'
echo met
if [[ $HN_RANK == 2 ]]; then read -r line <./ff; fi
read -r line <>"$1"
END
if [[ -r /proc/self/syscall && $(cat /proc/self/wchan) != '' ]]; then
    start --local 4 --label none --hang-after 1s bash opens.sh "$TMP/empty.fifo"
    met 'open' 4
    names 'open: rank 2 is named' hang 2
    says 'open: it is told what is missing' ' waits for a writer of ./ff (none has it open)'
    unasked() { grep -q 'HN811.*a writer of ./ff (none has it open)' "$ERR"; }
    ok 'open: it is told unasked' wait_for unasked
    stop_run
else
    skip 'a FIFO without its other end' 'needs /proc/PID/syscall and wchan'
fi

# A lock that flock(1) has taken for a shell, and ended.
if type -P flock >/dev/null && [[ -r /proc/self/syscall ]]; then
    bash -c 'exec 9>shared.lock; flock 9; echo $$; read -r line <>"$1"' bash "$TMP/empty.fifo" >holder 9>&- &
    shell=$!
    ok 'flock: a shell has the lock' wait_for lines_are holder 1
    start --local 1 --label none sh -c 'echo met; exec flock shared.lock true'
    met 'flock' 1
    waits_for_shell() { why && [[ $(field "ranks[0]['blocked']") == "lock $PWD/shared.lock (process $shell, bash, has it)" ]]; }
    ok 'flock: the shell is named, not the program that has ended' wait_for waits_for_shell
    has 'flock: ... in the paragraph, too' "$(field "a['file']")" "waits to lock $PWD/shared.lock (process $shell, bash, has it)"
    kill "$shell"
    exits 'flock: the rank goes on after the shell' 0 finish
else
    skip 'the shell that has a lock' 'needs flock (util-linux) and /proc/PID/syscall'
fi

# In a process namespace: the numbers of processes are those of this machine, and tools take the stacks.
hn --local 1 --contain pidns sh -c 'read -r pid rest </proc/self/stat; [ "$pid" = $$ ]'
if [[ $RC == 0 ]]; then
    start --local 4 --contain pidns --label none "$BUILD/tests/clients/hanging" sleep 2 "$PWD/fifo"
    met 'pidns' 4
    names 'pidns: rank 2 is named' hang 2
    says 'pidns: it is told what it does' ' does not: it sleeps in '
    stack_has 'pidns: its stack is there' 2 'load_batch'
    stack_has 'pidns: and those of the others' 0 'hn_barrier'
    is 'pidns: its number is that of the process here' \
        "$(tr '\0' '\n' <"/proc/$(field "ranks[2]['pid']")/environ" | grep '^HN_RANK=')" HN_RANK=2
    stop_run
else
    skip 'ranks in a process namespace' 'no process namespaces with a /proc of their own here'
fi

is_no_hang() { # HOW TEXT
    local i
    start --local 4 --label none "$BUILD/tests/clients/hanging" "$1" 2
    met "$1" 4
    for i in 1 2; do
        why
        is "$1: no hang ($i)" "$(field "a['kind'], a['outliers']")" "('no hang', [])"
    done
    says "$1: it is told why" "$2"
    stop_run
}
is_no_hang all-compute 'no rank is seen to wait for another'
is_no_hang all-sleep 'no rank is seen to wait for another'
is_no_hang all-meet 'no hang is visible'
start --local 4 --label none "$BUILD/tests/clients/hanging" compute 2
met compute 4
ok 'compute: the others wait' wait_for others_wait 2
is 'compute: a slow rank is no hang' "$(field "a['kind'], a['outliers']")" "('no hang', [])"
says 'compute: but it is told' ' does not: it computes ('
stop_run

# A rank that computes in a thread, and gets no processor: nearly all time of its only one goes to another process.
if command -v chrt >/dev/null; then
    cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
    start --local 4 --label none sh -c 'if [ "$RANK" = 2 ]; then
        [ ! -e /proc/self/autogroup ] || echo 19 >/proc/self/autogroup # sessions share processors alike
        exec taskset -c "$0" chrt --idle 0 "$@"
    fi
    exec "$@"' "$cpu" \
        "$BUILD/tests/clients/hanging" thread 2
    met starved 4
    hogs=()
    for i in 1 2 3 4; do
        taskset -c "$cpu" sh -c ': >"$0"; while :; do :; done' "hog.$i" &
        hogs+=($!)
        ok "starved: process $i takes the processor" wait_for test -e "hog.$i"
    done
    # On a busy machine the processor time of a rank may come too late for an answer, which then has none.
    is_measured() { others_wait 2 && [[ $(field "'cpu_percent' in ranks[2]") == True ]]; }
    ok 'starved: the others wait, and the rank is measured' wait_for is_measured
    is 'starved: a rank without a processor is no hang' "$(field "a['kind'], a['outliers']")" "('no hang', [])"
    # Where it got a little of the processor between two looks, it has moved.
    ok 'starved: it is told that it computes, or goes on' grep -qE ' does not: it (computes \(|goes on in )' <(field "a['text']")
    kill "${hogs[@]}"
    stop_run
else
    skip 'starved: a rank without a processor is no hang' 'needs chrt (util-linux)'
fi

# --- PyTorch --------------------------------------------------------------------------------------

# py-spy shows the frames of Python. Without it the stacks of C tell that ranks wait in torch.distributed, no more.
torch_hangs() { # HOW KIND TEXT: rank 1 of 3 is named
    start --local 3 --label none /usr/bin/python3 "$ROOT/tests/clients/torch_hanging.py" "$1" 1 "$TMP/empty.fifo"
    met "torch $1" 3
    names "torch $1: rank 1 is named" "$2" 1
    says "torch $1: it is told what it does" "$3"
    stop_run
}
export OMP_NUM_THREADS=1
if ! /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null; then
    skip 'ranks of PyTorch' 'needs PyTorch in /usr/bin/python3'
else
    torch_hangs stop hang ' does not: it is stopped by a signal (state T)'
    torch_hangs sleep hang ' does not: it sleeps'
    torch_hangs fifo hang " does not: it waits for a writer of $TMP/empty.fifo (none has it open)"
    if has_tool py-spy; then
        torch_hangs sleep hang ' sleeps in load_batch (torch_hanging.py:'
        torch_hangs fifo hang " does not: it waits for a writer of $TMP/empty.fifo (none has it open) in load_batch (torch_hanging.py:"
        torch_hangs order mismatch 'rank 1 waits in all_gather (torch.distributed), called in load_batch (torch_hanging.py:'
        torch_hangs skip mismatch 'rank 1 waits in barrier (torch.distributed), called in load_batch (torch_hanging.py:'
    else
        skip 'frames of Python' 'needs py-spy (pip install py-spy) in PATH'
    fi
    # The ranks that have waited in vain fail; the odd one is looked at before it is stopped.
    COLLECTIVE_SECONDS=5 hn --local 3 --label none -x COLLECTIVE_SECONDS /usr/bin/python3 "$ROOT/tests/clients/torch_hanging.py" sleep 1
    exits 'torch, a collective that times out: the code of the rank that has waited' 1
    has 'torch, a collective that times out: it is told where the odd rank is' "$ERR" '| rank 1 on localhost '
    has 'torch, a collective that times out: before the ranks are stopped' <(grep -oE 'where the ranks are|error.HN50.' "$ERR" | xargs) \
        'where the ranks are error'
    start --local 3 --label none /usr/bin/python3 "$ROOT/tests/clients/torch_hanging.py" all-train 1
    met 'torch all-train' 3
    for i in 1 2; do
        why
        is "torch all-train: no hang ($i)" "$(field "a['kind'], a['outliers']")" "('no hang', [])"
    done
    stop_run
fi

# --- without tools ------------------------------------------------------------------------------

mkdir "$TMP/bin"
ln -s /usr/bin/* /bin/sh "$TMP/bin" 2>/dev/null
rm -f "$TMP"/bin/{gdb,eu-stack,py-spy}
(
    PATH=$TMP/bin
    start --local 4 --label none "$BUILD/tests/clients/hanging" sleep 2
    echo "$PID" >pid
    met 'no tools' 4
    names 'no tools: rank 2 is named' hang 2
    is 'no tools: each rank says why' "$(field "a['problems']")" "['no stack of ranks 0-3 on localhost: not installed: eu-stack, gdb']"
    hn why
    has 'no tools: and what helps' "$OUT" '= help: pip install py-spy'
    stop_run
    echo $tests $failures >counts
)
read -r tests failures <counts

# Another tool shows frames of C of a Python program, and that they are no more.
mkdir "$TMP/native"
ln -s /usr/bin/* /bin/sh "$TMP/native" 2>/dev/null
rm -f "$TMP"/native/py-spy
PATH=$TMP/native start --local 1 --label none /usr/bin/python3 -c 'import time
print("met", flush=True)
time.sleep(1000)'
met 'no py-spy' 1
PATH=$TMP/native why
is 'no py-spy: it is told that the stack is one of C' "$(field "a['problems']")" \
    "['rank 0 on localhost: functions of C only, as py-spy is not installed']"
has 'no py-spy: there is that stack' "$(field "a['file']")" '--- '
PATH=$TMP/native hn why
is 'no py-spy: the tools of C that are there are not offered' "$(grep '= help' "$OUT" "$ERR" -h | xargs)" \
    '= help: pip install py-spy in the environment of the ranks'
stop_run

# --- rights -------------------------------------------------------------------------------------

# The environment of a rank names programs that the agent starts: not where the rank has another user.
mkdir -p "$TMP/venv/bin"
cat >"$TMP/venv/bin/py-spy" <<END
#!/bin/sh
id -u >>"$TMP/venv/users"
END
chmod 755 "$TMP" "$TMP/venv" "$TMP/venv/bin" "$TMP/venv/bin/py-spy"
: >"$TMP/venv/users"
python() { # WRAPPER...
    PATH=$TMP/bin VIRTUAL_ENV=$TMP/venv start --local 1 --label none "$@" /usr/bin/python3 -c 'import time
print("met", flush=True)
time.sleep(1000)'
    ok "$1: the rank is up" wait_for lines_are "$OUT" 1
    PATH=$TMP/bin why
    stop_run
}
python env
is 'py-spy of the environment of a rank is used' "$(sort -u "$TMP/venv/users")" "$(id -u)"
if [[ $(id -u) == 0 ]] && has_tool setpriv; then
    : >"$TMP/venv/users"
    python setpriv --reuid 65534 --regid 65534 --clear-groups
    is 'but not of a rank that has given its rights up' "$(cat "$TMP/venv/users")" ''
else
    skip 'but not of a rank that has given its rights up' 'needs root and setpriv'
fi

# --- a tool that hangs --------------------------------------------------------------------------

# The tool has stopped the rank, and does not come back: it is killed, and the rank goes on.
mkdir "$TMP/slow"
export SLOW_PIDS=$TMP/slow.pids REAL_GDB
REAL_GDB=$(command -v gdb || true)
cat >"$TMP/slow/eu-stack" <<'END'
#!/bin/sh
for last; do :; done
echo "$$" >>"$SLOW_PIDS"
[ -n "$REAL_GDB" ] && exec "$REAL_GDB" -nx -batch -p "$last" -ex 'shell sleep 1000'
kill -STOP "$last"
exec sleep 1000
END
chmod +x "$TMP/slow/eu-stack"
: >"$SLOW_PIDS"
PATH=$TMP/slow:$TMP/bin start --local 1 --label none bash -c 'echo $$; echo met; while :; do n=$((n + 1)); echo $n >count; read -t 0.01 <>'"$TMP/empty.fifo"'; done'
met 'slow tool' 2
rank=$(head -n 1 "$OUT")
stopped() { grep -q '^State:.[Tt]' "/proc/$rank/status"; }
why &
asker=$!
ok 'slow tool: it has stopped the rank' wait_for stopped
wait "$asker"
is 'slow tool: it is told' "$(field "a['problems']" | sed 's/.*eu-stack failed: timed out.*/timed out/')" 'timed out'
before=$(cat count)
goes_on() { [[ $(cat count) != "$before" ]]; }
ok 'slow tool: the rank goes on' wait_for goes_on
not_stopped() { ! stopped; }
ok 'slow tool: it is not stopped' not_stopped
gone() { while read -r p; do [[ ! -e /proc/$p ]] || return 1; done <"$SLOW_PIDS"; }
ok 'slow tool: no tool is left' wait_for gone
# A run that ends while a tool has its rank is not held up.
: >"$SLOW_PIDS"
why &
asker=$!
ok 'slow tool: it has stopped the rank again' wait_for stopped
exits 'slow tool: Ctrl-C ends the job' 130 finish_by INT
wait "$asker"
is 'slow tool: who asked is told the end of the run' "$(grep -c 'error\[HN802\]: run .* has ended: stopped after .*: SIGINT' "$TMP/why.err")" 1
: >"$SLOW_PIDS"
PATH=$TMP/slow:$TMP/bin start --log-dir none --local 1 --label none bash -c 'echo $$; while :; do read -t 0.1 <>'"$TMP/empty.fifo"'; done'
met 'slow tool, no records' 1
rank=$(cat "$OUT")
why &
asker=$!
ok 'slow tool, no records: it has stopped the rank' wait_for stopped
hn stop "$("$HNLAUNCH" ps --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')"
wait "$asker"
is 'slow tool, no records: who asked is told, too' $?:"$(grep -c 'error\[HN802\]: run .* has ended: stopped' "$TMP/why.err")" 69:1
ok 'slow tool: no tool is left then' wait_for gone

# --- a process that ends before its tool comes to it ------------------------------------------------

# The rank starts its program again. The tool says what eu-stack and py-spy say of a process that is no more.
mkdir "$TMP/late"
cat >"$TMP/late/eu-stack" <<'END'
#!/bin/sh
for last; do :; done
[ "$(cat "/proc/$last/comm")" = sleep ] || exit 1
kill -KILL "$last"
while [ -e "/proc/$last" ]; do sleep 0.02; done
echo "eu-stack: dwfl_linux_proc_attach pid $last: Operation not permitted" >&2
exit 1
END
chmod +x "$TMP/late/eu-stack"
PATH=$TMP/late:$TMP/bin start --local 1 --label none bash -c 'echo met; while :; do sleep 1000; done'
met 'late tool' 1
says_ended() { why && [[ $(field "a['problems']") == "['no stack of rank 0 on localhost: its process sleep had ended']" ]]; }
ok 'late tool: the process that had ended is told, which is not the rank' wait_for says_ended
hn why
lacks 'late tool: ... and not that the nodes forbid tracing' "$OUT" 'forbid'
stop_run

nothing_left 'nothing is left'
done_testing

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# After a crash the last line has the line of the program, from the core file that the rank left on its node, and a note
# tells why there is none. Of a Python program it is the line of the user's file.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
type -P cc >/dev/null || skip_all 'no compiler here'
# The sanitizer sets the limit of its process to 0.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}disable_coredump=0
core_pattern=$(cat /proc/sys/kernel/core_pattern)

cat >solver.c <<'C'
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) size_t load_batch(const char *volatile from)
{
        char batch[64];

        memcpy(batch, from, sizeof(batch));
        return strlen(from) + batch[0];
}

static inline __attribute__((always_inline)) void exchange_halo(int *to)
{
        *to = 1;
        __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
        signal(SIGABRT, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        if (argc > 3)
                return (int)load_batch(NULL);
        if (argc > 2)
                abort();
        if (argc > 1)
                raise(atoi(argv[1]));
        exchange_halo(NULL);
        return 0;
}
C
cc -g -O1 -fno-builtin -o solver solver.c || skip_all 'the compiler makes no programs'
one_note() { [[ $(grep -c 'core file' "$ERR") == 1 ]]; }

ulimit -Sc 0
case $core_pattern in
'|'*)
    hn --local 1 ./solver
    program=${core_pattern#|}
    program=${program%% *}
    has 'the program that gets the cores is named' "$ERR" "note: no core file: core_pattern gives cores to ${program##*/}"
    ok 'in one note' one_note
    skip 'the core file is read' 'core_pattern of this machine gives cores to a program'
    done_testing
    exit
    ;;
/*)
    skip_all 'core_pattern of this machine names a folder'
    ;;
esac

hn_exits 'a crash: 139' 139 --local 1 ./solver
has 'a limit of 0 is the reason why there is no core file' "$ERR" 'note: no core file: ulimit -c is 0'
ok 'in one note' one_note
hn_exits 'SIGKILL: 137' 137 --local 1 ./solver 9
lacks 'leaves no core' "$ERR" 'core file'
hn --local 1 sh -c 'exit 3'
lacks 'nor does an exit' "$ERR" 'core file'
mkdir -p lib/python3/site-packages
printf 'import ctypes\ndef read(at):\n    return ctypes.string_at(at)\n' >lib/python3/site-packages/meshio.py
printf 'import meshio\n\ndef load():\n    return meshio.read(0)\n\nload()\n' >train.py
hn --local 1 -x "PYTHONPATH=$PWD/lib/python3/site-packages" python3 train.py
verdict_has 'the line of the user is told, not that of a library' ": File \"$PWD/train.py\", line 4 in load  (exit 139)"
hn --local 1 python3 -c 'import ctypes; ctypes.string_at(0)'
has 'Python tells its line itself' "$ERR" '(most recent call first)'
lacks 'and no core is missed' "$ERR" 'core file'

ulimit -Sc unlimited 2>/dev/null || ulimit -Sc "$(ulimit -Hc)"
if [[ $(ulimit -Sc) == 0 ]]; then
    skip 'the core file is read' 'the hard limit of core files is 0 here'
    done_testing
    exit
fi
mkdir node
crashed='was killed by SIGSEGV (Segmentation fault) at exchange_halo (solver.c:15), called in main (solver.c:29)  (exit 139)'
cores() { find . -maxdepth 2 -type f ! -name 'solver*' ! -name '*.py'; }
if type -P eu-stack gdb >/dev/null; then
    hn_exits 'one of four crashes: 139' 139 --local 4 --chdir node sh -c '[ $RANK = 2 ] || exec sleep 60; exec ../solver'
    verdict_has 'the last line has the line, and who called' "rank 2 on localhost $crashed"
    told_once 'once' exchange_halo
    ok 'and where the file is' grep -qE "note: core file: $PWD/node/[^ ]+ on localhost\$" "$ERR"
    hn report
    has 'so has the report' "$OUT" "rank 2 on localhost $crashed"
    rm -f "$(cores)"
    hn --local 1 ./solver and abort
    verdict_has 'abort() is not the line that matters' 'SIGABRT (Aborted) at main (solver.c:26)  (exit 134)'
    rm -f "$(cores)"
    hn --local 1 ./solver and load batch
    verdict_has 'nor is the code of a function of the C library' 'at load_batch (solver.c:9) calling mem' ', called in main (solver.c:24)  (exit 139)'
    rm -f "$(cores)"
    hn --local 1 sh -c 'echo "step 3: no mesh" >&2; exec ./solver'
    verdict_has 'words of the rank stand before' "step 3: no mesh, at exchange_halo (solver.c:15), called in main"
    rm -f "$(cores)"
else
    skip 'the line is told' 'needs eu-stack or gdb'
fi
if type -P gdb >/dev/null; then
    mkdir bin
    printf '#!/bin/sh\necho "no frames here" >&2\nexit 2\n' >bin/eu-stack
    chmod +x bin/eu-stack
    run env "PATH=$PWD/bin:$PATH" "$HNLAUNCH" --local 1 ./solver
    verdict_has 'gdb is asked when eu-stack finds nothing' "rank 0 on localhost $crashed"
    rm -f "$(cores)"
    run env "PATH=$PWD/bin:$PATH" "$HNLAUNCH" --local 1 ./solver and load batch
    verdict_has 'and tells the line of the program, too' 'at load_batch (solver.c:9) calling mem' ', called in main (solver.c:24)  (exit 139)'
    rm -f "$(cores)" bin/eu-stack
else
    skip 'gdb is asked when eu-stack finds nothing' 'needs gdb'
fi

# The rank raises its limit where the agent has 0.
ulimit -Sc 0
hn --local 1 sh -c "ulimit -c $(ulimit -Hc); exec ./solver"
has 'a limit that the rank raises itself' "$ERR" "note: core file: $PWD/"
rm -f "$(cores)"
hn --local 1 sh -c "ulimit -c $(ulimit -Hc); cd node; exec ../solver"
ok 'a core elsewhere is not blamed on the limit' grep -qE "note: no core file: there is none of process [0-9]+ as $PWD/" "$ERR"
rm -f node/*
hn --local 1 sh -c "ulimit -c $(ulimit -Hc); exec python3 -c 'import ctypes; ctypes.string_at(0)'"
has 'the core of a Python program is named' "$ERR" "note: core file: $PWD/"
verdict_has 'and not read: Python has told the line' 'SIGSEGV (Segmentation fault): File "<string>", line 1 in <module>  (exit 139)'
rm -f "$(cores)"

hn --local 1 --contain pidns true
if grep -q 'process namespace' "$ERR"; then
    skip 'a process namespace' 'none can be made here'
else
    hn --local 1 --contain pidns sh -c "ulimit -c $(ulimit -Hc); exec ./solver"
    has 'in a process namespace no core file is looked for' "$ERR" 'note: no core file: with --contain pidns none is looked for'
fi
rm -f "$(cores)"

# A shell is all that the node has.
mkdir tools
ln -s /bin/sh tools/sh
run env "PATH=$PWD/tools" "$HNLAUNCH" --local 1 sh -c "ulimit -c $(ulimit -Hc); exec ./solver"
has 'missing tools are named' "$ERR" 'on localhost; not installed: eu-stack, gdb'
rm -f "$(cores)"

# A tool that does not end: Ctrl-C ends the wait, and so does the loss of the node.
printf '#!/bin/sh\necho $$ >reads.new; mv reads.new reads; exec /bin/sleep 60\n' >tools/eu-stack
chmod +x tools/eu-stack
ln -s /bin/mv tools/mv
slow() { PATH=$PWD/tools:$PATH start --local 1 sh -c "ulimit -c $(ulimit -Hc); exec ./solver"; }
reads() { [[ -s reads ]]; }
tool_ended() { ! kill -0 "$(cat reads)" 2>/dev/null; }
slow
ok 'a tool reads' wait_for reads
exits 'Ctrl-C meanwhile: the exit code stays' 139 finish_by INT
verdict_has 'and the last line' 'rank 0 on localhost was killed by SIGSEGV'
ok 'the tool is ended' wait_for tool_ended
rm -f reads "$(cores)"
slow
wait_for reads
agent=$(ps -o ppid= "$(ps -o ppid= "$(cat reads)" | tr -d ' ')" | tr -d ' ')
kill -KILL "$agent"
exits 'the agent dies meanwhile: the exit code stays' 139 finish
ok 'the tool is ended, too' wait_for tool_ended
rm -f reads "$(cores)"
slow
wait_for reads
finish
has 'the limit of time is told' "$ERR" 'on localhost; eu-stack failed: timed out'
ok 'and has ended the tool' wait_for tool_ended
done_testing

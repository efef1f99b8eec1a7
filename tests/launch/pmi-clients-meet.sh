#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that speak PMI-1 over PMI_FD meet, exchange keys and end as MPI programs do. The client is a few lines of
# Python; programs of real MPI libraries are in clients/mpi-programs-run-unchanged.sh.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >pmi.py <<'END'
import os, socket, sys, time
conn = socket.socket(fileno=int(os.environ["PMI_FD"]))
file = conn.makefile("rw", newline="\n")
rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])

def ask(text):
    file.write(text + "\n")
    file.flush()
    return file.readline().rstrip("\n")

def get(key):
    return ask("cmd=get kvsname=x key=" + key).partition("value=")[2]

mode = sys.argv[1]
while mode == "late" and rank == 1 and not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
assert ask("cmd=init pmi_version=1 pmi_subversion=1").startswith("cmd=response_to_init rc=0"), "init"
ask("cmd=put kvsname=x key=%s-%d value=card of %d" % (mode, rank, rank))
if mode == "alone" and rank == 1:
    sys.exit(7)
assert ask("cmd=barrier_in") == "cmd=barrier_out rc=0", "barrier"
assert [get("%s-%d" % (mode, i)) for i in range(size)] == ["card of %d" % i for i in range(size)], "cards"
if mode == "abort" and rank == 1:
    file.write("cmd=abort exitcode=42 message=the ocean is dry\n")
    file.flush()
    sys.exit(3)
if mode == "leave" and rank == 1:
    sys.exit(0)
if mode in ("raise", "exit"): # as mpi4py does: MPI_Finalize() at the exit of the interpreter
    while rank != 1:
        time.sleep(1)
    if mode == "raise":
        sys.stderr.write('Traceback (most recent call last):\n  File "t.py", line 7, in <module>\nValueError: boom\n')
        sys.stderr.flush()
if mode == "nonsense" and rank == 1:
    print("answer: %r" % ask("nonsense"), flush=True)
    sys.exit(5)
if mode != "meet":
    ask("cmd=barrier_in")
others = [f for f in os.listdir("/proc/self/fd") if int(f) > 2 and os.path.exists("/proc/self/fd/" + f) and
          os.readlink("/proc/self/fd/" + f).startswith("socket")]
print("rank %d of %d, %s, sockets %d" % (rank, size, get("PMI_process_mapping"), len(others)), flush=True)
assert ask("cmd=finalize") == "cmd=finalize_ack rc=0", "finalize"
END

want='rank 0 of 3, (vector,(0,1,3)), sockets 1
rank 1 of 3, (vector,(0,1,3)), sockets 1
rank 2 of 3, (vector,(0,1,3)), sockets 1'
for contain in tree cgroup pidns; do
    hn --local 3 --label none -o run.contain="$contain" python3 pmi.py meet
    [[ $contain == pidns && $RC -ne 0 ]] && continue # not every machine allows it
    exits "three ranks meet, contained by $contain" 0
    is 'each sees the others, and has one connection' "$(sort "$OUT")" "$want"
done
# --- a rank that is late: the store hears nothing of a node's barrier before it is complete
for place in '--local 3' '-w localhost:2,127.0.0.1:2'; do
    # shellcheck disable=SC2086
    start $place --wait-warn 1s --label none python3 pmi.py late "$PWD/go"
    ok "$place: a wait for a rank of the node is told" wait_for grep -q 'HN404.* wait.* in barrier `PMI` for' "$ERR"
    has "$place: with the missing rank" "$ERR" 'rank 1 on localhost has not come'
    touch go
    finish
    exits "$place: when it comes the job goes on" 0
    rm go
done

hn --local 2 --label none sh -c 'python3 pmi.py meet && python3 pmi.py meet'
exits 'programs of a script meet one after the other' 0
is 'each time' "$(grep -c '^rank' "$OUT")" 4
for kind in pmi1 pmi2; do
    hn --local 2 --label none --mpi "$kind" sh -c 'echo "${PMI_JOBID-none}" && python3 pmi.py meet'
    exits "--mpi $kind serves them, too" 0
done
lacks 'and pmi2 sets PMI_JOBID' "$OUT" none

hn_exits 'the code of an abort is the exit code' 42 --local 3 python3 pmi.py abort
has 'and its message is told' "$ERR" 'rank 1 on localhost aborted the job: MPI_Abort() with code 42: the ocean is dry'
hn_exits 'a rank that leaves without finalizing is a failure' 1 --local 3 python3 pmi.py leave
has 'and named' "$ERR" 'error[HN406]: a rank left without MPI_Finalize()'
has 'in the last line, too' "$ERR" ': rank 1 on localhost exited with code 0 without MPI_Finalize()  (exit 1)'
hn_exits 'a rank that fails before a barrier ends the job' 7 --local 3 python3 pmi.py alone
hn --local 3 --on-failure continue python3 pmi.py alone
has 'without a stop the others hear that the barrier failed' "$ERR" 'AssertionError: barrier'
hn_exits 'a rank that speaks nonsense fails' 5 --local 2 python3 pmi.py nonsense
has 'its connection is closed' "$OUT" "answer: ''"
has 'as a warning says' "$ERR" 'warning[HN605]: localhost: closed the PMI connection of rank 1: malformed or misplaced message of PMI-1'
hn --local 2 --max-restarts 1 sh -c '[ "$HN_RESTART" = 1 ] && exec python3 pmi.py meet; exec python3 pmi.py alone'
exits 'a second attempt starts anew' 0

# Rank 1 does not come before the table was asked for.
start --local 3 sh -c 'while [ "$PMI_RANK" = 1 ] && [ ! -e come ]; do sleep 0.05; done; exec python3 pmi.py meet'
wait_for grep -q '^hnlaunch: run' "$ERR"
asked_table() {
    kill -QUIT "$PID"
    grep -q 'ranks 0,2 wait in barrier `PMI`' "$ERR"
}
ok 'Ctrl-\ shows who waits in a barrier' wait_for asked_table
: >come
finish
exits 'and the others come' 0

# --- a rank that ends while the others go on
start --local 3 python3 pmi.py raise
ok 'a rank that has raised and waits in MPI_Finalize() is told' wait_for grep -q 'warning\[HN504\]' "$ERR"
has 'with its place' "$ERR" 'rank 1 on localhost waits in MPI_Finalize() for'
has 'and the way out' "$ERR" 'python3 -m mpi4py'
ok 'with the exception' grep -q 'HN504.* after ValueError: boom$' "$ERR"
lacks 'and no other rank is named' "$ERR" 'has not come'
lacks 'nor several' "$ERR" 'have not come'
kill "$PID"
finish
start --local 3 --wait-warn 1s python3 pmi.py exit
ok 'one that has left without a word is told after --wait-warn' wait_for grep -q 'HN504.*rank 1 on localhost waits in MPI_Finalize() for [0-9.]*s$' "$ERR"
kill "$PID"
finish

hn --local 2 --label none --mpi none sh -c 'env | grep -E "^PMI_|^MPI_" || echo none'
is '--mpi none sets nothing' "$(sort -u "$OUT")" none
I_MPI_PMI_LIBRARY=/slurm.so PMIX_RANK=1 hn --local 1 --label none sh -c 'echo "${I_MPI_PMI_LIBRARY-no} ${PMIX_RANK-no}"'
is "a site's library is not exported, nor what another launcher has set" "$(cat "$OUT")" 'no no'
I_MPI_PMI_LIBRARY=/slurm.so hn --local 1 --label none -x I_MPI_PMI_LIBRARY sh -c 'echo "${I_MPI_PMI_LIBRARY-no}"'
is 'unless by name' "$(cat "$OUT")" /slurm.so
hn_exits 'an unknown kind is an error' 64 --local 2 --mpi ucx true
has 'that lists the choices' "$ERR" 'must be one of auto|none|pmi1|pmi2'
nothing_left 'nothing is left'
done_testing

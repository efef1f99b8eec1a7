#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch why names the rank of an MPI program that keeps the others waiting inside of MPI, where the store sees nothing:
# stacks and the kernel do. With PyPI's MPICH 5, whose ranks spin while they wait.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/why.sh"

type -P cc python3 >/dev/null || skip_all 'needs cc and python3'
type -P eu-stack gdb >/dev/null || skip_all 'needs eu-stack (elfutils) or gdb'
kit=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/mpi
bash "$ROOT/tests/lib/mpi_kit.sh" "$kit" mpich5 2>"$TMP/kit.log" || skip_all "cannot fetch MPICH: $(tail -n 1 "$TMP/kit.log")"
ok 'the program is built' "$kit/mpich5/bin/mpicc" -g -O1 -o hanging "$ROOT/tests/clients/mpi/mpi_hanging.c"
runtime_dir
mkfifo fifo

hangs() { # HOW KIND OUTLIERS TEXT
    comes_up "$1: all ranks have met" 4 start --local 4 --label none ./hanging "$1" 2 "$PWD/fifo"
    ok "$1: the others wait" wait_for others_wait 2
    is "$1: the rank is named" "$(field "a['kind'], a['outliers']")" "('$2', $3)"
    says "$1: it is told what it does" "$4"
    kill -INT "$PID"
    sleep 0.1 # within 50 ms both would be one
    finish_by INT
}
hangs sleep hang '[2]' 'ranks 0-1,3 wait in MPI_Barrier (MPI), called in meet_first'
hangs stop hang '[2]' ' does not: it is stopped by a signal (state T)'
hangs fifo hang '[2]' " does not: it waits to read $PWD/fifo in read_from"
hangs lock hang '[2]' " does not: it waits to lock $PWD/fifo (process "
hangs receive mismatch '[2]' 'rank 2 waits in MPI_Recv (MPI), called in get_batch'
hangs leave mismatch '[2]' 'rank 2 waits in MPI_Finalize (MPI), called in '
hangs crossed mismatch '[2]' 'rank 2 waits in MPI_Barrier (MPI), called in meet_second'
hangs compute 'no hang' '[]' ' does not: it computes ('

# All are inside of MPI at every look, and go on.
comes_up 'all-meet: all ranks have met' 4 start -v --local 4 --label none --hang-after 1s --on-hang stop ./hanging all-meet 9
ok 'all-meet: the ranks were looked at' wait_for grep -q 'no rank has gone on for 1.0s, but ' "$ERR"
lacks 'all-meet: no hang is told' "$ERR" HN811
why
is 'all-meet: who asks sees them wait' "$(field "a['kind'], a['outliers']")" "('all wait', [])"
says 'all-meet: and that they may go on' 'so the ranks may also go on'
kill -INT "$PID"
sleep 0.1 # within 50 ms both would be one
finish_by INT
nothing_left 'nothing is left'
done_testing

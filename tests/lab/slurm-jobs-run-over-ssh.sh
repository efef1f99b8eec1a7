#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch inside a job of a real Slurm, over ssh: it runs on the nodes of the allocation, and scancel stops the ranks
# in order.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/slurm.sh" || exit 1

lab_up 4
slurm_up

lab_run salloc -N2 "$LAB_HNLAUNCH" -w node[003-004],node001 --ppn 2 --label none sh -c 'hostname; exit $((RANK == 5 ? 7 : 0))'
exits 'salloc: the exit code of the rank is that of salloc' 7

# The trap lets the shell live on until it has written the code.
cat >job.sh <<END
#!/bin/bash
#SBATCH -N4 -o job.out
trap : TERM
$LAB_HNLAUNCH -w "\$SLURM_JOB_NODELIST" --ppn 1 "\$@"
echo "exit code \$?"
END
lab_run sbatch --wait job.sh hostname
exits 'sbatch: a job that runs on its nodes' 0
is 'each node has run a rank' "$(sed -n 's/.* | //p' job.out | sort | paste -sd' ')" 'node001 node002 node003 node004'
has 'the job exits with 0' job.out 'exit code 0'

lab_run sbatch job.sh bash -c 'trap "echo rank $RANK saves; exit 3" TERM; echo "rank $RANK runs"; while :; do sleep 0.1; done'
four_run() { [[ $(grep -c 'rank . runs' job.out) == 4 ]]; }
wait_for four_run || fail 'four ranks run'
lab run scancel "$(slurm_job)"
wait_for grep -qs 'exit code' job.out || fail 'the job ends after scancel'
is 'scancel: each rank can save its state' "$(grep -c 'rank . saves' job.out)" 4
has 'scancel: the code is that of a termination' job.out 'exit code 143'
slurm_nothing_left 'nothing is left on the nodes'

done_testing

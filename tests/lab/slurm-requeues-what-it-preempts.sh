#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Slurm takes the nodes of a job for one of a higher priority (PreemptMode=REQUEUE): the ranks save, --requeue-exit is the code,
# the script puts the job back into the queue, and its next start goes on behind what was saved.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/slurm.sh" || exit 1

lab_up 2
SLURM_PREEMPT=30 SLURM_PREEMPT_MODE=REQUEUE
slurm_up
cat >train <<'END'
#!/bin/sh
[ ! -e saved.$RANK ] || { echo "rank $RANK goes on behind step $(cat saved.$RANK)"; exit 0; }
trap 'echo 7 >saved.$RANK; echo "rank $RANK has saved"; exit 0' TERM
echo "rank $RANK begins"
while :; do sleep 0.1; done
END
cat >job <<END
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --exclusive --requeue --open-mode=append --output=job.out
trap : TERM
$LAB_HNLAUNCH --requeue-exit 99 --grace 20s --ppn 1 --label none ./train
code=\$?
echo "code \$code"
[ \$code != 99 ] || scontrol requeue "\$SLURM_JOB_ID"
exit \$code
END
chmod +x train job
two() { [[ $(grep -c "rank . $1" job.out) == 2 ]]; }
state_is() { [[ $(lab run squeue -h -j "$job" -o %t) == "$1" ]]; }

lab_run sbatch job
job=$(slurm_job)
wait_for two begins || fail 'two ranks run' "$(cat job.out)"
lab_run srun -p urgent -N2 --exclusive hostname
exits 'the job of a higher priority runs' 0
is 'on both nodes' "$(sort "$OUT" | xargs)" 'node001 node002'
ok 'the preempted job is in the queue' wait_for state_is PD
is 'each rank has saved' "$(grep -c 'has saved' job.out)" 2
is 'hnlaunch has ended once, with the code of --requeue-exit' "$(grep '^code' job.out)" 'code 99'
has 'its last line tells the signal' job.out 'SIGTERM  (exit 99)'
# Slurm waits two minutes before it starts a job again: nodes refuse credentials of the second in which its last start ended.
lab run scontrol update JobId="$job" StartTime=now+2
ok 'its next start ends' wait_for grep -q '^code 0' job.out
ok 'behind what each rank has saved' two 'goes on behind step 7'
slurm_nothing_left 'nothing is left'

# Slurm signals agents alone: that of a node whose rank has ended counts for the others, too.
cat >half <<'END'
#!/bin/sh
trap 'echo "rank $RANK has saved"; exit 0' TERM
echo "rank $RANK begins"
while [ $RANK = 0 ]; do sleep 0.1; done
END
sed 's|\./train|./half|; s|=job.out|=half.out|' job >half-job
chmod +x half
only_rank_0() { [[ $(grep -c begins half.out) == 2 && -z $(lab exec node002 pgrep -x half) ]]; }
lab_run sbatch half-job
job=$(slurm_job)
ok 'one of two ranks has ended' wait_for only_rank_0
lab run scancel --signal=TERM "$job"
ok 'the signal ends the run' wait_for grep -q '^code' half.out
is 'with the code of --requeue-exit' "$(grep '^code' half.out)" 'code 99'
is 'and the other has saved' "$(grep -c 'rank 0 has saved' half.out)" 1
lab run scancel "$job"
slurm_nothing_left 'nothing is left of it'
done_testing

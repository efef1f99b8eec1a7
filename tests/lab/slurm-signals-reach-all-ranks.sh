#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --start-with srun, and what Slurm does to a job: scancel and a step that is cancelled stop the ranks in order on all nodes,
# USR1 reaches each rank once, and a job of a higher priority takes the nodes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/slurm.sh" || exit 1

lab_up 4
SLURM_PROCTRACK=cgroup
SLURM_PREEMPT=30
slurm_up
cat >rank <<'END'
#!/bin/bash
# The signals that come, one line each; after TERM it takes a moment to save.
trap 'echo "rank $RANK got USR1"' USR1
trap 'sleep 0.5; echo "rank $RANK saved"; exit 3' TERM
echo "rank $RANK runs"
while :; do sleep 0.05; done
END
cat >job <<END
#!/bin/bash
$LAB_HNLAUNCH --start-with srun -w 'node[001-004]' --ppn 1 --label none ./rank
echo "exit code \$?"
END
chmod +x rank job

four() { [[ $(grep -c "rank . $1" job.out) == 4 ]]; }
begin() { # COMMAND...: submits the job and waits for its ranks
    : >job.out
    : >job.out
    lab run "$@" >job.out 2>&1 &
    wait_for four runs || fail "four ranks run: $*"
    JOB=$(slurm_job)
}
ended() { wait_for grep -q 'exit code' job.out || fail "the job ends"; }

begin salloc -N4 ./job
lab run scancel --signal=USR1 "$JOB"
ok 'USR1 to the steps reaches each rank' wait_for four 'got USR1'
lab run scancel --signal=USR1 "$JOB"
eight() { [[ $(grep -c 'got USR1' job.out) -ge 8 ]]; }
ok 'and once more' wait_for eight
lab run scancel "$JOB"
ended
is 'scancel: each rank saves its state' "$(grep -c saved job.out)" 4
has 'scancel: 143' job.out 'exit code 143'
is 'each USR1 came once' "$(grep -c 'got USR1' job.out)" 8
slurm_nothing_left 'scancel leaves nothing'

begin salloc -N4 ./job
lab run scancel "$JOB.$(lab run squeue -h -s -j "$JOB" -o %i | sed -n 's/.*\.\([0-9]*\)$/\1/p' | head -n 1)"
ended
has 'a step that is cancelled ends the job' job.out 'exit code 1'
slurm_nothing_left 'and leaves nothing'

# The shell of a batch job gets TERM, too; hnlaunch takes its place.
sed -i "s/^\/.*hnlaunch/exec &/" job
: >job.out
lab_run sbatch -N4 -o job.out job
wait_for four runs || fail 'four ranks run: sbatch'
lab run scancel "$(slurm_job)"
ok 'sbatch, scancel: each rank saves its state' wait_for four saved
slurm_nothing_left 'nothing is left'
has 'the verdict' job.out '(exit 143)'

begin salloc -N4 --exclusive ./job
lab_run srun -p urgent -N4 --exclusive hostname
exits 'preemption: a job of a higher priority runs' 0
wait_for grep -q '(exit 143)' job.out
is 'preemption: each rank saves its state' "$(grep -c saved job.out)" 4
has 'preemption: 143' job.out 'SIGTERM  (exit 143)'
slurm_nothing_left 'preemption leaves nothing'

done_testing

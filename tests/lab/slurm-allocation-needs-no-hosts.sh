#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Inside jobs of a real Slurm no hosts are named: in the shell of salloc, in batch scripts, steps and heterogeneous
# jobs, the ranks are the tasks of the job on its nodes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/slurm.sh" || exit 1

lab_up 4
SLURM_GPUS=2
slurm_up

show=("$LAB_HNLAUNCH" --label none sh -c 'echo "$RANK $(hostname)"')
placed() { # NAME "RANK HOST"...
    exits "$1: 0" 0
    is "$1: ranks are the tasks of the job" "$(sort -n "$OUT" | xargs)" "${*:2}"
}

lab_run salloc -N3 -n5 "${show[@]}"
placed 'salloc' '0 node001 1 node001 2 node001 3 node002 4 node003'
has 'the first line names the job' "$ERR" "3 nodes, 5 ranks, Slurm job $(slurm_job)"
lab_run salloc -w 'node[002,004]' --ntasks-per-node=2 "$LAB_HNLAUNCH" plan true
is 'the list has gaps' "$(awk '$4 ~ "^[0-9]+/" { print $2, $3 }' "$OUT" | xargs)" 'node002 0-1 node004 2-3'
lab_run salloc -N2 --gpus-per-node=2 "$LAB_HNLAUNCH" plan true
is 'GPUs count where a node has one task' "$(awk '$4 ~ "^[0-9]+/" { print $2, $3 }' "$OUT" | xargs)" 'node001 0-1 node002 2-3'
has 'the plan names their variable' "$OUT" 'slots from SLURM_GPUS_PER_NODE'
lab_run salloc -N1 -n2 : -N2 --ntasks-per-node=1 "${show[@]}"
placed 'a heterogeneous job' '0 node001 1 node001 2 node002 3 node003'

cat >job.sh <<'END'
#!/bin/bash
#SBATCH -N2 --ntasks-per-node=2 -o job.out
"$@" 2>/dev/null
END
lab_run sbatch --wait job.sh "${show[@]}"
OUT=job.out placed 'sbatch' '0 node001 1 node001 2 node002 3 node002'

# A step sees its own tasks in SLURM_TASKS_PER_NODE, and the job's nodes.
lab_run salloc -N2 -n8 srun -N1 -n1 "${show[@]}"
placed 'a step on one node' '0 node001 1 node001 2 node001 3 node001 4 node002 5 node002 6 node002 7 node002'
lab_run salloc -N2 -n4 srun "${show[@]}"
exits 'a copy per task of a step is refused' 64
has 'it is told' "$ERR" 'error[HN156]: srun starts 4 copies of hnlaunch'

lab_run salloc -N2 bash -c 'export SLURM_SUBMIT_HOST=login; "$@"' - "${show[@]}"
exits 'variables that ssh has brought are not taken' 65
has 'the reason is told' "$ERR" 'error[HN155]: the variables SLURM_* were set on another machine'

# A job that gives nodes back: scontrol writes a script with the new variables.
lab_run salloc -N3 bash -c '
    scontrol update JobId="$SLURM_JOB_ID" NumNodes=2 >&2 && . ./slurm_job_"$SLURM_JOB_ID"_resize.sh >&2 && "$@"' - "${show[@]}"
placed 'a job that has shrunk' '0 node001 1 node002'
lab_run salloc -N3 bash -c 'SLURM_JOB_NUM_NODES=2 "$@"' - "${show[@]}"
exits 'half of the new variables are refused' 65
has 'with a next step' "$ERR" 'source the script that scontrol wrote'

slurm_nothing_left 'nothing is left on the nodes'
done_testing

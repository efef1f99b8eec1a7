#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs on the nodes of an allocation, started on its first node as in a batch script, and on a login node as in the
# shell of salloc. The variables are those that each manager sets; its programs are not there.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

path_without srun qrsh
lab_up 4

on() { # NODE VARIABLE=VALUE... -- ARG...: hnlaunch on NODE, inside an allocation
    local node=$1 env=()
    shift
    while [[ $1 != -- ]]; do
        env+=("$1")
        shift
    done
    run "$LAB" exec "$node" env "${env[@]}" "$LAB_HNLAUNCH" "${@:2}"
}
show=(--label none sh -c 'echo "$RANK/$WORLD_SIZE $(hostname) ${CUDA_VISIBLE_DEVICES-no}${ROCR_VISIBLE_DEVICES-}"')
placed() { # NAME "RANK HOST"...
    exits "$1: 0" 0
    is "$1: ranks are on their nodes" "$(sort -n "$OUT" | cut -d' ' -f1,2 | sed 's,/[0-9]*,,' | xargs)" "${*:2}"
}

slurm=(SLURM_JOB_ID=12 'SLURM_JOB_NODELIST=node[001-004]' SLURM_JOB_NUM_NODES=4 'SLURM_TASKS_PER_NODE=2(x3),1'
    SLURM_SUBMIT_HOST=head)
four='0 node001 1 node001 2 node002 3 node002 4 node003 5 node003 6 node004'
on head "${slurm[@]}" -- "${show[@]}"
placed 'Slurm from the shell of salloc' "$four"
has 'the first line names the job' "$ERR" '4 nodes, 7 ranks, Slurm job 12'
on node001 "${slurm[@]}" SLURMD_NODENAME=node001 CUDA_VISIBLE_DEVICES=3 ROCR_VISIBLE_DEVICES=2 -- "${show[@]}"
placed 'Slurm in a batch script' "$four"
is 'the devices of the first node are not those of others' "$(grep -v node001 "$OUT" | grep -vc ' no$')" 0
is 'nor are those of another maker' "$(grep -c '2$' "$OUT")" "$(grep -c node001 "$OUT")"
on node003 "${slurm[@]}" -- "${show[@]}"
placed 'Slurm on a node in the middle' "$four"

printf '%s\n' node002 node004 node002 node004 >"$TMP/nodes"
on node002 PBS_ENVIRONMENT=PBS_BATCH PBS_JOBID=3.server "PBS_NODEFILE=$TMP/nodes" -- "${show[@]}"
placed PBS '0 node002 1 node002 2 node004 3 node004'

on node003 LSB_JOBID=4 'LSB_MCPU_HOSTS=node003 2 node001 1' -- "${show[@]}"
placed LSF '0 node003 1 node003 2 node001'

printf '%s\n' 'node004 1 all.q@node004 UNDEFINED' 'node001 2 all.q@node001 UNDEFINED' >"$TMP/pe"
on node004 SGE_ROOT=/sge ARC=lx-amd64 JOB_ID=5 "PE_HOSTFILE=$TMP/pe" -- "${show[@]}"
placed 'Grid Engine' '0 node004 1 node001 2 node001'

cat >"$TMP/flux" <<'END'
#!/bin/sh
[ "$*" = 'kvs get resource.R' ] || exit 9
echo '{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-1"}}],"nodelist":["node[002-003]"]}}'
END
chmod +x "$TMP/flux"
on node002 FLUX_URI=local:///run/flux "PATH=$TMP:$PATH" -- "${show[@]}"
placed Flux '0 node002 1 node002 2 node003 3 node003'

# The launcher pod has no GPUs, and says so to the container runtime.
printf 'node001 slots=2\nnode002 slots=2\n' >"$TMP/open-mpi"
printf 'node001:2\nnode002:2\n' >"$TMP/mpich"
pod=(K_MPI_JOB_ROLE=launcher NVIDIA_VISIBLE_DEVICES=)
on head "${pod[@]}" "OMPI_MCA_orte_default_hostfile=$TMP/open-mpi" -- "${show[@]}"
placed 'MPI Operator, Open MPI' '0 node001 1 node001 2 node002 3 node002'
on head "${pod[@]}" "HYDRA_HOST_FILE=$TMP/mpich" -- "${show[@]}"
placed 'MPI Operator, MPICH' '0 node001 1 node001 2 node002 3 node002'
on node001 "${pod[@]}" "I_MPI_HYDRA_HOST_FILE=$TMP/mpich" -- "${show[@]}"
placed 'MPI Operator, Intel MPI, the launcher is a worker' '0 node001 1 node001 2 node002 3 node002'

on node001 'SM_HOSTS=["node001","node004"]' SM_CURRENT_HOST=node001 SM_NUM_GPUS=2 -- "${show[@]}"
placed SageMaker '0 node001 1 node001 2 node004 3 node004'

lab_nothing_left 'nothing is left'
done_testing

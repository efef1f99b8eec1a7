#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --dial-in auto takes the place of a node from the variables of its platform; without --dial-in a platform that
# starts hnlaunch on several nodes is told so.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

unset "${!PET_@}" "${!LWS_@}" "${!SM_@}" "${!AZ_@}" MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK
PORT=$(free_port)
export HNLAUNCH_DIAL_SECRET=0123456789abcdef

# --- two nodes of Kubeflow Trainer ---
export PET_NNODES=2 PET_MASTER_ADDR=127.0.0.1 PET_MASTER_PORT=$PORT ONLY_HERE=node1
PET_NODE_RANK=1 timeout 100 "$HNLAUNCH" --dial-in auto --ppn 2 --oversubscribe true >one.out 2>one.err &
ONE=$!
ONLY_HERE=node0 PET_NODE_RANK=0 hn --dial-in auto --ppn 2 --oversubscribe --label none \
    sh -c 'echo "rank $RANK of $WORLD_SIZE, node $NODE_RANK, $ONLY_HERE"'
exits 'node 0 ends well' 0
wait "$ONE"
is 'and so does node 1' $? 0
is 'each node has two ranks and its own environment' "$(sort "$OUT")" "rank 0 of 4, node 0, node0
rank 1 of 4, node 0, node0
rank 2 of 4, node 1, node1
rank 3 of 4, node 1, node1"
has 'the run names the platform' "$ERR" '2 nodes, 4 ranks, Kubeflow Trainer'

# --- without --dial-in ---
PET_NODE_RANK=0 hn true
exits 'a platform starts it on two nodes, and --dial-in is missing: 64' 64
has 'which is told' "$ERR" 'error[HN330]: Kubeflow Trainer started hnlaunch on 2 nodes'
PET_NODE_RANK=0 hn --local 1 true
exits '--local is a launch of its own' 0
unset "${!PET_@}"
export SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=2 \
    SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST='n[1-2]'
hn -w localhost true
exits 'so it is in a step of Slurm, also with hosts: 64' 64
has 'which is told, too' "$ERR" 'error[HN330]: Slurm started hnlaunch on 2 nodes'

# --- variables that do not fit ---
SLURM_LOCALID=1 hn --dial-in auto true
exits 'two tasks on a node: 64' 64
has 'is an error that says what to do' "$ERR" 'error[HN329]: --dial-in auto, Slurm: the step has'
has 'by name' "$ERR" 'srun --ntasks-per-node=1'
unset "${!SLURM_@}"
hn --dial-in auto true
exits 'no platform: 64' 64
has 'is told' "$ERR" 'error[HN329]: --dial-in auto finds no platform'
done_testing

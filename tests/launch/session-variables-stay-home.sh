#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What belongs to this session, this host or another launcher does not reach a rank.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

names='SSH_CONNECTION SSH_AUTH_SOCK DISPLAY DBUS_SESSION_BUS_ADDRESS XDG_SESSION_ID SHLVL
SLURM_JOB_ID SLURM_PROCID PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK JSM_NAMESPACE_RANK JSM_NAMESPACE_LOCAL_SIZE MV2_COMM_WORLD_RANK
MVP_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID PALS_RANKID ALPS_APP_PE FLUX_TASK_RANK FLUX_TASK_LOCAL_ID FLUX_JOB_ID FLUX_PMI_LIBRARY_PATH SLURMD_NODENAME'
for name in $names; do
    export "$name=7"
done
export STAYS=here MV2_ENABLE_AFFINITY=0
echo 'localhost slots=1' >hosts
for way in '--local 1' '-H hosts'; do
    # shellcheck disable=SC2086
    hn $way --mpi none "$WORKERS/worker_dump"
    exits "$way: runs" 0
    for name in $names; do
        is "$way: $name stays home" "$(grep -z "^$name=" "$TMP/dump/0.env" | tr -d '\0')" ''
    done
    is "$way: others go out" "$(grep -z '^STAYS=' "$TMP/dump/0.env" | tr -d '\0')" STAYS=here
    is "$way: so do settings of an MPI" "$(grep -z '^MV2_' "$TMP/dump/0.env" | tr -d '\0')" MV2_ENABLE_AFFINITY=0
done

hn --local 1 "$WORKERS/worker_dump"
is "PMI_RANK is hnlaunch's own else" "$(grep -z '^PMI_RANK=' "$TMP/dump/0.env" | tr -d '\0')" PMI_RANK=0
hn --local 1 -x SLURM_JOB_ID "$WORKERS/worker_dump"
is '-x NAME sends one on request' "$(grep -z '^SLURM_JOB_ID=' "$TMP/dump/0.env" | tr -d '\0')" SLURM_JOB_ID=7
done_testing

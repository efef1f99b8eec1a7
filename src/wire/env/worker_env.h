/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker_env: the variables of a worker
 *
 * Pure. The agent applies it before starting a rank, the head to print a plan.
 */
#pragma once

#include "base/strv.h"
#include "wire/msg.h"

/*
 * Sets on top of @env: the HN_* names of wire/env_names.h, torchrun's whole set, NODE_RANK, and
 * DeepSpeed's CROSS_RANK, CROSS_SIZE, LOCAL_SIZE; HN_MASTER_ADDR when known, and HN_PORT_NAME for
 * each port. These replace earlier values. With per_node only HN_*, NODE_RANK, MASTER_ADDR and
 * MASTER_PORT are set: the other variables, which mark a process as a rank, and all TORCHELASTIC_*
 * are removed from @env, and OMP_NUM_THREADS is left alone. TORCHELASTIC_USE_AGENT_STORE is True
 * with agent_store. Unless l->mpi says none: PMI_RANK, PMI_SIZE, MPI_LOCALRANKID and
 * MPI_LOCALNRANKS, for PMI-2 PMI_JOBID, for PMI_PORT PMI_ID. Sets only when missing from @env:
 * OMP_NUM_THREADS to @cores divided by the node's ranks (at least 1), PYTHONUNBUFFERED and
 * PYTHONFAULTHANDLER to 1 unless @l unsets them; when iface is known, GLOO_SOCKET_IFNAME to iface,
 * and on more than one node NCCL_SOCKET_IFNAME to "=" and iface. See wire/env/nccl_env.h for other
 * variables of NCCL. Sets CUDA_VISIBLE_DEVICES to the rank's own devices with gpu_visibility_own,
 * to the devices of all ranks of the node with set_visible, else leaves the variable alone, but for
 * a rank of a role without devices, which with set_visible gets none; with
 * CUDA_VISIBLE_DEVICES a missing CUDA_DEVICE_ORDER becomes PCI_BUS_ID, because the indices count in
 * the order of the bus. All ranks of @l must be there, and @r among them. The variables of the
 * family of --compat come on top (wire/env/compat_env.h). @store_path and @error_file are paths on
 * the node; NULL leaves HN_STORE or TORCHELASTIC_ERROR_FILE out.
 */
void worker_env_build(struct strv *env, const struct launch_order *l, const struct launch_rank *r,
                      const char *store_path, const char *error_file, unsigned cores);
/* Tells whether --unset names @name: NAME, or NAME* for a prefix. */
bool worker_env_is_unset(const struct launch_order *l, const char *name);

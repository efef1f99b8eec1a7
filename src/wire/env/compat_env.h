/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compat_env: the variables that other launchers set (--compat)
 *
 * For programs with own readers of the variables of mpirun, srun, mpiexec or horovodrun. Names and
 * meanings follow Open MPI's "Environment variables set for MPI applications", Slurm's srun(1)
 * "OUTPUT ENVIRONMENT VARIABLES", MPICH's hydra, and horovod/runner/gloo_run.py. Pure. The agent
 * applies it before starting a rank, the head to print a plan.
 */
#pragma once

#include "base/strv.h"
#include "wire/msg.h"

/*
 * Sets in @own the variables of the family of @l for @r, one of the ranks of @l. JAX_* of @given
 * are left out; the other variables replace earlier values. A variable is left out where @l does
 * not have the value. The family DeepSpeed has no variables beyond wire/env/worker_env.h. @cores:
 * of the node.
 */
void compat_env_set(struct strv *own, const struct strv *given, const struct launch_order *l,
                    const struct launch_rank *r, unsigned cores);

/* Tells whether variables of the family need launch_compat.nodes, and a port of rank 0's node with
 * this name, in launch_order.first_node, where JAX's coordinator will listen. In a plan the port's
 * number is 0, and is shown as a phrase. */
#define COMPAT_JAX_PORT "jax"
bool compat_env_needs_nodes(uint8_t family);
bool compat_env_needs_jax_port(uint8_t family);

/* Writes the names as Slurm does, "gpu[001-064,070],login": numbers at the end of neighbours are
 * folded. "" without nodes; malloc'ed. */
char *compat_env_node_list(const struct launch_compat *c);

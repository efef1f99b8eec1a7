/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Container: the agent of a node moves into a container before any other work
 *
 * One container per node holds the agent and all ranks (--container): the agent is started on the
 * node as always, finds CONTAINER_ORDER, and executes the container's program (docker run, ch-run)
 * in its place, which starts the same agent inside with the same standard input and output. So
 * ranks, their store, PMI, GPUs and the proof that nothing is left work as without a container, and
 * with the image's own Python and MPI.
 *
 * The end: every program used closes the container's standard input when it is killed itself, and
 * the agent inside ends the job then; when the agent ends, the container ends, and Docker and
 * Podman remove it.
 */
#pragma once

#include <stdbool.h>

/* Whether this process has an order to enter a container. */
bool container_is_ordered(void);

/* Obeys the order: replaces this process. Returns only on failure, with an exit code, after the
 * reason has been written to standard output behind CONTAINER_MARK. */
int container_enter(void);

/* Inside: prepares this process to become the agent. @remove: the program's file is a copy in a
 * container with a longer life, and is removed. 0; else an exit code, the reason as above: the
 * image is for another machine. */
int container_arrive(bool remove);

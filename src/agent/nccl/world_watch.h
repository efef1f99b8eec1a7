/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World_watch: ranks in MPI worlds of one
 *
 * Without a launcher MPI_Init() makes a world of one, without a word, and leaves a trace among the
 * open files of the process, which is the rank or a descendant. A rank with this trace and without
 * use of the agent's PMI or PMIx is alone. The first two ranks of a node are watched: often in the
 * first seconds, as a program may live only a moment, and seldom later.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/elf/elf_libs.h"
#include "wire/msg.h"

struct world_watch;

/* @is_unused tells whether a rank has not used PMI or PMIx so far. */
struct world_watch *world_watch_create(uv_loop_t *loop, bool (*is_unused)(void *ctx, uint32_t rank),
                                       void *ctx);
/* Stops, and frees @w in the next turn of the loop. */
void world_watch_destroy(struct world_watch *w);
/* Watches one more rank until the rank ends; a third at a time is ignored. Warns (HN511) when a
 * rank is alone for long. */
void world_watch_add(struct world_watch *w, pid_t pid, uint32_t rank);
/* Ends the watch of a rank without use of PMI or PMIx. Returns RANK_MPI_ALONE_OPEN_MPI,
 * RANK_MPI_ALONE_MPICH, or RANK_MPI_UNUSED if no trace of MPI_Init() was seen. */
enum rank_mpi world_watch_end(struct world_watch *w, pid_t pid);
void world_watch_stop(struct world_watch *w);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library_watch: the libraries of NCCL and MPI loaded by a rank
 *
 * The rank is not asked: /proc/PID/maps names the libraries. A child process reads the maps of the
 * rank and of all descendants, because files of a rank may be on a hanging file system: 2 s after
 * the start, then after twice the time, until all is known or LOOKS have been taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "base/elf/elf_libs.h"

struct library_watch;

struct library_watch *library_watch_create(uv_loop_t *loop, struct uplink *up);
/* Stops, and frees @w in the next turn of the loop. */
void library_watch_destroy(struct library_watch *w);
/* @pid: of @rank. Sends NCCL when the library is found, and warns of two MPIs in a process, if
 * @rank is 0. */
void library_watch_start(struct library_watch *w, pid_t pid, uint32_t rank);
void library_watch_stop(struct library_watch *w); /* keeps the findings */
/* Returns the MPI loaded by the rank with @pid; MPI_FAMILY_NONE = none was seen, or another rank is
 * watched. */
enum mpi_family library_watch_mpi(const struct library_watch *w, pid_t pid);
/* Stops if @pid is of the watched rank. */
void library_watch_end(struct library_watch *w, pid_t pid);

/* Finds libraries of MPI in the text of a maps file: the path of the first of Open MPI in
 * @open_mpi, that of the first of MPICH's ABI in @mpich, "" = none. Each has @size bytes; longer
 * paths are passed over. */
void library_watch_find_mpi(const char *maps, char *open_mpi, char *mpich, size_t size);

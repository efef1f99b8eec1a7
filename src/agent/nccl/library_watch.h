/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library_watch: the libraries of NCCL and MPI that a rank has loaded
 *
 * The rank is not asked: /proc/PID/maps names them. A child process looks at it and its
 * descendants, because files of a rank may be on a file system that hangs: 2 s after the start,
 * then after twice the time, until all is known or LOOKS have been taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "base/elf/elf_libs.h"

struct library_watch {
        uv_timer_t timer;
        struct uplink *up;
        pid_t pid;
        uint32_t rank;
        int fd;    /* answer of the child process, -1 = none runs */
        int looks; /* taken */
        bool told_nccl, told_two;
        enum mpi_family mpi; /* of the library seen last; MPI_FAMILY_NONE = none was seen */
};

void library_watch_init(struct library_watch *w, uv_loop_t *loop, struct uplink *up);
/* @pid: of @rank. Sends NCCL when that library is found, and warns of two MPIs in one process, if
 * @rank is 0. */
void library_watch_start(struct library_watch *w, pid_t pid, uint32_t rank);
void library_watch_stop(struct library_watch *w);  /* keeps what is known */
void library_watch_close(struct library_watch *w); /* let the loop turn once more */

/* Finds libraries of MPI in the text of a maps file: the path of the first of Open MPI in
 * @open_mpi, that of the first of MPICH's ABI in @mpich, "" = none. Each has @size bytes; longer
 * paths are passed over. */
void library_watch_find_mpi(const char *maps, char *open_mpi, char *mpich, size_t size);

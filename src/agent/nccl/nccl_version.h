/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nccl_version: which NCCL a rank has loaded
 *
 * The rank is not asked: /proc/PID/maps names the library, and the file has its version in the name
 * (libnccl.so.2.28.9) or as the text "NCCL version 2.28.9+cuda13.0" (NCCL's src/init.cc), which
 * stands before the kernels, in the first MiB. A library that is linked statically is not found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "agent/core/uplink.h"

/* Reads "2.28.9..." as NCCL_VERSION_CODE: 22809. 0 = no version. */
uint32_t nccl_version_parse(const char *text);
/* Finds the library in the text of a maps file. False: none is mapped, or the path is longer. */
bool nccl_version_find_path(const char *maps, char *to, size_t size);
/* Returns the version of the library at @path, which may be any file; 0 = unknown. Blocks as long
 * as the file system does. */
uint32_t nccl_version_of_file(const char *path);

/* Looks at a process and its descendants in a child process, because files of a rank may be on a
 * file system that hangs: 2 s after the start, then after twice the time, until a library was found
 * or LOOKS have been taken. */
struct nccl_watch {
        uv_timer_t timer;
        struct uplink *up;
        pid_t pid;
        int fd;    /* answer of the child process, -1 = none runs */
        int looks; /* taken */
};

void nccl_watch_init(struct nccl_watch *w, uv_loop_t *loop, struct uplink *up);
/* @pid: of a rank. Sends NCCL when a library is found. */
void nccl_watch_start(struct nccl_watch *w, pid_t pid);
void nccl_watch_stop(struct nccl_watch *w);
void nccl_watch_close(struct nccl_watch *w); /* let the loop turn once more */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: open files and locked memory of the agent and of workers
 *
 * Soft limits of a login are low by tradition: 1024 open files, because select() supports no more,
 * and 64 KiB or 8 MiB of locked memory. A rank of a large job has a connection to every other, and
 * RDMA locks sent memory. A process with few files is not harmed by a higher limit; a process with
 * many would have failed. Some programs close all descriptors up to the limit, which must not take
 * long: hard limits of 2^30 exist in containers, and workers get LIMITS_FILES_MAX at most.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LIMITS_FILES_MAX = 1 << 20 };

/* Raises the agent's soft limit of open files to the hard one. Once, before any thread or child. */
void limits_raise(void);
/* Raises the soft limits of a worker, in the child; async-signal-safe. */
void limits_raise_worker(void);
/* Writes how limits of workers differ from the login's limits, such as "open files 524288 (were
 * 1024)"; "" = not at all. */
void limits_describe(char *to, size_t size);

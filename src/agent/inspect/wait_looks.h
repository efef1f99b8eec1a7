/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait looks: the share of time in which ranks wait for others, found by many short looks
 *
 * A rank is the process of the session with the most use of the processor, by the first thread. A
 * sleep in the kernel for anything but a time is a wait. So a wait for a data loader counts, too,
 * and a spinning rank (MPI, NCCL) never waits. A request to the store without an answer is known to
 * be a wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/status_msg.h"

struct wait_count {
        uint32_t looks, waits; /* looks at the rank; how many found a wait */
        uint32_t in_store;     /* of waits: for an answer of the store */
};

enum wait_look { LOOK_BUSY, LOOK_WAITS, LOOK_UNKNOWN };

/* Judges a process with the letter @state of /proc/pid/stat. @call: the line of /proc/pid/syscall,
 * "" = not known; @wchan: of /proc/pid/wchan, in place of an unknown @call. A wait for a child, as
 * of a shell, is unknown. */
enum wait_look wait_looks_parse(char state, const char *call, const char *wchan);
/* Adds a look at @pid, 0 = the rank has none. @in_store: a wait for the store. */
void wait_looks_count(struct wait_count *c, pid_t pid, bool in_store);
/* Returns sample_rank.busy of the looks, and begins anew. */
uint8_t wait_looks_take(struct wait_count *c);

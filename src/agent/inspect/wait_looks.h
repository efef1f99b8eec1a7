/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wait looks: the share of time in which ranks wait for others, found by many short looks
 *
 * A rank is the process of its session that has used the processor most, and of that the first
 * thread: it waits when it sleeps in the kernel for anything but a time. So a rank that waits for
 * its data loader waits, too, and one that spins (MPI, NCCL) never does. A request to the store
 * without an answer is known to be a wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/status_msg.h"

struct wait_count {
        uint32_t looks, waits; /* looks at the rank; how often it waited */
        uint32_t in_store;     /* of waits: for an answer of the store */
};

enum wait_look { LOOK_BUSY, LOOK_WAITS, LOOK_UNKNOWN };

/* What a process does that has the letter @state of /proc/pid/stat. @call: its line of
 * /proc/pid/syscall, "" = not known; @wchan: of /proc/pid/wchan, where @call is not. Unknown is one
 * that waits for a child, as shells do. */
enum wait_look wait_looks_parse(char state, const char *call, const char *wchan);
/* Adds a look at @pid, 0 = the rank has none. @in_store: it waits for the store. */
void wait_looks_count(struct wait_count *c, pid_t pid, bool in_store);
/* Returns sample_rank.busy of the looks, and begins anew. */
uint8_t wait_looks_take(struct wait_count *c);

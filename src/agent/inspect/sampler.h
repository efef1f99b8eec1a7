/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampler: use of a node by machine and ranks: processor, memory, network
 *
 * A rank is a whole session (agent/rank/rank_status.h). To find the processes of the sessions all
 * of /proc is read, which costs milliseconds on a node with thousands of processes; so such
 * a search is rare, and samples between read the known processes only. A process found later counts
 * from then on.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/core/proc.h"
#include "wire/status_msg.h"

/* Counters of the machine since the boot. */
struct sampler_counters {
        uint64_t busy, all; /* processor time in ticks, of all processors */
        uint64_t in, out;   /* bytes of the network */
};

struct sampler {
        struct proc_stat *known; /* of all ranks' sessions, as last seen, ordered by session */
        size_t n_known, cap;
        struct sampler_counters before;
        uint64_t taken_ns;  /* the sample before; 0 = none */
        uint64_t search_ns; /* when to read all of /proc */
};

/* Returns the process of the session of @pid that has used the processor most; @pid itself when
 * none is known. */
pid_t sampler_busiest(const struct sampler *s, pid_t pid);
/* Starts anew: the next sample is the first. Frees all memory. */
void sampler_reset(struct sampler *s);
/* Fills the time, the counters and, in ranks[i], state, cpu_percent and memory_mib of the session
 * of @pids[i]; 0 = the rank has ended. @m->ranks has @n elements. */
void sampler_take(struct sampler *s, const pid_t *pids, size_t n, struct sample *m);

/* --- files of /proc, for tests --- */

void sampler_read_stat(const char *text, struct sampler_counters *to); /* /proc/stat */
void sampler_read_net(const char *text, struct sampler_counters *to);  /* /proc/net/dev */
/* MiB in use, of /proc/meminfo; 0 = unknown. */
uint64_t sampler_read_memory(const char *text);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale: the real head with thousands of nodes, in two processes
 *
 *   scale_head     everything of hnlaunch but main.c: options, hostfile, job, plan, endpoint,
 * launch, outcome; its links are sockets that it inherits (bench/transport_sim.h) scale_agents per
 * node what an agent says on the wire, with hnlaunch's own relay; ranks are little state machines:
 * libhnlaunch's HELLO, one barrier of all, the end floor_*        of bench/storm.h: as many bytes
 * in as many writes through a bare libuv loop
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/storm.h"

enum scale_step {
        SCALE_START,   /* the links are there, nothing of hnlaunch has run */
        SCALE_READY,   /* all agents have said HELLO */
        SCALE_LAUNCH,  /* plan and endpoint are made; of a check: the last answer has come */
        SCALE_BARRIER, /* the last rank has left the barrier; of a check: the table is made */
        SCALE_IDLE,    /* the ranks have waited */
        SCALE_END,     /* all has been freed */
        SCALE_STEPS,
};

/* What happens behind the barrier; who is left does what it is told. */
enum scale_end {
        SCALE_WELL,  /* all exit 0 */
        SCALE_FAIL,  /* rank 0 exits with SCALE_CODE */
        SCALE_LOSE,  /* every second node drops its link */
        SCALE_CHECK, /* no ranks: `hnlaunch check` of nodes of which a few have faults */
};

enum { SCALE_CODE = 3 };

/* Of the head, when it reached a step. */
struct scale_mark {
        int64_t at_ns, cpu_ns;
};

/* Shared by both processes. */
struct scale {
        uint32_t n_nodes, per_node, n_ranks;
        int idle_s; /* how long the ranks wait behind the barrier */
        enum scale_end end;
        pid_t head; /* who that is */
        struct scale_mark marks[SCALE_STEPS];
        uint64_t pings; /* answered from SCALE_BARRIER to SCALE_IDLE */
        int64_t start_kb, peak_kb;
        int exit_code;
        uint32_t joined; /* ranks that the head's events told; of a check: faults that it found */
        uint32_t false_alarms; /* of a check: results that are no pass without a fault */
        const char *table;     /* of a check: the file that gets the table; NULL = none */
        struct storm *floor;   /* the traffic that it repeats; its result */
};

/* Each runs in a process of its own; false: it told on stderr what is wrong. */
bool scale_head(struct scale *s, int listener);
bool scale_agents(struct scale *s, const char *name);

void scale_mark(struct scale *s, enum scale_step step); /* by either process */

/* --- check --- */

/* Faults of simulated nodes: one node in SCALE_FAULT_PERIOD has each. */
enum scale_fault {
        SCALE_OLD_DRIVER, /* warns */
        SCALE_SMALL_SHM,  /* this one and those below fail */
        SCALE_ECC,
        SCALE_XID,
        SCALE_REFUSES, /* connections of its peers */
        SCALE_FAULTS,  /* the number of faults; of a node: none */
};
enum { SCALE_FAULT_PERIOD = 200 };

/* Returns the fault of a node; SCALE_FAULTS = none. */
enum scale_fault scale_fault_of(uint32_t node);

struct buf;
struct check_order;
struct measure_order;

/* Append what the agent of node @i answers. */
void scale_answer_check(struct buf *to, uint32_t i, const struct check_order *o);
void scale_answer_measure(struct buf *to, const struct measure_order *o);

struct job;
struct hosts;
struct options;

/* Checks the connected nodes, and counts the faults that are found. */
bool scale_check(struct scale *s, struct job *job, const struct hosts *hosts,
                 const struct options *o);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: everything about a job, as a stream for several listeners
 *
 * The job emits; the progress and live line, the run directory, metrics, top and --detach listen
 * (decision D18), so the terminal and the files agree. Field names of the NDJSON form are a promise
 * (CHANGELOG.md).
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

enum event_kind {
        EVENT_RUN_START,  /* value = ranks, count = nodes */
        EVENT_NODE_PHASE, /* a link moves on: value = enum link_phase; text = the login waits, last
                             words */
        EVENT_NODE_CONNECTED, /* the link is open; text = "hold": a hold was asked for it */
        EVENT_NODE_UPLOAD,    /* the agent is being sent */
        EVENT_NODE_READY,     /* HELLO has arrived */
        EVENT_PUSH_HASHING,   /* before anything is reached: value = bytes done */
        EVENT_PUSH_START,     /* --push: value = bytes of the files, count = nodes */
        EVENT_PUSH_PROGRESS,  /* value = bytes received, count = bytes to be sent */
        EVENT_NODE_PUSHED,    /* the files are there: value = bytes sent, text = folder */
        EVENT_NODE_FAILED,    /* could not be reached: text */
        EVENT_NODE_SILENT,    /* nothing was heard from it: value = milliseconds */
        EVENT_NODE_HEARD,     /* a silent node is heard again: value = milliseconds of silence */
        EVENT_NODE_LOST,      /* while running: text */
        EVENT_RANK_STARTED,   /* value = pid */
        /* Opened the client library, or a connection to PyTorch's store. value = milliseconds since
         * the launch, -1 = not known */
        EVENT_RANK_JOINED,
        /* An instance of a role is ready (--ready): value = milliseconds since the start of its
         * rank, count = number of the instance in the role */
        EVENT_ROLE_READY,
        /* For others (--after), now for these: brief = role, text. count = ranks that do not start
         * with the run; 0 = they were counted before */
        EVENT_ROLE_WAITS,
        EVENT_ROLE_STARTS, /* a role that has waited: brief = role, text */
        /* --restart-scope: ranks of a role start again, for @rank: value = the count in the run,
         * text = reason */
        EVENT_ROLE_RESTART,
        EVENT_RANK_PROGRESS, /* hn_progress(): value = step, count = total or 0, text = note */
        EVENT_RANK_SLOW,     /* at the end: the others waited for it; value = percent of the time */
        EVENT_RANK_MISSING,  /* has not joined in time */
        EVENT_STALLED,       /* ranks wait for long: value = milliseconds, text */
        EVENT_HANG,    /* a hang was found: rank = the first odd one, value = milliseconds, text */
        EVENT_LIBRARY, /* ranks have loaded another version of a library than before: text = name
                          and version */
        EVENT_RANK_EXITED, /* value = exit code, or -signal */
        EVENT_RANK_REPORT, /* hn_report_error(): text */
        EVENT_STOP,        /* the job shall stop: text = reason */
        EVENT_SIGNAL,      /* to all ranks: value = its number, text = signal and sender */
        /* value = next attempt, count = spare hosts left, pause_ms, text = reason */
        EVENT_RESTART,
        EVENT_DECISION,     /* --restart auto: value = the attempt that has ended, from 1, text */
        EVENT_NODE_RETIRED, /* the job uses the host no longer: text = reason */
        EVENT_NODE_DRAINED, /* the same after a drain: text = the order */
        /* The ranks of a lost node move, or a node has failed before the start: text = new host;
         * value = 1: it is connected as the same node. */
        EVENT_NODE_REPLACED,
        EVENT_RUN_SHRUNK, /* the job goes on without lost nodes: value = ranks, count = nodes, text
                           */
        EVENT_RUN_END, /* value = exit code, count = HN number, rank = first cause, text = verdict
                        */
        EVENT_KINDS,
};

struct event {
        enum event_kind kind;
        int64_t us;     /* since the start of hnlaunch; filled by events_emit() */
        int node, rank; /* -1 = none */
        int64_t value, count;
        int64_t pause_ms; /* of EVENT_RESTART: before the ranks start again */
        const char *host; /* lent, may be NULL */
        const char *text; /* lent, may be NULL */
        /* Of EVENT_STOP: the reason as in the line, NULL = no line. Lent. */
        const char *brief;
};

typedef void (*event_listener)(void *ctx, const struct event *e);

enum { EVENTS_LISTENERS = 12 };

struct events {
        int64_t start_ns;
        struct {
                event_listener fn;
                void *ctx;
        } listeners[EVENTS_LISTENERS];
        int n;
};

void events_init(struct events *es); /* the clock starts here */
void events_listen(struct events *es, event_listener fn, void *ctx);
void events_emit(struct events *es, struct event e);
const char *event_name(enum event_kind kind); /* "rank.exited" */
int64_t events_now_us(const struct events *es);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job push private: what the files of a push share
 *
 * job_push.c has the way of a node, push_slow.c the nodes for which all others wait.
 */
#pragma once

#include <uv.h>

#include "head/job/job_push.h"
#include "head/push/pack_stream.h"
#include "wire/push_msg.h"

enum push_state {
        PUSH_NOT,      /* takes no part */
        PUSH_QUEUED,   /* to be offered */
        PUSH_OFFERED,  /* owes an answer */
        PUSH_LISTLESS, /* has asked for the manifest, which is to come through a row */
        PUSH_LISTING,  /* gets the manifest so, and owes an answer */
        PUSH_SHARED,   /* another node fetches into the same file system */
        PUSH_SENDING,
        PUSH_DONE,
        PUSH_FAILED,
        PUSH_STATES,
};

/* A stream, with the PACKs sent and confirmed. */
struct sent_stream {
        struct pack_stream *packs;
        bool list;      /* of the manifest */
        size_t nodes;   /* receivers */
        uint32_t taken; /* the most PACKs that one has */
};

struct job_push_node {
        enum push_state state;
        struct push_want want;
        uint64_t wanted;                /* bytes */
        struct sent_stream *stream;     /* NULL = not yet */
        bool served;                    /* from here, with the PACK at @place as the next one */
        struct pack_place place, start; /* start: when that began */
        uint64_t framed;                /* bytes of PACKs since then */
        uint64_t sent;                  /* bytes of files, from here */
        int64_t credit, window;         /* bytes that may be sent now, and with nothing under way */
        bool taking_over;               /* was told to fetch, whatever other nodes do */
        bool full;                      /* has the manifest, or is to get the whole */
        struct pushed *result;          /* NULL = not yet */
};

struct job_push {
        struct cluster *cluster;
        struct attempt *attempt;
        struct heartbeat *heartbeat;
        const char *run_id;
        struct job_push **all; /* by use; shared by all of them */
        uv_timer_t timer;
        struct manifest *manifest;   /* NULL = nothing was pushed yet */
        struct job_push_node *nodes; /* one per host */
        struct push_chain *chain;
        struct push_slow *slow;
        size_t in[PUSH_STATES]; /* nodes, by state */
        size_t queue;           /* no earlier node is queued */
        size_t batch;           /* nodes in LISTLESS and SENDING without the stream for this */
        int64_t batch_ns;       /* when the last of them came */
        bool row_of_list;       /* the manifest is large for so many nodes */
        uint32_t streams;       /* so far, of all uses; of PUSH_RANKS alone */
        uint64_t wanted;        /* bytes, of all nodes */
        struct error source;    /* why a file cannot be read any more */
        int source_error;       /* -errno, 0 = all can be read */
};

/* All changes of a state go this way: in[] has to stay right. */
static inline void set_push_state(struct job_push *p, struct job_push_node *s,
                                  enum push_state state)
{
        p->in[s->state]--;
        p->in[state]++;
        s->state = state;
}

/* Returns how many PACKs a node that is served from here has. */
static inline uint32_t count_taken_packs(const struct job_push_node *s)
{
        uint32_t waiting = (uint32_t)((s->window - s->credit) / PUSH_PACK_MAX);

        return s->place.position - MIN(waiting, s->place.position);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each rank has a byte of bits for what its node has sent; turn_of[] says which bits forbid a
 * message and which one it sets. A node counts its ranks without an end: DUMP and GONE must come
 * behind all of them, unless the node has refused an order.
 */
#include "head/job/turns.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/msg.h"

/* Of a rank. */
enum {
        HAS_STARTED = 1,
        HAS_REPORTED = 2,
        HAS_ENDED = 4,
        STREAM_ENDED = 8, /* shifted by the number of the stream */
        IS_READY = 64,
        STARTS_AGAIN = 128, /* ordered after its end; output may be of the process before */
};

/* The messages about a rank. Those without an entry may come at any time. */
static const struct turn {
        uint8_t before; /* not behind any of these */
        uint8_t notes;
        const char *why;
} turn_of[256] = {
        [MSG_STARTED] = { HAS_ENDED | HAS_STARTED, HAS_STARTED, "has started before" },
        [MSG_REFUSED] = { HAS_ENDED | HAS_STARTED, 0, "has started before" },
        [MSG_REPORT] = { HAS_ENDED | HAS_REPORTED, HAS_REPORTED, "has reported before" },
        [MSG_RANK_READY] = { HAS_ENDED | IS_READY, IS_READY, "was ready before" },
        [MSG_EXITED] = { HAS_ENDED, HAS_ENDED, NULL },
};

struct turns_rank {
        int node; /* -1 = not ordered yet */
        uint8_t has;
};

struct turns_node {
        uint32_t running;  /* ranks without an end */
        uint32_t orders;   /* LAUNCHes sent */
        uint32_t newest;   /* ... and the number of the last, of turns_order() */
        uint32_t refusals; /* of a rank, or of a whole order */
        bool has_nccl;
};

struct turns {
        struct turns_rank *ranks;
        struct turns_node *nodes;
        uint32_t world_size;
        uint32_t ordered; /* calls of turns_order() */
        uint32_t started; /* ranks */
        int unrefused;    /* nodes with an order that have not refused */
};

struct turns *turns_create(const struct plan *plan)
{
        struct turns *t = xcalloc(1, sizeof(*t));

        t->world_size = (uint32_t)plan->world_size;
        t->ranks = xcalloc(t->world_size, sizeof(*t->ranks));
        t->nodes = xcalloc(plan->n_nodes, sizeof(*t->nodes));
        for (uint32_t i = 0; i < t->world_size; i++)
                t->ranks[i].node = -1;
        return t;
}

/* A rank that starts again keeps its bits up to the first message of the new process: until then
 * output is that of the old one. */
void turns_order(struct turns *t, const struct plan *plan, const struct role_span *s)
{
        t->ordered++;
        for (int i = s->first; i < s->first + s->size; i++) {
                struct turns_node *n = &t->nodes[plan->ranks[i].node];

                if (t->ranks[i].has & HAS_ENDED)
                        t->ranks[i].has |= STARTS_AGAIN;

                t->ranks[i].node = plan->ranks[i].node;
                t->unrefused += !n->orders;
                n->orders += n->newest != t->ordered;
                n->newest = t->ordered;
                n->running++;
        }
}

void turns_destroy(struct turns *t)
{
        if (!t)
                return;
        free(t->ranks);
        free(t->nodes);
        free(t);
}

/* Returns -EPROTO, for a rank that may not exist at all. */
static int refuse_turn(struct error *err, uint8_t type, uint32_t rank, const char *why)
{
        return err_set(err, EPROTO, "message out of turn: %s of rank %u, which %s", msg_name(type),
                       rank, why);
}

/* Finds a rank launched on @node that may send a message of this type. NULL with @err. */
static struct turns_rank *find_turns_rank(const struct turns *t, int node, uint8_t type,
                                          uint32_t rank, struct error *err)
{
        const struct turn *turn = &turn_of[type];
        struct turns_rank *r = rank < t->world_size ? &t->ranks[rank] : NULL;
        const char *why = !r || r->node != node               ? "does not run there"
                          : r->has & turn->before & HAS_ENDED ? "has ended"
                          : r->has & turn->before             ? turn->why
                                                              : NULL;

        /* These are of the new process. */
        if (r && r->node == node && r->has & STARTS_AGAIN &&
            (type == MSG_STARTED || type == MSG_REFUSED || type == MSG_EXITED)) {
                r->has = 0;
                return r;
        }
        if (!why)
                return r;
        refuse_turn(err, type, rank, why);
        return NULL;
}

int turns_take(struct turns *t, int node, uint8_t type, uint32_t rank, struct error *err)
{
        struct turns_rank *r = find_turns_rank(t, node, type, rank, err);

        if (!r)
                return -EPROTO;
        r->has |= turn_of[type].notes;
        t->nodes[node].running -= type == MSG_EXITED;
        t->started += type == MSG_STARTED;
        return 0;
}

/* True also for a node that was ordered nothing. */
bool turns_ended(const struct turns *t, int node)
{
        return !t->nodes[node].running;
}

/* A refused rank stays counted in @running: there is no EXITED for it. */
int turns_refused(struct turns *t, int node, uint32_t rank, struct error *err)
{
        struct turns_node *n = &t->nodes[node];

        if (rank != MSG_NO_RANK && turns_take(t, node, MSG_REFUSED, rank, err) < 0)
                return -EPROTO;
        if (n->refusals == n->orders)
                return err_set(err, EPROTO, "message out of turn: REFUSED, after another");
        if (n->refusals++)
                return 1;
        t->unrefused--;
        return 0;
}

/* A node that was ordered nothing does not count. */
bool turns_all_refused(const struct turns *t)
{
        return !t->unrefused && !t->started;
}

bool turns_is_refused(const struct turns *t, int rank)
{
        const struct turns_rank *r = &t->ranks[rank];

        return r->node >= 0 && t->nodes[r->node].refusals && !(r->has & HAS_STARTED);
}

bool turns_any_started(const struct turns *t)
{
        return t->started;
}

/* MSG_OUTPUT has no entry in turn_of[]: the bits of the streams decide, also after EXITED. */
int turns_output(struct turns *t, int node, uint32_t rank, uint8_t stream, size_t len,
                 struct error *err)
{
        struct turns_rank *r = find_turns_rank(t, node, MSG_OUTPUT, rank, err);
        uint8_t ended = (uint8_t)(STREAM_ENDED << stream);

        if (!r)
                return -EPROTO;
        if (r->has & ended)
                return refuse_turn(err, MSG_OUTPUT, rank, "has ended this stream");
        if (!len)
                r->has |= ended;
        return 0;
}

/* Not again when ranks start again within the attempt. */
int turns_nccl(struct turns *t, int node, struct error *err)
{
        if (t->nodes[node].has_nccl)
                return err_set(err, EPROTO, "message out of turn: NCCL, after another");
        t->nodes[node].has_nccl = true;
        return 0;
}

/* A message that follows the end of all ranks of the node. */
static int require_end(const struct turns *t, int node, uint8_t type, struct error *err)
{
        const struct turns_node *n = &t->nodes[node];

        if (!n->running || n->refusals)
                return 0;
        return err_set(err, EPROTO, "message out of turn: %s, before the end of %u rank%s",
                       msg_name(type), n->running, n->running == 1 ? "" : "s");
}

int turns_dump(struct turns *t, int node, struct error *err)
{
        return require_end(t, node, MSG_DUMP, err);
}

int turns_gone(struct turns *t, int node, struct error *err)
{
        return require_end(t, node, MSG_GONE, err);
}

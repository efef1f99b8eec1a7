/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group is a set of members with a queue of operations: fences and fetches. The first operation
 * of the queue is under way; at its end finish_step() calls back and starts the next. An operation
 * goes through MEETING (a fence), then FETCHING (with a callback for values, while completed fences
 * of the group are not fetched), one request each but for SET and BARRIER, which leave together:
 * the relay keeps their order, so the store has the value when the barrier is passed.
 *
 * The relay treats the object as a relay of another node (relay.h), because only a relay may name
 * several ranks and use keys of hnlaunch's own. A BARRIER may be answered in parts: each reply
 * names the ranks for which the reply counts.
 *
 * Names: PREFIX "fence/" then "all" or a hash of the members is the barrier; the same with
 * "/FENCE/NODE" appended is the key of a value. If two sets had the same hash, the store would
 * report that members differ.
 */
#include "agent/pmi/fence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/pmi/fence_private.h"
#include "base/buf.h"
#include "base/macros.h"
#include "base/memory.h"
#include "wire/codec.h"

enum { FETCH_KEYS = 1 << 16 /* of a request */ };

static void start_fence_op(struct fence *f, struct fence_group *g);

/* --- requests --------------------------------------------------------------------------------- */

/* Returns the next tag; 0 means none. After 2^32 requests the numbers begin again. */
static uint32_t take_fence_tag(struct fence *f)
{
        if (++f->last_tag == 0)
                f->last_tag = 1;
        return f->last_tag;
}

static void append_fence_name(struct buf *b, const struct fence_group *g)
{
        buf_append(b, STORE_OWN_PREFIX, STORE_OWN_PREFIX_LEN);
        buf_appends(b, g->name);
}

/* Appends the key of a node's value in the fence with this number. Every node counts the fences of
 * a group in the same order, so the key is the same everywhere. */
static void append_value_key(struct buf *b, const struct fence_group *g, uint32_t fence,
                             uint32_t node)
{
        append_fence_name(b, g);
        buf_printf(b, "/%u/%u", fence, node);
}

/* Sends the value and the arrival of the local members. An empty value sends no SET: an absent key
 * reads as an empty value. */
static void meet_members(struct fence *f, struct fence_group *g, struct fence_op *op)
{
        CLEANUP(buf_finish) struct buf name = BUF_INIT, key = BUF_INIT;
        struct store_request set = { .op = STORE_SET, .value = { op->value, op->len } };
        struct store_request barrier = { .op = STORE_BARRIER,
                                         .members = g->ranks,
                                         .n_members = g->ranks ? g->n_ranks : 0,
                                         .ranks = g->local,
                                         .n_ranks = g->n_local };

        op->step = STEP_MEETING;
        op->n_missing = g->n_local; /* each reply names some, see on_fence_reply() */
        append_fence_name(&name, g);
        append_value_key(&key, g, g->n_completed, f->world.node);
        if (op->len) {
                set.tag = op->set_tag = take_fence_tag(f);
                set.key = (struct bytes){ buf_data(&key), buf_len(&key) };
                relay_request(f->client, &set);
        }
        barrier.tag = op->tag = take_fence_tag(f);
        barrier.key = (struct bytes){ buf_data(&name), buf_len(&name) };
        relay_request(f->client, &barrier);
}

/* Values are counted through all fences of the group: n_nodes for each. */
static bool has_unfetched(const struct fence_group *g)
{
        return g->n_fetched < (uint64_t)g->n_completed * g->n_nodes;
}

/* Requests the next values not fetched yet, at most fetch_max. */
static void fetch_values(struct fence *f, struct fence_group *g, struct fence_op *op)
{
        uint64_t left = (uint64_t)g->n_completed * g->n_nodes - g->n_fetched;
        uint32_t n = (uint32_t)MIN(left, (uint64_t)op->fetch_max);
        struct store_request fetch = { .op = STORE_FETCH, .n_keys = n };
        CLEANUP(buf_finish) struct buf keys = BUF_INIT;
        size_t *ends = xcalloc(n, sizeof(*ends));

        op->step = STEP_FETCHING;
        op->n_keys = n;
        fetch.keys = xcalloc(n, sizeof(*fetch.keys));
        /* Ends first, pointers afterwards: a growing buffer moves. */
        for (uint32_t i = 0; i < n; i++) {
                uint64_t place = g->n_fetched + i;

                append_value_key(&keys, g, (uint32_t)(place / g->n_nodes),
                                 g->nodes[place % g->n_nodes]);
                ends[i] = buf_len(&keys);
        }
        for (uint32_t i = 0; i < n; i++) {
                size_t begin = i ? ends[i - 1] : 0;

                fetch.keys[i] = (struct bytes){ buf_data(&keys) + begin, ends[i] - begin };
        }
        fetch.tag = op->tag = take_fence_tag(f);
        relay_request(f->client, &fetch); /* encodes the keys, so the arrays may go */
        free(ends);
        free(fetch.keys);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Keeps the first failure. */
static void note_failure(struct fence_op *op, const struct store_reply *reply)
{
        if (op->status != STORE_OK || reply->status == STORE_OK)
                return;
        op->status = reply->status;
        /* The reply is lent. */
        op->text = xstrndup(reply->text.p ? reply->text.p : "", reply->text.len);
}

/* Hands out the values. After an answer above the limit the same values are requested in smaller
 * parts. */
static void take_values(struct fence_group *g, struct fence_op *op, const struct store_reply *reply)
{
        struct reader in = READER_INIT(reply->value.p, reply->value.len);

        if (reply->status == STORE_TOO_BIG && op->n_keys > 1) {
                op->fetch_max = op->n_keys / 2; /* stays for the later parts of this operation */
                return;
        }
        note_failure(op, reply);
        for (uint32_t i = 0; i < op->n_keys && op->status == STORE_OK; i++) {
                uint64_t len = take_u64(&in);
                const void *p = take_raw(&in, len);

                /* A node without a SET has an empty value. */
                if (p && len)
                        op->waiter.value(op->waiter.ctx, g->nodes[g->n_fetched % g->n_nodes],
                                         (struct bytes){ p, len });
                else if (!p)
                        note_failure(op,
                                     &(struct store_reply){ .status = STORE_INVALID,
                                                            .text = bytes_of("malformed answer") });
                g->n_fetched++;
        }
}

/* The step has ended: takes the next, or ends the operation and starts the next. */
static void finish_step(struct fence *f, struct fence_group *g, struct fence_op *op)
{
        if (op->status == STORE_OK && op->waiter.value && has_unfetched(g)) {
                fetch_values(f, g, op);
                return;
        }
        op->tag = op->set_tag = 0; /* stays first: operations of the callback queue behind */
        op->waiter.done(op->waiter.ctx, op->status, bytes_of(op->text ? op->text : ""));
        DL_DELETE(g->ops, op);
        if (g->ops)
                start_fence_op(f, g);
        free(op->value);
        free(op->text);
        free(op);
}

/* Only the first operation of a group has tags. NULL: a reply of fence_show_wait(). */
static struct fence_op *find_fence_op(struct fence *f, uint32_t tag, struct fence_group **ret)
{
        struct fence_group *g;

        LL_FOREACH(f->groups, g)
        {
                *ret = g;
                if (g->ops && (g->ops->tag == tag || g->ops->set_tag == tag))
                        return g->ops;
        }
        return NULL;
}

static void on_fence_reply(void *ctx, const struct store_reply *reply)
{
        struct fence *f = ctx;
        struct fence_group *g;
        struct fence_op *op = find_fence_op(f, reply->tag, &g);
        uint32_t n;

        if (!op)
                return;
        /* A failed SET fails the fence, but the answer to the barrier is still awaited. */
        if (op->step == STEP_MEETING)
                note_failure(op, reply);
        if (reply->tag == op->set_tag)
                return;
        if (op->step == STEP_MEETING) {
                /* A reply without ranks is for all missing ranks. */
                n = reply->n_whom ? reply->n_whom : op->n_missing;
                op->n_missing -= MIN(n, op->n_missing);
                if (op->n_missing)
                        return;
                g->n_completed++;
        } else {
                take_values(g, op, reply);
        }
        finish_step(f, g, op);
}

/* --- operations ------------------------------------------------------------------------------- */

static void start_fence_op(struct fence *f, struct fence_group *g)
{
        if (g->ops->meets)
                meet_members(f, g, g->ops);
        else
                /* A fetch has no meeting: the next step is the fetching. */
                finish_step(f, g, g->ops);
}

static void add_fence_op(struct fence *f, struct fence_group *g, struct fence_op op)
{
        struct fence_op *copy = xcalloc(1, sizeof(*copy));
        bool idle = !g->ops;

        *copy = op;
        copy->fetch_max = FETCH_KEYS;
        DL_APPEND(g->ops, copy);
        /* Otherwise finish_step() of the operation in front starts this one. */
        if (idle)
                start_fence_op(f, g);
}

int fence_begin(struct fence *f, const uint32_t *ranks, uint32_t n, struct bytes value,
                struct fence_waiter w)
{
        struct fence_op op = { .waiter = w, .meets = true, .len = value.len };
        struct fence_group *g;
        int ret = value.len > STORE_VALUE_MAX ? -EMSGSIZE : fence_group_find(f, ranks, n, &g);

        if (ret < 0)
                return ret;
        op.value = xcalloc(1, value.len);
        if (value.len)
                memcpy(op.value, value.p, value.len);
        add_fence_op(f, g, op);
        return 0;
}

/* Waits for a key that no node sets, until the cancel. */
void fence_show_wait(struct fence *f, bool shown)
{
        /* No rank sets this key: ranks cannot name a key with this prefix. */
        struct bytes key = { STORE_OWN_PREFIX "fence/never",
                             sizeof(STORE_OWN_PREFIX "fence/never") - 1 };
        struct store_request wait = { .op = STORE_WAIT, .keys = &key, .n_keys = 1 };

        if (shown == (f->shown_tag != 0))
                return;
        if (shown)
                wait.tag = f->shown_tag = take_fence_tag(f);
        else
                wait = (struct store_request){ .op = STORE_CANCEL, .tag = f->shown_tag };
        relay_request(f->client, &wait);
        /* After the request, which needs the tag. */
        if (!shown)
                f->shown_tag = 0;
}

void fence_fetch(struct fence *f, struct fence_waiter w)
{
        add_fence_op(f, f->all, (struct fence_op){ .waiter = w });
}

bool fence_has_unfetched(const struct fence *f)
{
        return has_unfetched(f->all);
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct fence *fence_create(struct relay *relay, struct fence_world world)
{
        static const struct relay_client_ops ops = { .reply = on_fence_reply, .is_relay = true };
        struct fence *f = xcalloc(1, sizeof(*f));

        f->world = world;
        f->client = relay_client_create(relay, ops, f);
        if (!f->client) {
                free(f);
                return NULL;
        }
        /* The group of all ranks has no list of members, and is always there. */
        f->all = fence_group_add(f, NULL, 0);
        return f;
}

void fence_destroy(struct fence *f)
{
        struct fence_group *g;

        if (!f)
                return;
        /* Before the groups: from here on no reply comes. */
        relay_client_destroy(f->client);
        while ((g = f->groups)) {
                LL_DELETE(f->groups, g);
                fence_group_free(g);
        }
        free(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in the node's name, shared by waiters with equal questions. (Participants of collectives
 * are in request_collective.c, the meaning of states and queues in relay_private.h.)
 *
 * request_attach() finds or makes a request: a shareable op by the encoded bytes of the keys, a
 * small SET by comparing it with the SET kept back; all else gets a separate request, which leaves
 * at once. relay_turn() sends the requests due. request_complete() then takes an answer in this
 * order:
 *
 *   1. the tag is free again; a FETCH may need another part and leave once more
 *   2. the request closes, and the successor becomes due
 *   3. a refused sum is split into a request per waiter
 *   4. waiters not covered by this answer move to another request: after a JOIN that came too
 *      late, or when an item of a queue is for the first waiter only
 *   5. the remaining waiters are answered, in order of arrival
 *
 * A callback may make requests and detach waiters. So every loop with an answer takes the head of
 * the list anew, and a COMPLETED request is freed only by request_complete().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/macros.h"
#include "base/memory.h"
#include "store/relay/chunked_fetch.h"
#include "store/relay/relay_private.h"
#include "wire/codec.h"

enum {
        SCRATCH_KEEP = 64 << 10, /* a larger buffer is freed before the next use */
        TAG_AT = 5,              /* in a body */
        AMOUNT_LEN = 8,          /* of an OP_SUMMED, the last field of the message */
        QUEUE_ITEM = -1,         /* number of a WAIT's answer, see JOIN */
        SET_SHARED = 1 << 10,    /* body of a SET up to which comparing is worthwhile */
        MANY_KEYS = 16,
};

bool op_is(uint8_t op, enum op_trait trait)
{
        static const unsigned char traits[] = {
                [STORE_HELLO] = OP_FORWARDED,
                [STORE_ADD] = OP_SHARED | OP_SUMMED,
                [STORE_CHECK] = OP_SHARED,
                [STORE_TOPOLOGY] = OP_FORWARDED,
                [STORE_ABORT] = OP_FORWARDED,
                [STORE_GET] = OP_SHARED | OP_JOINABLE,
                [STORE_WAIT] = OP_SHARED | OP_JOINABLE,
                [STORE_BARRIER] = OP_COLLECTIVE,
                [STORE_GATHER] = OP_COLLECTIVE,
                [STORE_BROADCAST] = OP_COLLECTIVE,
                [STORE_REPORT_ERROR] = OP_FORWARDED,
                [STORE_PROGRESS] = OP_FORWARDED,
                [STORE_DRAINED] = OP_FORWARDED,
                [STORE_FETCH] = OP_SHARED,
                [STORE_COUNT] = OP_SHARED | OP_SUMMED,
        };

        return op < ARRAY_SIZE(traits) && traits[op] & trait;
}

/* --- bodies and messages ---------------------------------------------------------------------- */

struct buf *relay_scratch(struct relay *relay)
{
        buf_clear(&relay->scratch);
        if (relay->scratch.failed || relay->scratch.cap > SCRATCH_KEEP)
                buf_finish(&relay->scratch);
        return &relay->scratch;
}

struct bytes relay_encode(struct relay *relay, uint32_t client, const struct store_request *req)
{
        struct store_request named = *req;
        struct buf *b = relay_scratch(relay);

        named.client = client;
        store_request_encode(b, &named);
        return buf_failed(b) ? (struct bytes){ 0 } : (struct bytes){ buf_data(b), buf_len(b) };
}

static void write_number(unsigned char *at, uint64_t v, int bytes)
{
        for (int i = 0; i < bytes; i++)
                at[i] = (unsigned char)(v >> (8 * i));
}

void relay_send(struct relay *relay, struct bytes body)
{
        if (relay->kept_set)
                relay_flush_set(relay);
        relay->count.up++;
        relay->ops.up(relay->ctx, body.p, body.len);
}

int relay_send_request(struct relay *relay, uint32_t client, const struct store_request *req)
{
        struct bytes body = relay_encode(relay, client, req);

        if (!body.p)
                return -ENOMEM;
        relay_send(relay, body);
        return 0;
}

void request_take_tag(struct relay *relay, struct request *r)
{
        uint32_t n = MAX(relay->n_tags * 2, 16U);

        if (!relay->free_tag) {
                relay->tags = xrealloc(relay->tags, n, sizeof(*relay->tags));
                for (uint32_t i = relay->n_tags; i < n; i++)
                        relay->tags[i] = (struct sent_tag){ .next_free = i + 1 < n ? i + 1 : 0 };
                relay->free_tag = MAX(relay->n_tags, 1U); /* tag 0 stands for none */
                relay->n_tags = n;
        }
        r->state = REQUEST_SENT;
        r->tag = relay->free_tag;
        relay->free_tag = relay->tags[r->tag].next_free;
        relay->tags[r->tag].of = r;
}

void request_free_tag(struct relay *relay, const struct request *r)
{
        relay->tags[r->tag] = (struct sent_tag){ .next_free = relay->free_tag };
        relay->free_tag = r->tag;
}

static void send_body(struct relay *relay, struct request *r)
{
        struct bytes body = { r->body, r->len };

        request_take_tag(relay, r);
        write_number(r->body + TAG_AT, r->tag, sizeof(r->tag));
        if (op_is(r->op, OP_SUMMED)) {
                write_number(r->body + r->len, (uint64_t)r->shared.sum, AMOUNT_LEN);
                body.len += AMOUNT_LEN;
        }
        relay_send(relay, body);
}

void relay_flush_set(struct relay *relay)
{
        struct request *r = relay->kept_set;

        relay->kept_set = NULL; /* first: relay_send() would flush once more */
        send_body(relay, r);
}

static int send_cancel(struct relay *relay, struct request *r)
{
        r->state = REQUEST_CANCELLED;
        return relay_send_request(relay, STORE_NODE,
                                  &(struct store_request){ .op = STORE_CANCEL, .tag = r->tag });
}

/* --- tables and queues ------------------------------------------------------------------------ */

struct request *request_create(const struct store_request *req, struct bytes body, size_t key_at)
{
        struct request *r = malloc(sizeof(*r) + body.len + AMOUNT_LEN);

        if (!r)
                return NULL;
        *r = (struct request){ .op = req->op, .state = REQUEST_UNSENT, .len = body.len };
        if (body.len)
                memcpy(r->body, body.p, body.len);
        r->first_key =
                (struct bytes){ r->body + key_at, req->n_keys ? req->keys[0].len : req->key.len };
        r->n_keys = MAX(req->n_keys, 1U);
        return r;
}

void request_destroy(struct request *r)
{
        while (r->is_collective && r->collective.participants)
                collective_drop_participant(r, r->collective.participants);
        if (!r->is_collective)
                chunked_fetch_destroy(r->shared.fetch);
        free(r);
}

/* Makes another request for the same keys. */
static struct request *copy_request(const struct request *r)
{
        /* request_create() needs only the length of the first key, so @same has no list of keys. */
        struct store_request same = { .op = r->op, .key = r->first_key };
        size_t key_at = (size_t)((const unsigned char *)r->first_key.p - r->body);
        struct request *copy = request_create(&same, (struct bytes){ r->body, r->len }, key_at);

        if (copy)
                copy->n_keys = r->n_keys;
        return copy;
}

void request_enqueue(struct relay *relay, struct request *r, enum request_queue queue)
{
        if (r->queue == queue)
                return;
        if (r->queue != QUEUE_NONE)
                DL_DELETE2(relay->queues[r->queue], r, queue_prev, queue_next);
        if (queue != QUEUE_NONE)
                DL_APPEND2(relay->queues[queue], r, queue_prev, queue_next);
        r->queue = queue;
}

void request_open(struct relay *relay, struct request *r)
{
        r->open = true;
        /* The fields behind client, op and tag are equal for equal questions. */
        HASH_ADD_KEYPTR(hh_keys, relay->open[r->op], r->body + STORE_BODY_HEADER,
                        r->len - STORE_BODY_HEADER, r);
        request_enqueue(relay, r, QUEUE_DUE);
}

void request_close(struct relay *relay, struct request *r)
{
        struct request *next = r->is_collective ? NULL : r->shared.successor;

        if (r->open)
                HASH_DELETE(hh_keys, relay->open[r->op], r);
        if (relay->recent == r)
                relay->recent = NULL;
        r->open = false;
        if (!next)
                return;
        r->shared.successor = next->shared.predecessor = NULL;
        request_open(relay, next);
}

/* --- attaching -------------------------------------------------------------------------------- */

static void attach_waiter(struct request *r, struct waiter *w)
{
        w->request = r;
        DL_APPEND(r->waiters, w);
        if (op_is(r->op, OP_SUMMED))
                r->shared.sum += w->number;
}

/* Moves @w from a request at its end to a request not sent yet, which covers all JOINs so far. */
static void move_waiter(struct waiter *w, struct request *to)
{
        DL_DELETE(w->request->waiters, w);
        w->join = w->joins_by = 0;
        w->joins_covered = w->joins;
        attach_waiter(to, w);
}

/* Only amounts of the same sign are added up: then every partial sum lies between the first value
 * and the last, and no waiter is answered a number the counter could never have had. */
static bool sum_fits(const struct request *r, const struct waiter *w)
{
        int64_t sum;

        if (!op_is(r->op, OP_SUMMED))
                return true;
        if ((r->shared.sum < 0 && w->number > 0) || (r->shared.sum > 0 && w->number < 0))
                return false;
        return !__builtin_add_overflow(r->shared.sum, w->number, &sum);
}

/* Returns the request to share for @w: @open, or the successor of an @open on the way. NULL:
 * the amounts do not fit, or no memory. */
static struct request *shareable_request(struct relay *relay, struct request *open,
                                         struct waiter *w)
{
        struct request *r = open;

        if (open->state != REQUEST_UNSENT && op_is(open->op, OP_JOINABLE)) {
                w->join = open->shared.joins + 1; /* all newcomers of a turn share the next JOIN */
                request_enqueue(relay, open, QUEUE_DUE);
                return open;
        }
        if (open->state != REQUEST_UNSENT) {
                r = open->shared.successor;
                if (!r && (r = copy_request(open))) {
                        r->shared.predecessor = open;
                        open->shared.successor = r;
                }
        }
        return r && sum_fits(r, w) ? r : NULL;
}

/* Does @r, which has a list of keys, ask for the list of @req? */
static bool has_keys_of(const struct request *r, const struct store_request *req)
{
        struct reader body = READER_INIT(r->body + STORE_BODY_HEADER, r->len - STORE_BODY_HEADER);

        if (r->op != req->op || take_u32(&body) != req->n_keys)
                return false;
        for (uint32_t i = 0; i < req->n_keys; i++) {
                size_t len;
                const void *key = take_bytes(&body, STORE_KEY_MAX, &len);

                if (len != req->keys[i].len || (len && memcmp(key, req->keys[i].p, len) != 0))
                        return false;
        }
        return true;
}

/* Joins the waiter to an open request with the same keys, or begins a new one: a thousand ranks of
 * a node ask the head once. 0, or -ENOMEM. */
static int attach_shared(struct relay *relay, struct waiter *w, const struct store_request *req)
{
        struct request *open = relay->recent, *r = NULL;
        struct bytes body = { 0 };

        if (!open || !has_keys_of(open, req)) {
                body = relay_encode(relay, STORE_NODE, req);
                if (!body.p)
                        return -ENOMEM;
                body.len -= op_is(req->op, OP_SUMMED) ? AMOUNT_LEN : 0;
                HASH_FIND(hh_keys, relay->open[req->op], (const char *)body.p + STORE_BODY_HEADER,
                          body.len - STORE_BODY_HEADER, open);
        }
        if (open)
                r = shareable_request(relay, open, w);
        /* Without @body the keys were those of @recent. A list has no sum that could be refused, so
         * memory is missing. */
        if (!r && body.p) {
                /* A key is the first field; a list of keys has the count in front. */
                r = request_create(req, body, STORE_BODY_HEADER + (req->n_keys ? 8 : 4));
                /* The open request keeps its place in the table; the new request serves @w
                 * alone. */
                if (r && open)
                        request_enqueue(relay, r, QUEUE_DUE);
                else if (r)
                        request_open(relay, r);
                if (r && !open && req->n_keys >= MANY_KEYS)
                        relay->recent = r;
        }
        if (!r)
                return -ENOMEM;
        attach_waiter(r, w);
        return 0;
}

/* Holds a small SET back for a moment: all ranks of a node often set a key to the same value. */
static int attach_small_set(struct relay *relay, struct waiter *w, const struct store_request *req)
{
        struct bytes body = relay_encode(relay, STORE_NODE, req);
        struct request *r = relay->kept_set;

        if (!body.p)
                return -ENOMEM;
        if (!r || r->len != body.len ||
            memcmp(r->body + STORE_BODY_HEADER, (const char *)body.p + STORE_BODY_HEADER,
                   body.len - STORE_BODY_HEADER) != 0) {
                r = request_create(req, body, STORE_BODY_HEADER + 4);
                if (!r)
                        return -ENOMEM;
                if (relay->kept_set)
                        relay_flush_set(relay);
                relay->kept_set = r;
        }
        attach_waiter(r, w);
        return 0;
}

/* Sends the request for this waiter alone. 0, or negative. */
static int attach_alone(struct relay *relay, struct waiter *w, const struct store_request *req)
{
        bool forwarded = op_is(req->op, OP_FORWARDED | OP_COLLECTIVE);
        struct request *r = request_create(req, req->n_keys ? req->keys[0] : req->key, 0);
        struct store_request tagged = *req;
        int ret;

        if (!r)
                return -ENOMEM;
        if (forwarded) {
                r->state = REQUEST_FORWARDED;
        } else {
                request_take_tag(relay, r);
                tagged.tag = r->tag;
        }
        ret = relay_send_request(relay, forwarded ? w->name.client : STORE_NODE, &tagged);
        if (ret < 0) {
                if (!forwarded)
                        request_free_tag(relay, r);
                request_destroy(r);
                return ret;
        }
        attach_waiter(r, w);
        return 0;
}

int request_attach(struct relay *relay, struct waiter *w, const struct store_request *req)
{
        if (op_is(req->op, OP_COLLECTIVE) && (req->n_ranks || w->request))
                return collective_attach(relay, w, req);
        /* The number of a COUNT is the value awaited; the ranks are counted in @total. */
        w->number = req->op == STORE_COUNT ? MAX(req->total, 1) : req->number;
        if (op_is(req->op, OP_SHARED))
                return attach_shared(relay, w, req);
        if (req->op == STORE_SET && req->key.len + req->value.len <= SET_SHARED)
                return attach_small_set(relay, w, req);
        return attach_alone(relay, w, req);
}

void request_join(struct relay *relay, struct waiter *w)
{
        struct request *r = w->request;

        if (!op_is(r->op, OP_JOINABLE))
                return;
        w->joins++;
        if (r->state == REQUEST_UNSENT) {
                w->joins_covered = w->joins;
        } else {
                w->joins_by = r->shared.joins + 1;
                request_enqueue(relay, r, QUEUE_DUE);
        }
}

/* --- detaching -------------------------------------------------------------------------------- */

void relay_release_behind(struct relay *relay, uint32_t client)
{
        struct request *r, *next;

        DL_FOREACH_SAFE2(relay->queues[QUEUE_BEHIND], r, next, queue_next)
        {
                if (r->shared.behind == client)
                        request_enqueue(relay, r, QUEUE_DUE);
        }
}

/* Gives up a request without waiters. A request sent keeps the tag until the answer comes, and
 * is cancelled even if the head never parks this op: a relay in between may hold the request, and
 * must not send it when an attempt is over. */
static void abandon_if_unused(struct relay *relay, struct request *r)
{
        if (r->waiters || r->state == REQUEST_COMPLETED)
                return;
        if (r->state == REQUEST_UNSENT && r->shared.predecessor)
                r->shared.predecessor->shared.successor = NULL;
        request_enqueue(relay, r, QUEUE_NONE);
        request_close(relay, r);
        if (r->state == REQUEST_SENT)
                send_cancel(relay, r);
        else if (r->state != REQUEST_CANCELLED)
                request_destroy(r);
}

void request_detach(struct relay *relay, struct waiter *w)
{
        struct request *r = w->request;

        if (r->is_collective) {
                collective_detach(relay, w);
                return;
        }
        if (r == relay->kept_set)
                relay_flush_set(relay); /* counts even if the client does not wait */
        DL_DELETE(r->waiters, w);
        if (op_is(r->op, OP_SUMMED) && r->state == REQUEST_UNSENT)
                r->shared.sum -= w->number;
        abandon_if_unused(relay, r);
}

int request_recheck(struct relay *relay, struct waiter *w)
{
        struct request *old = w->request, *r;

        /* The answer to the earlier CANCEL serves this waiter, too. */
        if (old->state == REQUEST_CANCELLED)
                return 0;
        r = copy_request(old);
        if (!r)
                return -ENOMEM;
        move_waiter(w, r);
        abandon_if_unused(relay, old);
        send_body(relay, r);
        return send_cancel(relay, r);
}

/* --- sending ---------------------------------------------------------------------------------- */

void request_send_due(struct relay *relay, struct request *r)
{
        struct waiter *w;

        if (r->state != REQUEST_UNSENT) {
                r->shared.joins++;
                relay_send_request(relay, STORE_NODE,
                                   &(struct store_request){ .op = STORE_JOIN, .tag = r->tag });
                return;
        }
        /* Sums anew, to note the partial sum of each waiter. */
        if (op_is(r->op, OP_SUMMED)) {
                r->shared.sum = 0;
                r->shared.n_sent = 0;
                DL_FOREACH(r->waiters, w)
                {
                        r->shared.sum += w->number;
                        w->sum = r->shared.sum;
                        r->shared.n_sent++;
                }
        }
        send_body(relay, r);
        /* A COUNT waits for other ranks: the next must not gather behind it. */
        if (r->op == STORE_COUNT)
                request_close(relay, r);
}

/* --- completing ------------------------------------------------------------------------------- */

/* Passes STORE_TOO_BIG on to relays below, which ask in parts of their own: the whole may be too
 * long for one message. */
static void answer_relays(struct request *r, const struct store_reply *reply)
{
        struct waiter *w = r->waiters;

        while (w) {
                struct store_reply own = *reply;

                if (!w->client->ops.is_relay) {
                        w = w->next;
                        continue;
                }
                DL_DELETE(r->waiters, w);
                waiter_answer(w, &own);
                w = r->waiters; /* the callback may have changed the rest of the list */
        }
}

/* Asks for the next part of a FETCH. False: *reply is the answer to all. */
static bool fetch_goes_on(struct relay *relay, struct request *r, struct store_reply *reply)
{
        struct store_request part;

        if (r->op != STORE_FETCH)
                return false;
        if (reply->status == STORE_TOO_BIG)
                answer_relays(r, reply);
        if (!r->waiters || !chunked_fetch_take(&r->shared.fetch, r->body, r->len, reply))
                return false;
        part = chunked_fetch_part(r->shared.fetch);
        request_take_tag(relay, r);
        part.tag = r->tag;
        if (relay_send_request(relay, STORE_NODE, &part) == 0)
                return true;
        request_free_tag(relay, r);
        *reply = (struct store_reply){ .status = STORE_NOMEM };
        return false;
}

/* Sends the amounts of a refused sum one by one: the head refuses only some of these. A
 * COUNT answered STORE_PEER was added: others cannot come any more. */
static void split_refused_sum(struct relay *relay, struct request *r,
                              const struct store_reply *reply)
{
        if (r->shared.n_sent < 2 || !op_is(r->op, OP_SUMMED) || reply->status == STORE_OK ||
            reply->status == STORE_PEER)
                return;
        while (r->waiters) {
                struct request *own = copy_request(r);

                if (!own)
                        return; /* the remaining waiters share the refusal */
                request_enqueue(relay, own, QUEUE_DUE);
                move_waiter(r->waiters, own);
        }
}

/* Asks again for waiters with a JOIN too late: the answer may be older than their request. */
static int ask_again(struct relay *relay, struct request *r, int64_t covered)
{
        struct request *again = NULL;
        struct waiter *w, *next;

        DL_FOREACH_SAFE(r->waiters, w, next)
        {
                if (w->join <= covered)
                        continue;
                if (!again) {
                        again = copy_request(r);
                        if (!again)
                                return -ENOMEM;
                        request_open(relay, again);
                }
                move_waiter(w, again);
        }
        return 0;
}

/* An item of a queue is for the first waiter: the others wait for the next request of this client.
 */
static int queue_behind_first(struct relay *relay, struct request *r)
{
        struct waiter *first = r->waiters;
        struct request *rest;

        if (!first || !first->next)
                return 0;
        rest = copy_request(r);
        if (!rest)
                return -ENOMEM;
        rest->shared.behind = first->name.client;
        request_enqueue(relay, rest, QUEUE_BEHIND);
        while (first->next)
                move_waiter(first->next, rest);
        return 0;
}

static bool is_queue_item(const struct store_reply *reply)
{
        return reply->status == STORE_OK && reply->number == QUEUE_ITEM;
}

/* Returns, for a relay below, the number of JOINs covered by the answer of a GET or WAIT. */
static int64_t joins_covered(const struct waiter *w, const struct store_reply *reply)
{
        if (!w->client->ops.is_relay)
                return 0;
        if (is_queue_item(reply))
                return QUEUE_ITEM;
        return reply->number >= w->joins_by ? w->joins : w->joins_covered;
}

/* Returns the counter as @w left it, when @number is the counter after the whole sum. Wraps with a
 * number that no correct store answers. */
static int64_t number_after(const struct waiter *w, int64_t number, int64_t sum)
{
        return (int64_t)((uint64_t)number - (uint64_t)sum + (uint64_t)w->sum);
}

void request_complete(struct relay *relay, struct request *r, const struct store_reply *reply)
{
        bool joinable = op_is(r->op, OP_JOINABLE);
        struct store_reply whole = *reply;
        struct waiter *w;
        int ret = 0;

        if (r->state != REQUEST_FORWARDED) {
                request_free_tag(relay, r); /* each part of a FETCH has a tag of its own */
                if (fetch_goes_on(relay, r, &whole))
                        return;
        }
        request_enqueue(relay, r, QUEUE_NONE);
        request_close(relay, r);
        r->state = REQUEST_COMPLETED;
        split_refused_sum(relay, r, reply);
        if (joinable)
                ret = is_queue_item(reply) ? queue_behind_first(relay, r)
                                           : ask_again(relay, r, reply->number);
        if (ret < 0)
                whole = (struct store_reply){ .status = STORE_NOMEM };
        while ((w = r->waiters)) {
                struct store_reply own = whole;

                DL_DELETE(r->waiters, w);
                if (joinable)
                        own.number = joins_covered(w, &whole);
                else if (r->op == STORE_ADD && whole.status == STORE_OK)
                        own.number = number_after(w, whole.number, r->shared.sum);
                waiter_answer(w, &own);
        }
        request_destroy(r);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients, their waiters, and the ways in and out of the relay.
 *
 * relay_request() takes the messages of a client. A request with an answer gets a waiter, named by
 * client and tag, and request_attach() finds or makes the request to the head; CANCEL, JOIN and
 * LEAVE change a present waiter. relay_turn() sends requests due. relay_deliver() takes the
 * messages of the head: an answer to the node (client STORE_NODE) finds a request by tag, an answer
 * to a client finds the waiter by name. Either way, waiter_answer() hands a copy to each client.
 *
 * Callbacks to clients may make requests, so no other waiter is used afterwards.
 */
#include "store/relay/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/macros.h"
#include "base/memory.h"
#include "store/relay/relay_private.h"

/* --- waiters ---------------------------------------------------------------------------------- */

static struct waiter *find_waiter(const struct relay *relay, uint32_t client, uint32_t tag)
{
        struct waiter_name name = { client, tag };
        struct waiter *w;

        HASH_FIND(hh, relay->waiters, &name, sizeof(name), w);
        return w;
}

/* NULL = no memory. */
static struct waiter *create_waiter(struct relay_client *c, uint32_t tag)
{
        struct waiter *w = calloc(1, sizeof(*w));

        if (!w)
                return NULL;
        w->name = (struct waiter_name){ c->id, tag };
        w->client = c;
        w->since_ns = c->seen_ns; /* relay_request() has set the time */
        HASH_ADD(hh, c->relay->waiters, name, sizeof(w->name), w);
        DL_APPEND2(c->waiters, w, older, newer);
        return w;
}

static void destroy_waiter(struct waiter *w)
{
        struct relay_client *c = w->client;

        HASH_DEL(c->relay->waiters, w);
        DL_DELETE2(c->waiters, w, older, newer);
        free(w);
}

void relay_reply(struct relay_client *c, uint32_t tag, struct store_reply *reply)
{
        reply->client = 0;
        reply->tag = tag;
        c->ops.reply(c->ctx, reply);
}

/* Clients that are no rank, such as relays of other nodes, are not told. */
static void tell_waiter_end(const struct waiter *w, uint8_t status)
{
        const struct relay *relay = w->client->relay;

        if (relay->ops.seen && w->client->rank >= 0 && w->request)
                relay->ops.seen(relay->ctx, w->client,
                                &(struct relay_seen){ .op = w->request->op,
                                                      .status = status,
                                                      .key = w->request->first_key,
                                                      .since_ns = w->since_ns });
}

void waiter_answer(struct waiter *w, struct store_reply *reply)
{
        struct relay_client *c = w->client;
        uint32_t tag = w->name.tag;

        tell_waiter_end(w, reply->status);

        /* The rank counts only now, when the head has accepted the HELLO. */
        if (w->request->op == STORE_HELLO && reply->status == STORE_OK) {
                c->rank = (int)w->number;
                local_ranks_add(c->relay, (uint32_t)c->rank);
        }
        destroy_waiter(w); /* before the callback, which may use the tag again */
        relay_reply(c, tag, reply);
}

/* --- from clients ----------------------------------------------------------------------------- */

static void refuse_request(struct relay_client *c, const struct store_request *req,
                           enum store_status status, const char *text)
{
        struct store_reply reply = { .status = (uint8_t)status, .text = bytes_of(text) };

        /* Other ranks of a relay below may wait under the same tag, so the refusal names ranks. */
        if (c->ops.is_relay) {
                reply.whom = req->ranks;
                reply.n_whom = req->n_ranks;
        }
        relay_reply(c, req->tag, &reply);
}

/* Attaches the request to a new waiter. A relay below may name more ranks for a present waiter. */
static void take_client_request(struct relay_client *c, const struct store_request *req)
{
        struct waiter *w = c->waiters ? find_waiter(c->relay, c->id, req->tag) : NULL;
        bool collective = op_is(req->op, OP_COLLECTIVE), more = w;
        uint32_t rank = (uint32_t)c->rank;
        struct store_request named;
        int ret = -ENOMEM;

        /* A client arrives as a single rank. Before the answer to HELLO there is no rank, and the
         * head must find the rank: request_attach() forwards the request. */
        if (collective && !c->ops.is_relay) {
                named = *req;
                named.ranks = &rank;
                named.n_ranks = c->rank >= 0;
                req = &named;
        }
        if (w && !(collective && c->ops.is_relay)) {
                refuse_request(c, req, STORE_INVALID, "the tag is in use");
                return;
        }
        if (!w)
                w = create_waiter(c, req->tag);
        if (w)
                ret = request_attach(c->relay, w, req);
        if (ret == 0)
                return;
        if (w && !more)
                destroy_waiter(w);
        if (ret == -EINVAL)
                refuse_request(c, req, STORE_INVALID,
                               "the request differs from the first with this tag");
        else
                refuse_request(c, req, STORE_NOMEM, "the agent is out of memory");
}

/* Writes the text of the head, except for the number of missing keys of a WAIT. */
static void describe_timeout(char *to, size_t size, const struct request *r)
{
        int len = (int)r->first_key.len;
        const char *key = r->first_key.p;

        if (!op_is(r->op, OP_JOINABLE))
                snprintf(to, size, "no answer to %s `%.*s`", store_op_name(r->op), len, key);
        else if (r->n_keys > 1)
                snprintf(to, size, "of %u keys, `%.*s` first, not all are there", r->n_keys, len,
                         key);
        else
                snprintf(to, size, "key `%.*s` is not there", len, key);
}

/* Ends a wait whose time is over. The request to the head stays open while other clients of the
 * node wait for the same answer. */
static void cancel_waiter(struct waiter *w, const struct store_request *req)
{
        struct relay_client *c = w->client;
        const struct request *r = w->request;
        char text[STORE_KEY_MAX + 64];

        /* The head knows this tag, and answers the CANCEL itself. */
        if (r->state == REQUEST_FORWARDED) {
                relay_send_request(c->relay, c->id, req);
                return;
        }
        if ((c->ops.last_look || c->ops.is_relay) && op_is(r->op, OP_JOINABLE) &&
            request_recheck(c->relay, w) == 0)
                return;
        if (w->request->is_collective) {
                collective_withdraw(c->relay, w, NULL, 0, true);
                return;
        }
        describe_timeout(text, sizeof(text), w->request);
        tell_waiter_end(w, STORE_TIMEOUT);
        request_detach(c->relay, w);
        destroy_waiter(w);
        /* The text of a reply is limited to less than a key. */
        relay_reply(c, req->tag,
                    &(struct store_reply){
                            .status = STORE_TIMEOUT,
                            .text = { text, MIN(bytes_of(text).len, (size_t)STORE_TEXT_MAX) } });
}

/* CANCEL, JOIN, LEAVE. No waiter: answered while the message was under way. */
static void change_waiter(struct relay_client *c, const struct store_request *req)
{
        struct waiter *w = find_waiter(c->relay, c->id, req->tag);

        if (!w)
                return;
        if (req->op == STORE_CANCEL)
                cancel_waiter(w, req);
        else if (req->op == STORE_JOIN)
                request_join(c->relay, w);
        else if (req->n_ranks)
                collective_withdraw(c->relay, w, req->ranks, req->n_ranks, req->number);
}

/* Keys of hnlaunch's own are for agents. */
static bool names_own_key(const struct store_request *req)
{
        bool own = store_key_is_own(req->key);

        for (uint32_t i = 0; i < req->n_keys && !own; i++)
                own = store_key_is_own(req->keys[i]);
        return own;
}

bool relay_serves(uint8_t op)
{
        return op == STORE_CANCEL || op == STORE_JOIN || op == STORE_LEAVE ||
               (store_op_has_answer(op) && !op_is(op, OP_FORWARDED));
}

void relay_request(struct relay_client *c, const struct store_request *req)
{
        struct relay *relay = c->relay;

        relay->count.requests++;
        c->seen_ns = relay->ops.now(relay->ctx);
        c->announced |= op_is(req->op, OP_FORWARDED);
        if (!c->ops.is_relay && store_op_has_answer(req->op) && names_own_key(req))
                refuse_request(c, req, STORE_INVALID, "the key is one of hnlaunch's own");
        else if (req->op == STORE_CANCEL || req->op == STORE_JOIN || req->op == STORE_LEAVE)
                change_waiter(c, req);
        else if (store_op_has_answer(req->op))
                take_client_request(c, req);
        else if (op_is(req->op, OP_FORWARDED))
                relay_send_request(relay, c->id, req);
        if (req->op == STORE_PROGRESS && relay->ops.seen && c->rank >= 0)
                relay->ops.seen(relay->ctx, c,
                                &(struct relay_seen){ .op = STORE_PROGRESS,
                                                      .number = req->number,
                                                      .since_ns = c->seen_ns });
        /* Behind the request itself, as a rule a POP: the waits released see the queue without the
         * item. */
        relay_release_behind(relay, c->id);
}

/* --- from the head ---------------------------------------------------------------------------- */

static void hand_out_event(struct relay *relay, const struct store_event *event)
{
        struct relay_client *c, *next;

        HASH_ITER(hh, relay->clients, c, next)
        {
                if ((event->client == STORE_ALL || event->client == c->id) && c->ops.event)
                        c->ops.event(c->ctx, event);
        }
}

int relay_deliver(struct relay *relay, const void *body, size_t len, struct error *err)
{
        uint8_t op = store_body_head(body, len).op;
        struct request *r = NULL;
        const struct waiter *w;
        struct store_reply reply;
        struct store_event event;
        int ret;

        relay->count.down++;
        if (op == STORE_EVENT) {
                ret = store_event_decode(&event, body, len, err);
                if (ret == 0)
                        hand_out_event(relay, &event);
                return ret;
        }
        if (op != STORE_REPLY)
                return err_set(err, EPROTO, "the head sent a store message of kind %u", op);
        ret = store_reply_decode(&reply, body, len, err);
        if (ret < 0)
                return ret;
        if (reply.client != STORE_NODE) {
                /* No waiter: the client has gone while the answer was under way. */
                w = find_waiter(relay, reply.client, reply.tag);
                if (w && w->request->state == REQUEST_FORWARDED)
                        r = w->request;
        } else if (reply.tag < relay->n_tags) {
                r = relay->tags[reply.tag].of;
        }
        if (r && r->is_collective)
                collective_complete(relay, r, &reply);
        else if (r)
                request_complete(relay, r, &reply);
        store_reply_finish(&reply);
        return 0;
}

/* --- turns ------------------------------------------------------------------------------------ */

void relay_turn(struct relay *relay)
{
        uint64_t now = relay->ops.now(relay->ctx);
        struct request *r, *next;

        if (relay->kept_set)
                relay_flush_set(relay);
        DL_FOREACH_SAFE2(relay->queues[QUEUE_HELD], r, next, queue_next)
        {
                if (!collective_waits(relay, r, now))
                        request_enqueue(relay, r, QUEUE_DUE);
        }
        /* Answers of a request without memory may add requests to the queue. */
        while ((r = relay->queues[QUEUE_DUE])) {
                bool waits = r->is_collective && collective_waits(relay, r, now);

                request_enqueue(relay, r, waits ? QUEUE_HELD : QUEUE_NONE);
                if (!r->is_collective)
                        request_send_due(relay, r);
                else if (!waits)
                        collective_send(relay, r);
        }
}

int relay_wait_ms(const struct relay *relay)
{
        const struct request *first = relay->queues[QUEUE_HELD]; /* held for longest */
        uint64_t now = relay->ops.now(relay->ctx);

        if (!first)
                return -1;
        return first->collective.held_until <= now
                       ? 0
                       : (int)((first->collective.held_until - now + 999999) / 1000000);
}

/* --- for reports of jobs that hang ------------------------------------------------------------ */

bool relay_client_pending(const struct relay_client *c, struct relay_pending *ret)
{
        const struct waiter *w = c->waiters;

        if (!w)
                return false;
        *ret = (struct relay_pending){ .op = w->request->op,
                                       .key = w->request->first_key,
                                       .n_keys = w->request->n_keys,
                                       .since_ns = w->since_ns };
        return true;
}

uint64_t relay_client_seen(const struct relay_client *c)
{
        return c->seen_ns;
}

int relay_client_rank(const struct relay_client *c)
{
        return c->rank;
}

struct relay_count relay_counts(const struct relay *relay)
{
        return relay->count;
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct relay_client *relay_client_create(struct relay *relay, struct relay_client_ops ops,
                                         void *ctx)
{
        struct relay_client *c = calloc(1, sizeof(*c)), *other;

        if (!c)
                return NULL;
        *c = (struct relay_client){ .relay = relay, .ops = ops, .ctx = ctx, .rank = -1 };
        do { /* neither a number with a meaning, nor that of a living client */
                if (++relay->last_id == STORE_ALL)
                        relay->last_id = STORE_NODE + 1;
                HASH_FIND(hh, relay->clients, &relay->last_id, sizeof(relay->last_id), other);
        } while (other);
        c->id = relay->last_id;
        HASH_ADD(hh, relay->clients, id, sizeof(c->id), c);
        return c;
}

void relay_client_destroy(struct relay_client *c)
{
        struct relay *relay;
        struct waiter *w;

        if (!c)
                return;
        relay = c->relay;
        while ((w = c->waiters)) {
                tell_waiter_end(w, STORE_PEER);
                request_detach(relay, w);
                destroy_waiter(w);
        }
        if (c->rank >= 0)
                local_ranks_remove(relay, (uint32_t)c->rank);
        if (c->announced)
                relay_send_request(relay, c->id, &(struct store_request){ .op = STORE_GONE });
        relay_release_behind(relay, c->id);
        HASH_DEL(relay->clients, c);
        free(c);
}

static uint64_t no_clock(void *ctx UNUSED)
{
        return 0;
}

struct relay *relay_create(struct relay_ops ops, void *ctx)
{
        struct relay *relay = xcalloc(1, sizeof(*relay));

        *relay = (struct relay){ .ops = ops, .ctx = ctx };
        if (!ops.now)
                relay->ops.now = no_clock;
        return relay;
}

void relay_destroy(struct relay *relay)
{
        if (!relay)
                return;
        /* All clients are gone: the requests left are cancelled and wait for an answer. */
        for (uint32_t i = 0; i < relay->n_tags; i++) {
                struct request *r = relay->tags[i].of;

                if (!r)
                        continue;
                request_close(relay, r);
                request_destroy(r);
        }
        free(relay->tags);
        while (relay->local_ranks)
                local_ranks_remove(relay, relay->local_ranks->rank);
        if (relay->kept_set)
                request_destroy(relay->kept_set);
        buf_finish(&relay->scratch);
        free(relay);
}

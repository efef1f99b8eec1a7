/* SPDX-License-Identifier: Apache-2.0 */
#include "store/relay/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/macros.h"
#include "store/relay/request.h"

struct relay_client {
        struct relay *relay;
        uint32_t id; /* under which requests about its rank pass */
        struct relay_client_ops ops;
        void *ctx;
        int rank;
        bool announced; /* the head has heard of it, so it must hear that it is gone */
        uint64_t seen_ns;
        struct rider *riders; /* the oldest first */
        UT_hash_handle hh;
};

struct relay {
        struct relay_ops ops;
        void *ctx;
        struct flights flights;
        struct relay_client *clients;
        struct rider *riders; /* by name */
        uint32_t last_id;
        struct relay_count count;
};

static void up(void *ctx, const void *body, size_t len)
{
        struct relay *r = ctx;

        r->count.up++;
        r->ops.up(r->ctx, body, len);
}

static uint64_t now(const struct relay *r)
{
        return r->ops.now ? r->ops.now(r->ctx) : 0;
}

/* --- riders ----------------------------------------------------------------------------------- */

static struct rider *rider_find(struct relay *r, uint32_t client, uint32_t tag)
{
        struct rider_name name = { client, tag };
        struct rider *rd;

        HASH_FIND(hh, r->riders, &name, sizeof(name), rd);
        return rd;
}

/* NULL = no memory. */
static struct rider *rider_make(struct relay_client *c, uint32_t tag)
{
        struct rider *rd = calloc(1, sizeof(*rd));

        if (!rd)
                return NULL;
        *rd = (struct rider){ .name = { c->id, tag },
                              .client = c,
                              .is_relay = c->ops.is_relay,
                              .since_ns = c->seen_ns };
        HASH_ADD(hh, c->relay->riders, name, sizeof(rd->name), rd);
        DL_APPEND2(c->riders, rd, older, newer);
        return rd;
}

/* It is not on a flight any more. */
static void rider_free(struct rider *rd)
{
        struct relay_client *c = rd->client;

        HASH_DEL(c->relay->riders, rd);
        DL_DELETE2(c->riders, rd, older, newer);
        free(rd);
}

static void tell(struct relay_client *c, uint32_t tag, struct store_reply *reply)
{
        reply->client = 0;
        reply->tag = tag;
        c->ops.reply(c->ctx, reply);
}

static void answer(void *ctx UNUSED, struct rider *rd, struct store_reply *reply)
{
        struct relay_client *c = rd->client;
        uint32_t tag = rd->name.tag;

        if (rd->flight->op == STORE_HELLO && reply->status == STORE_OK) {
                c->rank = (int)rd->number;
                locals_add(&c->relay->flights.locals, (uint32_t)c->rank);
        }
        rider_free(rd);
        tell(c, tag, reply);
}

static void answer_in_part(void *ctx UNUSED, struct rider *rd, struct store_reply *reply)
{
        tell(rd->client, rd->name.tag, reply);
}

/* --- requests --------------------------------------------------------------------------------- */

/* What the head would say; it knows better how many keys of a WAIT are missing. */
static void timeout_text(char *to, size_t size, const struct flight *f)
{
        int len = (int)f->first.len;
        const char *key = f->first.p;

        if (f->op != STORE_GET && f->op != STORE_WAIT)
                snprintf(to, size, "no answer to %s `%.*s`", store_op_name(f->op), len, key);
        else if (f->n_keys > 1)
                snprintf(to, size, "of %u keys, `%.*s` first, not all are there", f->n_keys, len,
                         key);
        else
                snprintf(to, size, "key `%.*s` is not there", len, key);
}

static void cancel(struct relay_client *c, const struct store_request *req)
{
        struct rider *rd = rider_find(c->relay, c->id, req->tag);
        char text[STORE_KEY_MAX + 64];

        if (!rd)
                return;
        if (rd->flight->state == FLIGHT_PASSED) {
                flights_pass(&c->relay->flights, c->id, req);
                return;
        }
        if ((c->ops.last_look || c->ops.is_relay) &&
            (rd->flight->op == STORE_GET || rd->flight->op == STORE_WAIT) &&
            flight_look(&c->relay->flights, rd) == 0)
                return;
        if (rd->flight->meets) {
                flight_withdraw(&c->relay->flights, rd, NULL, 0, true);
                return;
        }
        timeout_text(text, sizeof(text), rd->flight);
        flight_leave(&c->relay->flights, rd);
        rider_free(rd);
        /* A text of a reply is shorter than a key may be. */
        tell(c, req->tag,
             &(struct store_reply){
                     .status = STORE_TIMEOUT,
                     .text = { text, MIN(bytes_of(text).len, (size_t)STORE_TEXT_MAX) } });
}

static void refuse(struct relay_client *c, const struct store_request *req,
                   enum store_status status, const char *text)
{
        struct store_reply reply = { .status = (uint8_t)status, .text = bytes_of(text) };

        if (c->ops.is_relay) {
                reply.whom = req->ranks;
                reply.n_whom = req->n_ranks;
        }
        tell(c, req->tag, &reply);
}

/* @rd has been made for it, or is a relay's that has asked before. */
static void board(struct relay_client *c, struct rider *rd, const struct store_request *req)
{
        struct flights *fs = &c->relay->flights;
        bool more = rd && rd->flight;
        int ret = -ENOMEM;

        if (rd)
                ret = more ? flight_board_more(fs, rd, req) : flight_board(fs, rd, req);
        if (ret == 0)
                return;
        if (rd && !more)
                rider_free(rd);
        if (ret == -EINVAL)
                refuse(c, req, STORE_INVALID, "not like what was asked with this tag");
        else
                refuse(c, req, STORE_NOMEM, "the agent is out of memory");
}

static void ask(struct relay_client *c, const struct store_request *req)
{
        struct rider *rd = c->riders ? rider_find(c->relay, c->id, req->tag) : NULL;

        if (!rd)
                board(c, rider_make(c, req->tag), req);
        else if (c->ops.is_relay && flight_meets(req->op))
                board(c, rd, req);
        else
                refuse(c, req, STORE_INVALID, "the tag is in use");
}

/* A client comes as its rank, if the head has heard which. */
static void ask_to_meet(struct relay_client *c, const struct store_request *req)
{
        struct store_request named = *req;
        uint32_t rank = (uint32_t)c->rank;

        if (!c->ops.is_relay) {
                named.ranks = &rank;
                named.n_ranks = c->rank >= 0;
        }
        ask(c, &named);
}

/* Not there: it was answered while the JOIN was under way. */
static void join(struct relay_client *c, uint32_t tag)
{
        struct rider *rd = rider_find(c->relay, c->id, tag);

        if (rd)
                flight_join(&c->relay->flights, rd);
}

static void leave(struct relay_client *c, const struct store_request *req)
{
        struct rider *rd = rider_find(c->relay, c->id, req->tag);

        if (rd && req->n_ranks)
                flight_withdraw(&c->relay->flights, rd, req->ranks, req->n_ranks, req->number);
}

bool relay_serves(uint8_t op)
{
        return op == STORE_CANCEL || op == STORE_JOIN || op == STORE_LEAVE ||
               (store_op_has_answer(op) && !flight_passes(op));
}

void relay_request(struct relay_client *c, const struct store_request *req)
{
        struct relay *r = c->relay;

        r->count.requests++;
        c->seen_ns = now(r);
        c->announced |= flight_passes(req->op);
        if (req->op == STORE_CANCEL)
                cancel(c, req);
        else if (req->op == STORE_JOIN)
                join(c, req->tag);
        else if (req->op == STORE_LEAVE)
                leave(c, req);
        else if (flight_meets(req->op))
                ask_to_meet(c, req);
        else if (store_op_has_answer(req->op))
                ask(c, req);
        else if (flight_passes(req->op))
                flights_pass(&r->flights, c->id, req);
        flights_client_went_on(&r->flights, c->id);
}

/* --- from the head ---------------------------------------------------------------------------- */

static void take_reply(struct relay *r, struct store_reply *reply)
{
        struct rider *rd;

        if (reply->client == STORE_NODE) {
                flight_land(&r->flights, reply);
                return;
        }
        rd = rider_find(r, reply->client, reply->tag);
        if (rd && rd->flight->state == FLIGHT_PASSED)
                flight_arrive(&r->flights, rd, reply);
}

static void take_news(struct relay *r, const struct store_news *news)
{
        struct relay_client *c, *next;

        HASH_ITER(hh, r->clients, c, next)
        {
                if ((news->client == STORE_ALL || news->client == c->id) && c->ops.news)
                        c->ops.news(c->ctx, news);
        }
}

int relay_deliver(struct relay *r, const void *body, size_t len, struct error *err)
{
        struct store_head h = store_body_head(body, len);
        struct store_reply reply;
        struct store_news news;
        int ret;

        r->count.down++;
        if (h.op == STORE_NEWS) {
                ret = store_news_decode(&news, body, len, err);
                if (ret == 0)
                        take_news(r, &news);
        } else if (h.op == STORE_REPLY) {
                ret = store_reply_decode(&reply, body, len, err);
                if (ret < 0)
                        return ret;
                take_reply(r, &reply);
                store_reply_finish(&reply);
        } else {
                ret = err_set(err, EPROTO, "the head sent a store message of kind %u", h.op);
        }
        return ret;
}

void relay_turn(struct relay *r)
{
        flights_turn(&r->flights, now(r));
}

int relay_wait_ms(const struct relay *r)
{
        uint64_t until = flights_held_until(&r->flights), at = now(r);

        return until == 0 ? -1 : until <= at ? 0 : (int)((until - at + 999999) / 1000000);
}

/* --- what people want to know ----------------------------------------------------------------- */

bool relay_client_pending(const struct relay_client *c, struct relay_pending *ret)
{
        const struct rider *rd = c->riders;

        if (!rd)
                return false;
        *ret = (struct relay_pending){ .op = rd->flight->op,
                                       .key = rd->flight->first,
                                       .n_keys = rd->flight->n_keys,
                                       .since_ns = rd->since_ns };
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

struct relay_count relay_counts(const struct relay *r)
{
        return r->count;
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* Numbers are not used again while their client lives, and never those with a meaning. */
static uint32_t free_id(struct relay *r)
{
        struct relay_client *c;

        do {
                if (++r->last_id == STORE_ALL)
                        r->last_id = STORE_NODE + 1;
                HASH_FIND(hh, r->clients, &r->last_id, sizeof(r->last_id), c);
        } while (c);
        return r->last_id;
}

struct relay_client *relay_client_create(struct relay *r, struct relay_client_ops ops, void *ctx)
{
        struct relay_client *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        *c = (struct relay_client){ .relay = r, .ops = ops, .ctx = ctx, .rank = -1 };
        c->id = free_id(r);
        HASH_ADD(hh, r->clients, id, sizeof(c->id), c);
        return c;
}

void relay_client_destroy(struct relay_client *c)
{
        struct relay *r;
        struct rider *rd;

        if (!c)
                return;
        r = c->relay;
        while ((rd = c->riders)) {
                flight_leave(&r->flights, rd);
                rider_free(rd);
        }
        if (c->rank >= 0)
                locals_remove(&r->flights.locals, (uint32_t)c->rank);
        if (c->announced)
                flights_pass(&r->flights, c->id, &(struct store_request){ .op = STORE_GONE });
        flights_client_went_on(&r->flights, c->id);
        HASH_DEL(r->clients, c);
        free(c);
}

struct relay *relay_create(struct relay_ops ops, void *ctx)
{
        struct relay *r = calloc(1, sizeof(*r));

        if (!r)
                return NULL;
        r->ops = ops;
        r->ctx = ctx;
        r->flights.ops = (struct flight_ops){ .up = up, .answer = answer, .tell = answer_in_part };
        r->flights.ctx = r;
        return r;
}

void relay_destroy(struct relay *r)
{
        if (!r)
                return;
        flights_finish(&r->flights);
        free(r);
}

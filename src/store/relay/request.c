/* SPDX-License-Identifier: Apache-2.0 */
#include "store/relay/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/macros.h"
#include "store/relay/chunked_fetch.h"
#include "store/relay/request_private.h"
#include "wire/codec.h"

enum {
        SCRATCH_KEEP = 64 << 10,
        QUEUE_ITEM = -1,      /* number of a WAIT's answer, see JOIN */
        SET_SHARED = 1 << 10, /* body of a SET that is worth being compared */
        MANY_KEYS = 16,
};

static bool shares(uint8_t op)
{
        return op == STORE_GET || op == STORE_WAIT || op == STORE_CHECK || op == STORE_FETCH ||
               op == STORE_ADD || op == STORE_COUNT;
}

/* Their amounts are added up. The amount is the last field. */
static bool combines(uint8_t op)
{
        return op == STORE_ADD || op == STORE_COUNT;
}

bool flight_passes(uint8_t op)
{
        return op == STORE_HELLO || op == STORE_TOPOLOGY || op == STORE_ABORT ||
               op == STORE_REPORT_ERROR || op == STORE_PROGRESS;
}

bool flight_meets(uint8_t op)
{
        return op == STORE_BARRIER || op == STORE_GATHER || op == STORE_BROADCAST;
}

static bool can_be_joined(uint8_t op)
{
        return op == STORE_GET || op == STORE_WAIT;
}

static void patch(unsigned char *at, uint64_t v, int bytes)
{
        for (int i = 0; i < bytes; i++)
                at[i] = (unsigned char)(v >> (8 * i));
}

/* --- bodies ----------------------------------------------------------------------------------- */

struct buf *flights_scratch(struct flights *fs)
{
        buf_clear(&fs->scratch);
        if (fs->scratch.failed || fs->scratch.cap > SCRATCH_KEEP)
                buf_finish(&fs->scratch);
        return &fs->scratch;
}

struct bytes flight_encode(struct flights *fs, const struct store_request *req)
{
        struct buf *b = flights_scratch(fs);

        store_request_encode(b, req);
        return buf_failed(b) ? (struct bytes){ 0 } : (struct bytes){ buf_data(b), buf_len(b) };
}

/* The bytes in which requests that may share a flight agree. */
static size_t keys_len(uint8_t op, size_t body_len)
{
        return body_len - STORE_BODY_HEADER - (combines(op) ? sizeof(uint64_t) : 0);
}

/* --- tables ----------------------------------------------------------------------------------- */

struct flight *flight_new(uint8_t op, const void *body, size_t len)
{
        struct flight *f = malloc(sizeof(*f) + len);

        if (!f)
                return NULL;
        *f = (struct flight){ .op = op, .len = len };
        if (len)
                memcpy(f->body, body, len);
        return f;
}

void flight_free(struct flight *f)
{
        pull_destroy(f->pull);
        flight_meeting_free(f);
        free(f);
}

/* Another one for the same keys. */
static struct flight *flight_like(const struct flight *f)
{
        struct flight *g = flight_new(f->op, f->body, f->len);

        if (!g)
                return NULL;
        g->n_keys = f->n_keys;
        g->first = (struct bytes){ g->body + ((const unsigned char *)f->first.p - f->body),
                                   f->first.len };
        return g;
}

void flight_due(struct flights *fs, struct flight *f)
{
        if (!f->is_due)
                DL_APPEND2(fs->due, f, due_prev, due_next);
        f->is_due = true;
}

void flight_not_due(struct flights *fs, struct flight *f)
{
        struct flight **list = f->is_held ? &fs->held : &fs->due;

        if (f->is_due)
                DL_DELETE2(*list, f, due_prev, due_next);
        f->is_due = f->is_held = false;
}

void flight_open_due(struct flights *fs, struct flight *f)
{
        f->state = FLIGHT_DUE;
        f->open = true;
        HASH_ADD_KEYPTR(hh_keys, fs->open[f->op], f->body + STORE_BODY_HEADER,
                        keys_len(f->op, f->len), f);
        flight_due(fs, f);
}

/* Riders do not find it any more; those that have gathered behind it go next. */
void flight_close(struct flights *fs, struct flight *f)
{
        struct flight *next = f->gathered;

        if (f->open)
                HASH_DELETE(hh_keys, fs->open[f->op], f);
        if (fs->recent == f)
                fs->recent = NULL;
        f->open = false;
        if (!next)
                return;
        f->gathered = next->before = NULL;
        flight_open_due(fs, next);
}

void flight_take_off(struct flights *fs, struct flight *f)
{
        f->state = FLIGHT_SENT;
        f->tag = tags_take(&fs->sent, f);
}

/* --- the way up ------------------------------------------------------------------------------- */

static void leave(struct flights *fs, struct flight *f)
{
        flight_take_off(fs, f);
        patch(f->body + FLIGHT_TAG_AT, f->tag, sizeof(f->tag));
        fs->ops.up(fs->ctx, f->body, f->len);
}

/* What leaves now goes behind the SET that was kept back. */
void flights_let_go(struct flights *fs)
{
        struct flight *f = fs->set;

        fs->set = NULL;
        if (f)
                leave(fs, f);
}

int flights_send(struct flights *fs, const struct store_request *req)
{
        struct bytes body = flight_encode(fs, req);

        if (!body.p)
                return -ENOMEM;
        flights_let_go(fs);
        fs->ops.up(fs->ctx, body.p, body.len);
        return 0;
}

int flights_pass(struct flights *fs, uint32_t client, const struct store_request *req)
{
        struct store_request named = *req;

        named.client = client;
        return flights_send(fs, &named);
}

struct flight *flight_find_open(const struct flights *fs, uint8_t op, struct bytes body)
{
        struct flight *f;

        HASH_FIND(hh_keys, fs->open[op], (const char *)body.p + STORE_BODY_HEADER,
                  keys_len(op, body.len), f);
        return f;
}

/* --- boarding --------------------------------------------------------------------------------- */

static void seat(struct flight *f, struct rider *rd)
{
        rd->flight = f;
        DL_APPEND(f->riders, rd);
        if (combines(f->op))
                f->sum += rd->number;
}

/* Parts of one sign: so every sum on the way lies between the first value and the last one, and no
 * rider is answered a number that could not have been. */
static bool fits(const struct flight *f, const struct rider *rd)
{
        int64_t sum;

        if (!combines(f->op))
                return true;
        if ((f->sum < 0 && rd->number > 0) || (f->sum > 0 && rd->number < 0))
                return false;
        return !__builtin_add_overflow(f->sum, rd->number, &sum);
}

/* The flight that @rd can share now that @open is there; NULL = none. */
static struct flight *shared(struct flights *fs, struct flight *open, struct rider *rd)
{
        struct flight *f = open;

        if (open->state == FLIGHT_SENT && can_be_joined(open->op)) {
                rd->join = open->joins + 1;
                flight_due(fs, open);
                return open;
        }
        if (open->state == FLIGHT_SENT) {
                f = open->gathered;
                if (!f && (f = flight_like(open))) {
                        f->state = FLIGHT_HELD;
                        f->before = open;
                        open->gathered = f;
                }
        }
        return f && fits(f, rd) ? f : NULL;
}

/* Does @f, which has a list of keys, ask for what @req asks for? */
static bool is_for(const struct flight *f, const struct store_request *req)
{
        struct reader r = READER_INIT(f->body + STORE_BODY_HEADER, f->len - STORE_BODY_HEADER);

        if (f->op != req->op || take_u32(&r) != req->n_keys)
                return false;
        for (uint32_t i = 0; i < req->n_keys; i++) {
                size_t len;
                const void *key = take_bytes(&r, STORE_KEY_MAX, &len);

                if (len != req->keys[i].len || (len && memcmp(key, req->keys[i].p, len) != 0))
                        return false;
        }
        return true;
}

static int board_shared(struct flights *fs, struct rider *rd, const struct store_request *req)
{
        struct store_request plain = *req;
        struct flight *open, *f = NULL;
        struct bytes body;

        if (fs->recent && is_for(fs->recent, req)) {
                f = shared(fs, fs->recent, rd);
                if (f)
                        seat(f, rd);
                return f ? 0 : -ENOMEM;
        }
        plain.client = STORE_NODE;
        plain.tag = 0;
        if (req->op == STORE_ADD)
                plain.number = 0;
        body = flight_encode(fs, &plain);
        if (!body.p)
                return -ENOMEM;
        open = flight_find_open(fs, req->op, body);
        if (open)
                f = shared(fs, open, rd);
        if (!f) {
                f = flight_new(req->op, body.p, body.len);
                if (!f)
                        return -ENOMEM;
                /* A key is the first field; a list of keys has its count in front. */
                f->first = (struct bytes){ f->body + STORE_BODY_HEADER + (req->n_keys ? 8 : 4),
                                           req->n_keys ? req->keys[0].len : req->key.len };
                f->n_keys = req->n_keys ? req->n_keys : 1;
                if (!open) {
                        flight_open_due(fs, f);
                        if (req->n_keys >= MANY_KEYS)
                                fs->recent = f;
                } else {
                        f->state = FLIGHT_DUE;
                        flight_due(fs, f);
                }
        }
        seat(f, rd);
        return 0;
}

static bool is_small_set(const struct store_request *req)
{
        return req->op == STORE_SET && req->key.len + req->value.len <= SET_SHARED;
}

static bool says(const struct flight *f, struct bytes body)
{
        return f && f->len == body.len && memcmp(f->body, body.p, body.len) == 0;
}

static int board_set(struct flights *fs, struct rider *rd, const struct store_request *req)
{
        struct store_request plain = *req;
        struct bytes body;
        struct flight *f;

        plain.client = STORE_NODE;
        plain.tag = 0;
        body = flight_encode(fs, &plain);
        if (!body.p)
                return -ENOMEM;
        if (!says(fs->set, body)) {
                f = flight_new(STORE_SET, body.p, body.len);
                if (!f)
                        return -ENOMEM;
                flights_let_go(fs);
                f->first = (struct bytes){ f->body + STORE_BODY_HEADER + 4, req->key.len };
                f->n_keys = 1;
                f->state = FLIGHT_DUE;
                fs->set = f;
        }
        seat(fs->set, rd);
        return 0;
}

static int board_alone(struct flights *fs, struct rider *rd, const struct store_request *req)
{
        struct bytes key = req->n_keys ? req->keys[0] : req->key;
        struct flight *f = flight_new(req->op, key.p, key.len);
        struct store_request named = *req;
        int ret;

        if (!f)
                return -ENOMEM;
        f->first = (struct bytes){ f->body, key.len };
        f->n_keys = req->n_keys ? req->n_keys : 1;
        if (flight_passes(req->op) || flight_meets(req->op)) {
                ret = flights_pass(fs, rd->name.client, req);
        } else {
                named.client = STORE_NODE;
                flight_take_off(fs, f);
                named.tag = f->tag;
                ret = flights_send(fs, &named);
                if (ret < 0)
                        tags_give_back(&fs->sent, f->tag);
        }
        if (ret < 0)
                flight_free(f);
        else
                seat(f, rd);
        return ret;
}

int flight_board(struct flights *fs, struct rider *rd, const struct store_request *req)
{
        rd->number = req->op == STORE_COUNT ? MAX(req->total, 1) : req->number;
        if (shares(req->op))
                return board_shared(fs, rd, req);
        if (flight_meets(req->op) && req->n_ranks)
                return flight_meeting_board(fs, rd, req);
        return is_small_set(req) ? board_set(fs, rd, req) : board_alone(fs, rd, req);
}

/* --- getting off ------------------------------------------------------------------------------ */

static void not_behind(struct flights *fs, struct flight *f)
{
        if (f->behind)
                DL_DELETE2(fs->behind, f, due_prev, due_next);
        f->behind = 0;
}

void flights_client_went_on(struct flights *fs, uint32_t client)
{
        struct flight *f, *next;

        DL_FOREACH_SAFE2(fs->behind, f, next, due_next)
        {
                if (f->behind != client)
                        continue;
                not_behind(fs, f);
                f->state = FLIGHT_DUE;
                flight_due(fs, f);
        }
}

/* Nobody is left on a flight that is on its way. Its tag stays taken until the answer comes. Not
 * only what the head parks is cancelled: a relay in between may hold the rest, and it must not
 * leave there when an attempt is over. */
static void give_up(struct flights *fs, struct flight *f)
{
        flight_not_due(fs, f);
        flight_close(fs, f);
        if (!f->looks)
                flights_send(fs, &(struct store_request){ .op = STORE_CANCEL, .tag = f->tag });
}

/* On a flight that has not left: whoever asked so far is covered by it. */
static void reseat(struct flight *f, struct rider *rd)
{
        rd->join = rd->joins_by = 0;
        rd->joins_covered = rd->joins;
        seat(f, rd);
}

void flight_join(struct flights *fs, struct rider *rd)
{
        struct flight *f = rd->flight;

        if (!can_be_joined(f->op))
                return;
        rd->joins++;
        if (f->state == FLIGHT_SENT) {
                rd->joins_by = f->joins + 1;
                flight_due(fs, f);
        } else {
                rd->joins_covered = rd->joins;
        }
}

void flight_leave(struct flights *fs, struct rider *rd)
{
        struct flight *f = rd->flight;

        if (f->meets) {
                flight_meeting_leave(fs, rd);
                return;
        }
        if (f == fs->set)
                flights_let_go(fs); /* who does not wait for the answer has still said it */
        DL_DELETE(f->riders, rd);
        if (combines(f->op) && f->state < FLIGHT_SENT)
                f->sum -= rd->number;
        if (f->riders || f->state == FLIGHT_LANDED)
                return;
        if (f->state == FLIGHT_SENT) {
                give_up(fs, f);
                return;
        }
        if (f->before)
                f->before->gathered = NULL;
        not_behind(fs, f);
        flight_not_due(fs, f);
        flight_close(fs, f);
        flight_free(f);
}

int flight_look(struct flights *fs, struct rider *rd)
{
        struct flight *f;

        if (rd->flight->looks)
                return 0;
        f = flight_like(rd->flight);
        if (!f)
                return -ENOMEM;
        flight_leave(fs, rd);
        reseat(f, rd);
        f->looks = true;
        flights_let_go(fs);
        leave(fs, f);
        return flights_send(fs, &(struct store_request){ .op = STORE_CANCEL, .tag = f->tag });
}

/* --- sending ---------------------------------------------------------------------------------- */

static void sum_up(struct flight *f)
{
        struct rider *rd;

        f->sum = 0;
        f->n_sent = 0;
        DL_FOREACH(f->riders, rd)
        {
                f->sum += rd->number;
                rd->sum = f->sum;
                f->n_sent++;
        }
        patch(f->body + f->len - sizeof(uint64_t), (uint64_t)f->sum, sizeof(uint64_t));
}

static void send_one(struct flights *fs, struct flight *f)
{
        if (f->meets) {
                flight_meeting_send(fs, f);
                return;
        }
        if (f->state == FLIGHT_SENT) {
                f->joins++;
                flights_send(fs, &(struct store_request){ .op = STORE_JOIN, .tag = f->tag });
                return;
        }
        if (combines(f->op))
                sum_up(f);
        leave(fs, f);
        if (f->op == STORE_COUNT)
                flight_close(fs, f);
}

void flights_turn(struct flights *fs, uint64_t now)
{
        struct flight *f;

        flights_let_go(fs);
        flights_release(fs, now);
        while ((f = fs->due)) {
                flight_not_due(fs, f);
                if (!f->meets || !flight_hold(fs, f, now))
                        send_one(fs, f);
        }
}

/* --- landing ---------------------------------------------------------------------------------- */

/* A relay below makes parts of its own: the whole may be too long for one message. */
static void tell_relays(struct flights *fs, struct flight *f, const struct store_reply *reply)
{
        struct rider *rd = f->riders;

        while (rd) {
                struct store_reply own = *reply;

                if (!rd->is_relay) {
                        rd = rd->next;
                        continue;
                }
                DL_DELETE(f->riders, rd);
                fs->ops.answer(fs->ctx, rd, &own);
                rd = f->riders; /* that may have done anything to the others */
        }
}

/* True: the answer is not complete, the next part is on its way. */
static bool goes_on(struct flights *fs, struct flight *f, struct store_reply *reply)
{
        struct store_request part;

        if (f->op != STORE_FETCH)
                return false;
        if (reply->status == STORE_TOO_BIG)
                tell_relays(fs, f, reply);
        if (!f->riders || !pull_take(&f->pull, f->body, f->len, reply))
                return false;
        part = pull_part(f->pull);
        flight_take_off(fs, f);
        part.tag = f->tag;
        if (flights_send(fs, &part) == 0)
                return true;
        tags_give_back(&fs->sent, f->tag);
        *reply = (struct store_reply){ .status = STORE_NOMEM };
        return false;
}

/* Then nothing was added. A COUNT that others cannot answer any more has been. */
static bool is_refused(const struct flight *f, const struct store_reply *reply)
{
        return combines(f->op) && reply->status != STORE_OK && reply->status != STORE_PEER;
}

/* A sum was refused: now each by itself, so that it is refused only to whom it is due. */
static void one_by_one(struct flights *fs, struct flight *f)
{
        struct rider *rd;

        while ((rd = f->riders)) {
                struct flight *own = flight_like(f);

                if (!own)
                        return; /* whoever is left shares the refusal */
                DL_DELETE(f->riders, rd);
                own->state = FLIGHT_DUE;
                flight_due(fs, own);
                reseat(own, rd);
        }
}

/* Riders whose JOIN came too late: the answer may be older than their request. */
static int ask_again(struct flights *fs, struct flight *f, int64_t covered)
{
        struct flight *again = NULL;
        struct rider *rd, *next;

        DL_FOREACH_SAFE(f->riders, rd, next)
        {
                if (rd->join <= covered)
                        continue;
                if (!again) {
                        again = flight_like(f);
                        if (!again)
                                return -ENOMEM;
                        flight_open_due(fs, again);
                }
                DL_DELETE(f->riders, rd);
                reseat(again, rd);
        }
        return 0;
}

/* An item of a queue is for one: the others wait until that one has gone on. */
static int step_back(struct flights *fs, struct flight *f)
{
        struct rider *first = f->riders, *rd;
        struct flight *g;

        if (!first || !first->next)
                return 0;
        g = flight_like(f);
        if (!g)
                return -ENOMEM;
        g->state = FLIGHT_HELD;
        g->behind = first->name.client;
        DL_APPEND2(fs->behind, g, due_prev, due_next);
        while ((rd = first->next)) {
                DL_DELETE(f->riders, rd);
                reseat(g, rd);
        }
        return 0;
}

/* Takes off who must not have this answer. */
static int thin_out(struct flights *fs, struct flight *f, const struct store_reply *reply)
{
        if (!can_be_joined(f->op))
                return 0;
        if (reply->status == STORE_OK && reply->number == QUEUE_ITEM)
                return step_back(fs, f);
        return ask_again(fs, f, reply->number);
}

/* What a relay below is told of whom the answer of a GET or WAIT covers. */
static int64_t covers(const struct rider *rd, const struct store_reply *reply)
{
        if (!rd->is_relay)
                return 0;
        if (reply->status == STORE_OK && reply->number == QUEUE_ITEM)
                return QUEUE_ITEM;
        return reply->number >= rd->joins_by ? rd->joins : rd->joins_covered;
}

static void hand_out(struct flights *fs, struct flight *f, const struct store_reply *reply)
{
        struct rider *rd;

        while ((rd = f->riders)) {
                struct store_reply own = *reply;

                DL_DELETE(f->riders, rd);
                if (can_be_joined(f->op))
                        own.number = covers(rd, reply);
                else if (f->op == STORE_ADD && reply->status == STORE_OK)
                        own.number = reply->number - f->sum + rd->sum;
                fs->ops.answer(fs->ctx, rd, &own);
        }
}

void flight_land(struct flights *fs, const struct store_reply *reply)
{
        struct store_reply whole = *reply;
        struct flight *f = tags_find(&fs->sent, reply->tag);

        if (!f)
                return;
        if (f->meets) {
                flight_meeting_land(fs, f, reply);
                return;
        }
        tags_give_back(&fs->sent, f->tag);
        if (goes_on(fs, f, &whole))
                return;
        flight_not_due(fs, f);
        flight_close(fs, f);
        f->state = FLIGHT_LANDED;
        if (f->n_sent > 1 && is_refused(f, reply))
                one_by_one(fs, f);
        if (thin_out(fs, f, reply) < 0)
                whole = (struct store_reply){ .status = STORE_NOMEM };
        hand_out(fs, f, &whole);
        flight_free(f);
}

void flight_arrive(struct flights *fs, struct rider *rd, const struct store_reply *reply)
{
        struct flight *f = rd->flight;

        f->state = FLIGHT_LANDED;
        hand_out(fs, f, reply);
        flight_free(f);
}

void flights_finish(struct flights *fs)
{
        for (uint32_t tag = 1; tag <= fs->sent.n; tag++) {
                struct flight *f = tags_find(&fs->sent, tag);

                if (!f)
                        continue;
                flight_close(fs, f);
                flight_free(f);
        }
        tags_finish(&fs->sent);
        locals_finish(&fs->locals);
        if (fs->set)
                flight_free(fs->set);
        fs->set = NULL;
        buf_finish(&fs->scratch);
}

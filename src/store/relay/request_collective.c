/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flights to meetings. Everything that is said about a seat, to the head and by it, names its rank:
 * so it does not matter how the ranks of a node spread over requests, or their answers over
 * replies, and one flight can serve a meeting from its first rank to its last.
 *
 * What its body holds is the request without ranks and values: the bytes in which those agree who
 * may share a flight, and the beginning of each request that leaves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/macros.h"
#include "base/strv.h"
#include "store/relay/request_private.h"
#include "wire/codec.h"

struct seat {
        uint32_t rank;
        struct rider *rider; /* NULL = gone, which the head has yet to confirm */
        bool fresh;          /* not sent yet */
        bool answered;       /* by the reply that is handed out */
        void *value;         /* what it brings, until it is sent */
        size_t len;
        struct seat *prev, *next;             /* of the rider */
        struct seat *fresh_prev, *fresh_next; /* of the flight */
        UT_hash_handle hh;
};

/* --- seats ------------------------------------------------------------------------------------ */

static struct seat *seat_find(const struct flight *f, uint32_t rank)
{
        struct seat *seat;

        HASH_FIND(hh, f->seats, &rank, sizeof(rank), seat);
        return seat;
}

bool flight_has_seat(const struct flight *f, uint32_t rank)
{
        return seat_find(f, rank);
}

uint32_t flight_n_seats(const struct flight *f)
{
        return HASH_COUNT(f->seats);
}

static void not_fresh(struct flight *f, struct seat *seat)
{
        if (!seat->fresh)
                return;
        DL_DELETE2(f->fresh, seat, fresh_prev, fresh_next);
        f->n_fresh--;
        f->fresh_bytes -= seat->len;
        free(seat->value);
        seat->value = NULL;
        seat->fresh = false;
}

static void seat_free(struct flight *f, struct seat *seat)
{
        not_fresh(f, seat);
        HASH_DEL(f->seats, seat);
        if (seat->rider)
                DL_DELETE(seat->rider->seats, seat);
        free(seat);
}

void flight_meeting_free(struct flight *f)
{
        struct seat *seat, *next;

        HASH_ITER(hh, f->seats, seat, next)
        seat_free(f, seat);
}

static int seat_make(struct flight *f, struct rider *rd, uint32_t rank, struct bytes value)
{
        struct seat *seat;

        if (seat_find(f, rank))
                return -EINVAL;
        seat = calloc(1, sizeof(*seat));
        if (!seat)
                return -ENOMEM;
        *seat = (struct seat){ .rank = rank, .rider = rd, .fresh = true, .len = value.len };
        seat->value = value.len ? malloc(value.len) : NULL;
        if (value.len && !seat->value) {
                free(seat);
                return -ENOMEM;
        }
        if (value.len)
                memcpy(seat->value, value.p, value.len);
        HASH_ADD(hh, f->seats, rank, sizeof(seat->rank), seat);
        DL_APPEND(rd->seats, seat);
        DL_APPEND2(f->fresh, seat, fresh_prev, fresh_next);
        f->n_fresh++;
        f->fresh_bytes += seat->len;
        return 0;
}

/* --- boarding --------------------------------------------------------------------------------- */

static size_t value_len(const struct store_request *req)
{
        return req->op == STORE_GATHER ? req->value.len / req->n_ranks : 0;
}

/* What the @i-th rank brings: of a broadcast the root alone. */
static struct bytes value_of(const struct store_request *req, uint32_t i)
{
        size_t len = value_len(req);

        if (len)
                return (struct bytes){ (const char *)req->value.p + i * len, len };
        if (req->op == STORE_BROADCAST && (!req->n_members || req->root < req->n_members) &&
            req->ranks[i] == (req->n_members ? req->members[req->root] : req->root))
                return req->value;
        return (struct bytes){ 0 };
}

/* All of them or none. */
static int take_seats(struct flights *fs, struct flight *f, struct rider *rd,
                      const struct store_request *req)
{
        uint32_t n = 0;
        int ret = 0;

        for (; n < req->n_ranks && ret == 0; n++)
                ret = seat_make(f, rd, req->ranks[n], value_of(req, n));
        for (uint32_t i = 0; i < n && ret == 0; i++)
                locals_add(&fs->locals, req->ranks[i]);
        while (ret < 0 && --n)
                seat_free(f, rd->seats->prev); /* the last one */
        return ret;
}

/* A rank that is on board already comes behind it, as the head has it; a request has its limits. */
static bool fits(const struct flight *f, const struct store_request *req)
{
        if (f->value_len != value_len(req) || f->n_fresh + req->n_ranks > STORE_MEMBERS_MAX ||
            f->fresh_bytes + req->value.len > STORE_VALUE_MAX)
                return false;
        for (uint32_t i = 0; i < req->n_ranks; i++)
                if (seat_find(f, req->ranks[i]))
                        return false;
        return true;
}

static struct bytes encode_plain(struct flights *fs, const struct store_request *req)
{
        struct store_request plain = *req;

        plain.client = STORE_NODE;
        plain.tag = plain.n_ranks = 0;
        plain.value.len = 0;
        return flight_encode(fs, &plain);
}

static struct flight *flight_to(const struct store_request *req, struct bytes body)
{
        struct flight *f = flight_new(req->op, body.p, body.len);

        if (!f)
                return NULL;
        f->meets = true;
        f->state = FLIGHT_DUE;
        f->first = (struct bytes){ f->body + STORE_BODY_HEADER + 4, req->key.len };
        f->n_keys = 1;
        f->value_len = value_len(req);
        return f;
}

int flight_meeting_board(struct flights *fs, struct rider *rd, const struct store_request *req)
{
        struct bytes body = encode_plain(fs, req);
        struct flight *open, *f;
        int ret;

        if (!body.p)
                return -ENOMEM;
        if (req->op == STORE_GATHER && req->value.len % req->n_ranks)
                return -EINVAL;
        open = flight_find_open(fs, req->op, body);
        f = open && fits(open, req) ? open : flight_to(req, body);
        if (!f)
                return -ENOMEM;
        ret = take_seats(fs, f, rd, req);
        if (ret < 0) {
                if (f != open)
                        flight_free(f);
                return ret;
        }
        if (f != open)
                flight_expect(fs, f);
        rd->flight = f;
        DL_APPEND(f->riders, rd);
        if (open)
                flight_due(fs, f);
        else
                flight_open_due(fs, f);
        return 0;
}

int flight_board_more(struct flights *fs, struct rider *rd, const struct store_request *req)
{
        struct flight *f = rd->flight;
        struct bytes body = encode_plain(fs, req);
        int ret;

        if (!body.p)
                return -ENOMEM;
        if (!f->meets || !req->n_ranks || f->op != req->op || f->len != body.len ||
            memcmp(f->body + STORE_BODY_HEADER, (const char *)body.p + STORE_BODY_HEADER,
                   body.len - STORE_BODY_HEADER) != 0 ||
            f->value_len * req->n_ranks != (req->op == STORE_GATHER ? req->value.len : 0))
                return -EINVAL;
        ret = take_seats(fs, f, rd, req);
        if (ret == 0)
                flight_due(fs, f);
        return ret;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Nobody boards what nobody rides, and it ends with its last seat. */
static void settle(struct flights *fs, struct flight *f)
{
        if (f->answers)
                return;
        if (!f->riders)
                flight_close(fs, f);
        if (f->seats)
                return;
        flight_not_due(fs, f);
        if (f->state == FLIGHT_SENT)
                tags_give_back(&fs->sent, f->tag);
        flight_free(f);
}

static void mark(struct flight *f, struct seat *seat)
{
        struct rider *rd = seat->rider;

        if (!rd) {
                seat_free(f, seat);
                return;
        }
        if (seat->answered)
                return;
        seat->answered = true;
        if (rd->n_answered++ > 0)
                return;
        DL_DELETE(f->riders, rd);
        DL_PREPEND(f->riders, rd);
}

static void leave_seats(struct flight *f, struct rider *rd, uint32_t *whom)
{
        struct seat *seat, *next;

        rd->n_answered = 0;
        DL_FOREACH_SAFE(rd->seats, seat, next)
        {
                if (!seat->answered)
                        continue;
                if (whom)
                        *whom++ = seat->rank;
                seat_free(f, seat);
        }
}

static void answer_one(struct flights *fs, struct flight *f, struct rider *rd,
                       const struct store_reply *reply)
{
        struct store_reply own = *reply;
        uint32_t *whom = rd->is_relay ? xcalloc(rd->n_answered, sizeof(*whom)) : NULL;

        own.whom = whom;
        own.n_whom = whom ? rd->n_answered : 0;
        leave_seats(f, rd, whom);
        DL_DELETE(f->riders, rd);
        if (rd->seats) {
                DL_APPEND(f->riders, rd);
                fs->ops.tell(fs->ctx, rd, &own);
        } else {
                fs->ops.answer(fs->ctx, rd, &own);
        }
        free(whom);
}

/* Those whose seats are marked, who are in front. They may do anything meanwhile. */
static void answer_marked(struct flights *fs, struct flight *f, const struct store_reply *reply)
{
        bool outer = !f->answers;

        f->answers = true;
        while (f->riders && f->riders->n_answered)
                answer_one(fs, f, f->riders, reply);
        if (!outer)
                return;
        f->answers = false;
        settle(fs, f);
}

void flight_meeting_land(struct flights *fs, struct flight *f, const struct store_reply *reply)
{
        struct seat *seat, *next;

        HASH_ITER(hh, f->seats, seat, next)
        {
                if (!reply->n_whom && !seat->fresh)
                        mark(f, seat);
        }
        for (uint32_t i = reply->n_whom; i > 0; i--) {
                seat = seat_find(f, reply->whom[i - 1]);
                if (seat && !seat->fresh)
                        mark(f, seat);
        }
        answer_marked(fs, f, reply);
}

/* --- the way up ------------------------------------------------------------------------------- */

/* Its beginning, and who is fresh with what they bring. */
static struct bytes encode_fresh(struct flights *fs, const struct flight *f)
{
        const size_t no_ranks = 4, no_value = f->op == STORE_BARRIER ? 0 : 4;
        struct buf *b = flights_scratch(fs);
        const struct seat *seat;

        buf_append(b, f->body, STORE_BODY_HEADER - sizeof(f->tag));
        put_u32(b, f->tag);
        buf_append(b, f->body + STORE_BODY_HEADER,
                   f->len - STORE_BODY_HEADER - no_ranks - no_value);
        put_u32(b, f->n_fresh);
        DL_FOREACH2(f->fresh, seat, fresh_next)
        put_u32(b, seat->rank);
        if (no_value)
                put_u32(b, (uint32_t)f->fresh_bytes);
        DL_FOREACH2(f->fresh, seat, fresh_next)
        buf_append(b, seat->value, seat->len);
        return buf_failed(b) ? (struct bytes){ 0 } : (struct bytes){ buf_data(b), buf_len(b) };
}

static int send_fresh(struct flights *fs, struct flight *f)
{
        struct bytes body;

        if (f->state == FLIGHT_DUE)
                flight_take_off(fs, f);
        body = encode_fresh(fs, f);
        if (!body.p)
                return -ENOMEM;
        while (f->fresh)
                not_fresh(f, f->fresh);
        f->held_until = 0;
        fs->ops.up(fs->ctx, body.p, body.len);
        return 0;
}

static void refuse_fresh(struct flights *fs, struct flight *f)
{
        struct seat *seat;

        while ((seat = f->fresh)) {
                not_fresh(f, seat);
                mark(f, seat);
        }
        answer_marked(fs, f,
                      &(struct store_reply){ .status = STORE_NOMEM,
                                             .text = bytes_of("the agent is out of memory") });
}

void flight_meeting_send(struct flights *fs, struct flight *f)
{
        f->held_until = 0;
        if (f->fresh && send_fresh(fs, f) < 0)
                refuse_fresh(fs, f);
}

/* It closes: a rank that comes again is on another flight than the one that it leaves, here and on
 * the way, so it is clear whom an answer is for. */
static void send_leave(struct flights *fs, struct flight *f, uint32_t *ranks, uint32_t n, bool tell)
{
        if (!n)
                return;
        flight_close(fs, f);
        flights_send(fs, &(struct store_request){ .op = STORE_LEAVE,
                                                  .tag = f->tag,
                                                  .ranks = ranks,
                                                  .n_ranks = n,
                                                  .number = tell });
}

/* To ask who is missing, what has not left goes first: then the head knows about whom. Else it
 * stays at home. */
void flight_withdraw(struct flights *fs, struct rider *rd, const uint32_t *ranks, uint32_t n,
                     bool tell)
{
        struct flight *f = rd->flight;
        uint32_t *out, n_out = 0;
        struct seat *seat;

        if (!f->meets)
                return;
        if (tell && f->fresh) {
                flight_not_due(fs, f);
                flights_let_go(fs);
                if (send_fresh(fs, f) < 0) {
                        refuse_fresh(fs, f);
                        return;
                }
        }
        out = xcalloc(HASH_COUNT(f->seats), sizeof(*out));
        DL_FOREACH(rd->seats, seat)
        {
                if (!ranks && !seat->answered)
                        out[n_out++] = seat->rank;
        }
        for (uint32_t i = 0; i < n && n_out < HASH_COUNT(f->seats); i++) {
                seat = seat_find(f, ranks[i]);
                if (!tell)
                        locals_remove(&fs->locals, ranks[i]);
                if (!seat || seat->rider != rd)
                        continue;
                if (!seat->fresh) {
                        out[n_out++] = seat->rank;
                        continue;
                }
                not_fresh(f, seat);
                mark(f, seat);
        }
        send_leave(fs, f, out, n_out, tell);
        free(out);
        answer_marked(fs, f, &(struct store_reply){ .status = STORE_TIMEOUT });
}

void flight_meeting_leave(struct flights *fs, struct rider *rd)
{
        struct flight *f = rd->flight;
        uint32_t *out = xcalloc(HASH_COUNT(f->seats), sizeof(*out)), n = 0;
        struct seat *seat;

        DL_DELETE(f->riders, rd);
        while ((seat = rd->seats)) {
                if (seat->fresh || seat->answered) {
                        seat_free(f, seat);
                        continue;
                }
                DL_DELETE(rd->seats, seat);
                seat->rider = NULL;
                out[n++] = seat->rank;
        }
        send_leave(fs, f, out, n, false);
        free(out);
        settle(fs, f);
}

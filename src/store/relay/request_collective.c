/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of collectives: BARRIER, GATHER, BROADCAST.
 *
 * The body of a request is encoded without ranks and values: these are the bytes by which further
 * waiters find the request, and the beginning of each message. A participant stands for
 * one rank and belongs to the request (by rank), to a waiter (in order of arrival) and, until sent,
 * to the list of the unsent. A message carries the ranks and values of all unsent
 * participants; later ones follow under the same tag.
 *
 * Messages and answers name ranks. So it does not matter how the ranks of a node are spread over
 * requests, or their answers over replies. An answer marks participants and moves their
 * waiters to the front; answer_marked() then serves these waiters. A waiter with participants left
 * (a relay below) stays.
 *
 * A rank leaves when the client is gone or cancels. Not sent yet: the participant
 * is dropped. Sent: LEAVE goes to the head, and the participant stays, perhaps without a waiter,
 * until the head has answered. The request closes then: when the same rank comes again, here or at
 * a relay in between, another request takes the rank, so no answer is ambiguous.
 *
 * The ranks of a node seldom arrive in the same turn. So a collective is held until the other ranks
 * of this node (in a tree, also of the nodes below) have arrived, if known and members: all are
 * needed anyway. No time is lost, because the last arrival does not wait.
 *
 * But the head does not know the ranks waiting here, and reports of missing ranks and failures
 * must not depend on another rank being late. So the wait is short; then the ranks that have
 * arrived leave, and the others are no longer expected. A question for the missing ranks
 * leaves at once, and so do large values, which have a long way. Eight ranks of a node send 1.00
 * messages for a small collective instead of 3 (docs/performance.md).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/macros.h"
#include "base/memory.h"
#include "store/relay/relay_private.h"
#include "wire/codec.h"

enum { LARGE_BYTES = 64 << 10 }; /* unsent values above this size are not held */
static const uint64_t HOLD_NS = 20 * 1000000;

/* --- participants ----------------------------------------------------------------------------- */

static struct participant *find_participant(const struct request *r, uint32_t rank)
{
        struct participant *p;

        HASH_FIND(hh, r->collective.participants, &rank, sizeof(rank), p);
        return p;
}

/* Takes @p out of the list of the unsent, and frees the value. */
static void clear_unsent(struct request *r, struct participant *p)
{
        if (!p->unsent)
                return;
        DL_DELETE2(r->collective.unsent, p, unsent_prev, unsent_next);
        r->collective.n_unsent--;
        r->collective.unsent_bytes -= p->len;
        free(p->value);
        p->value = NULL;
        p->unsent = false;
}

void collective_drop_participant(struct request *r, struct participant *p)
{
        clear_unsent(r, p);
        HASH_DEL(r->collective.participants, p);
        if (p->waiter)
                DL_DELETE(p->waiter->participants, p);
        free(p);
}

/* Adds the @i-th rank of @req with its contribution: in a broadcast, only the root has a value. */
static int add_participant(struct request *r, struct waiter *w, const struct store_request *req,
                           uint32_t i)
{
        uint32_t rank = req->ranks[i];
        struct participant *p = find_participant(r, rank);
        struct bytes value = { 0 };

        if (p)
                return -EINVAL;
        if (r->collective.value_len)
                value = (struct bytes){ (const char *)req->value.p + i * r->collective.value_len,
                                        r->collective.value_len };
        else if (req->op == STORE_BROADCAST && (!req->n_members || req->root < req->n_members) &&
                 rank == (req->n_members ? req->members[req->root] : req->root))
                value = req->value;
        p = calloc(1, sizeof(*p));
        if (p && value.len)
                p->value = malloc(value.len);
        if (!p || (value.len && !p->value)) {
                free(p);
                return -ENOMEM;
        }
        if (value.len)
                memcpy(p->value, value.p, value.len);
        p->rank = rank;
        p->waiter = w;
        p->len = value.len;
        p->unsent = true;
        HASH_ADD(hh, r->collective.participants, rank, sizeof(p->rank), p);
        DL_APPEND(w->participants, p);
        DL_APPEND2(r->collective.unsent, p, unsent_prev, unsent_next);
        r->collective.n_unsent++;
        r->collective.unsent_bytes += p->len;
        return 0;
}

/* --- local ranks ------------------------------------------------------------------------------ */

void local_ranks_add(struct relay *relay, uint32_t rank)
{
        struct local_rank *l;

        HASH_FIND(hh, relay->local_ranks, &rank, sizeof(rank), l);
        if (l)
                return;
        l = xcalloc(1, sizeof(*l));
        l->rank = rank;
        HASH_ADD(hh, relay->local_ranks, rank, sizeof(l->rank), l);
}

void local_ranks_remove(struct relay *relay, uint32_t rank)
{
        struct local_rank *l;

        HASH_FIND(hh, relay->local_ranks, &rank, sizeof(rank), l);
        if (!l)
                return;
        HASH_DEL(relay->local_ranks, l);
        free(l);
}

/* Counts the members expected at this node, including the ranks of @req. */
static uint32_t count_expected(const struct relay *relay, const struct store_request *req)
{
        const struct local_rank *l;
        uint32_t n = 0;

        if (!req->n_members)
                return EXPECT_WORLD;
        for (uint32_t i = 0; i < req->n_members; i++) {
                HASH_FIND(hh, relay->local_ranks, &req->members[i], sizeof(l->rank), l);
                n += l != NULL;
        }
        return n;
}

/* Without an arrival in time, a rank may never come here again: in a tree, the node may be
 * elsewhere by now. */
static void forget_missing(struct relay *relay, const struct request *r)
{
        struct reader body = READER_INIT(r->body + STORE_BODY_HEADER, r->len - STORE_BODY_HEADER);
        struct local_rank *l, *next;
        uint32_t n;
        size_t len;

        take_bytes(&body, STORE_KEY_MAX, &len);
        if (r->op == STORE_BROADCAST)
                take_u32(&body);
        n = take_u32(&body);
        if (n == 0) {
                HASH_ITER(hh, relay->local_ranks, l, next)
                if (!find_participant(r, l->rank))
                        local_ranks_remove(relay, l->rank);
        }
        for (uint32_t i = 0; i < n; i++) {
                uint32_t rank = take_u32(&body);

                if (!find_participant(r, rank))
                        local_ranks_remove(relay, rank);
        }
}

bool collective_waits(struct relay *relay, struct request *r, uint64_t now)
{
        uint32_t expected = r->collective.n_expected;

        /* The time is over: send the ranks present, and expect the missing ranks no more. */
        if (r->collective.held_until && now >= r->collective.held_until) {
                forget_missing(relay, r);
                return false;
        }
        if (expected == EXPECT_WORLD)
                expected = HASH_COUNT(relay->local_ranks);
        if (!now || r->collective.unsent_bytes > LARGE_BYTES ||
            HASH_COUNT(r->collective.participants) >= expected)
                return false;
        if (!r->collective.held_until)
                r->collective.held_until = now + HOLD_NS;
        return true;
}

/* --- attaching -------------------------------------------------------------------------------- */

/* Can the ranks of @req attach to @r? A rank there already comes with the next request, as the
 * head sees the order; messages have limits. */
static bool has_capacity_for(const struct request *r, const struct store_request *req,
                             size_t value_len)
{
        if (r->collective.value_len != value_len ||
            r->collective.n_unsent + req->n_ranks > STORE_MEMBERS_MAX ||
            r->collective.unsent_bytes + req->value.len > STORE_VALUE_MAX)
                return false;
        for (uint32_t i = 0; i < req->n_ranks; i++)
                if (find_participant(r, req->ranks[i]))
                        return false;
        return true;
}

/* Adds all ranks of @req, or none. */
static int add_participants(struct relay *relay, struct request *r, struct waiter *w,
                            const struct store_request *req)
{
        uint32_t n = 0;
        int ret = 0;

        for (; n < req->n_ranks && ret == 0; n++)
                ret = add_participant(r, w, req, n);
        for (uint32_t i = 0; i < n && ret == 0; i++)
                local_ranks_add(relay, req->ranks[i]);
        while (ret < 0 && --n)
                collective_drop_participant(r, w->participants->prev); /* the last added */
        return ret;
}

static bool is_same_call(const struct request *r, uint8_t op, struct bytes body, size_t value_len)
{
        return r->is_collective && r->op == op && r->collective.value_len == value_len &&
               r->len == body.len &&
               memcmp(r->body + STORE_BODY_HEADER, (const char *)body.p + STORE_BODY_HEADER,
                      body.len - STORE_BODY_HEADER) == 0;
}

int collective_attach(struct relay *relay, struct waiter *w, const struct store_request *req)
{
        size_t value_len = req->op == STORE_GATHER ? req->value.len / MAX(req->n_ranks, 1U) : 0;
        struct store_request without_ranks = *req;
        struct request *open = NULL, *r = w->request;
        bool is_new = false;
        struct bytes body;
        int ret;

        without_ranks.n_ranks = 0;
        without_ranks.value.len = 0;
        body = relay_encode(relay, STORE_NODE, &without_ranks);
        if (!body.p)
                return -ENOMEM;
        if (!req->n_ranks || (req->op == STORE_GATHER && req->value.len % req->n_ranks))
                return -EINVAL;
        if (r && !is_same_call(r, req->op, body, value_len))
                return -EINVAL;
        if (!r) {
                HASH_FIND(hh_keys, relay->open[req->op], (const char *)body.p + STORE_BODY_HEADER,
                          body.len - STORE_BODY_HEADER, open);
                /* A request without room stays in the table, and the new request is not entered. */
                is_new = !open || !has_capacity_for(open, req, value_len);
                r = is_new ? request_create(req, body, STORE_BODY_HEADER + 4) : open;
        }
        if (!r)
                return -ENOMEM;
        if (is_new) {
                r->is_collective = true;
                r->collective.value_len = value_len;
        }
        ret = add_participants(relay, r, w, req);
        if (ret < 0) {
                if (is_new)
                        request_destroy(r);
                return ret;
        }
        if (is_new)
                r->collective.n_expected = count_expected(relay, req);
        if (!w->request)
                DL_APPEND(r->waiters, w);
        w->request = r;
        if (is_new && !open)
                request_open(relay, r);
        else if (r->queue == QUEUE_NONE) /* not if HELD, where the place in the queue counts */
                request_enqueue(relay, r, QUEUE_DUE);
        return 0;
}

/* --- answering -------------------------------------------------------------------------------- */

/* Closes a request without waiters, and frees a request without participants. */
static void destroy_if_unused(struct relay *relay, struct request *r)
{
        if (r->collective.answering)
                return;
        if (!r->waiters)
                request_close(relay, r);
        if (r->collective.participants)
                return;
        request_enqueue(relay, r, QUEUE_NONE);
        if (r->state == REQUEST_SENT)
                request_free_tag(relay, r);
        request_destroy(r);
}

/* Notes an answer for @p, and moves the waiter to the front. */
static void mark_answered(struct request *r, struct participant *p)
{
        struct waiter *w = p->waiter;

        if (!w) {
                collective_drop_participant(r, p);
                return;
        }
        if (p->answered)
                return;
        p->answered = true;
        if (w->n_answered++ > 0)
                return;
        DL_DELETE(r->waiters, w);
        DL_PREPEND(r->waiters, w);
}

/* Answers the marked participants of the waiters in front; a relay below hears their ranks.
 * Callbacks may do anything to the request, which stays until the outermost call is over. */
static void answer_marked(struct relay *relay, struct request *r, const struct store_reply *reply)
{
        bool outermost = !r->collective.answering;
        struct participant *p, *next;
        struct waiter *w;

        r->collective.answering = true;
        while ((w = r->waiters) && w->n_answered) {
                struct store_reply own = *reply;

                own.n_whom = 0;
                own.whom = NULL;
                if (w->client->ops.is_relay)
                        own.whom = xcalloc(w->n_answered, sizeof(*own.whom));
                w->n_answered = 0;
                DL_FOREACH_SAFE(w->participants, p, next)
                {
                        if (!p->answered)
                                continue;
                        if (own.whom)
                                own.whom[own.n_whom++] = p->rank;
                        collective_drop_participant(r, p);
                }
                DL_DELETE(r->waiters, w);
                /* To the end: a waiter without marks ends the loop. */
                if (w->participants) {
                        DL_APPEND(r->waiters, w);
                        relay_reply(w->client, w->name.tag, &own);
                } else {
                        waiter_answer(w, &own);
                }
                free(own.whom);
        }
        if (!outermost)
                return;
        r->collective.answering = false;
        destroy_if_unused(relay, r);
}

void collective_complete(struct relay *relay, struct request *r, const struct store_reply *reply)
{
        struct participant *p, *next;

        HASH_ITER(hh, r->collective.participants, p, next)
        {
                /* An answer without ranks is for all ranks sent. */
                if (!reply->n_whom && !p->unsent)
                        mark_answered(r, p);
        }
        /* Backwards, because each waiter goes in front of the last. */
        for (uint32_t i = reply->n_whom; i > 0; i--) {
                p = find_participant(r, reply->whom[i - 1]);
                if (p && !p->unsent)
                        mark_answered(r, p);
        }
        answer_marked(relay, r, reply);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Encodes the body followed by the unsent ranks and their values. */
static struct bytes encode_unsent(struct relay *relay, const struct request *r)
{
        /* The body ends with an empty list of ranks and an empty value: a u32 each, left out
         * here. */
        const size_t no_ranks = 4, no_value = r->op == STORE_BARRIER ? 0 : 4;
        struct buf *b = relay_scratch(relay);
        const struct participant *p;

        buf_append(b, r->body, STORE_BODY_HEADER - sizeof(r->tag));
        put_u32(b, r->tag);
        buf_append(b, r->body + STORE_BODY_HEADER,
                   r->len - STORE_BODY_HEADER - no_ranks - no_value);
        put_u32(b, r->collective.n_unsent);
        DL_FOREACH2(r->collective.unsent, p, unsent_next)
        put_u32(b, p->rank);
        if (no_value)
                put_u32(b, (uint32_t)r->collective.unsent_bytes);
        DL_FOREACH2(r->collective.unsent, p, unsent_next)
        buf_append(b, p->value, p->len);
        return buf_failed(b) ? (struct bytes){ 0 } : (struct bytes){ buf_data(b), buf_len(b) };
}

bool collective_send(struct relay *relay, struct request *r)
{
        struct participant *p;
        struct bytes body;

        r->collective.held_until = 0; /* later ranks of this request are held anew */
        if (!r->collective.unsent)
                return true;
        if (r->state == REQUEST_UNSENT)
                request_take_tag(relay, r);
        body = encode_unsent(relay, r);
        while ((p = r->collective.unsent)) {
                /* The value is in the body, or lost; mark_answered() may free @p. */
                clear_unsent(r, p);
                if (!body.p)
                        mark_answered(r, p);
        }
        if (body.p)
                relay_send(relay, body);
        else
                answer_marked(
                        relay, r,
                        &(struct store_reply){ .status = STORE_NOMEM,
                                               .text = bytes_of("the agent is out of memory") });
        return body.p;
}

/* --- leaving ---------------------------------------------------------------------------------- */

static void send_leave(struct relay *relay, struct request *r, uint32_t *ranks, uint32_t n,
                       bool tell)
{
        if (!n)
                return;
        request_close(relay, r);
        relay_send_request(relay, STORE_NODE,
                           &(struct store_request){ .op = STORE_LEAVE,
                                                    .tag = r->tag,
                                                    .ranks = ranks,
                                                    .n_ranks = n,
                                                    .number = tell });
}

/* With @tell the unsent go first, so that the head knows all ranks to answer. Else the unsent never
 * leave. */
void collective_withdraw(struct relay *relay, struct waiter *w, const uint32_t *ranks, uint32_t n,
                         bool tell)
{
        struct request *r = w->request;
        uint32_t *out, n_out = 0;
        struct participant *p;

        if (!r->is_collective)
                return;
        if (tell && r->collective.unsent) {
                request_enqueue(relay, r, QUEUE_NONE);
                if (!collective_send(relay, r))
                        return;
        }
        out = xcalloc(HASH_COUNT(r->collective.participants), sizeof(*out));
        DL_FOREACH(w->participants, p)
        {
                if (!ranks && !p->answered)
                        out[n_out++] = p->rank;
        }
        for (uint32_t i = 0; i < n && n_out < HASH_COUNT(r->collective.participants); i++) {
                p = find_participant(r, ranks[i]);
                /* The ranks have gone, and are not expected to come again. */
                if (!tell)
                        local_ranks_remove(relay, ranks[i]);
                if (!p || p->waiter != w)
                        continue;
                if (!p->unsent) {
                        out[n_out++] = p->rank;
                        continue;
                }
                clear_unsent(r, p);
                mark_answered(r, p);
        }
        send_leave(relay, r, out, n_out, tell);
        free(out);
        answer_marked(relay, r, &(struct store_reply){ .status = STORE_TIMEOUT });
}

void collective_detach(struct relay *relay, struct waiter *w)
{
        struct request *r = w->request;
        uint32_t *out = xcalloc(HASH_COUNT(r->collective.participants), sizeof(*out)), n = 0;
        struct participant *p;

        DL_DELETE(r->waiters, w);
        while ((p = w->participants)) {
                if (p->unsent || p->answered) {
                        collective_drop_participant(r, p);
                        continue;
                }
                DL_DELETE(w->participants, p);
                p->waiter = NULL;
                out[n++] = p->rank;
        }
        send_leave(relay, r, out, n, false);
        free(out);
        destroy_if_unused(relay, r);
}

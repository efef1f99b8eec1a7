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
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/macros.h"
#include "base/memory.h"
#include "store/relay/relay_private.h"
#include "wire/codec.h"

/* --- participants ----------------------------------------------------------------------------- */

static struct participant *find_participant(const struct request *r, uint32_t rank)
{
        struct participant *p;

        HASH_FIND(hh, r->collective.participants, &rank, sizeof(rank), p);
        return p;
}

bool collective_has_rank(const struct request *r, uint32_t rank)
{
        return find_participant(r, rank);
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

static void destroy_participant(struct request *r, struct participant *p)
{
        clear_unsent(r, p);
        HASH_DEL(r->collective.participants, p);
        if (p->waiter)
                DL_DELETE(p->waiter->participants, p);
        free(p);
}

void collective_destroy_participants(struct request *r)
{
        struct participant *p, *next;

        HASH_ITER(hh, r->collective.participants, p, next)
        destroy_participant(r, p);
}

static int add_participant(struct request *r, struct waiter *w, uint32_t rank, struct bytes value)
{
        struct participant *p;

        if (find_participant(r, rank))
                return -EINVAL;
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        *p = (struct participant){ .rank = rank, .waiter = w, .unsent = true, .len = value.len };
        p->value = value.len ? malloc(value.len) : NULL;
        if (value.len && !p->value) {
                free(p);
                return -ENOMEM;
        }
        if (value.len)
                memcpy(p->value, value.p, value.len);
        HASH_ADD(hh, r->collective.participants, rank, sizeof(p->rank), p);
        DL_APPEND(w->participants, p);
        DL_APPEND2(r->collective.unsent, p, unsent_prev, unsent_next);
        r->collective.n_unsent++;
        r->collective.unsent_bytes += p->len;
        return 0;
}

/* --- attaching -------------------------------------------------------------------------------- */

static size_t gathered_len(const struct store_request *req)
{
        return req->op == STORE_GATHER ? req->value.len / req->n_ranks : 0;
}

/* Returns the contribution of the @i-th rank: in a broadcast, only the root has a value. */
static struct bytes rank_contribution(const struct store_request *req, uint32_t i)
{
        size_t len = gathered_len(req);

        if (len)
                return (struct bytes){ (const char *)req->value.p + i * len, len };
        if (req->op == STORE_BROADCAST && (!req->n_members || req->root < req->n_members) &&
            req->ranks[i] == (req->n_members ? req->members[req->root] : req->root))
                return req->value;
        return (struct bytes){ 0 };
}

/* Adds all ranks of @req, or none. */
static int add_participants(struct relay *relay, struct request *r, struct waiter *w,
                            const struct store_request *req)
{
        uint32_t n = 0;
        int ret = 0;

        for (; n < req->n_ranks && ret == 0; n++)
                ret = add_participant(r, w, req->ranks[n], rank_contribution(req, n));
        for (uint32_t i = 0; i < n && ret == 0; i++)
                local_ranks_add(&relay->local_ranks, req->ranks[i]);
        while (ret < 0 && --n)
                destroy_participant(r, w->participants->prev); /* the last added */
        return ret;
}

/* Can the ranks of @req attach to @r? A rank there already comes with the next request, as the
 * head sees the order; messages have limits. */
static bool has_capacity_for(const struct request *r, const struct store_request *req)
{
        if (r->collective.value_len != gathered_len(req) ||
            r->collective.n_unsent + req->n_ranks > STORE_MEMBERS_MAX ||
            r->collective.unsent_bytes + req->value.len > STORE_VALUE_MAX)
                return false;
        for (uint32_t i = 0; i < req->n_ranks; i++)
                if (find_participant(r, req->ranks[i]))
                        return false;
        return true;
}

static struct bytes encode_without_ranks(struct relay *relay, const struct store_request *req)
{
        struct store_request plain = *req;

        plain.n_ranks = 0;
        plain.value.len = 0;
        return relay_encode(relay, STORE_NODE, &plain);
}

static struct request *create_collective_request(const struct store_request *req, struct bytes body)
{
        struct request *r = request_create(req, body, STORE_BODY_HEADER + 4);

        if (!r)
                return NULL;
        r->is_collective = true;
        r->collective.value_len = gathered_len(req);
        return r;
}

int collective_attach(struct relay *relay, struct waiter *w, const struct store_request *req)
{
        struct bytes body = encode_without_ranks(relay, req);
        struct request *open, *r;
        int ret;

        if (!body.p)
                return -ENOMEM;
        if (req->op == STORE_GATHER && req->value.len % req->n_ranks)
                return -EINVAL;
        open = request_find_open(relay, req->op, body);
        r = open && has_capacity_for(open, req) ? open : create_collective_request(req, body);
        if (!r)
                return -ENOMEM;
        ret = add_participants(relay, r, w, req);
        if (ret < 0) {
                if (r != open)
                        request_destroy(r);
                return ret;
        }
        if (r != open)
                collective_expect(relay, r);
        w->request = r;
        DL_APPEND(r->waiters, w);
        if (!open)
                request_open(relay, r);
        else if (r->queue == QUEUE_NONE) /* not if HELD, where the place in the queue counts */
                request_enqueue(relay, r, QUEUE_DUE);
        return 0;
}

int collective_attach_more(struct relay *relay, struct waiter *w, const struct store_request *req)
{
        struct bytes body = encode_without_ranks(relay, req);
        struct request *r = w->request;
        int ret;

        if (!body.p)
                return -ENOMEM;
        if (!r->is_collective || !req->n_ranks || r->op != req->op || r->len != body.len ||
            memcmp(r->body + STORE_BODY_HEADER, (const char *)body.p + STORE_BODY_HEADER,
                   body.len - STORE_BODY_HEADER) != 0 ||
            r->collective.value_len * req->n_ranks !=
                    (req->op == STORE_GATHER ? req->value.len : 0))
                return -EINVAL;
        ret = add_participants(relay, r, w, req);
        if (ret == 0 && r->queue == QUEUE_NONE)
                request_enqueue(relay, r, QUEUE_DUE);
        return ret;
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
                tag_table_give_back(&relay->sent, r->tag);
        request_destroy(r);
}

/* Notes an answer for @p, and moves the waiter to the front. */
static void mark_answered(struct request *r, struct participant *p)
{
        struct waiter *w = p->waiter;

        if (!w) {
                destroy_participant(r, p);
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

/* Answers the marked participants of @w; a relay below hears their ranks. */
static void answer_waiter(struct request *r, struct waiter *w, const struct store_reply *reply)
{
        uint32_t *ranks = w->client->ops.is_relay ? xcalloc(w->n_answered, sizeof(*ranks)) : NULL;
        struct store_reply own = *reply;
        struct participant *p, *next;
        uint32_t n = 0;

        DL_FOREACH_SAFE(w->participants, p, next)
        {
                if (!p->answered)
                        continue;
                if (ranks)
                        ranks[n++] = p->rank;
                destroy_participant(r, p);
        }
        w->n_answered = 0;
        own.whom = ranks;
        own.n_whom = n;
        DL_DELETE(r->waiters, w);
        if (w->participants) {
                DL_APPEND(r->waiters, w);
                waiter_tell(w, &own);
        } else {
                waiter_answer(w, &own);
        }
        free(ranks);
}

/* Answers the marked waiters, which stand in front. Callbacks may do anything to the request, which
 * stays until the outermost call is over. */
static void answer_marked(struct relay *relay, struct request *r, const struct store_reply *reply)
{
        bool outermost = !r->collective.answering;

        r->collective.answering = true;
        while (r->waiters && r->waiters->n_answered)
                answer_waiter(r, r->waiters, reply);
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
        struct bytes body;

        r->collective.held_until = 0;
        if (!r->collective.unsent)
                return true;
        if (r->state == REQUEST_UNSENT)
                request_take_tag(relay, r);
        body = encode_unsent(relay, r);
        if (!body.p) {
                while (r->collective.unsent) {
                        struct participant *p = r->collective.unsent;

                        clear_unsent(r, p);
                        mark_answered(r, p);
                }
                answer_marked(
                        relay, r,
                        &(struct store_reply){ .status = STORE_NOMEM,
                                               .text = bytes_of("the agent is out of memory") });
                return false;
        }
        while (r->collective.unsent)
                clear_unsent(r, r->collective.unsent);
        relay_send(relay, body);
        return true;
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
                if (!tell)
                        local_ranks_remove(&relay->local_ranks, ranks[i]);
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
                        destroy_participant(r, p);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatch, answers, and ends of ranks.
 *
 * store_request() checks the sizes and calls the handler of the op. A handler answers at once or
 * leaves a pending request, which a later call answers: a write wakes the waits of the key, the
 * last arrival completes a collective, CANCEL and the end of a rank refuse. store_forget() drops
 * the pending requests of a closed connection. Every reply passes store_answer(), which may not
 * lead back into the store.
 */
#include "store/engine/store.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/engine/engine_private.h"

/* --- answers ---------------------------------------------------------------------------------- */

void store_answer(struct store *s, struct request_id id, struct store_reply *reply)
{
        reply->tag = id.tag;
        reply->whom = id.whom;
        reply->n_whom = id.n_whom;
        /* A longer text, with a long key in the text, would make the reply malformed. */
        reply->text.len = MIN(reply->text.len, (size_t)STORE_TEXT_MAX);
        s->ops.reply(s->ctx, id.owner, reply);
}

void store_refuse(struct store *s, struct request_id id, enum store_status why, const char *fmt,
                  ...)
{
        char text[STORE_TEXT_MAX];
        struct store_reply reply = { .status = (uint8_t)why };
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        reply.text = bytes_of(text);
        store_answer(s, id, &reply);
}

void store_answer_number(struct store *s, struct request_id id, int64_t number)
{
        store_answer(s, id, &(struct store_reply){ .status = STORE_OK, .number = number });
}

void store_refuse_nomem(struct store *s, struct request_id id)
{
        const struct quota *q = &s->table.quota;

        /* store_request() clears the mark, so a mark found here belongs to the present request. */
        if (q->refused)
                store_refuse(s, id, STORE_FULL,
                             "the store is full: %zu of %zu bytes are in use, with keys and "
                             "requests without an answer",
                             q->used, q->max);
        else
                store_refuse(s, id, STORE_NOMEM, "the store is out of memory");
}

void store_answer_failure(struct store *s, struct request_id id, int64_t number)
{
        uint32_t rank = (uint32_t)s->first_failed;

        store_answer(s, id,
                     &(struct store_reply){ .status = STORE_PEER,
                                            .number = number,
                                            .text = bytes_of(s->failure),
                                            .ranks = &rank,
                                            .n_ranks = 1 });
}

/* --- dispatch --------------------------------------------------------------------------------- */

static const struct {
        pending_handler *cancel, *drop, *fail; /* the failure of any rank ends a wait */
} kinds[] = {
        [PENDING_WAIT] = { wait_cancel, wait_drop, wait_fail },
        [PENDING_COUNTER] = { counter_cancel, counter_drop, counter_fail },
        /* The failure of a rank ends only collectives with this member: collective_rank_lost(). */
        [PENDING_COLLECTIVE] = { collective_cancel, collective_drop, NULL },
};

static void on_cancel(struct store *s, struct request_id id, const struct store_request *req UNUSED)
{
        struct pending_request *p = pending_find(&s->pending, id.owner, id.tag);

        if (!p)
                return; /* answered while the CANCEL was under way */
        s->in_vain++;
        kinds[p->kind].cancel(s, p);
}

static store_handler *const on[] = {
        [STORE_SET] = keys_set,           [STORE_ADD] = keys_add,
        [STORE_APPEND] = keys_append,     [STORE_COMPARE_SET] = keys_compare_set,
        [STORE_CHECK] = keys_check,       [STORE_DELETE] = keys_delete,
        [STORE_NUM_KEYS] = keys_num_keys, [STORE_GET] = wait_request,
        [STORE_WAIT] = wait_request,      [STORE_CANCEL] = on_cancel,
        [STORE_FETCH] = keys_fetch,       [STORE_SET_MANY] = keys_set_many,
        [STORE_PUSH] = queue_push,        [STORE_POP] = queue_pop,
        [STORE_QUEUE_LEN] = queue_len,    [STORE_LIST] = keys_list,
        [STORE_COUNT] = counter_request,  [STORE_JOIN] = wait_join,
        [STORE_LEAVE] = collective_leave,
};

void store_request(struct store *s, uint64_t owner, int rank, const struct store_request *req)
{
        bool too_large = req->key.len > STORE_KEY_MAX || req->value.len > STORE_VALUE_MAX;
        struct request_id id = { owner, req->tag };

        s->table.quota.refused = false;
        for (uint32_t i = 0; i < req->n_keys; i++)
                too_large |= req->keys[i].len > STORE_KEY_MAX ||
                             (req->values && req->values[i].len > STORE_VALUE_MAX);
        if (too_large)
                store_refuse(s, id, STORE_TOO_BIG, "a key or value is too large");
        else if (req->op == STORE_BARRIER || req->op == STORE_GATHER || req->op == STORE_BROADCAST)
                collective_request(s, id, rank, req);
        else if (req->op < ARRAY_SIZE(on) && on[req->op])
                on[req->op](s, id, req);
        else
                store_refuse(s, id, STORE_INVALID, "not a request for the store");
}

void store_forget(struct store *s, uint64_t owner)
{
        struct pending_request *p;

        while ((p = pending_first(&s->pending, owner))) {
                s->in_vain++;
                kinds[p->kind].drop(s, p);
        }
}

/* --- ends of ranks ---------------------------------------------------------------------------- */

/* False: no rank of this job, or the end is known already. */
static bool note_rank_end(struct store *s, int rank, enum rank_state state)
{
        if (rank < 0 || rank >= s->world_size || s->rank_state[rank] != RANK_ALIVE)
                return false;
        s->rank_state[rank] = (unsigned char)state;
        s->n_lost++;
        return true;
}

void store_rank_failed(struct store *s, int rank, const char *text)
{
        struct pending_request *p, *next;

        if (!note_rank_end(s, rank, RANK_FAILED))
                return;
        if (s->first_failed < 0) {
                s->failure = strdup(text);
                s->first_failed = rank;
        }
        collective_rank_lost(s, rank);
        for (enum pending_kind kind = PENDING_WAIT; kind <= PENDING_COUNTER; kind++) {
                HASH_ITER(hh, s->pending.all, p, next)
                {
                        if (p->kind == kind)
                                kinds[kind].fail(s, p);
                }
        }
}

void store_rank_exited(struct store *s, int rank)
{
        if (note_rank_end(s, rank, RANK_EXITED))
                collective_rank_lost(s, rank);
}

void store_limit(struct store *s, size_t bytes)
{
        s->table.quota.max = bytes;
}

size_t store_used(const struct store *s)
{
        return s->table.quota.used;
}

bool store_has(const struct store *s, struct bytes key)
{
        return entry_has_any(entry_find(&s->table, key));
}

size_t store_waiting(const struct store *s)
{
        return HASH_COUNT(s->pending.all);
}

uint64_t store_met(const struct store *s)
{
        return s->pending.removed - s->in_vain;
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct store *store_create(struct store_ops ops, void *ctx, int world_size)
{
        struct store *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        *s = (struct store){ .ops = ops, .ctx = ctx, .world_size = world_size, .first_failed = -1 };
        s->table.quota.max = SIZE_MAX;
        s->rank_state = calloc((size_t)MAX(world_size, 1), 1);
        if (s->rank_state)
                return s;
        free(s);
        return NULL;
}

void store_destroy(struct store *s)
{
        struct store_entry *e, *next;
        struct pending_request *p;

        if (!s)
                return;
        /* Before the entries, because pending requests hold references. The last request of a wait
         * group or a collective frees the group or collective. */
        while ((p = s->pending.all))
                kinds[p->kind].drop(s, p);
        HASH_ITER(hh, s->table.entries, e, next)
        {
                queue_clear(s, e);
                entry_clear(&s->table, e);
        }
        buf_finish(&s->fetched.value);
        free(s->failure);
        free(s->rank_state);
        free(s);
}

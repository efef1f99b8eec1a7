/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine_private: struct store, and calls between the files of the engine
 *
 *   store.c       dispatch of requests, answers, ranks that end, life cycle
 *   keys.c        ops answered at once: SET ... NUM_KEYS, FETCH, SET_MANY, LIST, and queues
 *   wait.c        GET, WAIT, JOIN
 *   counter.c     COUNT
 *   collective.c  BARRIER, GATHER, BROADCAST, LEAVE
 *
 * Below these, and without struct store: quota.h (memory), member_index.h, table.h (keys and
 * values), pending.h (requests without an answer), rank_list.h (for messages).
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/macros.h"
#include "store/engine/pending.h"
#include "store/engine/store.h"
#include "store/engine/table.h"
#include "wire/store_msg.h"

enum rank_state { RANK_ALIVE, RANK_FAILED, RANK_EXITED };

struct store {
        struct store_ops ops;
        void *ctx;
        int world_size;
        unsigned char *rank_state; /* enum rank_state, per rank */
        int n_lost;                /* ranks not alive */
        int first_failed;          /* -1 = none */
        char *failure;             /* text of the first failure */
        struct entry_table table;
        struct pending_table pending;
        uint64_t in_vain;          /* pending requests that were given up */
        struct wait_group *groups; /* of waits, by keys_id */
        struct collective *collectives;
        /* The last positive answer for a keys_id, valid while @at is table.presence. */
        struct {
                uint64_t keys_id, at;
                bool by_item;
        } seen;
        /* The last FETCH for a keys_id, valid while @at is table.writes. */
        struct {
                uint64_t keys_id, at;
                int64_t number;
                struct buf value;
        } fetched;
};

/* The addressee of an answer. */
struct request_id {
        uint64_t owner;
        uint32_t tag;
        uint32_t *whom; /* lent; ranks of a node, see LEAVE in wire/store_msg.h */
        uint32_t n_whom;
};

static inline struct request_id pending_id(const struct pending_request *p)
{
        return (struct request_id){ p->owner, (uint32_t)p->tag };
}

typedef void store_handler(struct store *s, struct request_id id, const struct store_request *req);
/* Ends a pending request: @cancel and @fail answer, @drop does not. */
typedef void pending_handler(struct store *s, struct pending_request *p);

/* store.c: each answers, and a refusal has a text made of a format. */
void store_answer(struct store *s, struct request_id id, struct store_reply *reply);
void store_answer_number(struct store *s, struct request_id id, int64_t number);
void store_refuse(struct store *s, struct request_id id, enum store_status why, const char *fmt,
                  ...) PRINTF(4, 5);
/* For want of memory: STORE_FULL at the limit of the store, else STORE_NOMEM. */
void store_refuse_nomem(struct store *s, struct request_id id);
/* Answers a wait with STORE_PEER and the first failure; @number as in an answer. */
void store_answer_failure(struct store *s, struct request_id id, int64_t number);

/* keys.c */
store_handler keys_set, keys_append, keys_add, keys_compare_set, keys_check, keys_delete,
        keys_num_keys, keys_fetch, keys_set_many, keys_list, queue_push, queue_pop, queue_len;
/* Adds @n to the number of @e and wakes waits. False: refused, and the entry may be gone. */
bool keys_add_number(struct store *s, struct request_id id, struct store_entry *e, int64_t n,
                     int64_t *sum);
void queue_clear(struct store *s, struct store_entry *e);

/* wait.c */
store_handler wait_request, wait_join;
pending_handler wait_cancel, wait_fail, wait_drop;
void wait_wake(struct store *s, struct store_entry *e);     /* a value has just come */
void wait_wake_one(struct store *s, struct store_entry *e); /* an item has just come */

/* counter.c */
store_handler counter_request;
pending_handler counter_cancel, counter_fail, counter_drop;
void counter_wake(struct store *s, struct store_entry *e); /* the value has changed */

/* collective.c */
void collective_request(struct store *s, struct request_id id, int rank,
                        const struct store_request *req);
store_handler collective_leave;
pending_handler collective_cancel, collective_drop;
void collective_rank_lost(struct store *s, int rank); /* ends collectives with this member */

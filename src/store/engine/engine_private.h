/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: what the files of the engine share
 *
 *   store.c    requests and their answers, ranks that end, life cycle
 *   table.c     the table of keys
 *   keys.c     what reads and writes values at once: SET ... NUM_KEYS, FETCH, SET_MANY, LIST
 *   queue.c    PUSH, POP, QUEUE_LEN
 *   wait.c     GET, WAIT, JOIN
 *   counter.c    COUNT
 *   collective.c  BARRIER, GATHER, BROADCAST, LEAVE
 */
#pragma once

/* A failed allocation must be an answer, not the end of the head. */
#define HASH_NONFATAL_OOM 1
#include <stdbool.h>
#include <uthash.h>

#include "store/engine/key_format.h"
#include "store/engine/pending.h"
#include "store/engine/store.h"

enum rank_state { RANK_ALIVE, RANK_FAILED, RANK_EXITED };

struct store {
        struct store_ops ops;
        void *ctx;
        int world_size;
        unsigned char *rank_state; /* enum rank_state, per rank */
        int n_lost;                /* ranks that are not alive */
        int first_failed;          /* -1 = none */
        char *failure;             /* its sentence */
        struct parking parking;
        struct slot *slots;
        size_t n_present;     /* slots with a value */
        uint64_t writes;      /* goes up when a value changes, */
        uint64_t presence;    /* ... and when a key comes or goes or is waited for */
        struct group *groups; /* of waits, by keys_id */
        /* The last answers to who asked with a keys_id, as long as @at is the counter above. */
        struct {
                uint64_t keys_id, at;
                bool by_item;
        } there;
        struct {
                uint64_t keys_id, at;
                int64_t number;
                struct buf value;
        } fetched;
        struct meeting *meetings;
};

/* One key: a value, a queue, or who waits for them; freed when it has none of these. */
struct slot {
        UT_hash_handle hh;
        struct link *gets;    /* who waits for a value */
        struct link *waits;   /* who waits for a value or an item */
        struct count *counts; /* who waits for a number, smallest first */
        struct item *queue;   /* NULL = no queue */
        size_t n_items;
        unsigned refs; /* requests that point here, waiting or not */
        bool present;
        char *value;
        size_t len, cap;
        size_t key_len;
        char key[];
};

struct request_id {
        uint64_t owner;
        uint32_t tag;
        uint32_t *whom; /* lent; for whom of a node's ranks, see LEAVE in wire/store_msg.h */
        uint32_t n_whom;
};

/* store.c: sends a reply; a refusal has a text made of a format. */
void store_answer(struct store *s, struct request_id id, struct store_reply *reply);
void store_answer_number(struct store *s, struct request_id id, int64_t number);
void store_refuse(struct store *s, struct request_id id, enum store_status why, const char *fmt,
                  ...) PRINTF(4, 5);
void store_refuse_nomem(struct store *s, struct request_id id);
/* Answers what waits with STORE_PEER and the first failure; @number as in an answer. */
void store_answer_failure(struct store *s, struct request_id id, int64_t number);

/* table.c */
struct slot *slot_find(struct store *s, struct bytes key); /* NULL = no such */
struct slot *slot_make(struct store *s, struct bytes key); /* NULL = no memory */
void slot_release(struct store *s, struct slot *slot);     /* frees it if nobody needs it */
bool slot_has_any(const struct slot *slot);                /* a value or a queue; NULL = no */
struct bytes slot_key(const struct slot *slot);
struct bytes slot_value(const struct slot *slot);           /* NULL or no value = empty */
bool slot_number(const struct slot *slot, int64_t *number); /* no value = 0; false = no number */
/* Writes @value behind the first @keep bytes and wakes who waits. False: refused in the store's
 * name, and the slot may be gone. */
bool slot_write(struct store *s, struct request_id id, struct slot *slot, size_t keep,
                struct bytes value);
/* Adds @n to the number and wakes who waits. False: refused, and the slot may be gone. */
bool slot_add(struct store *s, struct request_id id, struct slot *slot, int64_t n, int64_t *sum);
/* Takes over malloc'ed memory as the value. Wakes nobody: slot_wake() must follow. */
void slot_replace(struct store *s, struct slot *slot, char *value, size_t len);
void slot_wake(struct store *s, struct slot *slot);
void slot_clear(struct store *s, struct slot *slot); /* takes the value away, may free the slot */

/* What stands in the table of store.c. */
typedef void store_handler(struct store *s, struct request_id id, const struct store_request *req);

/* keys.c */
store_handler keys_set, keys_append, keys_add, keys_compare_set, keys_check, keys_delete,
        keys_num_keys, keys_fetch, keys_set_many, keys_list;

/* queue.c */
store_handler queue_push, queue_pop, queue_len;
void queue_free(struct slot *slot);

/* wait.c */
store_handler wait_request, wait_join;
void wait_wake(struct store *s, struct slot *slot);     /* its value has just come */
void wait_wake_one(struct store *s, struct slot *slot); /* an item has just come */
void wait_cancel(struct store *s, struct parked *p);
void wait_fail(struct store *s, struct parked *p);
void wait_drop(struct store *s, struct parked *p);

/* counter.c */
store_handler count_request;
void count_wake(struct store *s, struct slot *slot); /* its value has changed */
void count_cancel(struct store *s, struct parked *p);
void count_fail(struct store *s, struct parked *p);
void count_drop(struct store *s, struct parked *p);

/* collective.c */
void meeting_request(struct store *s, struct request_id id, int rank,
                     const struct store_request *req);
store_handler meeting_leave;
void meeting_cancel(struct store *s, struct parked *p);
void meeting_drop(struct store *s, struct parked *p);
void meeting_rank_lost(struct store *s, int rank); /* ends those that need it */

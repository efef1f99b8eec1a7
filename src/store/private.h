/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: what store.c, wait.c and meeting.c share
 */
#pragma once

/* A failed allocation must be an answer, not the end of the head. */
#define HASH_NONFATAL_OOM 1
#include <stdbool.h>
#include <uthash.h>

#include "store/parking.h"
#include "store/store.h"

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
        struct meeting *meetings;
};

/* One key: a value, or waits for it, or both for a moment. */
struct slot {
        UT_hash_handle hh;
        struct link *links; /* who waits for it */
        unsigned refs;      /* links that point here, waiting or not */
        bool present;
        char *value;
        size_t len, cap;
        size_t key_len;
        char key[];
};

struct request_id {
        uint64_t owner;
        uint32_t tag;
};

/* store.c: sends a reply. The text is made of a format; ranks are lent. */
void store_answer(struct store *s, struct request_id id, struct store_reply *reply);
void store_refuse(struct store *s, struct request_id id, enum store_status why, const char *fmt,
                  ...) PRINTF(4, 5);
struct slot *store_slot(struct store *s, struct bytes key);      /* NULL = no such */
struct slot *store_slot_make(struct store *s, struct bytes key); /* NULL = no memory */
void store_slot_release(struct store *s, struct slot *slot);     /* frees it if nobody needs it */

/* wait.c: GET and WAIT */
void wait_request(struct store *s, struct request_id id, const struct store_request *req);
void wait_wake(struct store *s, struct slot *slot); /* its value has just come */
void wait_cancel(struct store *s, struct parked *p);
void wait_fail(struct store *s, struct parked *p);
void wait_drop(struct store *s, struct parked *p);

/* meeting.c: BARRIER, GATHER, BROADCAST */
void meeting_request(struct store *s, struct request_id id, int rank,
                     const struct store_request *req);
void meeting_cancel(struct store *s, struct parked *p);
void meeting_drop(struct store *s, struct parked *p);
void meeting_rank_lost(struct store *s, int rank); /* ends those that need it */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readiness: which instances of roles are ready in an attempt (--ready)
 *
 * An instance is a replica of a role with replicas, else a rank; an instance is named by its first
 * rank. Agents ask ranks, and send RANK_READY. Here the store is looked into for a key, at the
 * start of a rank and after each message for the store, and the lines of output are matched. Main
 * loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct attempt;
struct options;
struct readiness;
struct role_book;
struct role_span;

struct ready_instance {
        int rank, instance; /* its first rank, and its number in the role */
        int64_t ms;         /* from the start of that rank until it was ready */
};

/* Borrows the plan and the stores of @a, and the options; @book is read here only. @ready is called
 * for a rank that the store or a line tells to be ready, maybe more than once. NULL: no role of the
 * job is asked; every function here takes it. */
struct readiness *readiness_create(const struct options *o, const struct role_book *book,
                                   const struct attempt *a, void (*ready)(void *ctx, int rank),
                                   void *ctx);
void readiness_destroy(struct readiness *r);

/* A rank has ended for a restart: late output is no sign of the next process. */
void readiness_ended(struct readiness *r, int rank);
/* Such ranks are ordered again, with the number @restart in HN_RESTART. */
void readiness_forget(struct readiness *r, const struct role_span *s, int restart);
void readiness_started(struct readiness *r, int rank);
/* A rank has written to MSG_STDOUT or MSG_STDERR. */
void readiness_output(struct readiness *r, int rank, uint8_t stream, const void *data, size_t len);
/* Keys of a world may have changed. */
void readiness_store(struct readiness *r, uint32_t world);

/* Whether the agent of the rank is ordered to ask it. */
bool readiness_is_asked(const struct readiness *r, int rank);
/* Notes that a rank is ready. True: its instance was not ready before, @ret is filled. */
bool readiness_note(struct readiness *r, int rank, struct ready_instance *ret);

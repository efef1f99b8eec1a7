/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_service: PMIx for the ranks of this node
 *
 * The helper (pmix_helper.h) hosts the node's libpmix; fences and direct modex go over the store.
 * One object per attempt. Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "base/strv.h"
#include "store/relay/relay.h"
#include "wire/msg.h"

struct pmix_service;

struct pmix_service_ops {
        void (*ready)(void *ctx); /* pmix_service_env() has every rank of this node */
        /* The service cannot begin, or has ended; once, and nothing follows. @why: words of the
         * helper, or the end of the helper. */
        void (*failed)(void *ctx, const char *why);
};

struct pmix_setup {
        uv_loop_t *loop;
        struct relay *relay;
        const struct launch_order *order;
        const char *folder;      /* the job's, where a folder for the service is made */
        const struct strv *base; /* environment of the ranks, without their own variables */
        unsigned cores;
};

/* Everything in @s is borrowed for the call, but for the loop and the relay. NULL with @err. */
struct pmix_service *pmix_service_start(const struct pmix_setup *s, struct pmix_service_ops ops,
                                        void *ctx, struct error *err);
/* Kills the helper, which the agent reaps. The relay is not used any more. May be called from ops;
 * NULL is fine. */
void pmix_service_end(struct pmix_service *p);

/* Aborts the job in the name of the first rank of this node. */
void pmix_service_abort(struct pmix_service *p, const char *why);

pid_t pmix_service_pid(const struct pmix_service *p); /* of the helper */
/* Returns the variables of the rank, lent; NULL = not known. */
const struct strv *pmix_service_env(const struct pmix_service *p, uint32_t rank);
/* Calls @fn for each rank that waits for ranks of other nodes in a fence of the whole job, as in
 * MPI_Init(). libpmix gathers the ranks of a node: until all have come, no wait is known. @since_ns
 * is a time of uv_hrtime(). */
void pmix_service_each_wait(const struct pmix_service *p,
                            void (*fn)(void *ctx, uint32_t rank, uint64_t since_ns), void *ctx);
/* Returns what a rank that has ended did with PMIx. */
enum rank_mpi pmix_service_state(struct pmix_service *p, uint32_t rank);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host: libpmix as the server of this node's ranks
 *
 * libpmix calls back on a thread of its own. Each callback becomes an event in a pipe, so all other
 * work happens on the main thread.
 */
#pragma once

#include "base/error.h"
#include "carried/pmix/pmix_abi.h"
#include "wire/helper/pmix_msg.h"

/* A callback of libpmix, or the end of a call. */
struct host_event {
        uint8_t type; /* enum pmix_msg_type; 0 = the end of a call of our own, in note.status */
        struct pmix_note note; /* to be sent to the agent; ranks and data are owned */
        pmix_modex_fn *answer; /* FENCE, WANT: how to answer; else NULL */
        pmix_op_fn *done;      /* CONNECTED, FINALIZED: releases the rank; NULL = none waits */
        void *cbdata;          /* of the waiting rank */
};

/* Starts the server for @job with the library @f, describes the job, and calls @env with the
 * environment of each local rank. 0 or -EIO with the step that failed in @err. @job and @f are
 * borrowed for the life of the process. */
int host_start(const struct pmix_functions *f, const struct pmix_job *job,
               void (*env)(void *ctx, const struct pmix_env *m), void *ctx, struct error *err);
/* Returns the descriptor from which host_take() reads. */
int host_fd(void);
/* Waits for the next event; to be freed by host_event_free(). NULL: none will come. */
struct host_event *host_take(void);
void host_event_free(struct host_event *e);

/* Lets the rank of the event go on, after the agent was told. */
void host_release(const struct host_event *e);
/* Answers a FENCE or WANT. @data is copied. */
void host_answer(const struct host_event *e, int status, const void *data, size_t n);
/* Asks for the data of a local rank; FETCHED with the same id comes as an event. */
void host_fetch(uint32_t id, uint32_t rank);

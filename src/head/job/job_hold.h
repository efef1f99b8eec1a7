/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job hold: the connected nodes of a job serve the runs of others (`hnlaunch hold`)
 *
 * Main loop's thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "head/job/job.h"
#include "wire/warm_msg.h"

struct cluster;
struct hold;

struct job_hold {
        const char *id;
        json_t *settings; /* lent */
        int64_t idle_ms;
        int64_t start_ns;
        const struct warm_order *warm; /* apart from its slots; lent. NULL = none */
        const char **venvs;            /* of struct hold_config */
        /* Agents are prepared on all nodes. */
        void (*ready)(void *ctx);
        void *ctx;
};

/* Holds the READY nodes until the hold is released, has no run for idle_ms, has no node any more,
 * or an order ends it: JOB_DONE, JOB_NODES_LOST or JOB_INTERRUPTED. JOB_NODES_UNFIT: it is not
 * ready yet, and no agent can be prepared on the nodes that are left. Then the agents leave.
 * JOB_IMPOSSIBLE with @err: it cannot listen; HN_HOLD_EXISTS or HN_HOLD_SILENT: another hold has
 * the same hosts. After job_connect(). */
enum job_step job_hold_serve(struct job *j, const struct job_hold *h, struct error *err);

/* --- for the files of the job --- */

struct job_holding;

struct job_holding *job_hold_begin(struct cluster *c, const struct job_hold *how,
                                   struct error *err);
struct hold *job_hold_of(struct job_holding *s);
/* To be asked in each turn of the loop. False: the hold is over, with *@ret_step. */
bool job_hold_goes_on(struct job_holding *s, enum job_step *ret_step);
void job_hold_close(struct job_holding *s);
/* Let the loop turn once more. */
void job_hold_free(struct job_holding *s);

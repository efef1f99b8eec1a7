/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job_roles: which roles of a job start now, and when the job ends
 *
 * head/model/role_order.h has the rules. Every function takes NULL, for a job without roles, of
 * which all worlds begin at once.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/job/job.h"
#include "head/model/role_list.h"

struct attempt;
struct cause;
struct cluster;
struct diags;
struct job_config;
struct job_launch;
struct job_roles;
struct node;
struct refused;

struct job_roles_ops {
        /* Sends the orders of the worlds that begin (job_roles_begin_world()). */
        void (*order_worlds)(void *ctx, const struct job_launch *l);
        /* Sends the orders of ranks that have ended and start again. */
        void (*order_again)(void *ctx, const struct job_launch *l, const struct role_span *s);
        /* Whether the attempt is about to end, so that no ranks start again within it. */
        bool (*is_leaving)(void *ctx);
        /* The job has reached its goal, @why. A failure goes to attempt.failed(). */
        void (*finish)(void *ctx, const char *why);
};

/* All pointers are borrowed. Returns NULL for a job without roles. */
struct job_roles *job_roles_create(struct cluster *c, struct attempt *a,
                                   const struct job_config *config, const struct job_roles_ops *ops,
                                   void *ctx);
/* Closes the timer; job_roles_free() after the loop has turned. */
void job_roles_close(struct job_roles *r);
void job_roles_free(struct job_roles *r);

/* An attempt begins: starts the first roles. @l is borrowed for the attempt. False: no roles. */
bool job_roles_launch(struct job_roles *r, const struct job_launch *l);
/* Whether the orders of a world are to be sent now; once. */
bool job_roles_begin_world(struct job_roles *r, uint32_t world);
bool job_roles_has_begun(const struct job_roles *r, int world);
/* Whether the orders of all worlds have been sent. */
bool job_roles_have_begun(const struct job_roles *r);
/* Whether ranks of the node wait for their start; any ranks of the job. */
bool job_roles_await(const struct job_roles *r, size_t node);
bool job_roles_wait(const struct job_roles *r);

/* Returns the roles that wait as an array of objects with role and text, "role b waits for a"; a
 * new reference. NULL: none does. */
json_t *job_roles_describe_waits(const struct job_roles *r);

/* Follow the start and the end of a rank; @code is 128 + @signal where there is one. */
void job_roles_started(struct job_roles *r, int rank);
/* The instance of the role of @rank is ready (--ready). */
void job_roles_ready(struct job_roles *r, int rank, int instance);
void job_roles_ended(struct job_roles *r, int rank, int code, int signal);
/* A node was lost or has refused, and attempt_fail() has been called for it. */
void job_roles_lost(struct job_roles *r);
/* The node has refused a rank, or an order. */
void job_roles_refused(struct job_roles *r, struct node *n, const struct refused *m);
/* Whether a rank may end with @code and the job goes on; such ranks are counted. */
bool job_roles_allow(struct job_roles *r, int rank, int code);
size_t job_roles_allowed(const struct job_roles *r);
/* The job fails with @c: roles with --drain get their time, and attempt.failed() is called after
 * it. False: there are none, or no more. */
bool job_roles_drain(struct job_roles *r, const struct cause *c);

/* --restart-scope. Whether ranks of the role of @rank may start again while others run. */
bool job_roles_start_again(const struct job_roles *r, int rank);
/* Whether the end of @rank with @code is a failure after which these could. */
bool job_roles_can_restart(const struct job_roles *r, int rank, int code);
/* Returns the ranks that would. */
struct role_span job_roles_find_scope(const struct job_roles *r, int rank);
bool job_roles_has_ended(const struct job_roles *r, int rank);
/* They do, in place of job_roles_ended(). Others of them are told to end first. */
void job_roles_restart(struct job_roles *r, int rank);
/* Returns how many ranks have ended for such a restart, and have not been ordered. */
size_t job_roles_count_waiting(const struct job_roles *r);
/* Whether @rank has to end for such a restart: its end is neither failure nor success. */
bool job_roles_is_ending(const struct job_roles *r, int rank);
/* Returns how often ranks of a world have started again so; of the job. */
int job_roles_restarts(const struct job_roles *r, uint32_t world);
int job_roles_count_restarts(const struct job_roles *r);
/* job_use_restart_rule(), and what the rule says. */
void job_roles_use_rule(struct job_roles *r, job_restart_rule *may_repeat);
bool job_roles_may_repeat(const struct job_roles *r, const struct outcome *o, bool healthy);

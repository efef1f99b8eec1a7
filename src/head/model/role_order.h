/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role order: when roles of a job start, and when the job ends, with which code
 *
 * A role starts when all roles of --after have been ready. A role is ready with the start of all
 * ranks, or by role_order_ready() for all instances. The job goes on until
 *
 *   - all roles of --main have ended with 0, and --linger is over or no role is left: code 0,
 *     whatever other roles return; without --main, until all roles have ended: code 0;
 *   - a rank of --main, or without --main any rank, fails: the code of this rank;
 *   - a helper (a role beside --main) fails or loses an instance, and an unfinished role is --after
 *     the helper or refers to it: the code of the rank, 1 for 0;
 *   - an instance ends before being ready, and a role waits for it: the code of the rank, 1 for 0;
 *   - --ready-timeout is over: 124.
 *
 * --ends ok allows the second and third, but not to a role of --main. After a failure roles with
 * --drain get TERM and their time; other roles live, and no role starts. ROLE_END follows once, as
 * the last decision: the caller stops every role still alive. ROLE_FAIL comes before, for a failure
 * that is none of a rank: LEFT, UNREADY, TIMEOUT.
 *
 * Pure. Inputs are functions with the time of any clock in milliseconds. Outputs are a queue, which
 * the caller empties after each input. Inputs about ended ranks or instances change nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intlist.h"

/* --restart-scope: the ranks that start again. */
enum role_scope {
        ROLE_SCOPE_JOB, /* this attempt ends */
        ROLE_SCOPE_ROLE,
        ROLE_SCOPE_ALONE, /* the instance */
};

struct role_rule {
        struct intlist after;  /* numbers of roles */
        struct intlist refers; /* roles in the texts (head/model/role_book.h) */
        /* At least 1 each. Rank r belongs to instance r * n_instances / n_ranks. */
        int n_ranks, n_instances;
        bool probed;              /* ready by role_order_ready(); else with the start */
        int64_t ready_timeout_ms; /* from the start, if @probed; 0 = never */
        bool is_main, ends_ok;
        int64_t drain_ms; /* 0 = none */
        enum role_scope scope;
};

enum role_verb {
        ROLE_START, /* @role, or after role_order_restart() @instance of it */
        ROLE_TERM,  /* @role or @instance of it gets TERM, and @time_ms; 0 = the grace time */
        ROLE_FAIL,  /* the job fails by a rule of roles: as ROLE_END, which follows after all drains
                     */
        ROLE_TELL,  /* a helper without --ends ok has ended, and no role needs it: @rank, @code */
        ROLE_END,   /* of the job, with @code; @reason tells the other members */
};

enum role_end_reason {
        ROLE_END_DONE,    /* the roles of --main have, or all; @role is -1 */
        ROLE_END_FAILED,  /* @rank of @role: @code, @signal */
        ROLE_END_LEFT,    /* @rank of the helper @role ended with 0, and @other needs it */
        ROLE_END_UNREADY, /* @rank of @role ended before being ready, and @other waits */
        ROLE_END_TIMEOUT, /* @instance of @role, with @rank as the first, was not ready in time */
        ROLE_END_ORDER,   /* role_order_fail() */
};

struct role_decision {
        enum role_verb verb;
        enum role_end_reason reason;
        int role, instance, rank, other; /* -1 = none; @instance -1 = all */
        int code, signal;                /* @code is 128 + @signal where there is one */
        int64_t time_ms;
};

struct role_order;

/* Finds a cycle in the --after of @n roles. False: there is none. The empty @path becomes the roles
 * of the cycle, each --after the next, and the first again. */
bool role_order_find_cycle(const struct role_rule *rules, size_t n, struct intlist *path);

/* Borrows @rules, which have no cycle, and decides which roles start first. */
struct role_order *role_order_create(const struct role_rule *rules, size_t n, int64_t linger_ms);
void role_order_destroy(struct role_order *o);

/* Takes the next decision out of the queue. False: the queue is empty. */
bool role_order_next(struct role_order *o, struct role_decision *ret);
/* Returns the time of the next limit, when role_order_tick() is due; -1 = none. */
int64_t role_order_deadline(const struct role_order *o);

/* All ranks of the role, or all that ROLE_START has named, run. */
void role_order_started(struct role_order *o, int role, int64_t now);
void role_order_ready(struct role_order *o, int role, int instance, int64_t now);
/* A rank has ended or was lost, @code as in struct role_decision. */
void role_order_ended(struct role_order *o, int role, int rank, int code, int signal, int64_t now);
/* The launcher ends the job: a hang, a lost node, ... @role and @rank may be -1. */
void role_order_fail(struct role_order *o, int role, int rank, int code, int64_t now);
void role_order_tick(struct role_order *o, int64_t now);

/* Whether the roles of --main have ended with 0, and others have the time of --linger. */
bool role_order_lingers(const struct role_order *o);
/* Whether role_order_ended() of this rank would make the job fail. */
bool role_order_is_failure(const struct role_order *o, int role, int rank, int code);
/* Whether the end of this rank lets the scope of the role, other than ROLE_SCOPE_JOB, start again:
 * a failure, also of a helper that no role needs, unless --ends ok expects it. */
bool role_order_may_restart(const struct role_order *o, int role, int rank, int code);
/* A rank has ended, and the caller has decided to start the scope of the role again, other than
 * ROLE_SCOPE_JOB: in place of role_order_ended(). Other ranks in the scope get ROLE_TERM, and
 * ROLE_START follows the end of the last. */
void role_order_restart(struct role_order *o, int role, int rank, int64_t now);
/* Whether the rank is to end so that its instance can start again. */
bool role_order_restarts(const struct role_order *o, int role, int rank);
/* Whether the rank has ended, and not started again. */
bool role_order_has_ended(const struct role_order *o, int role, int rank);
/* Returns the first rank of an instance, or of the one behind the last the number of ranks. */
int role_order_first_rank(const struct role_order *o, int role, int instance);

/* Whether @role has not started because @other is not ready. */
bool role_order_waits(const struct role_order *o, int role, int other);
/* Counts the ready instances of a role. */
int role_order_count_ready(const struct role_order *o, int role);

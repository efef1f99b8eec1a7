/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_next() collects the evidence at the end of an attempt, before the job forgets the attempt,
 * and asks restart_decide(). Progress is a step above all steps of earlier attempts, or a file of
 * --progress-file newer than all files before the attempt. Every lost node is retired, not only the
 * node of the first cause.
 */
#include "head/launch/launch_restart.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "head/core/json_text.h"
#include "head/job/job_spares.h"
#include "head/launch/launch_bad_hosts.h"
#include "head/launch/launch_private.h"
#include "head/model/restart_rule.h"

struct launch_restart {
        struct restart_past *past;
        size_t n, cap;            /* of .past */
        int64_t best_step;        /* of all attempts; 0 = none */
        int64_t file_ns;          /* the newest file of --progress-file before the attempt */
        int64_t began_us;         /* of the attempt */
        int64_t won_us;           /* of the last step or file won; begun = none */
        struct strv retired;      /* "gpu001: its agent was lost" */
        bool exhausted;           /* no spare host was left */
        struct node_facts *facts; /* of the last attempt, by node */
        json_t *attempts;
};

/* ---- facts ---- */

/* Asks the nodes of the ended attempt; @path could not be written, "" = none. Valid until the next
 * call. Only evidence that needs facts asks. */
static const struct node_facts *ask_node_facts(void *ctx, const char *path)
{
        struct launch *l = ctx;
        struct launch_restart *r = l->end.restart;

        free(r->facts);
        r->facts = xcalloc(l->hosts.n, sizeof(*r->facts));
        job_ask_facts(l->run->job, path, r->facts);
        return r->facts;
}

/* Returns the time of the newest file of --progress-file; 0 = there is none. */
static int64_t find_newest_file(const char *pattern)
{
        int64_t newest = 0;
        struct stat st;
        glob_t g;

        if (!pattern || glob(pattern, GLOB_NOSORT, NULL, &g) != 0)
                return 0;
        for (size_t i = 0; i < g.gl_pathc; i++)
                if (stat(g.gl_pathv[i], &st) == 0)
                        newest = MAX(newest,
                                     (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
        globfree(&g);
        return newest;
}

/* Returns the time of the run at which a file was written. */
static int64_t find_run_time(const struct launch *l, int64_t file_ns)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return events_now_us(&l->events) -
               ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec - file_ns) / 1000;
}

/* Returns how many steps the attempt has won, and sets whether there was any progress. */
static int64_t count_won(struct launch *l, bool *ret_progress)
{
        struct launch_restart *r = l->end.restart;
        const struct rank_board_steps s = rank_board_steps(l->run->ranks);
        int64_t newest = find_newest_file(l->o->restart.progress_file);
        int64_t won = s.told ? MAX(s.most - r->best_step, INT64_C(0)) : 0;

        *ret_progress = won > 0 || newest > r->file_ns;
        if (won)
                r->won_us = MAX(r->won_us, l->run->ranks->pace->had_us);
        if (newest > r->file_ns)
                r->won_us = MAX(r->won_us, find_run_time(l, newest));
        r->best_step += won;
        r->file_ns = newest;
        return won;
}

/* ---- records ---- */

/* Time is lost from the last step or file won to the begin of the next attempt. */
static void record_lost_time(struct launch *l)
{
        struct launch_restart *r = l->end.restart;
        size_t n = json_array_size(r->attempts);

        if (n)
                json_object_set_new(json_array_get(r->attempts, n - 1), "lost_us",
                                    json_integer(events_now_us(&l->events) - r->won_us));
}

/* Appends the attempt to the list of summary.json. @d NULL = the attempt ended well. */
static void record_attempt(struct launch *l, const struct evidence *e, int64_t won,
                           const struct restart_decision *d)
{
        struct launch_restart *r = l->end.restart;
        char cause[640];
        json_t *j;

        job_sentence(l->run->job, &job_outcome(l->run->job)->cause, cause, sizeof(cause));
        j = json_pack("{s:i, s:o, s:I, s:b, s:I}", "attempt", (int)json_array_size(r->attempts) + 1,
                      "cause", json_text(cause), "steps_won", (json_int_t)won, "progress",
                      e->progress, "us", (json_int_t)(events_now_us(&l->events) - r->began_us));
        if (d) {
                json_object_set_new(j, "evidence", json_string(evidence_name(e->kind)));
                json_object_set_new(j, "decision", json_string(restart_verb_name(d->verb)));
                json_object_set_new(j, "reason", json_text(d->reason));
        }
        if (d && *e->host)
                json_object_set_new(j, "host", json_text(e->host));
        json_array_append_new(r->attempts, j);
        if (d)
                record_lost_time(l);
}

static void tell_decision(struct launch *l, const struct evidence *e,
                          const struct restart_decision *d)
{
        size_t n = json_array_size(l->end.restart->attempts);
        CLEANUP(free_textp)
        char *text = xasprintf("%s: %s", restart_verb_name(d->verb), d->reason);

        events_emit(&l->events, (struct event){ .kind = EVENT_DECISION,
                                                .node = e->node,
                                                .rank = e->rank,
                                                .value = (int64_t)n,
                                                .host = *e->host ? e->host : NULL,
                                                .text = text });
        if (d->verb == RESTART_STOP)
                log_line(LOG_WARN, "no attempt %zu: %s", n + 1, d->reason);
}

/* ---- hosts ---- */

/* Puts a host out: for this job (@retired), and for later runs (launch_bad_hosts_add()). Without
 * --restart auto no list is kept for the last message. */
static void retire_host(struct launch *l, struct intlist *retired, int node, const char *reason,
                        enum evidence_kind kind)
{
        const char *host = l->hosts.v[node].name;

        if (intlist_has(retired, node))
                return;
        intlist_add(retired, node);
        if (l->end.restart)
                strv_pushf(&l->end.restart->retired, "%s: %s", host, reason);
        events_emit(&l->events,
                    (struct event){ .kind = kind == EVIDENCE_DRAINED ? EVENT_NODE_DRAINED
                                                                     : EVENT_NODE_RETIRED,
                                    .node = node,
                                    .rank = -1,
                                    .host = host,
                                    .text = reason });
        if (kind != EVIDENCE_DRAINED) /* on_drained() */
                launch_bad_hosts_add(l, host, reason, evidence_name(kind));
}

/* Follows the drain of any host, also of a spare one while ranks run. */
static void on_drained(void *launch, const struct event *e)
{
        struct launch *l = launch;

        if (e->kind != EVENT_NODE_DRAINED)
                return;
        launch_bad_hosts_add(l, e->host, e->text, evidence_name(EVIDENCE_DRAINED));
        /* A drained host must not stand in later. */
        hosts_drop_aside(&l->hosts, e->host);
}

/* The failure is the program's: takes back hosts put out for the same failure. */
static void acquit_hosts(struct launch *l, const struct evidence *now)
{
        const struct launch_restart *r = l->end.restart;

        for (size_t i = 0; i < r->n; i++)
                if (restart_acquits(&r->past[i], now))
                        launch_bad_hosts_acquit(l, r->past[i].evidence.host);
}

/* Retires all hosts with an order to drain in this attempt. */
static void collect_drained(struct launch *l, struct intlist *retired)
{
        for (size_t i = 0; i < l->hosts.n; i++)
                if (job_drained_by(l->run->job, i))
                        retire_host(l, retired, (int)i, job_drained_by(l->run->job, i),
                                    EVIDENCE_DRAINED);
}

/* Retires drained and lost hosts, and the host of the decision. @d->reason alone does not name the
 * signal and rank of a fault. */
static void collect_retired(struct launch *l, const struct evidence *e,
                            const struct restart_decision *d, struct intlist *retired)
{
        const struct outcome *o = job_outcome(l->run->job);

        char reason[sizeof(d->reason) + PLAN_RANK_NAME_MAX + 40], who[PLAN_RANK_NAME_MAX];

        collect_drained(l, retired);
        if (e->kind == EVIDENCE_FAULT)
                snprintf(reason, sizeof(reason), "%s of %s, %s", outcome_signal_name(e->signal),
                         plan_rank_name(&l->plan, e->rank, who), d->reason);
        else
                snprintf(reason, sizeof(reason), "%s", d->reason);
        if (d->verb == RESTART_HOST_OUT)
                retire_host(l, retired, e->node, reason, e->kind);
        for (size_t i = 0; i < o->n_seen; i++)
                if (o->seen[i].kind == CAUSE_NODE && o->seen[i].node >= 0)
                        retire_host(l, retired, o->seen[i].node, "it or its agent was lost",
                                    EVIDENCE_LOST);
}

/* Retires hosts whose GPUs do not free the memory of the attempt, if another one follows. */
static void collect_held(struct launch *l, const struct job_next *next, struct intlist *retired)
{
        struct launch_restart *r = l->end.restart;
        struct node_facts *own = NULL, *facts = r ? r->facts : NULL;

        /* Memory matters only to another attempt, and the wait may take a minute. */
        if (!job_may_restart(l->run->job, next))
                return;
        if (!facts) {
                /* The decision did not ask. */
                facts = own = xcalloc(l->hosts.n, sizeof(*own));
                job_ask_facts(l->run->job, "", facts);
        }
        job_await_memory(l->run->job, retired, facts);
        for (size_t i = 0; job_may_restart(l->run->job, next) && i < l->hosts.n; i++) {
                CLEANUP(free_textp)
                char *reason =
                        xasprintf("memory of the ended attempt is not free: %s", facts[i].held);

                if (!*facts[i].held)
                        continue;
                log_line(LOG_WARN, "%s is put out: %s", l->hosts.v[i].name, reason);
                retire_host(l, retired, (int)i, reason, EVIDENCE_GPU);
        }
        free(own);
}

/* ---- the decision ---- */

/* Begins the time of an attempt. */
static void begin_attempt(struct launch *l)
{
        struct launch_restart *r = l->end.restart;

        record_lost_time(l);
        r->began_us = r->won_us = events_now_us(&l->events);
}

/* Whether the job can go on when a host is put out. */
static bool is_replaceable(const struct launch *l)
{
        int least = options_min_nodes(l->o);

        return job_spares(l->run->job) || (least && l->plan.num_nodes > least);
}

/* Decides after an attempt with --restart auto. True: the job is ready for the next. Evidence is
 * collected before job_restart_as(), which forgets the attempt. */
static bool decide_next(struct launch *l)
{
        struct launch_restart *r = l->end.restart;
        const struct restart_history h = { r->past, r->n };
        const struct restart_limits limits = { l->o->restart.give_up, l->o->restart.no_progress,
                                               is_replaceable(l) };
        struct evidence_facts facts = { .plan = &l->plan,
                                        .hosts = &l->hosts,
                                        .give_up = limits.give_up,
                                        .ask = ask_node_facts,
                                        .ctx = l };
        CLEANUP(intlist_finish) struct intlist retired = { 0 };
        struct restart_decision d;
        struct job_next next = { .retired = &retired };
        struct evidence e;
        int64_t won = count_won(l, &facts.progress);
        enum job_again again;

        free(r->facts); /* of the attempt before */
        r->facts = NULL;
        /* Before job_restart_as(), which forgets the attempt. */
        evidence_collect(&e, job_outcome(l->run->job), &facts);
        if (!outcome_failed(job_outcome(l->run->job))) {
                record_attempt(l, &e, won, NULL);
                return false;
        }
        restart_decide(&d, &h, &e, &limits);
        record_attempt(l, &e, won, &d);
        r->past = xgrow(r->past, r->n, &r->cap, sizeof(*r->past));
        r->past[r->n++] = (struct restart_past){ e, d.verb };
        /* No failure to restart after: an order, a limit, an error of hnlaunch. */
        if (e.kind == EVIDENCE_NONE)
                return false;
        tell_decision(l, &e, &d);
        if (d.acquits)
                acquit_hosts(l, &e);
        if (d.verb == RESTART_STOP)
                return false;
        collect_retired(l, &e, &d, &retired);
        next.verb = restart_verb_name(d.verb);
        next.reason = d.reason;
        /* A planned drain uses up no restart. */
        next.extra = e.kind == EVIDENCE_DRAINED;
        collect_held(l, &next, &retired);
        again = job_restart_as(l->run->job, &l->plan, &next);
        if (again == JOB_AGAIN)
                begin_attempt(l);
        r->exhausted = retired.n && again == JOB_TOO_FEW_NODES;
        /* No other host can show whether the host or the program is at fault. */
        if (r->exhausted && e.kind == EVIDENCE_FAULT)
                launch_bad_hosts_acquit(l, e.host);
        return again == JOB_AGAIN;
}

/* Without --restart auto. After a drain the next attempt follows no failure, and counts as no
 * restart. */
static bool begin_next(struct launch *l)
{
        CLEANUP(intlist_finish) struct intlist retired = { 0 };
        bool drained = job_outcome(l->run->job)->cause.kind == CAUSE_DRAIN;
        struct job_next next = { .retired = &retired,
                                 .verb = "host out",
                                 .reason = drained ? "drained" : "memory of a GPU is not free",
                                 .extra = drained };

        if (drained)
                collect_drained(l, &retired);
        /* NULL: as job_restart() will decide. */
        collect_held(l, drained ? &next : NULL, &retired);
        return retired.n ? job_restart_as(l->run->job, &l->plan, &next) == JOB_AGAIN
                         : job_restart(l->run->job, &l->plan);
}

bool launch_restart_again(struct launch *l)
{
        return l->end.restart ? decide_next(l) : begin_next(l);
}

int launch_restart_code(struct launch *l, int code)
{
        struct launch_restart *r = l->end.restart;
        struct diag *d;

        if (l->o->drain.requeue_exit && job_saved(l->run->job))
                return l->o->drain.requeue_exit;
        if (!r || !r->exhausted)
                return code;
        d = diag_warn(&l->diags, HN_NO_SPARE,
                      "no host is left to take the place of %zu host%s put out", r->retired.n,
                      r->retired.n == 1 ? " that was" : "s that were");
        if (options_min_nodes(l->o))
                diag_note(d, "fewer than %d nodes would be left", options_min_nodes(l->o));
        for (size_t i = 0; i < r->retired.n; i++)
                diag_row(d, "%s", r->retired.v[i]);
        diag_help(d, "add hosts, with the word spare in the hostfile");
        return EX_FAILED;
}

json_t *launch_restart_attempts(const struct launch *l)
{
        return l->end.restart ? l->end.restart->attempts : NULL;
}

/* ---- restarts within an attempt (--restart-scope) ---- */

/* Nodes are not asked while ranks run. */
static const struct node_facts *know_no_facts(void *ctx, const char *path UNUSED)
{
        struct launch *l = ctx;
        struct launch_restart *r = l->end.restart;

        free(r->facts);
        r->facts = xcalloc(l->hosts.n, sizeof(*r->facts));
        return r->facts;
}

/* Whether the rules want the same hosts again. Any other decision is about the whole job, and taken
 * when the attempt has ended. */
static bool may_repeat(void *ctx, const struct outcome *o, bool healthy)
{
        struct launch *l = ctx;
        struct launch_restart *r = l->end.restart;
        const struct restart_history h = { r->past, r->n };
        const struct restart_limits limits = { l->o->restart.give_up, l->o->restart.no_progress,
                                               is_replaceable(l) };
        const struct evidence_facts facts = { .plan = &l->plan,
                                              .hosts = &l->hosts,
                                              .give_up = limits.give_up,
                                              .progress = healthy,
                                              .ask = know_no_facts,
                                              .ctx = l };
        struct restart_decision d;
        struct evidence e;

        evidence_collect(&e, o, &facts);
        restart_decide(&d, &h, &e, &limits);
        if (d.verb != RESTART_SAME)
                return false;
        r->past = xgrow(r->past, r->n, &r->cap, sizeof(*r->past));
        r->past[r->n++] = (struct restart_past){ e, d.verb };
        return true;
}

/* ---- life ---- */

void launch_restart_begin(struct launch *l)
{
        events_listen(&l->events, on_drained, l);
        if (!l->o->restart.automatic)
                return;
        l->end.restart = xcalloc(1, sizeof(*l->end.restart));
        l->end.restart->attempts = json_array();
        l->end.restart->file_ns = find_newest_file(l->o->restart.progress_file);
        job_use_restart_rule(l->run->job, may_repeat);
        begin_attempt(l);
}

void launch_restart_free(struct launch *l)
{
        struct launch_restart *r = l->end.restart;

        if (!r)
                return;
        free(r->past);
        free(r->facts);
        strv_finish(&r->retired);
        json_decref(r->attempts);
        free(r);
        l->end.restart = NULL;
}

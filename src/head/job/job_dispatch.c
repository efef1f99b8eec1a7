/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/job_private.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/strv.h"
#include "wire/status_msg.h"

/* Only a node that runs has ranks to tell of: before the order, and between two attempts, there is
 * nothing here that could take it. */
static bool rank_is_there(const struct job *j, const struct node *n, uint32_t rank)
{
        return n->state == NODE_RUNNING && rank < (uint32_t)j->plan->world_size &&
               j->plan->ranks[rank].node == n->index;
}

static bool rank_runs(const struct job *j, const struct node *n, uint32_t rank)
{
        return rank_is_there(j, n, rank) && !job_status_has_ended(j, (int)rank);
}

/* What its peers are told. */
static char *ended_text(const struct cause *who, const char *host, int status)
{
        struct cause c = *who;
        char end[80];

        outcome_read_status(&c, status);
        outcome_describe(&c, end, sizeof(end));
        return xasprintf("rank %d (%s) %s", c.rank, host, end);
}

static void rank_exited(struct job *j, struct node *n, const struct exited *e)
{
        int code = WIFSIGNALED((int)e->status) ? -WTERMSIG((int)e->status)
                                               : WEXITSTATUS((int)e->status);
        char *words = code ? job_last_words(j, (int)e->rank, MSG_STDERR) : NULL;
        struct cause who = { .rank = (int)e->rank,
                             .node = n->index,
                             .pid = e->pid,
                             .at_ns = (int64_t)e->mono_ns - n->clock.offset_ns,
                             .error_ns = clock_offset_error(&n->clock, clock_ns()),
                             .oom_before = e->oom_before,
                             .oom_after = e->oom_after };
        char *text;
        bool cause;

        memcpy(who.oom, e->oom, sizeof(who.oom));
        who.after_ms = (uint64_t)MAX(who.at_ns - j->launched_ns, 0) / 1000000;
        job_stdin_left(j, (int)e->rank);
        job_status_ended(j, (int)e->rank);
        job_emit(j, EVENT_RANK_EXITED, n->index, (int)e->rank, code, NULL);
        cause = outcome_exited(&j->outcome, &who, (int)e->status, e->stopped, e->killed, words);
        free(words);
        if (code == 0 || j->c.options->on_failure == FAILURE_CONTINUE) {
                /* Those who need this rank are told; the others go on. */
                store_server_rank_exited(j->store, (int)e->rank);
        } else {
                text = ended_text(&who, n->host->name, (int)e->status);
                store_server_rank_failed(j->store, (int)e->rank, text);
                free(text);
        }
        job_failed(j, cause);
}

static void rank_refused(struct job *j, struct node *n, const struct refused *r)
{
        struct cause c = { .kind = CAUSE_REFUSED,
                           .rank = r->rank == UINT32_MAX ? -1 : (int)r->rank,
                           .node = n->index,
                           .why = r->why,
                           .at_ns = clock_ns(),
                           .error = (int)r->error };

        snprintf(c.text, sizeof(c.text), "%s", r->text);
        job_failed(j, outcome_happened(&j->outcome, &c));
}

static void malformed(struct node *n, const struct error *err)
{
        n->refusal = NODE_MALFORMED;
        node_break(n, LINK_OTHER, "the agent sent a %s", err->text);
}

static void on_output(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct output m;

        if (output_decode(&m, f, err) < 0 || !rank_is_there(j, n, m.rank))
                malformed(n, err);
        else
                printer_put(j->printer, (int)m.rank, m.stream, m.data, m.len);
}

static void on_started(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct started m;

        if (started_decode(&m, f, err) < 0 || !rank_runs(j, n, m.rank))
                malformed(n, err);
        else
                job_emit(j, EVENT_RANK_STARTED, n->index, (int)m.rank, m.pid, NULL);
}

static void on_exited(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct exited m;

        if (exited_decode(&m, f, err) < 0 || !rank_runs(j, n, m.rank))
                malformed(n, err);
        else
                rank_exited(j, n, &m);
}

static void on_refused(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct refused m;

        if (refused_decode(&m, f, err) < 0 || n->state != NODE_RUNNING ||
            (m.rank != UINT32_MAX && !rank_runs(j, n, m.rank)))
                malformed(n, err);
        else
                rank_refused(j, n, &m);
}

/* Standard input has reached a rank. */
static void on_credit(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct credit m;

        if (credit_decode(&m, f, err) < 0 || !rank_is_there(j, n, m.rank)) {
                malformed(n, err);
                return;
        }
        job_stdin_credit(j, (int)m.rank, m.bytes);
}

static void on_store(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (!j->store)
                return; /* the last attempt's goodbyes */
        if (store_server_receive(j->store, n->index, f->body, f->len, err) < 0)
                malformed(n, err);
}

static void on_endpoint_opened(struct job *j, struct node *n, const struct frame *f,
                               struct error *err)
{
        if (job_endpoint_opened(j, n, f, err) < 0)
                malformed(n, err);
}

static void on_probed(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (job_endpoint_probed(j, n, f, err) < 0)
                malformed(n, err);
}

static void on_want(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (job_push_want(j, n, f, err) < 0)
                malformed(n, err);
}

static void on_taken(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (job_push_taken(j, n, f, err) < 0)
                malformed(n, err);
}

static void on_pushed(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (job_push_pushed(j, n, f, err) < 0)
                malformed(n, err);
}

static void on_log(struct job *j UNUSED, struct node *n, const struct frame *f, struct error *err)
{
        struct logline m;

        if (logline_decode(&m, f, err) < 0)
                malformed(n, err);
        else
                log_line((enum log_level)MIN(m.level, LOG_DEBUG), "%s: %s", n->host->name, m.text);
}

static void on_report(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct output m;

        if (report_decode(&m, f, err) < 0 || !rank_runs(j, n, m.rank))
                malformed(n, err);
        else
                job_error_file(j, (int)m.rank, m.data, m.len);
}

static void on_leaving(struct job *j UNUSED, struct node *n, const struct frame *f,
                       struct error *err)
{
        char why[128];

        if (leaving_decode(why, f, err) < 0)
                malformed(n, err);
        else
                node_break(n, LINK_ENDED, "its agent was ended (%s)", why);
}

static void on_roster(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct node_status m;

        if (node_status_decode(&m, f, err) < 0) {
                malformed(n, err);
                return;
        }
        job_status_take(j, n->index, &m);
        node_status_finish(&m);
}

static void on_ping_request(struct job *j, struct node *n, const struct frame *f UNUSED,
                            struct error *err UNUSED)
{
        heartbeat_requested(j, n);
}

static void on_tunnel(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (job_tree_receive(j, n, f, err) < 0)
                malformed(n, err);
}

static void node_message(void *ctx, struct node *n, const struct frame *f)
{
        static void (*const on[256])(struct job *, struct node *, const struct frame *,
                                     struct error *) = {
                [MSG_OUTPUT] = on_output,
                [MSG_STARTED] = on_started,
                [MSG_EXITED] = on_exited,
                [MSG_CREDIT] = on_credit,
                [MSG_REFUSED] = on_refused,
                [MSG_STORE] = on_store,
                [MSG_LOG] = on_log,
                [MSG_LEAVING] = on_leaving,
                [MSG_REPORT] = on_report,
                [MSG_STATUS] = on_roster,
                [MSG_ENDPOINT_OPENED] = on_endpoint_opened,
                [MSG_PROBED] = on_probed,
                [MSG_TUNNEL] = on_tunnel,
                [MSG_WANT] = on_want,
                [MSG_TAKEN] = on_taken,
                [MSG_PUSHED] = on_pushed,
                [MSG_PING_REQUEST] = on_ping_request,
        };
        struct error err = { .text = "message about a rank that does not run there" };

        if (on[f->type])
                on[f->type](ctx, n, f, &err);
        else
                node_break(n, LINK_OTHER, "the agent sent an unknown message %u", f->type);
}

/* --- nodes that change ------------------------------------------------------------------------ */

/* Whose loss it was: a node that was lost with its carrier, and be it when it was GONE, is not to
 * blame. */
static const struct node *to_blame(const struct node *n)
{
        while (n->failure && n->failure->cause == LINK_PARENT && n->parent)
                n = n->parent;
        return n;
}

static const char *why_lost(const struct node *n)
{
        bool hung =
                n->failure && n->failure->cause == LINK_TIMED_OUT; /* and be it when it was GONE */

        return n->state == NODE_FAILED || hung ? n->failure->fact : "its agent has left";
}

static void node_lost(struct job *j, struct node *n)
{
        const struct intlist *ranks = &j->plan->nodes[n->index].ranks;
        const struct node *who = to_blame(n);
        struct cause c = { .kind = CAUSE_NODE, .rank = -1, .node = who->index };

        c.after_ms = job_since_launch_ms(j);
        c.at_ns = who->heard_ns;
        snprintf(c.text, sizeof(c.text), "%s", why_lost(who));
        job_emit(j, EVENT_NODE_LOST, n->index, -1, 0, n->failure->fact);
        if (j->store)
                store_server_node_lost(j->store, n->index);
        for (size_t i = 0; i < ranks->n; i++)
                job_stdin_left(j, ranks->v[i]);
        j->outcome.behind += who != n;
        if ((who != n && outcome_failed(&j->outcome)) || j->outcome.cause.kind == CAUSE_NETWORK)
                return;
        /* Who was heard after our order to stop was not the reason for it. */
        if (job_state_stops(j->job_state) && who->heard_ns > j->stopped_ns)
                log_line(LOG_WARN, "lost %s while its ranks were being stopped: %s", n->host->name,
                         n->failure->fact);
        else
                job_failed(j, outcome_happened(&j->outcome, &c));
}

static void node_changed(void *ctx, struct node *n, enum node_state was)
{
        struct job *j = ctx;

        switch (n->state) {
        case NODE_GREETING:
                job_emit(j, EVENT_NODE_CONNECTED, n->index, -1, 0, NULL);
                break;
        case NODE_READY:
                if (was == NODE_GONE)
                        break; /* for another attempt */
                j->unresolved--;
                job_emit(j, EVENT_NODE_READY, n->index, -1, n->uploaded, NULL);
                break;
        case NODE_GONE:
                j->running--;
                break;
        case NODE_FAILED:
                j->failed++;
                if (was == NODE_RUNNING) {
                        j->running--;
                        node_lost(j, n);
                } else if (was != NODE_READY || j->job_state < JOB_RUNNING) {
                        j->unresolved -= was != NODE_READY;
                        job_emit(j, EVENT_NODE_FAILED, n->index, -1, 0, n->failure->fact);
                }
                break;
        default:
                break;
        }
        job_tree_changed(j, n);
}

static void node_uploading(void *ctx, struct node *n)
{
        job_emit(ctx, EVENT_NODE_UPLOAD, n->index, -1, 0, NULL);
}

static void node_phase(void *ctx, struct node *n, enum link_phase phase)
{
        job_emit(ctx, EVENT_NODE_PHASE, n->index, -1, phase, NULL);
}

static void node_noise(void *ctx UNUSED, struct node *n, const char *text, size_t len)
{
        const char *end = text + len, *nl;

        for (; text < end; text = nl + 1) {
                nl = memchr(text, '\n', (size_t)(end - text));
                nl = nl ? nl : end;
                log_line(LOG_DEBUG, "%s: login says: %.*s", n->host->name, (int)(nl - text), text);
        }
}

static void key_stored(void *ctx, const char *text)
{
        struct job *j = ctx;

        strv_push(&j->new_keys, text);
}

const struct node_ops job_node_ops = {
        .changed = node_changed,
        .uploading = node_uploading,
        .phase = node_phase,
        .message = node_message,
        .noise = node_noise,
        .stored = key_stored,
        .left = job_tree_left,
};

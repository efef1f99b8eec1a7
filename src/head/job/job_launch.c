/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/job_private.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strv.h"
#include "head/output/say.h"

enum {
        MEMORY_FOR_OUTPUT = 32 << 20, /* what all streams may have under way together */
        WINDOW_MIN = 64 << 10,
};

static void printer_credit(void *ctx, int rank, uint8_t stream, uint32_t bytes)
{
        struct job *j = ctx;
        struct node *n = &j->nodes[j->plan->ranks[rank].node];

        if (n->state != NODE_RUNNING)
                return;
        credit_encode(node_out(n), &(struct credit){ (uint32_t)rank, stream, bytes });
        send_queue_add(&j->send_queue, n);
}

static void printer_broken(void *ctx, uint8_t stream, const char *what, int error)
{
        struct job *j = ctx;
        char text[512];

        snprintf(text, sizeof(text), "cannot write to %s: %s", what, strerror(error));
        if (stream == MSG_STDOUT)
                job_ordered(j, CAUSE_STDOUT, error, text);
        else if (stream == 0 && !j->log_told)
                log_line(LOG_WARN, "%s; the job goes on without", text);
        j->log_told |= stream == 0; /* two files per rank would say the same */
}

/* A node that carries others asks for them, too, when its own ranks have not begun or have ended.
 */
static bool hears_store(const struct job *j, const struct node *n)
{
        return n->state == NODE_RUNNING ||
               (j->tree && (n->state == NODE_READY || n->state == NODE_GONE) && !n->ended);
}

static void store_send(void *ctx, int node, const void *body, size_t len)
{
        struct job *j = ctx;
        struct node *n = &j->nodes[node];

        if (!hears_store(j, n))
                return;
        store_encode(node_out(n), body, len);
        send_queue_add(&j->send_queue, n);
}

static void store_send_long(void *ctx, int node, const void *head, size_t len, struct bytes rest)
{
        struct job *j = ctx;
        struct node *n = &j->nodes[node];

        if (!hears_store(j, n))
                return;
        store_encode_head(node_out(n), head, len, rest.len);
        node_out_long(n, rest.p, rest.len);
        send_queue_add(&j->send_queue, n);
}

static void store_joined(void *ctx, int rank)
{
        struct job *j = ctx;

        job_status_joined(j, rank);
        job_emit(j, EVENT_RANK_JOINED, j->plan->ranks[rank].node, rank, 0, NULL);
}

static void store_progress(void *ctx, int rank, int64_t step, int64_t total, const char *note)
{
        job_status_progress(ctx, rank, step, total, note);
}

static void store_report(void *ctx, int rank, const char *kind, const char *text)
{
        struct job *j = ctx;

        outcome_add_report(&j->outcome, rank, kind, text, NULL);
        job_emit(j, EVENT_RANK_REPORT, j->plan->ranks[rank].node, rank, 0, text);
}

static void store_abort(void *ctx, int rank, int code, const char *text)
{
        struct job *j = ctx;
        struct cause c = { .kind = CAUSE_ABORT,
                           .rank = rank,
                           .node = j->plan->ranks[rank].node,
                           .code = code,
                           .at_ns = clock_ns(),
                           .after_ms = job_since_launch_ms(j) };

        snprintf(c.text, sizeof(c.text), "%s", text);
        job_failed(j, outcome_happened(&j->outcome, &c));
}

static void make_store(struct job *j)
{
        static const struct store_server_ops ops = {
                .send = store_send,
                .send_long = store_send_long,
                .joined = store_joined,
                .report_error = store_report,
                .progress = store_progress,
                .abort = store_abort,
        };
        int *node_of = xcalloc((size_t)j->plan->world_size, sizeof(*node_of));
        const char **names = xcalloc(j->n_nodes, sizeof(*names));

        for (int r = 0; r < j->plan->world_size; r++)
                node_of[r] = j->plan->ranks[r].node;
        for (size_t i = 0; i < j->n_nodes; i++)
                names[i] = j->c.hosts->v[i].name;
        j->store =
                store_server_create(&ops, j, j->plan->world_size, (int)j->n_nodes, node_of, names);
        free(node_of);
        free(names);
}

static void launch_base(struct job *j, const struct job_launch *l, struct launch_order *m)
{
        snprintf(m->run_id, sizeof(m->run_id), "%s", j->c.run_id);
        m->restart = (uint32_t)j->attempt;
        m->max_restarts = (uint32_t)j->c.options->max_restarts;
        m->world_size = (uint32_t)j->plan->world_size;
        m->num_nodes = (uint32_t)j->plan->num_nodes;
        m->grace_ms = (uint32_t)j->c.options->grace_ms;
        m->window = (uint32_t)MIN(MAX(MEMORY_FOR_OUTPUT / j->plan->world_size / 2, WINDOW_MIN),
                                  MSG_WINDOW);
        m->contain = (uint8_t)j->c.options->contain;
        m->gpu_visibility_own = j->c.options->gpu_visibility_own;
        strv_copy(&m->argv, &j->c.options->argv);
        m->env = *l->env;
        m->unset = *l->unset;
        m->stdin_rank = l->stdin_fd < 0 || j->attempt ? MSG_NO_RANK
                        : l->stdin_all                ? MSG_EVERY_RANK
                                                      : 0;
}

/* Ranks start among the files that were pushed there; those of this machine where they are. */
static void launch_place(struct job *j, const struct job_launch *l, struct node *n,
                         struct launch_order *m)
{
        const struct pushed *p = job_pushed(j, (size_t)n->index);

        free(m->cwd);
        m->cwd = xstrdup(p && !l->cwd_given ? p->folder : l->cwd);
        free(m->program);
        m->program = p && !l->cwd_given && l->program ? xasprintf("./%s", l->program) : xstrdup("");
}

/* Encodes and frees the node's own part of the order. */
static void launch_node(struct job *j, struct node *n, struct launch_order *m)
{
        const struct plan_node *p = &j->plan->nodes[n->index];

        job_endpoint_fill(j, (size_t)n->index, m);
        m->silence_ms = job_silence_ms(j, n);
        m->node_rank = (uint32_t)p->node_rank;
        m->set_visible = p->gpus_are_subset;
        m->n_ranks = (uint32_t)p->n_ranks;
        m->ranks = xcalloc((size_t)p->n_ranks, sizeof(*m->ranks));
        for (int i = 0; i < p->n_ranks; i++) {
                const struct plan_rank *k = &j->plan->ranks[p->ranks.v[i]];
                struct launch_rank *r = &m->ranks[i];

                r->rank = (uint32_t)k->rank;
                r->local_rank = (uint32_t)k->local_rank;
                r->n_gpus = (uint32_t)k->gpus.n;
                r->gpus = xcalloc(k->gpus.n, sizeof(*r->gpus));
                for (size_t g = 0; g < k->gpus.n; g++)
                        r->gpus[g] = (uint32_t)k->gpus.v[g];
        }
        launch_order_encode(node_out(n), m);
        for (int i = 0; i < p->n_ranks; i++)
                free(m->ranks[i].gpus);
        free(m->ranks);
        m->ranks = NULL;
        node_launched(n);
        node_flush(n);
}

void job_dismiss(struct node *n)
{
        empty_encode(node_out(n), MSG_BYE);
        node_flush(n);
}

/* Who carries others needs what all have in common even if it gets no ranks itself. It comes before
 * those whom it carries, as it does in the list of hosts. */
static void order_nodes(struct job *j, const struct job_launch *l, struct launch_order *m)
{
        CLEANUP(buf_finish) struct buf common = BUF_INIT;

        common_encode(&common, m);
        for (size_t i = 0; i < j->n_nodes; i++) {
                struct node *n = &j->nodes[i];
                bool takes_part = j->plan->nodes[i].n_ranks;

                if (n->state != NODE_READY)
                        continue;
                if (takes_part || n->has_children)
                        node_common(n, &common);
                if (takes_part) {
                        j->running++;
                        launch_place(j, l, n, m);
                        launch_node(j, n, m);
                } else if (!j->c.options->max_restarts) {
                        job_dismiss(n); /* else it may be needed */
                } else {
                        node_flush(n);
                }
        }
}

static void make_printer(struct job *j, const struct job_launch *l, uint32_t window)
{
        struct printer_options po = {
                .pool = j->pool,
                .fd = { [MSG_STDOUT] = l->on_stderr ? STDERR_FILENO : STDOUT_FILENO,
                        [MSG_STDERR] = STDERR_FILENO },
                .label = l->label,
                .raw = l->raw,
                .erase = l->erase,
                .dir = l->dir,
                .append = j->attempt > 0,
                .shown = l->shown,
                .window = window,
        };

        j->printer = printer_create(&j->loop, j->plan, j->c.hosts, &po,
                                    (struct printer_ops){ printer_credit, printer_broken }, j);
        say_through(j->printer);
}

void job_launch(struct job *j, const struct job_launch *l)
{
        struct launch_order m = { .argv = STRV_INIT };

        j->plan = l->plan;
        job_raise_limit(j->n_nodes, l->dir ? j->plan->world_size : 0);
        launch_base(j, l, &m);
        make_printer(j, l, m.window);
        make_store(j);
        job_step(j, JOB_EV_LAUNCH);
        j->launched_ns = clock_ns();
        order_nodes(j, l, &m);
        free(m.cwd);
        free(m.program);
        strv_finish(&m.argv);
        if (j->c.options->timeout_ms > 0 && !uv_is_active((uv_handle_t *)&j->limit))
                uv_timer_start(&j->limit, job_time_is_over, (uint64_t)j->c.options->timeout_ms, 0);
        heartbeat_start(j);
        job_status_launched(j);
        if (l->stdin_fd >= 0 && !j->attempt)
                job_stdin_start(j, l->stdin_fd, l->stdin_all);
}

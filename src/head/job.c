/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strv.h"
#include "head/feed.h"
#include "head/master.h"
#include "head/printer.h"
#include "head/rendezvous.h"
#include "head/transport.h"

enum {
        TICK_MS = 100,
        HEARTBEAT_MS = 2000,
        SILENT_MS = 15000,            /* a node that says nothing for so long is lost */
        LEAVE_MS = 2000,              /* for agents to leave after the end */
        LATE_MS = 5000,               /* beyond the grace time a node still has to say GONE */
        MEMORY_FOR_OUTPUT = 32 << 20, /* what all streams may have under way together */
        WINDOW_MIN = 64 << 10,
};

static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };

struct job {
        struct job_config c;
        const struct plan *plan;
        uv_loop_t loop;
        uv_signal_t signals[ARRAY_SIZE(caught)];
        uv_timer_t limit, late, heartbeat, ticker;
        struct transport *local, *remote;
        struct ssh_options ssh;
        char *command;
        struct node *nodes;
        size_t n_nodes, unresolved, failed, running;
        struct printer *printer;
        struct rendezvous *store;
        struct feed *feed;
        size_t feed_unread; /* standard input on its way to rank 0 */
        struct outcome outcome;
        bool *ended; /* by rank */
        int64_t launched_ns;
        bool launched, stopping, hurried, leaving;
};

static void emit(struct job *j, enum event_kind kind, int node, int rank, int64_t value,
                 const char *text)
{
        events_emit(j->c.events,
                    (struct event){ .kind = kind,
                                    .node = node,
                                    .rank = rank,
                                    .value = value,
                                    .host = node >= 0 ? j->c.hosts->v[node].name : NULL,
                                    .text = text });
}

static uint64_t since_launch_ms(const struct job *j)
{
        return (uint64_t)(clock_ns() - j->launched_ns) / 1000000;
}

/* --- stopping --------------------------------------------------------------------------------- */

static void stop_node(struct job *j, struct node *n, uint32_t grace_ms)
{
        (void)j;
        if (n->state != NODE_RUNNING)
                return;
        stop_encode(node_out(n), &(struct stop){ grace_ms });
        node_flush(n);
}

static void too_late(uv_timer_t *t)
{
        struct job *j = t->data;

        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->nodes[i].state == NODE_RUNNING)
                        node_break(&j->nodes[i], LINK_TIMED_OUT,
                                   "did not end its ranks within the grace time");
}

/* Orders every rank to end: TERM, after the grace time KILL. Once; hurry makes it KILL now. */
static void stop(struct job *j, const char *why)
{
        uint64_t grace = (uint64_t)j->c.options->grace_ms;

        if (j->stopping || !j->launched)
                return;
        j->stopping = true;
        emit(j, EVENT_STOP, -1, -1, 0, why);
        if (j->store)
                rendezvous_stop_requested(j->store, why);
        for (size_t i = 0; i < j->n_nodes; i++)
                stop_node(j, &j->nodes[i], (uint32_t)grace);
        uv_timer_start(&j->late, too_late, grace + LATE_MS, 0);
}

static void hurry(struct job *j)
{
        j->hurried = true;
        for (size_t i = 0; i < j->n_nodes; i++)
                stop_node(j, &j->nodes[i], 0);
        uv_timer_start(&j->late, too_late, LATE_MS, 0);
}

/* A new cause: the first failure stops everything. */
static void failed(struct job *j, bool is_cause)
{
        char why[640];

        if (!is_cause || (j->c.options->on_failure == FAILURE_CONTINUE && j->launched &&
                          j->outcome.cause.kind == CAUSE_EXIT))
                return;
        outcome_sentence(&j->outcome,
                         j->outcome.cause.node >= 0 ? j->c.hosts->v[j->outcome.cause.node].name
                                                    : "",
                         why, sizeof(why));
        stop(j, why);
}

static void ordered(struct job *j, enum cause_kind kind, int signo, const char *text)
{
        struct cause c = { .kind = kind, .rank = -1, .node = -1, .signal = signo };

        if (text)
                snprintf(c.text, sizeof(c.text), "%s", text);
        failed(j, outcome_happened(&j->outcome, &c));
        stop(j, "ordered");
}

static void signal_caught(uv_signal_t *s, int signo)
{
        struct job *j = s->data;

        if (signo == SIGUSR1 || signo == SIGUSR2) {
                for (size_t i = 0; i < j->n_nodes; i++)
                        if (j->nodes[i].state == NODE_RUNNING) {
                                signal_encode(node_out(&j->nodes[i]), (uint32_t)signo);
                                node_flush(&j->nodes[i]);
                        }
        } else if (j->outcome.cause.kind == CAUSE_ORDER || j->stopping) {
                hurry(j);
        } else {
                ordered(j, CAUSE_ORDER, signo, NULL);
        }
}

static void time_is_over(uv_timer_t *t)
{
        ordered(t->data, CAUSE_TIMEOUT, 0, NULL);
}

/* --- what agents say -------------------------------------------------------------------------- */

static bool rank_is_there(const struct job *j, const struct node *n, uint32_t rank)
{
        return j->plan && rank < (uint32_t)j->plan->world_size &&
               j->plan->ranks[rank].node == n->index;
}

static void rank_exited(struct job *j, struct node *n, const struct exited *e)
{
        int code = WIFSIGNALED((int)e->status) ? -WTERMSIG((int)e->status)
                                               : WEXITSTATUS((int)e->status);
        char text[128];
        bool cause;

        j->ended[e->rank] = true;
        emit(j, EVENT_RANK_EXITED, n->index, (int)e->rank, code, NULL);
        cause = outcome_exited(&j->outcome, (int)e->rank, n->index, e->pid, (int)e->status,
                               e->stopped, e->killed, since_launch_ms(j));
        if (code == 0) {
                rendezvous_rank_exited(j->store, (int)e->rank);
        } else {
                snprintf(text, sizeof(text), "rank %u (%s) %s %d", e->rank, n->host->name,
                         code < 0 ? "was killed by signal" : "exited with code", abs(code));
                rendezvous_rank_failed(j->store, (int)e->rank, text);
        }
        failed(j, cause);
}

static void rank_refused(struct job *j, struct node *n, const struct refused *r)
{
        struct cause c = { .kind = CAUSE_REFUSED,
                           .rank = r->rank == UINT32_MAX ? -1 : (int)r->rank,
                           .node = n->index,
                           .why = r->why,
                           .error = (int)r->error };

        snprintf(c.text, sizeof(c.text), "%s", r->text);
        failed(j, outcome_happened(&j->outcome, &c));
}

static void malformed(struct node *n, const struct error *err)
{
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

        if (started_decode(&m, f, err) < 0 || !rank_is_there(j, n, m.rank))
                malformed(n, err);
        else
                emit(j, EVENT_RANK_STARTED, n->index, (int)m.rank, m.pid, NULL);
}

static void on_exited(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct exited m;

        if (exited_decode(&m, f, err) < 0 || !rank_is_there(j, n, m.rank))
                malformed(n, err);
        else
                rank_exited(j, n, &m);
}

static void on_refused(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct refused m;

        if (refused_decode(&m, f, err) < 0)
                malformed(n, err);
        else
                rank_refused(j, n, &m);
}

/* Standard input has reached rank 0. */
static void on_credit(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct credit m;

        if (credit_decode(&m, f, err) < 0) {
                malformed(n, err);
                return;
        }
        j->feed_unread -= MIN(m.bytes, j->feed_unread);
        feed_pause(j->feed, j->feed_unread >= MSG_WINDOW);
}

static void on_store(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (!j->store || rendezvous_receive(j->store, n->index, f->body, f->len, err) < 0)
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

static void node_message(void *ctx, struct node *n, const struct frame *f)
{
        static void (*const on[256])(struct job *, struct node *, const struct frame *,
                                     struct error *) = {
                [MSG_OUTPUT] = on_output, [MSG_STARTED] = on_started, [MSG_EXITED] = on_exited,
                [MSG_CREDIT] = on_credit, [MSG_REFUSED] = on_refused, [MSG_STORE] = on_store,
                [MSG_LOG] = on_log,
        };
        struct error err = { .text = "message about a rank that is not there" };

        if (on[f->type])
                on[f->type](ctx, n, f, &err);
        else
                node_break(n, LINK_OTHER, "the agent sent an unknown message %u", f->type);
}

/* --- nodes that change ------------------------------------------------------------------------ */

static void node_lost(struct job *j, struct node *n)
{
        struct cause c = { .kind = CAUSE_NODE, .rank = -1, .node = n->index };

        c.after_ms = since_launch_ms(j);
        snprintf(c.text, sizeof(c.text), "%s", n->why.fact);
        emit(j, EVENT_NODE_LOST, n->index, -1, 0, n->why.fact);
        if (j->store)
                rendezvous_node_lost(j->store, n->index);
        failed(j, outcome_happened(&j->outcome, &c));
}

static void node_changed(void *ctx, struct node *n, enum node_state was)
{
        struct job *j = ctx;

        switch (n->state) {
        case NODE_GREETING:
                emit(j, EVENT_NODE_CONNECTED, n->index, -1, 0, NULL);
                break;
        case NODE_READY:
                j->unresolved--;
                emit(j, EVENT_NODE_READY, n->index, -1, n->uploaded, NULL);
                break;
        case NODE_GONE:
                j->running--;
                break;
        case NODE_FAILED:
                j->failed++;
                if (was == NODE_RUNNING) {
                        j->running--;
                        node_lost(j, n);
                } else if (was != NODE_READY || !j->launched) {
                        j->unresolved -= was != NODE_READY;
                        emit(j, EVENT_NODE_FAILED, n->index, -1, 0, n->why.fact);
                }
                break;
        default:
                break;
        }
}

static void node_uploading(void *ctx, struct node *n)
{
        emit(ctx, EVENT_NODE_UPLOAD, n->index, -1, 0, NULL);
}

static void node_phase(void *ctx, struct node *n, enum link_phase phase)
{
        emit(ctx, EVENT_NODE_PHASE, n->index, -1, phase, NULL);
}

static void node_noise(void *ctx UNUSED, struct node *n, const char *text, size_t len)
{
        log_line(LOG_DEBUG, "%s: login says: %.*s", n->host->name, (int)len, text);
}

static const struct node_ops node_ops = {
        .changed = node_changed,
        .uploading = node_uploading,
        .phase = node_phase,
        .message = node_message,
        .noise = node_noise,
};

/* --- life cycle ------------------------------------------------------------------------------- */

static void raise_limit(size_t n_nodes, int world_size)
{
        rlim_t want = 256 + n_nodes * 4 + (rlim_t)world_size * 2;
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < want) {
                l.rlim_cur = MIN(MAX(want, l.rlim_cur), l.rlim_max);
                setrlimit(RLIMIT_NOFILE, &l);
        }
}

static int make_transports(struct job *j, struct error *err)
{
        const struct options *o = j->c.options;
        bool any_local = false, any_remote = false;

        for (size_t i = 0; i < j->c.hosts->n; i++) {
                any_local |= j->c.hosts->v[i].local;
                any_remote |= !j->c.hosts->v[i].local;
        }
        if (any_local && !(j->local = transport_local_create(&j->loop, j->c.agent_path, err)))
                return -err->code;
        if (!any_remote)
                return 0;
        j->command = bootstrap_command(j->c.image);
        j->ssh = (struct ssh_options){
                .command = j->command,
                .config_file = o->ssh_config,
                .user = o->user,
                .port = o->port,
                .identities = &o->identities,
                .jump = o->jump,
                .ssh_command = o->ssh_command,
                .accept_new = o->accept_new,
                .fanout = o->fanout,
                .connect_timeout_ms = (int)o->connect_timeout_ms,
        };
        j->remote = o->ssh_command ? transport_command_create(&j->loop, &j->ssh, err)
                                   : transport_ssh_create(&j->loop, &j->ssh, err);
        return j->remote ? 0 : -err->code;
}

static void timer_init(struct job *j, uv_timer_t *t)
{
        uv_timer_init(&j->loop, t);
        t->data = j;
        uv_unref((uv_handle_t *)t);
}

struct job *job_create(const struct job_config *c, struct error *err)
{
        struct job *j = xcalloc(1, sizeof(*j));

        j->c = *c;
        j->outcome = (struct outcome)OUTCOME_INIT;
        uv_loop_init(&j->loop);
        timer_init(j, &j->limit);
        timer_init(j, &j->late);
        timer_init(j, &j->heartbeat);
        timer_init(j, &j->ticker);
        for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
                uv_signal_init(&j->loop, &j->signals[i]);
                j->signals[i].data = j;
                uv_signal_start(&j->signals[i], signal_caught, caught[i]);
                uv_unref((uv_handle_t *)&j->signals[i]);
        }
        raise_limit(c->hosts->n, 0);
        j->n_nodes = c->hosts->n;
        j->nodes = xcalloc(j->n_nodes, sizeof(*j->nodes));
        for (size_t i = 0; i < j->n_nodes; i++)
                node_init(&j->nodes[i], &j->loop, (int)i, &c->hosts->v[i], c->image, &node_ops, j);
        if (make_transports(j, err) < 0) {
                job_destroy(j);
                return NULL;
        }
        return j;
}

static void tick(uv_timer_t *t)
{
        struct job *j = t->data;

        j->c.tick(j->c.tick_ctx);
}

int job_connect(struct job *j)
{
        if (j->c.tick)
                uv_timer_start(&j->ticker, tick, TICK_MS, TICK_MS);
        j->unresolved = j->n_nodes;
        for (size_t i = 0; i < j->n_nodes; i++)
                node_connect(&j->nodes[i], j->c.hosts->v[i].local ? j->local : j->remote,
                             j->c.options->user, j->c.options->start_timeout_ms);
        while (j->unresolved && !outcome_failed(&j->outcome))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(&j->ticker);
        if (outcome_failed(&j->outcome))
                return JOB_INTERRUPTED;
        return j->failed ? -EHOSTUNREACH : 0;
}

const struct node *job_node(const struct job *j, size_t host)
{
        return &j->nodes[host];
}

/* --- launching -------------------------------------------------------------------------------- */

static void printer_credit(void *ctx, int rank, uint8_t stream, uint32_t bytes)
{
        struct job *j = ctx;
        struct node *n = &j->nodes[j->plan->ranks[rank].node];

        if (n->state != NODE_RUNNING)
                return;
        credit_encode(node_out(n), &(struct credit){ (uint32_t)rank, stream, bytes });
        node_flush(n);
}

static void printer_broken(void *ctx, uint8_t stream, const char *what, int error)
{
        struct job *j = ctx;
        char text[512];

        snprintf(text, sizeof(text), "cannot write to %s: %s", what, strerror(error));
        if (stream == MSG_STDOUT)
                ordered(j, CAUSE_STDOUT, 0, text);
        else if (stream == 0)
                log_line(LOG_WARN, "%s; the job goes on without", text);
}

static void store_send(void *ctx, int node, const void *body, size_t len)
{
        struct job *j = ctx;
        struct node *n = &j->nodes[node];

        if (n->state != NODE_RUNNING)
                return;
        store_encode(node_out(n), body, len);
        node_flush(n);
}

static void store_joined(void *ctx, int rank)
{
        struct job *j = ctx;

        emit(j, EVENT_RANK_JOINED, j->plan->ranks[rank].node, rank, 0, NULL);
}

static void store_report(void *ctx, int rank, const char *kind, const char *text)
{
        struct job *j = ctx;

        outcome_report(&j->outcome, rank, kind, text);
        emit(j, EVENT_RANK_REPORT, j->plan->ranks[rank].node, rank, 0, text);
}

static void store_abort(void *ctx, int rank, int code, const char *text)
{
        struct job *j = ctx;
        struct cause c = { .kind = CAUSE_ABORT,
                           .rank = rank,
                           .node = j->plan->ranks[rank].node,
                           .code = code,
                           .after_ms = since_launch_ms(j) };

        snprintf(c.text, sizeof(c.text), "%s", text);
        failed(j, outcome_happened(&j->outcome, &c));
}

static void make_store(struct job *j)
{
        static const struct rendezvous_ops ops = {
                .send = store_send,
                .joined = store_joined,
                .report_error = store_report,
                .abort = store_abort,
        };
        int *node_of = xcalloc((size_t)j->plan->world_size, sizeof(*node_of));
        const char **names = xcalloc(j->n_nodes, sizeof(*names));

        for (int r = 0; r < j->plan->world_size; r++)
                node_of[r] = j->plan->ranks[r].node;
        for (size_t i = 0; i < j->n_nodes; i++)
                names[i] = j->c.hosts->v[i].name;
        j->store = rendezvous_create(&ops, j, j->plan->world_size, (int)j->n_nodes, node_of, names);
        free(node_of);
        free(names);
}

static void launch_base(struct job *j, const struct job_launch *l, struct launch *m)
{
        const struct node *first = &j->nodes[j->plan->ranks[0].node];

        snprintf(m->run_id, sizeof(m->run_id), "%s", j->c.run_id);
        m->world_size = (uint32_t)j->plan->world_size;
        m->num_nodes = (uint32_t)j->plan->num_nodes;
        m->master_port = first->hello.free_port;
        m->grace_ms = (uint32_t)j->c.options->grace_ms;
        m->window = (uint32_t)MIN(MAX(MEMORY_FOR_OUTPUT / j->plan->world_size / 2, WINDOW_MIN),
                                  MSG_WINDOW);
        m->gpu_visibility_own = j->c.options->gpu_visibility_own;
        m->cwd = xstrdup(l->cwd);
        m->argv = j->c.options->argv; /* borrowed */
        m->env = *l->env;
        m->unset = *l->unset;
        m->stdin_rank = l->feed_stdin ? 0 : UINT32_MAX;
}

/* Encodes and frees the node's own part of the order. */
static void launch_node(struct job *j, struct node *n, struct launch *m)
{
        const struct plan_node *p = &j->plan->nodes[n->index];

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
        launch_encode(node_out(n), m);
        for (int i = 0; i < p->n_ranks; i++)
                free(m->ranks[i].gpus);
        free(m->ranks);
        m->ranks = NULL;
        node_launched(n);
        node_flush(n);
}

static void dismiss(struct node *n)
{
        empty_encode(node_out(n), MSG_BYE);
        node_flush(n);
}

static void beat(uv_timer_t *t)
{
        struct job *j = t->data;
        int64_t now = clock_ns();

        for (size_t i = 0; i < j->n_nodes; i++) {
                struct node *n = &j->nodes[i];

                if (n->state != NODE_RUNNING)
                        continue;
                if (now - n->heard_ns > (int64_t)SILENT_MS * 1000000) {
                        node_break(n, LINK_TIMED_OUT, "no sign of life for %d s", SILENT_MS / 1000);
                        continue;
                }
                ping_encode(node_out(n), MSG_PING, &(struct ping){ .head_ns = (uint64_t)now });
                node_flush(n);
        }
}

static void feed_bytes(void *ctx, const void *data, size_t len)
{
        struct job *j = ctx;
        struct node *n = &j->nodes[j->plan->ranks[0].node];

        if (n->state != NODE_RUNNING)
                return;
        stdin_encode(node_out(n), 0, data, len);
        node_flush(n);
        j->feed_unread += len;
        feed_pause(j->feed, j->feed_unread >= MSG_WINDOW);
}

static void make_printer(struct job *j, const struct job_launch *l, uint32_t window)
{
        struct printer_options po = {
                .fd = { [MSG_STDOUT] = STDOUT_FILENO, [MSG_STDERR] = STDERR_FILENO },
                .label = l->label,
                .partial = l->partial,
                .dir = l->dir,
                .shown = l->shown,
                .window = window,
        };

        j->printer = printer_create(&j->loop, j->plan, j->c.hosts, &po,
                                    (struct printer_ops){ printer_credit, printer_broken }, j);
}

int job_launch(struct job *j, const struct job_launch *l, struct error *err)
{
        struct node *first = &j->nodes[l->plan->ranks[0].node];
        struct launch m = { 0 };
        int r;

        r = master_choose(m.master_addr, sizeof(m.master_addr), first->host, &first->hello,
                          j->c.options->iface, l->plan->num_nodes == 1, err);
        if (r < 0)
                return r;
        j->plan = l->plan;
        raise_limit(j->n_nodes, l->dir ? j->plan->world_size : 0);
        launch_base(j, l, &m);
        j->ended = xcalloc((size_t)j->plan->world_size, sizeof(*j->ended));
        make_printer(j, l, m.window);
        make_store(j);
        j->launched = true;
        j->launched_ns = clock_ns();
        for (size_t i = 0; i < j->n_nodes; i++) {
                j->nodes[i].heard_ns = j->launched_ns;
                if (j->nodes[i].state != NODE_READY)
                        continue;
                if (j->plan->nodes[i].n_ranks) {
                        j->running++;
                        launch_node(j, &j->nodes[i], &m);
                } else {
                        dismiss(&j->nodes[i]);
                }
        }
        free(m.cwd);
        if (j->c.options->timeout_ms > 0)
                uv_timer_start(&j->limit, time_is_over, (uint64_t)j->c.options->timeout_ms, 0);
        uv_timer_start(&j->heartbeat, beat, HEARTBEAT_MS, HEARTBEAT_MS);
        if (l->feed_stdin)
                j->feed = feed_create(&j->loop, STDIN_FILENO, feed_bytes, j);
        return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool all_left(const struct job *j)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->nodes[i].state != NODE_FAILED && !j->nodes[i].ended)
                        return false;
        return true;
}

static void waited_enough(uv_timer_t *t)
{
        struct job *j = t->data;

        j->leaving = false;
}

/* Says goodbye to every agent and waits until they have left, so that nothing of them is seen
 * after we returned. */
static void let_agents_leave(struct job *j)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->nodes[i].state == NODE_GONE || j->nodes[i].state == NODE_READY)
                        dismiss(&j->nodes[i]);
        j->leaving = true;
        uv_timer_start(&j->late, waited_enough, LEAVE_MS, 0);
        uv_ref((uv_handle_t *)&j->late);
        while (j->leaving && !all_left(j))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_unref((uv_handle_t *)&j->late);
        uv_timer_stop(&j->late);
}

void job_wait(struct job *j)
{
        /* The timers that can end a wait must keep the loop turning. */
        uv_ref((uv_handle_t *)&j->heartbeat);
        while (j->running)
                uv_run(&j->loop, UV_RUN_ONCE);
        feed_destroy(j->feed);
        j->feed = NULL;
        printer_flush(j->printer);
        while (printer_pending(j->printer) && !j->hurried)
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(&j->heartbeat);
        uv_timer_stop(&j->limit);
        let_agents_leave(j);
}

const struct outcome *job_outcome(const struct job *j)
{
        return &j->outcome;
}

char *job_last_words(const struct job *j, int rank)
{
        return j->printer ? printer_last_words(j->printer, rank) : xstrdup("");
}

size_t job_lost_bytes(const struct job *j)
{
        return j->printer ? printer_lost(j->printer) : 0;
}

bool job_hurried(const struct job *j)
{
        return j->hurried && j->printer && printer_pending(j->printer);
}

static bool all_closed(const struct job *j)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                if (!node_closed(&j->nodes[i]))
                        return false;
        return true;
}

static void close_handle(uv_handle_t *h)
{
        if (!uv_is_closing(h))
                uv_close(h, NULL);
}

void job_destroy(struct job *j)
{
        if (!j)
                return;
        feed_destroy(j->feed);
        for (size_t i = 0; i < j->n_nodes; i++)
                node_close(&j->nodes[i]);
        while (!all_closed(j))
                uv_run(&j->loop, UV_RUN_ONCE);
        transport_destroy(j->local);
        transport_destroy(j->remote);
        printer_destroy(j->printer);
        rendezvous_destroy(j->store);
        for (size_t i = 0; i < ARRAY_SIZE(caught); i++)
                close_handle((uv_handle_t *)&j->signals[i]);
        close_handle((uv_handle_t *)&j->limit);
        close_handle((uv_handle_t *)&j->late);
        close_handle((uv_handle_t *)&j->heartbeat);
        close_handle((uv_handle_t *)&j->ticker);
        uv_run(&j->loop, UV_RUN_DEFAULT);
        uv_loop_close(&j->loop);
        for (size_t i = 0; i < j->n_nodes; i++)
                node_finish(&j->nodes[i]);
        free(j->nodes);
        free(j->ended);
        free(j->command);
        free(j);
}

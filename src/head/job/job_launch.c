/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch creates the printer and the store of the attempt, then sends the orders: to every node
 * with ranks first COMMON (arguments, environment), then LAUNCH with the node's own part. COMMON
 * also goes to a parent in the tree without ranks, before the descendants, which get COMMON from
 * there; the list of hosts has this order.
 *
 * The ops of printer and store lead back to the nodes: credit for output, replies of the store.
 * Both only append to the node's send queue, which is flushed at the end of the turn of the loop.
 */
#include "head/job/job_private.h"
#include "head/job/job_role_ports.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/log.h"
#include "base/strv.h"
#include "head/model/compat_nodes.h"
#include "head/options/program_options.h"
#include "head/output/say.h"
#include "wire/env_names.h"

enum {
        MEMORY_FOR_OUTPUT = 32 << 20, /* of all streams together */
        WINDOW_MIN = 64 << 10,
};

/* --- the printer --- */

/* A GONE or lost node reads no more output, so credit for the node is dropped. */
static void on_printer_credit(void *ctx, int rank, uint8_t stream, uint32_t bytes)
{
        struct job *j = ctx;
        struct node *n = &j->cluster->nodes[j->attempt->plan->ranks[rank].node];

        if (n->state != NODE_RUNNING)
                return;
        credit_encode(&n->out, &(struct credit){ (uint32_t)rank, stream, bytes });
        send_queue_add(&j->cluster->send_queue, n);
}

/* A failed write. Without stdout the job has no purpose and ends; files of --log-dir and stderr are
 * told, and the job goes on. */
static void on_printer_broken(void *ctx, uint8_t stream, const char *what, int error)
{
        struct job *j = ctx;
        char text[512];

        if (stream && j->orders.hung_up)
                return;
        /* A write to a terminal that has hung up fails before SIGHUP comes. EIO of a file is that
         * of its disk. */
        if (stream && error == EIO && printer_is_terminal(j->attempt->printer, stream) &&
            job_outlive_terminal(j))
                return;
        snprintf(text, sizeof(text), "cannot write to %s: %s", what, strerror(error));
        if (stream == MSG_STDOUT)
                job_ordered(j, CAUSE_STDOUT, error, text);
        else if (stream == 0 && !j->told.logs_failed) /* told once: every rank has two files */
                log_line(LOG_WARN, "%s; the job goes on without", text);
        j->told.logs_failed |= stream == 0;
        if (stream && !j->told.stream_error[stream])
                j->told.stream_error[stream] = error;
}

/* Collects what the nodes will be told of addresses and ports. Malloc'ed. */
static struct label_network collect_network(const struct job *j)
{
        const struct endpoint_setup *first = world_endpoints_get(j->endpoints, 0);
        struct label_network net = { .master_ports = xcalloc(j->cluster->n_nodes,
                                                             sizeof(*net.master_ports)) };
        struct launch_order m = { 0 };

        job_endpoint_fill_common(first, &m);
        net.first = m.first_node;
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                if (!plan_has_world(j->attempt->plan, i, 0))
                        continue;
                job_endpoint_fill(first, i, &m);
                net.master_ports[i] = m.master_port;
                memcpy(net.master_addr, m.master_addr, sizeof(net.master_addr));
        }
        return net;
}

/* Credit is memory of the head when a reader is slow: more streams get less each. */
static uint32_t window_of_output(const struct job *j)
{
        /* Each rank has two streams. */
        return (uint32_t)MIN(MAX(MEMORY_FOR_OUTPUT / j->attempt->plan->world_size / 2, WINDOW_MIN),
                             MSG_WINDOW);
}

/* Makes the printer of the attempt. Later attempts append to the files of ranks. */
static void create_printer(struct job *j, const struct job_launch *l)
{
        struct printer_options po = l->output;
        struct printer_ops ops = { on_printer_credit, on_printer_broken };

        po.pool = j->pool;
        po.fd[MSG_STDOUT] = l->on_stderr ? STDERR_FILENO : STDOUT_FILENO;
        po.fd[MSG_STDERR] = STDERR_FILENO;
        po.append = j->attempt->number > 0;
        po.window = window_of_output(j);
        if (label_needs_network(po.label))
                po.net = collect_network(j);
        j->attempt->printer =
                printer_create(&j->loop, j->attempt->plan, j->config->hosts, &po, ops, j);
        say_through(j->attempt->printer);
}

/* --- the store --- */

static void on_store_send(void *ctx, uint32_t world, int node, const void *head, size_t len,
                          struct bytes rest)
{
        struct job *j = ctx;
        struct node *n = &j->cluster->nodes[node];
        /* An agent may serve others after the end of its own ranks, as the node of the TCP endpoint
         * or as a parent in the tree; a parent also before they begin. */
        bool serves = n->state == NODE_GONE || (n->state == NODE_READY && j->cluster->tree);
        size_t mark;

        if (n->state != NODE_RUNNING && (!serves || n->ended))
                return;
        if (!node_has_room(n, len + rest.len))
                return;
        mark = world_begin(&n->out, world);
        store_encode_head(&n->out, head, len, rest.len);
        world_end(&n->out, mark, rest.len);
        if (rest.len)
                node_out_long(n, rest.p, rest.len);
        send_queue_add(&j->cluster->send_queue, n);
}

/* A client has told its rank by HELLO: libhnlaunch, PMI or PMIx. Ranks at PyTorch's store are found
 * by questions to the agents (job_status.c). */
static void on_rank_joined(void *ctx, int rank)
{
        struct job *j = ctx;

        job_status_joined(j->status, rank);
        cluster_emit(j->cluster, EVENT_RANK_JOINED, j->attempt->plan->ranks[rank].node, rank,
                     (int64_t)attempt_age_ms(j->attempt), NULL);
}

static void on_rank_progress(void *ctx, int rank, int64_t step, int64_t total, const char *note)
{
        struct job *j = ctx;

        job_status_progress(j->status, rank, step, total, note);
}

void job_line_step(struct job *j, int rank, int64_t step, int64_t total)
{
        job_status_line_step(j->status, rank, step, total);
}

/* A report is no failure, but explains the end of the rank, which may follow. */
static void on_rank_report(void *ctx, int rank, const char *kind, const char *text)
{
        struct job *j = ctx;

        outcome_add_report(&j->attempt->outcome, rank, kind, text, NULL);
        cluster_emit(j->cluster, EVENT_RANK_REPORT, j->attempt->plan->ranks[rank].node, rank, 0,
                     text);
}

/* hn_abort() ends the job with the code of the rank, also while other ranks run. A code outside of
 * 1 to 255 becomes 1. */
static void on_rank_abort(void *ctx, int rank, int code, const char *text)
{
        struct job *j = ctx;
        struct cause c = attempt_cause(j->attempt, CAUSE_ABORT);
        char *words;

        c.rank = rank;
        c.node = j->attempt->plan->ranks[rank].node;
        c.code = code >= 1 && code <= 255 ? code : 1;
        snprintf(c.text, sizeof(c.text), "%s", text);
        words = attempt_newest_stderr(j->attempt, rank, &c.told);
        job_failed(j, outcome_aborted(&j->attempt->outcome, &c, words));
        free(words);
}

/* Whether the way to node @other leads through @node; a node is its own descendant here. */
static bool is_descendant(void *ctx, int node, int other)
{
        const struct job *j = ctx;
        const struct node *n = &j->cluster->nodes[other];

        while (n && n->index != node)
                n = n->parent;
        return n != NULL;
}

static void on_rank_drained(void *ctx, int rank)
{
        struct job *j = ctx;

        job_drain_answered(j->orders.drain, rank);
}

/* The event comes before roles that waited for the instance are started. */
void job_rank_ready(struct job *j, int rank)
{
        int node = j->attempt->plan->ranks[rank].node;
        struct ready_instance found;

        if (!readiness_note(j->readiness, rank, &found))
                return;
        events_emit(j->cluster->events, (struct event){ .kind = EVENT_ROLE_READY,
                                                        .node = node,
                                                        .rank = found.rank,
                                                        .value = found.ms,
                                                        .count = found.instance,
                                                        .host = j->config->hosts->v[node].name });
        job_roles_ready(j->roles, found.rank, found.instance);
}

static void on_told_ready(void *ctx, int rank)
{
        job_rank_ready(ctx, rank);
}

/* Warns once of a refused request (net.store_size): the error of the rank alone would not name the
 * limit. */
static void on_store_full(void *ctx, int node, int rank, const char *text)
{
        struct job *j = ctx;
        const char *host = j->config->hosts->v[node].name;
        char who[PLAN_RANK_NAME_MAX];
        struct diags d = DIAGS_INIT;
        struct diag *di = diag_warn(&d, HN_STORE_FULL, "%s", text);

        if (rank >= 0)
                diag_place(di, "a request of %s (%s) was refused",
                           plan_rank_name(j->attempt->plan, rank, who), host);
        else
                diag_place(di, "a request of %s was refused", host);
        diag_note(di,
                  "a refused call of libhnlaunch returns HN_ERR_NO_SPACE, a refused connection of "
                  "PyTorch's store is closed");
        diag_help(
                di,
                "delete keys that are no longer needed, or raise the limit: -o net.store_size=4G");
        if (j->config->say)
                j->config->say(j->config->say_ctx, &d);
        diags_finish(&d);
}

/* Borrowed names, in a list to be freed. */
static const char **list_host_names(const struct job *j)
{
        size_t n = j->cluster->n_nodes;
        const char **hosts = xcalloc(n, sizeof(*hosts));

        for (size_t i = 0; i < n; i++)
                hosts[i] = j->config->hosts->v[i].name;
        return hosts;
}

/* Makes an empty store for each world of the attempt, with the place of each rank, which decides
 * about HELLOs of clients. */
static void create_stores(struct job *j)
{
        static const struct world_servers_ops ops = {
                .send = on_store_send,
                .of_rank = { .joined = on_rank_joined,
                             .report_error = on_rank_report,
                             .progress = on_rank_progress,
                             .abort = on_rank_abort,
                             .drained = on_rank_drained,
                             .relays = is_descendant,
                             .full = on_store_full },
        };
        size_t n = j->cluster->n_nodes, size = (size_t)j->config->options->store_size;
        const char **hosts = list_host_names(j);

        j->attempt->stores = world_servers_create(&ops, j, j->attempt->plan, hosts, size);
        free(hosts);
        /* A node may ask for everything at once: its relay asks once for equal keys. */
        for (size_t i = 0; i < n; i++)
                j->cluster->nodes[i].answers_max = size;
}

/* --- the orders --- */

/* Nodes count by node rank here, as ranks know them. */
static void fill_mpi(const struct job *j, const struct plan_world *world, struct mpi_order *m)
{
        const struct options *o = j->config->options;
        const struct plan *plan = j->attempt->plan;
        size_t program = (size_t)plan->ranks[world->first].program;
        uint32_t *nodes;

        m->kind = options_is_per_node(o, program) ? MPI_NONE : (uint8_t)options_mpi(o, program);
        if (m->kind == MPI_NONE)
                return;
        nodes = xcalloc((size_t)world->size, sizeof(*nodes));
        for (int i = 0; i < world->size; i++)
                nodes[i] = (uint32_t)plan->ranks[world->first + i].node_rank;
        node_map_build(&m->map, nodes, (uint32_t)world->size);
        free(nodes);
}

/* Copies the programs of the options, and adds words, variables and folders of this attempt.
 * launch_order_drop_programs() frees the copies. */
static void fill_programs(const struct options *o, const struct job_launch *l,
                          struct launch_order *m)
{
        m->n_programs = (uint32_t)l->n_programs;
        m->programs = xcalloc(l->n_programs, sizeof(*m->programs));
        for (size_t i = 0; i < l->n_programs; i++) {
                struct launch_program *p = &m->programs[i];

                options_fill_program(o, i, p);
                if (l->programs[i].words.n) {
                        strv_finish(&p->argv);
                        strv_copy(&p->argv, &l->programs[i].words);
                }
                strv_copy(&p->env, &l->programs[i].env);
                if (!l->programs[i].cwd)
                        continue;
                free(p->cwd);
                p->cwd = xstrdup(l->programs[i].cwd);
        }
}

/* Fills in what is the same in the orders of all worlds. */
static void fill_common(const struct job *j, const struct job_launch *l, struct launch_order *m)
{
        const struct options *o = j->config->options;

        snprintf(m->run_id, sizeof(m->run_id), "%s", j->config->run_id);
        m->max_restarts = (uint32_t)o->max_restarts;
        m->grace_ms = (uint32_t)o->grace_ms;
        m->window = window_of_output(j);
        m->contain = (uint8_t)o->contain;
        m->gpu_visibility_own = o->gpu_visibility_own;
        m->bind = o->bind ? o->bind : (char *)"auto"; /* lent */
        m->env = *l->env;
        m->unset = *l->unset;
        /* The first attempt has read standard input. */
        m->stdin_rank = l->stdin_fd == -1 || j->attempt->number ? MSG_NO_RANK
                        : l->stdin_rank < 0                     ? MSG_EVERY_RANK
                                                                : (uint32_t)l->stdin_rank;
        m->terminal = l->terminal;
        fill_programs(o, l, m);
}

/* Tells the programs which ranks of the world each role has. */
static void fill_world_roles(const struct plan *plan, uint32_t number, struct launch_order *m)
{
        CLEANUP(free_textp) char *roles = plan_list_world_roles(plan, number);

        for (uint32_t i = 0; roles && i < m->n_programs; i++)
                strv_env_set(&m->programs[i].env, HN_WORLD_ROLES, roles);
}

/* Adds the common part of all orders of a world. HN_RESTART counts the attempts and the restarts of
 * the world within them. drop_world() frees the part. */
static void fill_world(const struct job *j, uint32_t number, struct launch_order *m)
{
        const struct plan *plan = j->attempt->plan;
        const struct plan_world *world = &plan->worlds[number];

        m->restart = (uint32_t)(j->attempt->number + job_roles_restarts(j->roles, number));
        m->world.number = number;
        m->world.index = plan_count_replicas(plan, number);
        m->world.first = (uint32_t)world->first;
        m->world_size = (uint32_t)world->size;
        m->num_nodes = (uint32_t)world->num_nodes;
        fill_world_roles(plan, number, m);
        fill_mpi(j, world, &m->mpi);
        compat_nodes_fill(&m->compat, j->config->options->compat, plan, world, j->config->hosts);
        job_endpoint_fill_common(world_endpoints_get(j->endpoints, number), m);
}

/* Keeps the part of fill_common() for the next world. */
static void drop_world(struct launch_order *m)
{
        node_map_finish(&m->mpi.map);
        launch_compat_finish(&m->compat);
        free(m->first_node.ports);
        m->first_node = (struct launch_first_node){ .n_ports = 0 };
}

/* Adds a rank of another world to those that divide the node's cores with the ranks of @m. */
static void add_other_rank(const struct options *o, const struct plan_rank *k,
                           struct launch_order *m)
{
        if (!options_divides_cores(o, (size_t)k->program))
                return;
        m->others.v = xrealloc(m->others.v, m->others.n + 1, sizeof(*m->others.v));
        m->others.v[m->others.n++] =
                (struct launch_other){ (uint32_t)k->rank, (uint32_t)k->program,
                                       (uint32_t *)k->gpus.v /* lent */, (uint32_t)k->gpus.n };
}

/* Lists the ranks of the world that the node has. */
static void fill_ranks(const struct job *j, const struct plan_node *p, struct launch_order *m)
{
        const struct plan *plan = j->attempt->plan;

        m->n_ranks = 0;
        m->others = (struct launch_others){ NULL, 0 };
        m->more_orders = false;
        m->ranks = xcalloc((size_t)p->n_ranks, sizeof(*m->ranks));
        for (int i = 0; i < p->n_ranks; i++) {
                const struct plan_rank *k = &plan->ranks[p->ranks.v[i]];
                struct launch_rank *r = &m->ranks[m->n_ranks];

                m->more_orders |= !job_roles_has_begun(j->roles, k->world) ||
                                  job_roles_start_again(j->roles, k->rank);
                if ((uint32_t)k->world != m->world.number) {
                        add_other_rank(j->config->options, k, m);
                        continue;
                }
                m->n_ranks++;
                m->node_rank = (uint32_t)k->node_rank;
                r->rank = (uint32_t)k->rank - m->world.first;
                r->local_rank = (uint32_t)k->local_rank;
                r->program = (uint32_t)k->program;
                r->n_gpus = (uint32_t)k->gpus.n;
                r->gpus = (uint32_t *)k->gpus.v; /* lent; devices are not negative */
        }
        m->set_visible = plan_sets_visible(plan, (size_t)(p - plan->nodes), m->world.number);
}

/* Fills in, sends and frees the node's own part of the order. */
static void order_node(struct job *j, const struct job_launch *l, struct node *n,
                       struct launch_order *m)
{
        const struct plan_node *p = &j->attempt->plan->nodes[n->index];
        const struct pushed *pushed =
                job_push_result(job_push_of_use(j->push, PUSH_RANKS), (size_t)n->index);
        const struct job_role_ports roles = { j->cluster, j->endpoints, j->config->book,
                                              j->attempt->plan };
        bool moved = pushed && !l->cwd_given; /* ranks start among the pushed files */

        m->cwd = xstrdup(moved ? pushed->folder : l->cwd);
        m->cwd_optional = j->config->options->container.kind && !moved && !l->cwd_given;
        for (size_t i = 0; moved && i < l->n_programs; i++) {
                const char *path = l->programs[i].pushed;

                strv_pushf(&m->names, path ? "./%s" : "%s", path ? path : "");
        }
        job_endpoint_fill(world_endpoints_get(j->endpoints, m->world.number), (size_t)n->index, m);
        snprintf(m->host, sizeof(m->host), "%s", n->host->name);
        m->silence_ms = heartbeat_agent_ms(j->heartbeat, n);
        m->keep_dumps = l->output.dir;
        m->near_nic = j->config->options->near_nic;
        fill_ranks(j, p, m);
        job_role_ports_fill(&roles, m);
        /* A node connected after job_sample() has not got this order yet. */
        if (j->orders.samples_ms)
                number_encode(&n->out, MSG_SAMPLE, j->orders.samples_ms);
        launch_order_encode(&n->out, m);
        launch_order_drop_rank_ports(m);
        free(m->ranks);
        m->ranks = NULL;
        free(m->others.v);
        m->others = (struct launch_others){ NULL, 0 };
        free(m->cwd);
        m->cwd = NULL;
        strv_finish(&m->names);
        if (n->state == NODE_READY)
                node_launched(n);
        node_flush(n);
}

/* Whether a node has ranks of a span. */
static bool has_ranks_of(const struct plan *plan, size_t node, const struct role_span *s)
{
        const struct plan_node *p = &plan->nodes[node];

        for (int i = 0; i < p->n_ranks; i++)
                if (p->ranks.v[i] >= s->first && p->ranks.v[i] < s->first + s->size)
                        return true;
        return false;
}

/* Sends the order of a world to all nodes that have ranks of @s, which are all or, with --per-node,
 * some of the world. */
static void order_world(struct job *j, const struct job_launch *l, struct launch_order *m,
                        const struct role_span *s)
{
        CLEANUP(buf_finish) struct buf common = BUF_INIT;

        turns_order(j->attempt->turns, j->attempt->plan, s);
        common_encode(&common, m);
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];
                bool takes_part = has_ranks_of(j->attempt->plan, i, s);

                if (!takes_part && !n->has_children)
                        continue;
                /* A parent without ranks in this world may have ended its own. */
                if (n->state != NODE_READY && n->state != NODE_RUNNING &&
                    (n->state != NODE_GONE || n->ended))
                        continue;
                node_common(n, &common);
                if (takes_part) {
                        /* A node that runs ranks of another world is counted already. */
                        j->cluster->running += n->state == NODE_READY;
                        order_node(j, l, n, m);
                } else {
                        node_flush(n);
                }
        }
}

/* The agents of nodes without ranks in this attempt leave, or wait as spare hosts. Nodes with ranks
 * of later roles have to stay. */
static void release_nodes(struct job *j)
{
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (n->state != NODE_READY || job_roles_await(j->roles, i))
                        continue;
                if (!j->config->options->max_restarts &&
                    !options_replace_nodes(j->config->options)) {
                        node_dismiss(n); /* with restarts the node may be needed */
                } else {
                        node_flush(n);
                }
        }
}

static void on_interrupts(void *ctx)
{
        job_signal(ctx, SIGINT);
}

/* Behind the orders: a piece for a node without running ranks is dropped. */
static void start_stdin(struct job *j, const struct job_launch *l)
{
        j->stdin_pump = stdin_pump_create(j->cluster, j->attempt, j->pool, l->stdin_rank);
        if (j->config->hung_up)
                stdin_pump_outlive_terminal(j->stdin_pump);
        if (l->terminal.rank != MSG_NO_RANK)
                stdin_pump_count_interrupts(j->stdin_pump, on_interrupts, j);
        if (l->stdin_fd >= 0)
                stdin_pump_read(j->stdin_pump, l->stdin_fd);
}

void job_resize(struct job *j, const struct launch_terminal *to)
{
        struct node *n = &j->cluster->nodes[j->attempt->plan->ranks[to->rank].node];

        if (n->state != NODE_RUNNING)
                return;
        launch_terminal_encode(&n->out, to);
        node_flush(n);
}

/* Sends the orders of all worlds that begin now. */
static void order_worlds(void *ctx, const struct job_launch *l)
{
        struct job *j = ctx;
        struct launch_order m = { .world_size = 0 };
        struct role_span s;

        fill_common(j, l, &m);
        for (uint32_t i = 0; i < l->plan->n_worlds; i++) {
                if (!job_roles_begin_world(j->roles, i))
                        continue;
                s = (struct role_span){ l->plan->worlds[i].first, l->plan->worlds[i].size };
                fill_world(j, i, &m);
                if (job_roles_restarts(j->roles, i)) /* in an earlier attempt */
                        readiness_forget(j->readiness, &s, (int)m.restart);
                order_world(j, l, &m, &s);
                drop_world(&m);
        }
        launch_order_drop_programs(&m);
}

/* Sends the orders of ranks that have ended and start again. A world of which all ranks do begins
 * with an empty store. */
static void order_again(void *ctx, const struct job_launch *l, const struct role_span *again)
{
        struct job *j = ctx;
        struct launch_order m = { .world_size = 0 };
        const char **hosts = list_host_names(j);

        fill_common(j, l, &m);
        m.stdin_rank = MSG_NO_RANK; /* has been read */
        for (uint32_t i = 0; i < l->plan->n_worlds; i++) {
                const struct plan_world *w = &l->plan->worlds[i];
                int first = MAX(w->first, again->first);
                struct role_span s = { first, MIN(w->first + w->size, again->first + again->size) -
                                                      first };

                if (s.size <= 0)
                        continue;
                if (s.size == w->size)
                        world_servers_renew(j->attempt->stores, i, hosts);
                fill_world(j, i, &m);
                readiness_forget(j->readiness, &s, (int)m.restart);
                order_world(j, l, &m, &s);
                drop_world(&m);
        }
        launch_order_drop_programs(&m);
        free(hosts);
}

void job_launch(struct job *j, const struct job_launch *l)
{
        const struct options *o = j->config->options;

        j->attempt->plan = l->plan;
        j->mpi = l->mpi ? l->mpi : "";
        cluster_raise_limit(j->cluster->n_nodes, l->output.dir ? l->plan->world_size : 0);
        /* Printer, stores and turns are there before the first order: an answer may come in the
         * next turn of the loop. */
        create_printer(j, l);
        create_stores(j);
        j->attempt->turns = turns_create(l->plan);
        j->readiness = readiness_create(o, j->config->book, j->attempt, on_told_ready, j);
        j->attempt->dumps =
                dump_files_create(l->output.dir, j->attempt->number, j->cluster->n_nodes);
        attempt_step(j->attempt, JOB_EV_LAUNCH);
        /* Before the orders, as no rank may end before the launch. */
        j->attempt->launched_ns = clock_ns();
        if (!job_roles_launch(j->roles, l))
                order_worlds(j, l);
        release_nodes(j);
        /* --timeout counts from the first attempt on. */
        if (o->timeout_ms > 0 && !uv_is_active((uv_handle_t *)&j->timers.limit))
                uv_timer_start(&j->timers.limit, job_time_is_over, (uint64_t)o->timeout_ms, 0);
        j->attempt->outcome.ran = o->ranks.n ? &o->ranks : NULL;
        heartbeat_start(j->heartbeat, false);
        job_status_launched(j->status);
        if (l->stdin_fd != -1 && !j->attempt->number)
                start_stdin(j, l);
}

static bool is_leaving(void *ctx)
{
        const struct job *j = ctx;

        return job_drain_any(j->orders.drain);
}

const struct job_roles_ops job_roles_ops = { .order_worlds = order_worlds,
                                             .order_again = order_again,
                                             .is_leaving = is_leaving,
                                             .finish = job_finish };

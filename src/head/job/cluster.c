/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two transports serve a job: one for nodes that are this machine, and one for all others, by
 * dial-in, by calls of agents, by a program of the site or by ssh; a run on a hold has a third in
 * front of the second (head/hold/transport_hold.h). With --tree a third one reaches
 * nodes through the agents of their parents (cluster_tree.c). A node that fails early, for a reason
 * that time may mend, is tried again with a pause that doubles up to RETRY_MOST_MS, until the time
 * of ssh.connect_retry is over; all such nodes share one timer.
 *
 * cluster_close() ends the links while the loop turns, cluster_free() frees the nodes when the
 * handles are closed.
 */
#include "head/job/cluster.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/strv.h"
#include "head/dial_in/dial_in.h"
#include "head/job/heartbeat.h"
#include "head/job/job.h"
#include "head/nodes/program_link.h"
#include "head/nodes/ssh_loader.h"

enum { RETRY_FIRST_MS = 1000, RETRY_MOST_MS = 8000 }; /* between the tries */

struct cluster *cluster_create(uv_loop_t *loop, const struct job_config *config,
                               const struct node_ops *ops, void *ctx)
{
        struct cluster *c = xcalloc(1, sizeof(*c));

        c->loop = loop;
        c->config = config;
        c->options = config->options;
        c->hosts = config->hosts;
        c->events = config->events;
        send_queue_init(&c->send_queue, loop);
        uv_timer_init(loop, &c->retry.timer);
        c->retry.timer.data = c;
        c->retry.pause_ms = RETRY_FIRST_MS;
        c->n_nodes = c->hosts->n;
        c->nodes = xcalloc(c->n_nodes, sizeof(*c->nodes));
        for (size_t i = 0; i < c->n_nodes; i++)
                node_init(&c->nodes[i], loop, (int)i, &c->hosts->v[i], config->agent_binaries, ops,
                          ctx);
        return c;
}

/* uv_run() returns at once, without running timers, when no active handle is referenced. A wait
 * must reference a timer of this kind if nothing else can end the wait. */
void cluster_init_timer(const struct cluster *c, uv_timer_t *t, void *data)
{
        uv_timer_init(c->loop, t);
        t->data = data;
        uv_unref((uv_handle_t *)t);
}

/* Creates the transport to hosts that are not this machine. The first match decides: nodes dial in,
 * --via or --ssh-command names a program; libssh serves all other jobs. NULL with @err. */
static struct transport *create_remote(void *ctx, uv_loop_t *loop,
                                       const struct transport_maker *other UNUSED,
                                       struct error *err)
{
        struct cluster *c = ctx;
        const struct job_config *config = c->config;
        const struct options *o = c->options;

        c->ssh.command = bootstrap_command(config->agent_binaries, config->container);
        if (config->dial_in)
                return transport_dial_in_create(loop, config->dial_in, err);
        if (program_link_calls(o->via))
                return transport_call_create(loop, &c->call, err);
        if (!program_link_is_ssh(o->via))
                return transport_program_create(loop, o->via, c->ssh.command, err);
        if (o->ssh_command)
                return transport_command_create(loop, &c->ssh, err);
        return ssh_loader_create(loop, &c->ssh, err);
}

/* Called twice: at the start for the links alone, and before the launch, when the ranks are known.
 * Above the hard limit, calls needing descriptors fail later, with messages of their own. */
void cluster_raise_limit(size_t n_nodes, int world_size)
{
        /* A link needs a few descriptors; with a log folder each rank has two files. */
        rlim_t want = 256 + n_nodes * 5 + (rlim_t)world_size * 2;
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < want) {
                l.rlim_cur = MIN(MAX(want, l.rlim_cur), l.rlim_max);
                setrlimit(RLIMIT_NOFILE, &l);
        }
}

int cluster_open(struct cluster *c, struct error *err)
{
        const struct job_config *config = c->config;
        const struct transport_maker cold = { create_remote, c };
        const struct options *o = c->options;
        bool any_remote = false;

        for (size_t i = 0; i < c->hosts->n; i++) {
                if (!c->hosts->v[i].local)
                        any_remote = true;
                else if (!c->local)
                        c->local = transport_local_create(c->loop, config->agent_path,
                                                          config->container);
        }
        /* Hosts that stand by unconnected may need a transport that no other host needs. */
        for (size_t i = 0; c->hosts->aside && i < c->hosts->aside->n; i++) {
                if (!c->hosts->aside->v[i].local)
                        any_remote = true;
                else if (!c->local)
                        c->local = transport_local_create(c->loop, config->agent_path,
                                                          config->container);
        }
        if (!any_remote)
                return 0;
        c->ssh = (struct ssh_options){
                .config_file = o->ssh_config,
                .user = o->user,
                .port = o->port,
                .identities = &o->identities,
                .jump = o->jump,
                .ssh_command = o->ssh_command,
                .accept_new = o->accept_new,
                .forward_agent = o->tree && o->tree_forward,
                .fanout = o->fanout,
                .hosts = c->hosts->n,
                .connect_timeout_ms = (int)o->connect_timeout_ms,
                /* As patient as the heartbeat is while files are pushed. */
                .silence_ms =
                        o->node_timeout_ms * (options_bring_files(o) ? HEARTBEAT_PUSH_TIMES : 1),
        };
        c->call = (struct call_options){ .via = o->via,
                                         .agent = config->agent_path,
                                         .container = config->container,
                                         .hosts = c->hosts->n,
                                         .deadline_ms = o->start_timeout_ms };
        c->remote = config->remote
                            ? config->remote->create(config->remote->ctx, c->loop, &cold, err)
                            : create_remote(c, c->loop, NULL, err);
        return c->remote ? 0 : -err->code;
}

void cluster_emit(const struct cluster *c, enum event_kind kind, int node, int rank, int64_t value,
                  const char *text)
{
        events_emit(c->events, (struct event){ .kind = kind,
                                               .node = node,
                                               .rank = rank,
                                               .value = value,
                                               .host = node >= 0 ? c->hosts->v[node].name : NULL,
                                               .text = text });
}

/* --- connecting ------------------------------------------------------------------------------- */

void cluster_connect(struct cluster *c)
{
        c->unresolved = c->n_nodes;
        c->retry.until_ns = clock_ns() + c->options->connect_retry_ms * 1000000;
        for (size_t i = 0; i < c->n_nodes; i++) {
                struct node *n = &c->nodes[i];
                struct transport *t = n->host->local ? c->local : n->parent ? c->tree : c->remote;

                node_connect(n, t, c->options->user, c->options->start_timeout_ms);
        }
}

/* Connects all nodes waiting for another try. The first new early failure among these nodes sets
 * the timer again (cluster_try_again()). */
static void on_retry(uv_timer_t *timer)
{
        struct cluster *c = timer->data;

        c->retry.pause_ms = MIN(2 * c->retry.pause_ms, (uint64_t)RETRY_MOST_MS);
        for (size_t i = 0; i < c->n_nodes; i++) {
                struct node *n = &c->nodes[i];
                bool has_children = n->has_children;

                if (!n->again)
                        continue;
                node_renew(n);
                n->has_children = has_children; /* they wait for the node */
                node_connect(n, c->remote, c->options->user, c->options->start_timeout_ms);
        }
}

/* Whether time may mend the failure: the node, its name or its ssh server may not be there yet, nor
 * the user's key. */
static bool is_early_failure(const struct link_failure *why)
{
        static const bool early[LINK_CAUSES] = {
                [LINK_NO_NAME] = true,     [LINK_TIMED_OUT] = true, [LINK_REFUSED] = true,
                [LINK_UNREACHABLE] = true, [LINK_DROPPED] = true,   [LINK_DENIED] = true,
        };

        return early[why->cause] && why->phase < LINK_OPEN;
}

bool cluster_try_again(struct cluster *c, struct node *n)
{
        struct link_failure *why = n->failure;
        size_t len = strlen(why->fact);
        char span[32];

        if (!c->options->connect_retry_ms || n->host->local || n->parent || !is_early_failure(why))
                return false;
        /* The last failure is final, and says for how long the node was tried. */
        if (clock_ns() >= c->retry.until_ns) {
                format_duration(span, sizeof(span), c->options->connect_retry_ms * 1000);
                snprintf(why->fact + len, sizeof(why->fact) - len, ", tried for %s", span);
                return false;
        }
        log_line(LOG_INFO, "%s: %s; it is tried again", n->host->name, why->fact);
        n->again = true;
        if (!uv_is_active((uv_handle_t *)&c->retry.timer))
                uv_timer_start(&c->retry.timer, on_retry, c->retry.pause_ms, 0);
        return true;
}

struct node *cluster_each_running(const struct cluster *c, struct node *last)
{
        struct node *end = c->nodes + c->n_nodes;

        for (struct node *n = last ? last + 1 : c->nodes; n < end; n++)
                if (n->state == NODE_RUNNING)
                        return n;
        return NULL;
}

void cluster_signal_ranks(struct cluster *c, const struct ranks_signal *m)
{
        for (struct node *n = NULL; (n = cluster_each_running(c, n));) {
                ranks_signal_encode(&n->out, m);
                node_flush(n);
        }
}

void cluster_log_noise(void *ctx UNUSED, struct node *n, const char *text, size_t len)
{
        const char *end = text + len, *nl;

        for (; text < end; text = nl + 1) {
                nl = memchr(text, '\n', (size_t)(end - text));
                nl = nl ? nl : end;
                log_line(LOG_DEBUG, "%s: login says: %.*s", n->host->name, (int)(nl - text), text);
        }
}

void cluster_close(struct cluster *c)
{
        for (size_t i = 0; i < c->n_nodes; i++)
                node_close(&c->nodes[i]);
        for (size_t i = 0; i < c->n_nodes; i++)
                while (!node_closed(&c->nodes[i]))
                        uv_run(c->loop, UV_RUN_ONCE);
        transport_destroy(c->local);
        transport_destroy(c->remote);
        transport_destroy(c->tree);
        uv_close((uv_handle_t *)&c->send_queue.prepare, NULL);
        uv_close((uv_handle_t *)&c->retry.timer, NULL);
}

void cluster_free(struct cluster *c)
{
        for (size_t i = 0; i < c->n_nodes; i++)
                node_finish(&c->nodes[i]);
        free(c->nodes);
        free((char *)(uintptr_t)c->ssh.command);
        for (size_t i = 0; i < ARRAY_SIZE(c->notices); i++)
                strv_finish(&c->notices[i]);
        free(c);
}

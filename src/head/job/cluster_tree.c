/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes behind other nodes (--tree)
 *
 * The tree is built once, from the list of hosts: a parent stands before its children. A lost
 * parent takes the descendants along, although their machines may be well: before another attempt
 * these orphans are connected again, directly, and stay children of the head.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "head/job/cluster.h"
#include "head/job/heartbeat.h"
#include "head/model/tree.h"
#include "head/nodes/ssh_loader.h"
#include "head/nodes/transport_tree.h"

/* Only a chain can have so many levels; each adds a frame around every byte. */
enum { LEVELS_MAX = 64 };

static void on_silence(void *ctx, size_t number, uint32_t silent_ms)
{
        struct cluster *c = ctx;

        heartbeat_heard(c->heartbeat, &c->nodes[number], silent_ms);
}

/* The offset is relative to the parent's clock. */
static void on_clock(void *ctx, size_t number, int64_t offset_ns, int64_t error_ns)
{
        struct node *n = &((struct cluster *)ctx)->nodes[number];
        int64_t now = clock_ns();

        offset_ns = (int64_t)((uint64_t)n->parent->clock.offset_ns + (uint64_t)offset_ns);
        clock_offset_hear(&n->clock, offset_ns,
                          clock_offset_error(&n->parent->clock, now) + error_ns, now);
}

int cluster_tree_open(struct cluster *c, struct error *err)
{
        static const struct tree_ops ops = { .heard = on_silence, .clock = on_clock };
        const struct tree_login_ops *logins;
        size_t members = 0;
        int *parents;

        if (!c->options->tree || !c->remote)
                return 0;
        logins = ssh_loader_tree_login(err);
        if (logins)
                c->tree = transport_tree_create(c->loop, &c->ssh, logins, c->n_nodes,
                                                &c->send_queue, &ops, c, err);
        if (!c->tree)
                return -err->code;
        for (size_t i = 0; i < c->n_nodes; i++)
                members += !c->hosts->v[i].local && !c->hosts->v[i].spare;
        if (c->options->tree == 1 && members > LEVELS_MAX)
                return err_set(err, E2BIG,
                               "--tree 1 makes a chain of %zu nodes, %d at most: take "
                               "--tree 2 or more",
                               members, LEVELS_MAX);
        parents = tree_of_hosts(c->hosts, (size_t)c->options->tree);
        for (size_t i = 0; i < c->n_nodes; i++) {
                struct node *n = &c->nodes[i];

                if (parents[i] == TREE_HEAD)
                        continue;
                n->parent = &c->nodes[parents[i]];
                n->parent->has_children = true;
                c->n_carried++;
                log_line(LOG_INFO, "%s is reached through %s", n->host->name,
                         n->parent->host->name);
        }
        free(parents);
        return 0;
}

bool cluster_is_orphan(const struct node *n)
{
        return n->state == NODE_FAILED && n->failure->cause == LINK_PARENT;
}

bool cluster_can_return(const struct cluster *c, const struct node *n)
{
        if (n->refusal == NODE_RETIRED)
                return false;
        return c->options->dial_in ? n->state == NODE_FAILED && !n->host->local
                                   : c->tree && cluster_is_orphan(n);
}

void cluster_reconnect_node(struct cluster *c, struct node *n)
{
        node_hang_up(n);
        while (!node_hung_up(n))
                uv_run(c->loop, UV_RUN_ONCE);
        /* node_renew() makes the node a child of the head. */
        c->n_carried -= n->parent != NULL;
        node_renew(n);
        c->failed--;
        c->unresolved++;
        node_connect(n, n->host->local ? c->local : c->remote, c->options->user,
                     c->options->start_timeout_ms);
}

size_t cluster_reconnect(struct cluster *c)
{
        size_t orphans = 0;

        for (size_t i = 0; i < c->n_nodes; i++) {
                if (!cluster_can_return(c, &c->nodes[i]))
                        continue;
                cluster_reconnect_node(c, &c->nodes[i]);
                orphans++;
        }
        return orphans;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that are reached through other nodes (--tree): who carries whom, and what it means that
 * somebody who carries others is lost.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/strv.h"
#include "head/job/job_private.h"
#include "head/model/tree.h"
#include "head/nodes/ssh_loader.h"
#include "head/nodes/transport_tree.h"

static void outgoing(void *ctx, struct node *via)
{
        send_queue_add(&((struct job *)ctx)->send_queue, via);
}

static void heard(void *ctx, size_t number, uint32_t silent_ms)
{
        struct job *j = ctx;

        heartbeat_heard(j, &j->nodes[number], silent_ms);
}

/* What a carrier knows of a clock is relative to its own. */
static void clock_told(void *ctx, size_t number, int64_t offset_ns, int64_t error_ns)
{
        struct node *n = &((struct job *)ctx)->nodes[number];
        int64_t now = clock_ns();

        clock_offset_hear(&n->clock, n->parent->clock.offset_ns + offset_ns,
                          clock_offset_error(&n->parent->clock, now) + error_ns, now);
}

enum { LEVELS_MAX = 64 };

static const struct tree_ops ops = { .outgoing = outgoing, .heard = heard, .clock = clock_told };

static void set_parent(struct job *j, struct node *n, struct node *parent)
{
        n->parent = parent;
        parent->has_children = true;
        j->n_carried++;
        log_line(LOG_INFO, "%s is reached through %s", n->host->name, parent->host->name);
}

static size_t count_members(const struct hosts *hosts)
{
        size_t n = 0;

        for (size_t i = 0; i < hosts->n; i++)
                n += !hosts->v[i].local && !hosts->v[i].spare;
        return n;
}

/* Only a chain can have so many levels; each is one more frame around every byte. */
static int make_tree(struct job *j, struct error *err)
{
        size_t k = (size_t)j->c.options->tree, n = count_members(j->c.hosts);
        int *parents;

        if (k == 1 && n > LEVELS_MAX)
                return err_set(err, E2BIG,
                               "--tree 1 makes a chain of %zu nodes, %d at most: take "
                               "--tree 2 or more",
                               n, LEVELS_MAX);
        parents = tree_of_hosts(j->c.hosts, k);
        for (size_t i = 0; i < j->n_nodes; i++)
                if (parents[i] != TREE_HEAD)
                        set_parent(j, &j->nodes[i], &j->nodes[parents[i]]);
        free(parents);
        return 0;
}

int job_tree_create(struct job *j, struct error *err)
{
        const struct tree_login_ops *ways;

        if (!j->c.options->tree || !j->remote)
                return 0;
        ways = ssh_loader_tree_login(err);
        if (ways)
                j->tree = transport_tree_create(&j->loop, &j->ssh, ways, j->n_nodes, &ops, j, err);
        return j->tree ? make_tree(j, err) : -err->code;
}

void job_tree_changed(struct job *j, struct node *n)
{
        if (!j->tree)
                return;
        if (n->state == NODE_READY)
                transport_tree_ready(j->tree, n);
        else if (n->state == NODE_FAILED)
                transport_tree_cut(j->tree, n);
}

void job_tree_left(void *ctx, struct node *n)
{
        struct job *j = ctx;

        if (j->tree)
                transport_tree_cut(j->tree, n);
}

int job_tree_receive(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (!j->tree)
                return 0;
        return transport_tree_receive(j->tree, n, f, err);
}

bool job_tree_give(struct job *j, struct node *n, uint32_t entry, uint64_t offset, uint32_t len)
{
        return transport_tree_give(j->tree, n, entry, offset, len);
}

void job_tree_watch(struct job *j, struct node *n, uint32_t silence_ms)
{
        transport_tree_watch(j->tree, n, silence_ms);
}

/* Whoever failed for another reason than its carrier's end stays lost. */
static size_t reconnect(struct job *j)
{
        size_t n = 0;

        for (size_t i = 0; i < j->n_nodes; i++) {
                struct node *node = &j->nodes[i];

                if (node->state != NODE_FAILED || node->failure->cause != LINK_PARENT)
                        continue;
                j->n_carried -= node->parent != NULL;
                node_renew(node);
                job_push_forget(j, i);
                j->failed--;
                j->unresolved++;
                n++;
                node_connect(node, j->remote, j->c.options->user, j->c.options->start_timeout_ms);
        }
        return n;
}

/* The cause of the last attempt's end stays what it was, so an order is seen by its being there. */
bool job_tree_rejoin(struct job *j)
{
        size_t n = j->tree ? reconnect(j) : 0, happened = outcome_count(&j->outcome);

        if (!n)
                return true;
        log_line(LOG_WARN, "%zu node%s behind a lost one %s connected directly now", n,
                 n == 1 ? "" : "s", n == 1 ? "is" : "are");
        while (j->unresolved && outcome_count(&j->outcome) == happened)
                uv_run(&j->loop, UV_RUN_ONCE);
        job_tell_keys(j);
        return outcome_count(&j->outcome) == happened;
}

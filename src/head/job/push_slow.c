/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When no more than half of the nodes still get files, the bytes missing on each are compared with
 * those of some seconds before. The head knows the number for nodes served from here, as all nodes
 * left behind by a chain soon are. A spare host is expected to take as long as the other nodes.
 */
#include "head/job/push_slow.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/hosts/spare_hosts.h"
#include "head/job/cluster.h"
#include "head/job/job_push_private.h"

enum {
        MEASURE_MS = 5000,
        HANDOVER_MS = 4000, /* until the head serves nodes that a chain has left behind */
};

struct slow_push {
        int64_t since_ns; /* of the measurement, 0 = none */
        uint64_t left;    /* bytes then */
        bool served, told, told_rate;
};

struct push_slow {
        const struct job_push *push;
        int64_t began_ns, alone_ns; /* when most nodes were done, 0 = not yet */
        int64_t others_ms;          /* that these nodes took, at most */
        struct slow_push *v;        /* one per host */
};

/* Whether a spare host can take the place of @node. */
static bool has_spare(const struct push_slow *w, size_t node)
{
        const struct cluster *c = w->push->cluster;
        bool *failed, suffice;

        if (!c->options->spares || c->hosts->v[node].spare)
                return false;
        failed = xcalloc(c->n_nodes, sizeof(*failed));
        for (size_t i = 0; i < c->n_nodes; i++)
                failed[i] = i == node || c->nodes[i].state != NODE_READY;
        suffice = spare_hosts_suffice(c->hosts, failed, 0);
        free(failed);
        return suffice;
}

/* Whether another node has got about as much, so that the times compare. */
static bool has_equal(const struct job_push *p, size_t node)
{
        for (size_t i = 0; i < p->cluster->n_nodes; i++)
                if (p->nodes[i].state == PUSH_DONE &&
                    p->nodes[i].wanted >= p->nodes[node].wanted / 2)
                        return true;
        return false;
}

static void format_slow(char *to, size_t size, uint64_t left, uint64_t rate, int64_t ms)
{
        char bytes[32], pace[32];

        format_size(bytes, sizeof(bytes), left);
        format_size(pace, sizeof(pace), rate);
        if (rate)
                snprintf(to, size, "it gets its files at %s a second, and %s are missing", pace,
                         bytes);
        else
                snprintf(to, size, "it has confirmed no files for %d s, and %s are missing",
                         (int)(ms / 1000), bytes);
}

/* Measures a node. True: the node is slow, see @why, and a spare host would be faster. */
static bool check_slow_node(struct push_slow *w, size_t node, char *why, size_t size)
{
        const struct job_push_node *s = &w->push->nodes[node];
        struct slow_push *n = &w->v[node];
        int64_t now = clock_ns(), ms = (now - n->since_ns) / 1000000;
        uint64_t left = s->wanted, rate = 0, left_ms = INT64_MAX;
        bool changed = n->served != s->served;

        if (s->served)
                left -= left * count_taken_packs(s) / pack_stream_packs(s->stream->packs);
        else if ((int64_t)s->framed > s->window - s->credit) /* what was sent before still comes */
                left -= MIN(left, s->framed - (uint64_t)(s->window - s->credit));
        if (n->since_ns && !changed && ms < MEASURE_MS + (s->served ? 0 : HANDOVER_MS))
                return false;
        if (n->since_ns)
                rate = (n->left - MIN(left, n->left)) * 1000 / (uint64_t)MAX(ms, INT64_C(1));
        changed |= !n->since_ns;
        n->since_ns = now;
        n->left = left;
        n->served = s->served;
        if (rate)
                left_ms = left * 1000 / rate;
        if (changed || left_ms < MEASURE_MS)
                return false;
        format_slow(why, size, left, rate, ms);
        if ((int64_t)left_ms > w->others_ms + MEASURE_MS && has_equal(w->push, node) &&
            has_spare(w, node))
                return true;
        if (!n->told || (rate && !n->told_rate))
                log_warning(HN_PUSH_SLOW, "the job waits for %s: %s; the other nodes have theirs",
                            w->push->cluster->nodes[node].host->name, why);
        n->told = true;
        n->told_rate |= rate > 0;
        return false;
}

/* Whether most nodes have all files, and the others receive some. */
static bool are_others_done(const struct job_push *p)
{
        return p->in[PUSH_SENDING] && p->in[PUSH_DONE] >= p->in[PUSH_SENDING] &&
               !p->in[PUSH_QUEUED] && !p->in[PUSH_OFFERED] && !p->in[PUSH_LISTLESS] &&
               !p->in[PUSH_LISTING];
}

int push_slow_find(struct push_slow *w, char *why, size_t size)
{
        const struct job_push *p = w->push;

        if (!are_others_done(p))
                return -1;
        if (!w->alone_ns) {
                w->alone_ns = clock_ns();
                w->others_ms = MAX(w->others_ms, (w->alone_ns - w->began_ns) / 1000000);
        }
        for (size_t i = 0; i < p->cluster->n_nodes; i++)
                if (p->nodes[i].state == PUSH_SENDING && check_slow_node(w, i, why, size))
                        return (int)i;
        return -1;
}

void push_slow_begin(struct push_slow *w)
{
        w->began_ns = clock_ns();
        w->alone_ns = 0;
        for (size_t i = 0; i < w->push->cluster->n_nodes; i++)
                w->v[i] = (struct slow_push){ 0 };
}

struct push_slow *push_slow_create(const struct job_push *p)
{
        struct push_slow *w = xcalloc(1, sizeof(*w));

        w->push = p;
        w->v = xcalloc(p->cluster->n_nodes, sizeof(*w->v));
        return w;
}

void push_slow_free(struct push_slow *w)
{
        free(w->v);
        free(w);
}

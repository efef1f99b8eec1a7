/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent asks RAS twice with a pause, and a difference is kept only if both answers have it:
 * counts of operations run apart for a moment in every healthy job. When a node has no RAS or no
 * answer, the next node of the world is asked. The worlds of a job are asked one after another: an
 * agent has one such question at a time. Processes of RAS are mapped to ranks by pid and address.
 * look_ras_use() passes the lasting differences to the finding; look_ras_report() appends the texts
 * of all answers for the log.
 */
#include "head/watch/look_ras.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/job/job.h"
#include "head/nodes/node.h"
#include "head/why/why_ras.h"

enum { NODES_MAX = 3 /* asked in turn */ };

static const struct node *node_at(const struct look_ras *r, size_t node)
{
        return job_node(r->run->job, (size_t)r->run->plan->nodes[node].host);
}

/* Names the ranks of a world on the node of its rank @first. Returns their end. A job of one world
 * names none: all are meant. */
static int name_ras_ranks(const struct plan *p, int first, struct inspect_order *o)
{
        const struct plan_world *w = &p->worlds[p->ranks[first].world];
        int end = first;

        while (end < w->first + w->size && p->ranks[end].node == p->ranks[first].node)
                end++;
        if (p->n_worlds > 1) {
                o->n_ranks = (uint32_t)(end - first);
                o->ranks = xcalloc(o->n_ranks, sizeof(*o->ranks));
                for (int i = first; i < end; i++)
                        o->ranks[i - first] = (uint32_t)i;
        }
        return end;
}

/* Asks the node of rank .next. False: it cannot be asked. */
static bool ask_ras_node(struct look_ras *r)
{
        const struct plan *p = r->run->plan;
        struct inspect_order o = { .number = r->number, .what = INSPECT_RAS };
        int node = p->ranks[r->next].node;
        bool asked;

        r->next = name_ras_ranks(p, r->next, &o);
        r->tries++;
        asked = clock_ms() < r->until && job_inspect(r->run->job, (size_t)node, &o);
        inspect_order_finish(&o);
        if (asked)
                r->node = node;
        return asked;
}

/* Asks the next node of the world, or the first one of the next world. */
static void ask_next_node(struct look_ras *r)
{
        const struct plan *p = r->run->plan;

        r->node = -1;
        for (; r->world < p->n_worlds; r->world++, r->tries = 0) {
                const struct plan_world *w = &p->worlds[r->world];

                r->next = MAX(r->next, w->first);
                while (r->next < w->first + w->size && r->tries < NODES_MAX)
                        if (ask_ras_node(r))
                                return;
        }
}

/* Goes on with the next world, whose nodes have all tries again. */
static void end_ras_world(struct look_ras *r)
{
        r->world++;
        r->tries = 0;
        ask_next_node(r);
}

void look_ras_begin(struct look_ras *r, const struct run_view *run, uint32_t number, int64_t until)
{
        *r = (struct look_ras){ .run = run, .number = number, .until = until, .node = -1 };
        ask_next_node(r);
}

bool look_ras_is_asked(const struct look_ras *r)
{
        return r->number && r->node >= 0;
}

/* Takes a text. True = an answer of RAS. */
static bool take_ras_text(struct look_ras *r, struct ras_reply *m)
{
        struct ras_answer a;
        bool good = *m->text && ras_parse(&a, m->text, strlen(m->text));

        if (!good) {
                /* ras_parse() may have filled in a part of the answer. */
                if (*m->text)
                        ras_finish(&a);
                return false;
        }
        buf_printf(&r->texts, "\n=== NCCL's RAS on %s, answer %d\n%s",
                   node_at(r, (size_t)r->node)->host->name, m->look + 1, m->text);
        if (!m->look) {
                r->first = a;
                r->has_first = true;
                return true;
        }
        ras_keep_lasting(&a, &r->first);
        ras_join(&r->lasting, &a);
        r->answered = true;
        return true;
}

void look_ras_take(struct look_ras *r, int node, struct ras_reply *m)
{
        if (!look_ras_is_asked(r) || m->number != r->number || node != r->node ||
            m->look != r->has_first)
                return;
        if (!*m->problem && take_ras_text(r, m)) {
                if (!m->look)
                        return;
                ras_finish(&r->first);
                r->has_first = false;
                end_ras_world(r);
                return;
        }
        if (*m->problem || *m->text) {
                free(r->problem);
                r->problem = xasprintf("NCCL's RAS on %s: %s", node_at(r, (size_t)node)->host->name,
                                       *m->problem ? m->problem : "the answer cannot be read");
        }
        /* The next node begins with a first answer of its own. */
        ras_finish(&r->first);
        r->has_first = false;
        ask_next_node(r);
}

/* --- what is known ---------------------------------------------------------------------------- */

/* The context of find_ras_rank(). */
struct ras_ranks {
        const struct look_ras *r;
        const struct why_rank *ranks;
        size_t n;
};

static bool node_has_address(const struct node *n, const char *addr)
{
        for (uint32_t i = 0; i < n->hello.n_addrs; i++)
                if (!strcmp(n->hello.addrs[i].addr, addr))
                        return true;
        return false;
}

/* Pids may be equal on two nodes: the address decides, if any node has this address. */
static int find_ras_rank(void *ctx, const struct ras_process *p)
{
        const struct ras_ranks *x = ctx;
        const struct plan *plan = x->r->run->plan;
        int found[2] = { -1, -1 }, hits[2] = { 0, 0 };

        for (size_t i = 0; i < x->n; i++) {
                bool here;

                if (!x->ranks[i].seen.pid || (int)x->ranks[i].seen.pid != p->pid)
                        continue;
                here = node_has_address(node_at(x->r, (size_t)plan->ranks[i].node), p->host);
                found[here] = (int)i;
                hits[here]++;
        }
        if (hits[true])
                return hits[true] == 1 ? found[true] : -1;
        return hits[false] == 1 ? found[false] : -1;
}

void look_ras_use(struct look_ras *r, const struct why_rank *ranks, size_t n, struct why_finding *f)
{
        struct ras_ranks x = { .r = r, .ranks = ranks, .n = n };

        if (r->answered) {
                ras_map(&r->lasting, find_ras_rank, &x);
                why_use_ras(ranks, n, &r->lasting, f);
        }
        if (r->problem && (!r->answered || r->run->plan->n_worlds > 1))
                strv_push(&f->notes, r->problem);
        else if (!r->answered && r->has_first)
                strv_push(&f->notes, "NCCL's RAS has answered only once");
}

void look_ras_report(const struct look_ras *r, struct buf *to)
{
        buf_append(to, buf_data(&r->texts), buf_len(&r->texts));
}

void look_ras_finish(struct look_ras *r)
{
        ras_finish(&r->first);
        ras_finish(&r->lasting);
        buf_finish(&r->texts);
        free(r->problem);
        *r = (struct look_ras){ 0 };
}

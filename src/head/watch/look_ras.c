/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent asks RAS twice with a pause, and a difference is kept only if both answers have it:
 * counts of operations run apart for a moment in every healthy job. When a node has no RAS or no
 * answer, the next node is asked. Processes of RAS are mapped to ranks by pid and address.
 * look_ras_use() passes the lasting differences to the finding; look_ras_report() appends both
 * texts for the log.
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

/* Asks the next node after .node; -1 = the first. */
static void ask_next_node(struct look_ras *r)
{
        struct inspect_order o = { .number = r->number, .what = INSPECT_RAS };

        for (size_t next = (size_t)(r->node + 1);
             next < MIN(r->run->plan->n_nodes, (size_t)NODES_MAX); next++)
                if (clock_ms() < r->until && job_inspect(r->run->job, next, &o)) {
                        r->node = (int)next;
                        return;
                }
        r->node = -1;
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
                if (*m->text)
                        ras_finish(&a);
                return false;
        }
        r->texts[m->look] = STEAL(&m->text);
        r->host = node_at(r, (size_t)r->node)->host->name;
        if (!m->look) {
                r->first = a;
                return true;
        }
        ras_keep_lasting(&a, &r->first);
        r->lasting = a;
        r->answered = true;
        return true;
}

void look_ras_take(struct look_ras *r, int node, struct ras_reply *m)
{
        bool again = m->look;

        if (!look_ras_is_asked(r) || m->number != r->number || node != r->node ||
            again != (r->texts[0] != NULL))
                return;
        if (!*m->problem && take_ras_text(r, m)) {
                r->node = again ? -1 : r->node;
                return;
        }
        if (*m->problem || *m->text) {
                free(r->problem);
                r->problem = xasprintf("NCCL's RAS on %s: %s", node_at(r, (size_t)node)->host->name,
                                       *m->problem ? m->problem : "the answer cannot be read");
        }
        /* The next node begins with a first answer of its own. */
        ras_finish(&r->first);
        free_textp(&r->texts[0]);
        r->texts[0] = NULL;
        ask_next_node(r);
}

/* --- what is known ---------------------------------------------------------------------------- */

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
        } else if (r->problem) {
                strv_push(&f->notes, r->problem);
        } else if (look_ras_is_asked(r) && r->texts[0]) {
                strv_push(&f->notes, "NCCL's RAS has answered only once");
        }
}

void look_ras_report(const struct look_ras *r, struct buf *to)
{
        for (int i = 0; i < 2; i++)
                if (r->texts[i])
                        buf_printf(to, "\n=== NCCL's RAS on %s, answer %d\n%s", r->host, i + 1,
                                   r->texts[i]);
}

void look_ras_finish(struct look_ras *r)
{
        ras_finish(&r->first);
        ras_finish(&r->lasting);
        free(r->texts[0]);
        free(r->texts[1]);
        free(r->problem);
        *r = (struct look_ras){ 0 };
}

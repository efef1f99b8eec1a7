/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders are counted per node: an answer to an order of an earlier attempt may still come, and only
 * the answer to the last order counts.
 */
#include "head/job/job_ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "head/nodes/node.h"

void job_ports_init(struct job_ports *p, const struct strv *names, size_t n_nodes, uint32_t world)
{
        *p = (struct job_ports){ .names = names, .world = world };
        p->orders = xcalloc(n_nodes, sizeof(*p->orders));
}

void job_ports_finish(struct job_ports *p)
{
        ports_held_finish(&p->held);
        free(p->orders);
        *p = (struct job_ports){ 0 };
}

static size_t count_ports(const struct job_ports *p)
{
        return (p->names ? p->names->n : 0) + p->master;
}

void job_ports_order(struct job_ports *p, struct node *first, bool master)
{
        size_t mark;

        ports_held_finish(&p->held);
        p->has_answer = false;
        p->node = NULL;
        p->master = master;
        if (!count_ports(p))
                return;
        p->node = first;
        p->orders[first->index]++;
        mark = world_begin(&first->out, p->world);
        number_encode(&first->out, MSG_PORTS, (uint32_t)count_ports(p));
        world_end(&first->out, mark, 0);
        node_flush(first);
}

int job_ports_held(struct job_ports *p, const struct node *n, const struct frame *f,
                   struct error *err)
{
        struct ports_held m;
        int r = 0;

        if (ports_held_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!p->orders[n->index]) {
                r = err_set(err, EPROTO, "message out of turn: PORTS_HELD without an order");
        } else if (!--p->orders[n->index] && p->node == n && !p->has_answer) {
                if (m.n == count_ports(p) || (!m.n && *m.text)) {
                        p->held = m;
                        p->has_answer = true;
                        return 0;
                }
                r = err_set(err, EPROTO, "malformed PORTS_HELD message: %u ports of %zu", m.n,
                            count_ports(p));
        }
        ports_held_finish(&m);
        return r;
}

void job_ports_forget(struct job_ports *p, size_t node)
{
        p->orders[node] = 0;
}

bool job_ports_owed(const struct job_ports *p, size_t node)
{
        return p->node && (size_t)p->node->index == node && !p->has_answer;
}

const char *job_ports_refusal(const struct job_ports *p)
{
        return p->has_answer && !p->held.n ? p->held.text : NULL;
}

uint32_t job_ports_master(const struct job_ports *p)
{
        return p->master && p->held.n ? p->held.numbers[0] : 0;
}

void job_ports_fill(const struct job_ports *p, struct launch_first_node *m)
{
        size_t n = p->names ? p->names->n : 0;

        m->ports = xcalloc(n, sizeof(*m->ports));
        m->n_ports = (uint32_t)n;
        for (size_t i = 0; i < n; i++) {
                snprintf(m->ports[i].name, sizeof(m->ports[i].name), "%s", p->names->v[i]);
                m->ports[i].number = p->held.numbers[p->master + i];
        }
}

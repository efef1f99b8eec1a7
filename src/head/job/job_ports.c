/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders are counted per node: an answer to an order of an earlier attempt may still come, and only
 * the answer to the last order counts. The numbers of an answer are MASTER_PORT, the ports that all
 * ranks share, both on rank 0's node only, and those of the instances there.
 */
#include "head/job/job_ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "head/model/plan.h"
#include "head/model/role_book.h"
#include "head/model/role_instances.h"
#include "head/nodes/node.h"

void job_ports_init(struct job_ports *p, struct port_names names, size_t n_nodes, uint32_t world)
{
        *p = (struct job_ports){ .names = names, .world = world, .n_nodes = n_nodes };
        p->nodes = xcalloc(n_nodes, sizeof(*p->nodes));
}

/* Frees the answer to the order before. The agent itself closes those ports, with the next order or
 * at the start of the ranks. */
static void forget_answer(struct job_ports_node *n)
{
        if (n->held)
                ports_held_finish(n->held);
        free(n->held);
        n->held = NULL;
}

void job_ports_finish(struct job_ports *p)
{
        for (size_t i = 0; i < p->n_nodes; i++)
                forget_answer(&p->nodes[i]);
        free(p->nodes);
        *p = (struct job_ports){ .n_nodes = 0 };
}

/* Counts the numbers of a node in front of those of instances. */
static size_t count_shared(const struct job_ports *p, size_t node)
{
        return node == p->first ? (p->names.first_node ? p->names.first_node->n : 0) + p->master
                                : 0;
}

void job_ports_order(struct job_ports *p, struct node *nodes, const struct plan *plan, size_t first,
                     bool master)
{
        p->master = master;
        p->first = first;
        for (size_t i = 0; i < p->n_nodes; i++) {
                struct job_ports_node *n = &p->nodes[i];
                size_t mark;

                forget_answer(n);
                n->wanted = (uint32_t)count_shared(p, i);
                if (p->names.book)
                        n->wanted += (uint32_t)role_instances_count_ports(p->names.book, plan, i,
                                                                          (int)p->world);
                if (!n->wanted)
                        continue;
                /* A node without ports gets no order, and owes no answer. */
                n->orders++;
                mark = world_begin(&nodes[i].out, p->world);
                number_encode(&nodes[i].out, MSG_PORTS, n->wanted);
                world_end(&nodes[i].out, mark, 0);
                node_flush(&nodes[i]);
        }
}

int job_ports_held(struct job_ports *p, const struct node *n, const struct frame *f,
                   struct error *err)
{
        struct job_ports_node *of = &p->nodes[n->index];
        struct ports_held m;
        int r = 0;

        if (ports_held_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!of->orders) {
                r = err_set(err, EPROTO, "message out of turn: PORTS_HELD without an order");
        } else if (!--of->orders && of->wanted && !of->held) {
                /* All ports, or none with the reason: an agent never holds a part. */
                if (m.n == of->wanted || (!m.n && *m.text)) {
                        of->held = xcalloc(1, sizeof(m));
                        *of->held = m;
                        return 0;
                }
                r = err_set(err, EPROTO, "malformed PORTS_HELD message: %u ports of %u", m.n,
                            of->wanted);
        }
        ports_held_finish(&m);
        return r;
}

void job_ports_forget(struct job_ports *p, size_t node)
{
        p->nodes[node].orders = 0;
}

bool job_ports_owed(const struct job_ports *p, size_t node)
{
        return p->nodes[node].wanted && !p->nodes[node].held;
}

/* An answer without numbers is a refusal, as every order wants a port at least. */
bool job_ports_refused(const struct job_ports *p, size_t node)
{
        return p->nodes[node].held && !p->nodes[node].held->n;
}

const char *job_ports_refusal(const struct job_ports *p, size_t *ret_node)
{
        size_t i = 0;

        while (i < p->n_nodes && !job_ports_refused(p, i))
                i++;
        *ret_node = i;
        return i < p->n_nodes ? p->nodes[i].held->text : NULL;
}

/* The first number of rank 0's node, if ordered in this attempt. */
uint32_t job_ports_master(const struct job_ports *p)
{
        const struct ports_held *held = p->nodes[p->first].held;

        return p->master && held && held->n ? held->numbers[0] : 0;
}

void job_ports_fill(const struct job_ports *p, struct launch_first_node *m)
{
        const struct strv *names = p->names.first_node;
        size_t n = names ? names->n : 0;

        m->ports = xcalloc(n, sizeof(*m->ports));
        m->n_ports = (uint32_t)n;
        for (size_t i = 0; i < n; i++) {
                snprintf(m->ports[i].name, sizeof(m->ports[i].name), "%s", names->v[i]);
                m->ports[i].number = p->nodes[p->first].held->numbers[p->master + i];
        }
}

/* Ranks of a replica share the ports of the instance, held by the node of the instance. */
const uint32_t *job_ports_of_rank(const struct job_ports *p, const struct plan *plan, int rank)
{
        int instance = role_instance_of(p->names.book, plan, rank);
        size_t node = (size_t)plan->ranks[instance].node;

        return p->nodes[node].held->numbers + count_shared(p, node) +
               role_instance_first_port(p->names.book, plan, instance);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question gets a number of the head and stays in the table @open until all nodes that were asked
 * have answered or are lost, also after the asker was answered: an answer that is late is expected,
 * one that was never asked for is a fault of its node. The addresses of the nodes are sorted at the
 * first question of an attempt, since most jobs ask none.
 */
#include "head/job/job_owners.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <uthash.h>

#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/model/master_addr.h"
#include "wire/endpoint_msg.h"

enum {
        /* A question is answered after OWNERS_TICKS full looks at the latest: ten seconds as a
         * rule. */
        LOOK_MS = 1000,
        OWNERS_TICKS = 10,
};

struct owner_question {
        uint32_t number, asked_as; /* the head's number, and the asker's */
        size_t asker;
        size_t *nodes, n_nodes; /* that were asked */
        bool *answered;         /* one per node */
        size_t missing;
        struct owner *owners; /* so far; NULL = the asker has been answered */
        uint32_t n;
        unsigned ticks;
        bool unsure; /* a node did not tell */
        UT_hash_handle hh;
};

/* An address of a node. */
struct owner_addr {
        unsigned char addr[16];
        size_t node;
};

struct job_owners {
        struct cluster *cluster;
        const struct attempt *attempt;
        uint32_t world;
        uv_timer_t timer; /* runs while the table is not empty */
        bool *may_ask;    /* one per node */
        struct owner_addr *addrs;
        size_t n_addrs, cap;
        bool sorted; /* @addrs are those of the attempt */
        struct owner_question *open;
        uint32_t last_number;
        size_t n_open; /* connections in questions that wait for an answer */
};

/* --- addresses -------------------------------------------------------------------------------- */

void job_owners_add_addrs(struct strv *to, const struct node *n)
{
        const struct hello *h = &n->hello;
        const char *given = n->host->addr;

        if (*h->ssh_addr)
                strv_push(to, h->ssh_addr);
        if (given && master_addr_is_numeric(given))
                strv_push(to, given);
        for (uint32_t k = 0; k < h->n_addrs; k++)
                if (strcmp(h->addrs[k].addr, h->ssh_addr) != 0)
                        strv_push(to, h->addrs[k].addr);
}

/* By address, then by node, so that equal pairs are neighbours. */
static int compare_owner_addrs(const void *a, const void *b)
{
        const struct owner_addr *x = a, *y = b;
        int by_addr = memcmp(x->addr, y->addr, sizeof(x->addr));

        return by_addr ? by_addr : (x->node > y->node) - (x->node < y->node);
}

/* Sorts the addresses of all nodes with ranks for a binary search: a question names an address, and
 * bridges of containers give several nodes the same. */
static void sort_owner_addrs(struct job_owners *o)
{
        const struct plan *plan = o->attempt->plan;

        o->sorted = true;
        o->n_addrs = 0;
        for (size_t i = 0; i < o->cluster->n_nodes; i++) {
                struct strv texts = STRV_INIT;

                if (plan_has_world(plan, i, o->world))
                        job_owners_add_addrs(&texts, &o->cluster->nodes[i]);
                for (size_t k = 0; k < texts.n; k++) {
                        o->addrs = xgrow(o->addrs, o->n_addrs, &o->cap, sizeof(*o->addrs));
                        o->addrs[o->n_addrs].node = i;
                        o->n_addrs += owner_ends_address(texts.v[k], o->addrs[o->n_addrs].addr);
                }
                strv_finish(&texts);
        }
        if (o->n_addrs)
                qsort(o->addrs, o->n_addrs, sizeof(*o->addrs), compare_owner_addrs);
}

/* Returns the first entry with this address, and how many follow in *@ret_n. */
static const struct owner_addr *find_owner_addr(struct job_owners *o, const unsigned char addr[16],
                                                size_t *ret_n)
{
        size_t low = 0, high = o->n_addrs, n = 0;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (memcmp(o->addrs[middle].addr, addr, 16) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        while (low + n < o->n_addrs && memcmp(o->addrs[low + n].addr, addr, 16) == 0)
                n++;
        *ret_n = n;
        return o->addrs + low;
}

/* --- questions -------------------------------------------------------------------------------- */

/* Frees a question; the timer rests while none is open. */
static void drop_question(struct job_owners *o, struct owner_question *q)
{
        HASH_DEL(o->open, q);
        free(q->nodes);
        free(q->answered);
        free(q->owners);
        free(q);
        if (!o->open)
                uv_timer_stop(&o->timer);
}

/* A GONE agent still answers, and may serve the endpoint. */
static bool is_talking(const struct node *n)
{
        return n->state >= NODE_READY && n->state <= NODE_GONE && !n->ended;
}

/* Sends the verdicts to the asking node. "No owner" is certain only when every node of the address
 * has answered; else the owner is unknown. */
static void answer_asker(struct job_owners *o, struct owner_question *q)
{
        struct owners m = { .number = q->asked_as, .owners = q->owners, .n = q->n };
        struct node *asker = &o->cluster->nodes[q->asker];
        char *names = hosts_fold(o->cluster->hosts, q->nodes, q->n_nodes);

        snprintf(m.nodes, sizeof(m.nodes), "%s", names);
        free(names);
        for (uint32_t i = 0; i < q->n; i++)
                if (q->owners[i].verdict == OWNER_NONE && (q->unsure || q->missing))
                        q->owners[i].verdict = OWNER_UNKNOWN;
        if (is_talking(asker)) {
                size_t mark = world_begin(&asker->out, o->world);

                owners_encode(&asker->out, &m);
                world_end(&asker->out, mark, 0);
                send_queue_add(&o->cluster->send_queue, asker);
        }
        free(q->owners);
        q->owners = NULL;
        o->n_open -= q->n;
}

/* Then no further answer can change a verdict. */
static bool are_all_users(const struct owner_question *q)
{
        for (uint32_t i = 0; i < q->n; i++)
                if (q->owners[i].verdict != OWNER_USER)
                        return false;
        return true;
}

/* Answers the asker when nothing more is needed, and drops a question that all nodes have answered.
 */
static void step_question(struct job_owners *o, struct owner_question *q)
{
        if (q->owners && (!q->missing || are_all_users(q)))
                answer_asker(o, q);
        if (!q->missing)
                drop_question(o, q);
}

/* Answers old questions. Each stays open for the late answers. */
static void on_look(uv_timer_t *t)
{
        struct job_owners *o = t->data;
        struct owner_question *q, *tmp;

        HASH_ITER(hh, o->open, q, tmp)
        {
                if (q->owners && ++q->ticks > OWNERS_TICKS)
                        answer_asker(o, q);
        }
}

/* Passes the question on to each node with the address. A node without a link leaves the answer
 * unsure. */
static void ask_address_nodes(struct job_owners *o, struct owner_question *q,
                              const struct owners_request *asked)
{
        struct owners_request m = *asked;
        const struct owner_addr *at;
        size_t n;

        if (!o->sorted)
                sort_owner_addrs(o);
        at = find_owner_addr(o, asked->ends.from, &n);
        q->nodes = xcalloc(MAX(n, (size_t)1), sizeof(*q->nodes));
        q->answered = xcalloc(MAX(n, (size_t)1), sizeof(*q->answered));
        m.number = q->number;
        for (size_t i = 0; i < n; i++) {
                struct node *node = &o->cluster->nodes[at[i].node];
                size_t mark;

                if (q->n_nodes && q->nodes[q->n_nodes - 1] == at[i].node)
                        continue; /* an address given twice */
                q->nodes[q->n_nodes++] = at[i].node;
                q->answered[q->n_nodes - 1] = !is_talking(node);
                if (!is_talking(node)) {
                        q->unsure = true;
                        continue;
                }
                q->missing++;
                mark = world_begin(&node->out, o->world);
                owners_request_encode(&node->out, &m);
                world_end(&node->out, mark, 0);
                send_queue_add(&o->cluster->send_queue, node);
        }
}

/* The limit counts connections in open questions: an agent that asks for more than it may is
 * lost. */
int job_owners_ask(struct job_owners *o, size_t node, const struct frame *f, struct error *err)
{
        struct owners_request m;
        struct owner_question *q;

        if (owners_request_decode(&m, f, err) < 0)
                return -err->code;
        if (!o->may_ask[node] || !m.n || o->n_open + m.n > OWNERS_OPEN_MAX) {
                owners_request_finish(&m);
                return err_set(err, EPROTO, "message out of turn: OWNERS_REQUEST");
        }
        q = xcalloc(1, sizeof(*q));
        q->number = ++o->last_number;
        q->asked_as = m.number;
        q->asker = node;
        q->n = m.n;
        q->owners = xcalloc(m.n, sizeof(*q->owners));
        for (uint32_t i = 0; i < m.n; i++)
                q->owners[i].verdict = OWNER_NONE;
        o->n_open += m.n;
        HASH_ADD(hh, o->open, number, sizeof(q->number), q);
        if (!uv_is_active((uv_handle_t *)&o->timer))
                uv_timer_start(&o->timer, on_look, LOOK_MS, LOOK_MS);
        ask_address_nodes(o, q, &m);
        /* No node of the job has this address: the owner stays unknown. */
        q->unsure |= !q->n_nodes;
        owners_request_finish(&m);
        step_question(o, q);
        return 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Marks the answer of @node as given; false when it owes none. */
static bool settle_node(struct owner_question *q, size_t node)
{
        for (size_t i = 0; i < q->n_nodes; i++) {
                if (q->nodes[i] != node || q->answered[i])
                        continue;
                q->answered[i] = true;
                q->missing--;
                return true;
        }
        return false;
}

/* One node that knows the socket as the user's is enough; a foreign uid is better than none. */
static void merge_owners(struct owner_question *q, const struct owners *m)
{
        for (uint32_t i = 0; q->owners && i < q->n; i++) {
                struct owner *known = &q->owners[i];

                q->unsure |= m->owners[i].verdict == OWNER_UNKNOWN;
                if (m->owners[i].verdict == OWNER_USER ||
                    (m->owners[i].verdict == OWNER_OTHER && known->verdict == OWNER_NONE))
                        *known = m->owners[i];
        }
}

int job_owners_answer(struct job_owners *o, size_t node, const struct frame *f, struct error *err)
{
        struct owner_question *q;
        struct owners m;
        int r = 0;

        if (owners_decode(&m, f, err) < 0)
                return -err->code;
        HASH_FIND(hh, o->open, &m.number, sizeof(m.number), q);
        /* Faults are a wrong number of owners, a second answer, and an answer without a
         * question. */
        if (q && q->n == m.n && settle_node(q, node)) {
                merge_owners(q, &m);
                step_question(o, q);
        } else {
                r = err_set(err, EPROTO, "message out of turn: OWNERS without a question");
        }
        owners_finish(&m);
        return r;
}

/* For a lost node and for a GONE node without its agent. If the node has asked, too, is_talking()
 * drops the answer. */
void job_owners_lost(struct job_owners *o, size_t node)
{
        struct owner_question *q, *tmp;

        HASH_ITER(hh, o->open, q, tmp)
        {
                if (!settle_node(q, node))
                        continue;
                q->unsure = true;
                step_question(o, q);
        }
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct job_owners *job_owners_create(struct cluster *c, const struct attempt *a, uint32_t world)
{
        struct job_owners *o = xcalloc(1, sizeof(*o));

        o->cluster = c;
        o->attempt = a;
        o->world = world;
        o->may_ask = xcalloc(MAX(c->n_nodes, (size_t)1), sizeof(*o->may_ask));
        cluster_init_timer(c, &o->timer, o);
        return o;
}

void job_owners_allow(struct job_owners *o, size_t node)
{
        o->may_ask[node] = true;
        o->sorted = false;
}

void job_owners_close(struct job_owners *o)
{
        uv_close((uv_handle_t *)&o->timer, NULL);
}

void job_owners_free(struct job_owners *o)
{
        struct owner_question *q, *tmp;

        HASH_ITER(hh, o->open, q, tmp)
        {
                drop_question(o, q);
        }
        free(o->may_ask);
        free(o->addrs);
        free(o);
}

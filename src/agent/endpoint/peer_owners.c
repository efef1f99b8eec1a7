/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group has the connections between two addresses, in two lists: @asked, those of the open
 * question in the order of its ports, and @gathered, those for the next one. A connection that goes
 * leaves NULL in its list. Groups with a question to send are in the list @ready; a group without
 * connections and without a question is freed.
 *
 * owners_look_up() asks for each socket, or dumps the table of sockets when there are many.
 */
#include "agent/endpoint/peer_owners.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>
#include <utlist.h>

#include "agent/core/sockdiag.h"
#include "base/memory.h"

enum { FEW = 16 }; /* sockets that are looked for one by one */

struct wait_list {
        struct peer_wait **v;
        size_t n, cap;
};

struct peer_group {
        struct peer_owners *all;
        struct owner_ends ends;
        uint32_t own_port;
        uint32_t number; /* of the open question, 0 = none */
        struct wait_list asked, gathered;
        bool ready;
        struct peer_group *prev, *next; /* in the list @ready */
        UT_hash_handle hh, by_number;   /* in the table of open questions */
};

struct peer_owners {
        void (*ask)(void *ctx, const struct owners_request *m);
        void *ctx;
        struct peer_group *groups, *open, *ready;
        uint32_t last_number;
        size_t n_open; /* connections in open questions */
};

struct peer_owners *peer_owners_create(void (*ask)(void *ctx, const struct owners_request *m),
                                       void *ctx)
{
        struct peer_owners *o = xcalloc(1, sizeof(*o));

        o->ask = ask;
        o->ctx = ctx;
        return o;
}

/* --- groups ----------------------------------------------------------------------------------- */

static void append_wait(struct wait_list *l, struct peer_wait *w)
{
        l->v = xgrow(l->v, l->n, &l->cap, sizeof(*l->v));
        w->index = l->n;
        l->v[l->n++] = w;
}

/* Puts the group into the list of groups with a question to send, or takes it out. */
static void set_group_ready(struct peer_group *g, bool ready)
{
        if (g->ready == ready)
                return;
        g->ready = ready;
        if (ready)
                DL_APPEND(g->all->ready, g);
        else
                DL_DELETE(g->all->ready, g);
}

/* Ends the open question, answered or not. The connections stay in @asked. */
static void close_question(struct peer_group *g)
{
        if (!g->number)
                return;
        HASH_DELETE(by_number, g->all->open, g);
        g->all->n_open -= g->asked.n;
        g->number = 0;
}

static void free_peer_group(struct peer_group *g)
{
        close_question(g);
        set_group_ready(g, false);
        HASH_DEL(g->all->groups, g);
        free(g->asked.v);
        free(g->gathered.v);
        free(g);
}

void peer_owners_destroy(struct peer_owners *o)
{
        struct peer_group *g, *tmp;

        if (!o)
                return;
        HASH_ITER(hh, o->groups, g, tmp)
        {
                free_peer_group(g);
        }
        free(o);
}

/* --- connections ------------------------------------------------------------------------------ */

void peer_owners_add(struct peer_owners *o, struct peer_wait *w, const struct owner_ends *ends,
                     uint32_t port, uint32_t own_port)
{
        struct peer_group *g;

        HASH_FIND(hh, o->groups, ends, sizeof(*ends), g);
        if (!g) {
                g = xcalloc(1, sizeof(*g));
                g->all = o;
                g->ends = *ends;
                HASH_ADD(hh, o->groups, ends, sizeof(g->ends), g);
        }
        g->own_port = own_port;
        w->group = g;
        w->port = port;
        append_wait(&g->gathered, w);
        /* With an open question the group waits for the answer before the next. */
        set_group_ready(g, !g->number);
}

void peer_owners_forget(struct peer_wait *w)
{
        struct peer_group *g = w->group;

        if (!g)
                return;
        /* NULL keeps the places of the others, which are those of the answer. */
        if (w->index < g->asked.n && g->asked.v[w->index] == w)
                g->asked.v[w->index] = NULL;
        else
                g->gathered.v[w->index] = NULL;
        w->group = NULL;
}

/* Moves connections from @gathered to @asked, as many as one question may have. */
static void select_connections(struct peer_group *g)
{
        struct wait_list *from = &g->gathered;
        size_t taken = 0, left = 0;

        g->asked.n = 0;
        /* Of a message; the rest comes with the next question. */
        for (; taken < from->n && g->asked.n < OWNERS_MAX; taken++)
                if (from->v[taken])
                        append_wait(&g->asked, from->v[taken]);
        for (size_t i = taken; i < from->n; i++) {
                if (!from->v[i])
                        continue;
                from->v[i]->index = left;
                from->v[left++] = from->v[i];
        }
        from->n = left;
}

/* Asks the head about all waiting ports of an address at once: a start of hundreds of ranks makes a
 * few questions. */
static void send_question(struct peer_group *g)
{
        struct peer_owners *o = g->all;
        struct owners_request m = { .ends = g->ends, .port = g->own_port };

        m.n = (uint32_t)g->asked.n;
        m.ports = xcalloc(m.n, sizeof(*m.ports));
        for (size_t i = 0; i < g->asked.n; i++)
                m.ports[i] = g->asked.v[i]->port;
        m.number = g->number = ++o->last_number;
        HASH_ADD(by_number, o->open, number, sizeof(g->number), g);
        o->n_open += g->asked.n;
        o->ask(o->ctx, &m);
        free(m.ports);
}

void peer_owners_turn(struct peer_owners *o)
{
        struct peer_group *g, *next;

        for (g = o->ready; g && o->n_open + OWNERS_MAX <= OWNERS_OPEN_MAX; g = next) {
                next = g->next;
                set_group_ready(g, false);
                select_connections(g);
                if (g->asked.n)
                        send_question(g);
                else
                        free_peer_group(g);
        }
}

void peer_owners_take(struct peer_owners *o, const struct owners *answer)
{
        struct peer_group *g;
        struct peer_wait *w;

        HASH_FIND(by_number, o->open, &answer->number, sizeof(answer->number), g);
        if (!g || g->asked.n != answer->n)
                return;
        for (uint32_t i = 0; i < answer->n; i++) {
                w = g->asked.v[i];
                if (!w)
                        continue;
                peer_owners_forget(w); /* first: the callback may close the connection */
                w->judged(w, &answer->owners[i], answer->nodes);
        }
        close_question(g);
        g->asked.n = 0;
        set_group_ready(g, true); /* also to be freed */
}

/* --- sockets of this node --------------------------------------------------------------------- */

static struct sockaddr_in6 make_socket_address(const unsigned char addr[16], uint32_t port)
{
        struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };

        memcpy(&a.sin6_addr, addr, 16);
        return a;
}

static struct owner judge_owner(const struct sockdiag_owner *owner)
{
        if (owner->uid == geteuid())
                return (struct owner){ .verdict = OWNER_USER };
        return (struct owner){ .verdict = OWNER_OTHER, .uid = owner->uid };
}

/* The order of look_up_many(): by address, then by port. */
static int compare_conns(const void *a, const void *b)
{
        const struct sockdiag_conn *x = a, *y = b;
        int by_addr = memcmp(x->addr, y->addr, sizeof(x->addr));

        return by_addr ? by_addr : (x->port > y->port) - (x->port < y->port);
}

/* Reads all connections to the endpoint once, and finds each port among them; cheaper than a
 * question per port when there are many. */
static void look_up_many(struct sockdiag *d, const struct owners_request *m, struct owners *ret)
{
        struct sockaddr_in6 to = make_socket_address(m->ends.to, m->port);
        struct sockdiag_conns found = SOCKDIAG_CONNS_INIT;
        struct sockdiag_conn key, *c;
        struct error err;
        int r = sockdiag_towards(d, (struct sockaddr *)&to, &found, &err);

        if (found.n)
                qsort(found.v, found.n, sizeof(*found.v), compare_conns);
        memcpy(key.addr, m->ends.from, sizeof(key.addr));
        for (uint32_t i = 0; i < m->n; i++) {
                key.port = m->ports[i];
                c = found.n ? bsearch(&key, found.v, found.n, sizeof(key), compare_conns) : NULL;
                ret->owners[i].verdict = r < 0 ? OWNER_UNKNOWN : OWNER_NONE;
                if (c)
                        ret->owners[i] = judge_owner(&c->owner);
        }
        sockdiag_conns_finish(&found);
}

/* Asks the kernel about each connection: a dump of a node with many sockets would cost more for a
 * few. */
static void look_up_each(struct sockdiag *d, const struct owners_request *m, struct owners *ret)
{
        struct sockaddr_in6 to = make_socket_address(m->ends.to, m->port), from;
        struct sockdiag_owner owner;
        struct error err;
        int r;

        for (uint32_t i = 0; i < m->n; i++) {
                from = make_socket_address(m->ends.from, m->ports[i]);
                r = sockdiag_find(d, (struct sockaddr *)&from, (struct sockaddr *)&to, &owner,
                                  &err);
                if (r == 0)
                        ret->owners[i] = judge_owner(&owner);
                else
                        ret->owners[i].verdict = r == -ENOENT ? OWNER_NONE : OWNER_UNKNOWN;
        }
}

void owners_look_up(const struct owners_request *m, struct owners *ret)
{
        struct sockdiag d = SOCKDIAG_INIT;

        *ret = (struct owners){ .number = m->number, .n = m->n };
        ret->owners = xcalloc(MAX(m->n, 1U), sizeof(*ret->owners));
        sockdiag_open(&d);
        if (m->n > FEW)
                look_up_many(&d, m, ret);
        else
                look_up_each(&d, m, ret);
        sockdiag_close(&d);
}

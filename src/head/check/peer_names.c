/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address is right if the address belongs to the node, or if ssh has reached the node there. A
 * name with several addresses needs a single right address. A node behind a translation of
 * addresses does not know the address that others use: an address found by all nodes, at least two,
 * is right, too, unless the address belongs to another node. If no node finds any name, the names
 * are aliases of ssh: nothing is wrong with the nodes then, and the check has no result.
 */
#include "head/check/peer_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/check/pair_rounds.h"
#include "head/model/master_addr.h"
#include "wire/msg.h"

static const char prefix[] = "name.", settled[] = "name.peers";

static bool is_looked_up(const struct host *h)
{
        return !h->local && !master_addr_is_numeric(h->name);
}

struct check_names *peer_names_choose(const struct hosts *hosts, const size_t *nodes, size_t n,
                                      uint64_t seed)
{
        struct check_names *names = xcalloc(hosts->n, sizeof(*names));
        size_t n_pairs;
        struct check_pair *pairs = pair_ring(nodes, n, seed, &n_pairs);

        for (size_t i = 0; i < n_pairs; i++) {
                struct check_names *to = &names[pairs[i].from];
                const struct host *peer = &hosts->v[pairs[i].to];
                struct check_name *k;

                if (!is_looked_up(peer) || to->n == CHECK_NAMES_MAX)
                        continue;
                to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));
                k = &to->v[to->n++];
                *k = (struct check_name){ .host = xstrdup(peer->name) };
                snprintf(k->fact, sizeof(k->fact), "%s%zu", prefix, pairs[i].to);
        }
        free(pairs);
        return names;
}

void peer_names_free(struct check_names *names, size_t n_hosts)
{
        for (size_t i = 0; i < n_hosts; i++) {
                for (uint32_t k = 0; k < names[i].n; k++)
                        free(names[i].v[k].host);
                free(names[i].v);
        }
        free(names);
}

/* Returns the node named by a fact; SIZE_MAX = the fact is no answer about a name. */
static size_t read_peer(const char *fact, size_t n_hosts)
{
        const char *number = fact + sizeof(prefix) - 1;
        size_t node;

        if (strncmp(fact, prefix, sizeof(prefix) - 1) != 0 || !*number ||
            number[strspn(number, "0123456789")])
                return SIZE_MAX;
        node = strtoul(number, NULL, 10);
        return node < n_hosts ? node : SIZE_MAX;
}

static bool is_found(const struct check_fact *k)
{
        return !*k->problem && strcmp(k->value, "none") != 0;
}

static bool is_any_found(const struct checked *facts, const struct hosts *hosts)
{
        for (size_t i = 0; i < hosts->n; i++)
                for (uint32_t k = 0; k < facts[i].n_facts; k++) {
                        const struct check_fact *f = &facts[i].facts[k];

                        /* Nodes asked before have only the fact left. */
                        if ((read_peer(f->name, hosts->n) != SIZE_MAX ||
                             !strcmp(f->name, settled)) &&
                            is_found(f))
                                return true;
                }
        return false;
}

/* The answers of all nodes to the name of one host. */
struct name_votes {
        const struct check_fact *first;
        size_t n;
        bool differ;
};

/* Returns the answers by host, malloc'ed; the facts lend the answers. */
static struct name_votes *count_votes(const struct checked *facts, const struct hosts *hosts)
{
        struct name_votes *votes = xcalloc(hosts->n, sizeof(*votes));

        for (size_t i = 0; i < hosts->n; i++)
                for (uint32_t k = 0; k < facts[i].n_facts; k++) {
                        const struct check_fact *f = &facts[i].facts[k];
                        size_t peer = read_peer(f->name, hosts->n);

                        if (peer == SIZE_MAX || !is_found(f))
                                continue;
                        if (votes[peer].n++)
                                votes[peer].differ |=
                                        strcmp(votes[peer].first->value, f->value) != 0;
                        else
                                votes[peer].first = f;
                }
        return votes;
}

/* Whether any of the addresses "10.0.0.7 fe80::1" belongs to the node. */
static bool is_any_own(const char *addresses, const struct hello *node)
{
        char one[CHECK_VALUE];

        for (const char *at = addresses; *at; at += strspn(at, " ")) {
                size_t len = strcspn(at, " ");

                snprintf(one, sizeof(one), "%.*s", (int)len, at);
                if (master_addr_is_own(node, one))
                        return true;
                at += len;
        }
        return false;
}

/* The facts for judging the answers. */
struct name_case {
        const struct hello *const *hellos;
        const struct hosts *hosts;
        bool *translated; /* by host: the addresses are right although the host does not know them
                           */
        bool any;         /* a node finds a name */
};

/* Whether all nodes find the same addresses for a host, and no other node has these addresses. */
static bool is_translated(const struct name_case *c, const struct name_votes *v)
{
        if (v->n < 2 || v->differ || !strncmp(v->first->value, "127.", 4) ||
            !strncmp(v->first->value, "::1", 3))
                return false;
        for (size_t i = 0; i < c->hosts->n; i++)
                if (c->hellos[i] && is_any_own(v->first->value, c->hellos[i]))
                        return false;
        return true;
}

/* Returns the fault of the answer to a name, malloc'ed; NULL = none. */
static char *describe_answer(const struct name_case *c, const struct check_fact *k, size_t peer)
{
        const char *name = c->hosts->v[peer].name;

        if (!strcmp(k->value, "none"))
                return xasprintf("no address of %s", name);
        if (c->hellos[peer] && !is_any_own(k->value, c->hellos[peer]) && !c->translated[peer])
                return xasprintf("a wrong address of %s: %.*s", name, (int)strcspn(k->value, " "),
                                 k->value);
        return NULL;
}

/* Replaces the answers of a node by a single fact. */
static void settle_answers(struct checked *m, const struct name_case *c)
{
        char value[CHECK_VALUE] = "", problem[CHECK_PROBLEM] = "there is no other node with a name";
        CLEANUP(free_textp) char *first = NULL;
        size_t known = 0, wrong = 0;
        uint32_t left = 0;

        for (uint32_t i = 0; i < m->n_facts; i++) {
                const struct check_fact *k = &m->facts[i];
                size_t peer = read_peer(k->name, c->hosts->n);
                char *fault;

                if (peer == SIZE_MAX) {
                        m->facts[left++] = *k;
                        continue;
                }
                if (*k->problem) {
                        memcpy(problem, k->problem, sizeof(problem));
                        continue;
                }
                known++;
                fault = describe_answer(c, k, peer);
                wrong += fault != NULL;
                if (first)
                        free(fault);
                else
                        first = fault;
        }
        m->n_facts = left;
        if (known && !c->any) {
                known = 0;
                snprintf(problem, sizeof(problem), "no node knows another one by its name");
        }
        if (wrong > 1)
                snprintf(value, sizeof(value), "%.150s, and %zu more", first, wrong - 1);
        else if (wrong)
                snprintf(value, sizeof(value), "%s", first);
        else
                snprintf(value, sizeof(value), "%zu name%s", known, known == 1 ? "" : "s");
        checked_add(m, settled, known ? value : "", known ? "" : problem);
}

void peer_names_settle(struct checked *facts, const bool *answered,
                       const struct hello *const *hellos, const struct hosts *hosts)
{
        struct name_case c = { hellos, hosts, xcalloc(hosts->n, sizeof(bool)),
                               is_any_found(facts, hosts) };
        struct name_votes *votes = count_votes(facts, hosts);

        for (size_t i = 0; i < hosts->n; i++)
                c.translated[i] = hellos[i] && votes[i].n &&
                                  !is_any_own(votes[i].first->value, hellos[i]) &&
                                  is_translated(&c, &votes[i]);
        for (size_t i = 0; i < hosts->n; i++)
                if (answered[i])
                        settle_answers(&facts[i], &c);
        free(c.translated);
        free(votes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_tries() makes one pair of all tries between two nodes, in both directions; a pair is broken
 * if any try has failed. blame_pairs() takes the nodes with the most broken pairs, blames them for
 * all of these pairs, and continues with the remaining pairs. A pair between two nodes taken
 * together is blamed on both ends, as is a single broken pair. A node without any successful try
 * always fails.
 *
 * A node with any blame fails, with the first broken pair as the cause. All arrays are by node of
 * the report. Pairs that were not tried (told is false) count nowhere.
 */
#include "head/check/peer_judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char name[] = "net.peers";
static const char help[] =
        "open TCP between the nodes at all ports above 1023 in the firewall, or name their common "
        "network with --iface";

/* The connections of a node. */
struct peer_counts {
        size_t in, in_failed, out, out_failed;
        size_t broken;                /* pairs not blamed on a node yet */
        bool is_top;                  /* no other node has more broken pairs */
        bool untried;                 /* a pair of the node was not tried */
        const struct check_pair *bad; /* the first pair blamed on the node */
        size_t n_bad;
};

/* Two nodes, with the tries of each direction. */
struct peer_pair {
        size_t a, b; /* a < b */
        bool tried[2];
        const struct check_pair *bad[2]; /* the failed tries, from a and from b; NULL = none */
        bool broken;                     /* and not blamed yet */
};

/* The whole judgement. */
struct peer_case {
        const struct check_report *r;
        const struct peer_blame *how;
        struct peer_counts *nodes;
        struct peer_pair *pairs;
        size_t n;
};

/* Names errors of connect(), EPROTO and ECONNRESET of the exchange of the token after it, and
 * EADDRNOTAVAIL of an agent without an address to try. */
static const char *explain_peer_error(uint32_t error)
{
        switch (error) {
        case ECONNREFUSED:
                return "refused, as a firewall may do";
        case EHOSTUNREACH:
        case ENETUNREACH:
                return "no route";
        case ETIMEDOUT:
                return "no answer, as behind a firewall";
        case ECONNRESET:
                return "closed without an answer";
        case EPROTO:
                return "another program answers";
        case EINVAL:
        case EADDRNOTAVAIL:
                return "no usable address";
        default:
                return strerror((int)error);
        }
}

/* Sorts by the two nodes; equal pairs keep their order. */
static int compare_tries(const void *x, const void *y)
{
        const struct check_pair *p = *(const struct check_pair *const *)x,
                                *q = *(const struct check_pair *const *)y;
        size_t a = MIN(p->from, p->to), b = MAX(p->from, p->to);
        size_t c = MIN(q->from, q->to), d = MAX(q->from, q->to);

        if (a != c)
                return a < c ? -1 : 1;
        if (b != d)
                return b < d ? -1 : 1;
        return (p > q) - (p < q);
}

static void merge_tries(struct peer_case *c, const struct check_pair *tries, size_t n)
{
        const struct check_pair **sorted = xcalloc(n + 1, sizeof(*sorted));
        size_t n_sorted = 0;

        for (size_t i = 0; i < n; i++)
                if (tries[i].told)
                        sorted[n_sorted++] = &tries[i];
                else
                        c->nodes[tries[i].from].untried = c->nodes[tries[i].to].untried = true;
        qsort(sorted, n_sorted, sizeof(const struct check_pair *), compare_tries);
        c->pairs = xcalloc(n_sorted + 1, sizeof(*c->pairs));
        for (size_t i = 0; i < n_sorted; i++) {
                const struct check_pair *p = sorted[i];
                size_t a = MIN(p->from, p->to), b = MAX(p->from, p->to);
                bool from_b = p->from == b;
                struct peer_pair *e;

                if (!c->n || c->pairs[c->n - 1].a != a || c->pairs[c->n - 1].b != b)
                        c->pairs[c->n++] = (struct peer_pair){ .a = a, .b = b };
                e = &c->pairs[c->n - 1];
                e->tried[from_b] = true;
                if (p->result.error && !e->bad[from_b])
                        e->bad[from_b] = p;
        }
        free(sorted);
}

static void count_tries(struct peer_case *c)
{
        for (size_t i = 0; i < c->n; i++) {
                struct peer_pair *e = &c->pairs[i];
                struct peer_counts *a = &c->nodes[e->a], *b = &c->nodes[e->b];

                a->out += e->tried[0];
                b->in += e->tried[0];
                b->out += e->tried[1];
                a->in += e->tried[1];
                a->out_failed += e->bad[0] != NULL;
                b->in_failed += e->bad[0] != NULL;
                b->out_failed += e->bad[1] != NULL;
                a->in_failed += e->bad[1] != NULL;
                e->broken = e->bad[0] || e->bad[1];
                a->broken += e->broken;
                b->broken += e->broken;
        }
}

/* Whether no peer reaches the node; whether the node reaches no peer. A single failed try may be
 * the fault of either end. */
static bool is_deaf(const struct peer_counts *c)
{
        return c->in > 1 && c->in_failed == c->in;
}

static bool is_mute(const struct peer_counts *c)
{
        return c->out > 1 && c->out_failed == c->out;
}

static void blame_node(struct peer_case *c, size_t node, const struct peer_pair *e)
{
        struct peer_counts *n = &c->nodes[node];
        const struct check_pair *first = e->bad[0] ? e->bad[0] : e->bad[1];
        const struct check_pair *to_node = e->bad[node == e->a];

        n->n_bad++;
        if (!n->bad)
                n->bad = first;
        /* The text about a deaf node needs a try to the node. */
        if (to_node && is_deaf(n) && n->bad->to != node)
                n->bad = to_node;
}

/* Settles a broken pair, blamed on a with @by_a, on b with @by_b, and on each end that is deaf and
 * mute. */
static void settle_pair(struct peer_case *c, struct peer_pair *e, bool by_a, bool by_b)
{
        const struct peer_counts *a = &c->nodes[e->a], *b = &c->nodes[e->b];

        if (by_a && by_b && c->how)
                by_a = false;
        if (by_a || (is_deaf(a) && is_mute(a)))
                blame_node(c, e->a, e);
        if (by_b || (is_deaf(b) && is_mute(b)))
                blame_node(c, e->b, e);
        e->broken = false;
        c->nodes[e->a].broken--;
        c->nodes[e->b].broken--;
}

static void blame_pairs(struct peer_case *c)
{
        const bool *first = c->how ? c->how->first : NULL;
        size_t most = 0;

        for (size_t i = 0; i < c->n && first; i++) {
                struct peer_pair *e = &c->pairs[i];

                if (e->broken && first[e->a] != first[e->b])
                        settle_pair(c, e, first[e->a], first[e->b]);
        }
        for (size_t i = 0; i < c->r->n_nodes; i++)
                most = MAX(most, c->nodes[i].broken);
        /* After a round no node has as many broken pairs left. */
        for (; most > 0; most--) {
                for (size_t i = 0; i < c->r->n_nodes; i++)
                        c->nodes[i].is_top = c->nodes[i].broken == most;
                for (size_t i = 0; i < c->n; i++) {
                        struct peer_pair *e = &c->pairs[i];
                        bool by_a = c->nodes[e->a].is_top, by_b = c->nodes[e->b].is_top;

                        if (e->broken && (by_a || by_b))
                                settle_pair(c, e, by_a, by_b);
                }
        }
}

/* Returns the fault of a node, malloc'ed. @ret_alone: the text does not name the node. */
static char *describe_fault(const struct check_report *r, size_t node, const struct peer_counts *c,
                            bool *ret_alone)
{
        const struct check_pair *p = c->bad;
        const char *why = explain_peer_error(p->result.error);

        *ret_alone = true;
        if (is_deaf(c) && p->to == node)
                return xasprintf("none of %zu peers reaches %s: %s", c->in,
                                 *p->addr ? p->addr : "it", why);
        if (is_mute(c) && p->from == node)
                return xasprintf("reaches none of %zu peers: %s", c->out, why);
        *ret_alone = false;
        return xasprintf("%s does not reach %s at %s: %s%s", r->nodes[p->from].host,
                         r->nodes[p->to].host, *p->addr ? p->addr : "any address", why,
                         c->n_bad > 1 ? ", and others" : "");
}

/* Sets the result of node @i. @refusal: why the node does not listen, NULL = the node listens. */
static void judge_peers_of(struct check_report *r, struct check_line *l, size_t i,
                           const struct peer_counts *c, const char *refusal)
{
        struct check_judgement k = { .level = CHECK_NOT_RUN, .value = "", .expected = "" };
        CLEANUP(free_textp) char *value = NULL;
        CLEANUP(free_textp) char *cause = NULL;
        /* A peer is often tried in both directions, and counts once. */
        size_t degree = MAX(c->in, c->out);
        bool alone;

        if (c->n_bad) {
                value = describe_fault(r, i, c, &alone);
                cause = alone ? xasprintf("%s: %s", r->nodes[i].host, value) : xstrdup(value);
                k = (struct check_judgement){ CHECK_FAIL, value, "", 0, cause, help };
        } else if (degree) {
                value = xasprintf("%zu peer%s", degree, degree == 1 ? "" : "s");
                k = (struct check_judgement){ CHECK_PASS, value, "", 0, "", "" };
        } else {
                k.cause = r->nodes[i].lost ? "the node was not reached"
                          : refusal        ? refusal
                          : c->untried     ? "no peer could be tried"
                                           : "there is no other node to reach";
        }
        check_report_set(r, l, i, &k);
}

void peer_judge(struct check_report *r, const struct check_pair *pairs, size_t n,
                const char *const *refusals, const struct peer_blame *how)
{
        struct peer_case c = { .r = r,
                               .how = how,
                               .nodes = xcalloc(r->n_nodes, sizeof(struct peer_counts)) };
        struct check_line *l = check_report_add(r, name);

        merge_tries(&c, pairs, n);
        count_tries(&c);
        blame_pairs(&c);
        for (size_t i = 0; i < r->n_nodes; i++)
                judge_peers_of(r, l, i, &c.nodes[i], refusals[i]);
        free(c.nodes);
        free(c.pairs);
}

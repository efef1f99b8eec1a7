/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_pairs() counts for each node the tries in both directions, with the failed ones. A node is
 * deaf if all tries to it have failed, mute if all of its own have. blame_pairs() gives each failed
 * pair to the deaf or mute end, where there is exactly one such end, else to both ends.
 *
 * A node with any blame fails, with its first failed pair as the cause. All arrays are by node of
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

/* What became of the connections of a node. */
struct peer_counts {
        size_t in, in_failed, out, out_failed;
        const struct check_pair *bad; /* the first that is blamed on the node */
        size_t n_bad;
};

/* Errors of connect(), EPROTO and ECONNRESET of the exchange of the token behind it, and
 * EADDRNOTAVAIL of an agent without an address to try. */
const char *peer_error_text(uint32_t error)
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

static void count_pairs(struct peer_counts *nodes, const struct check_pair *pairs, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct check_pair *p = &pairs[i];

                if (!p->told)
                        continue;
                nodes[p->from].out++;
                nodes[p->to].in++;
                nodes[p->from].out_failed += p->result.error != 0;
                nodes[p->to].in_failed += p->result.error != 0;
        }
}

/* The two directions of a connection count once. */
static void blame_node(struct peer_counts *c, const struct check_pair *p)
{
        if (!c->bad)
                c->bad = p;
        else if (c->bad->from == p->to && c->bad->to == p->from)
                return;
        c->n_bad++;
}

/* Whether no peer reaches the node; whether the node reaches no peer. */
static bool is_deaf(const struct peer_counts *c)
{
        return c->in && c->in_failed == c->in;
}

static bool is_mute(const struct peer_counts *c)
{
        return c->out && c->out_failed == c->out;
}

static void blame_pairs(struct peer_counts *nodes, const struct check_pair *pairs, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct check_pair *p = &pairs[i];
                struct peer_counts *from = &nodes[p->from], *to = &nodes[p->to];
                /* A pair between a deaf and a mute node blames both: either fault would do. */
                bool by_to = is_deaf(to) && !is_mute(from);
                bool by_from = is_mute(from) && !is_deaf(to);

                if (!p->told || !p->result.error)
                        continue;
                if (!by_from)
                        blame_node(to, p);
                if (!by_to)
                        blame_node(from, p);
        }
}

/* Returns what is wrong with a node, malloc'ed. @ret_alone: the node is not named in it. */
static char *describe_fault(const struct check_report *r, size_t node, const struct peer_counts *c,
                            bool *ret_alone)
{
        const struct check_pair *p = c->bad;
        const char *why = peer_error_text(p->result.error);

        *ret_alone = true;
        /* A single failed try may be the fault of either end, so both are named. */
        if (is_deaf(c) && p->to == node && c->in > 1)
                return xasprintf("none of %zu peers reaches %s: %s", c->in,
                                 *p->addr ? p->addr : "it", why);
        if (is_mute(c) && p->from == node && c->out > 1)
                return xasprintf("reaches none of %zu peers: %s", c->out, why);
        *ret_alone = false;
        return xasprintf("%s does not reach %s at %s: %s%s", r->nodes[p->from].host,
                         r->nodes[p->to].host, *p->addr ? p->addr : "any address", why,
                         c->n_bad > 1 ? ", and others" : "");
}

/* Sets the result of node @i. @refusal: why it does not listen, NULL = it does. */
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
                                           : "there is no other node to reach";
        }
        check_report_set(r, l, i, &k);
}

void peer_judge(struct check_report *r, const struct check_pair *pairs, size_t n,
                const char *const *refusals)
{
        struct peer_counts *nodes = xcalloc(r->n_nodes, sizeof(*nodes));
        struct check_line *l = check_report_add(r, name);

        count_pairs(nodes, pairs, n);
        blame_pairs(nodes, pairs, n);
        for (size_t i = 0; i < r->n_nodes; i++)
                judge_peers_of(r, l, i, &nodes[i], refusals[i]);
        free(nodes);
}

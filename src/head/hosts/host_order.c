/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort_hosts() sorts by switch and name, and then gathers each domain where its first host stands.
 * choose_domains() takes the segments from the domains with the most of them, and the last ones
 * from the smallest domain that has as many as are missing: so the job is in as few domains as
 * possible.
 *
 * host_order_choose() numbers the hosts in the new order: chosen ones first, domain by domain, so a
 * segment is never across two of them; then the others, then unusable ones. Without --segment each
 * host is a segment of its own, and always fits.
 */
#include "head/hosts/host_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"

/* A message lists some domains. NVML gives a domain as the UUID of the cluster, 32 digits without
 * hyphens, and the number of the clique; 8 digits tell clusters apart. */
enum { DOMAINS_SHOWN = 8, UUID_DIGITS = 32, UUID_SHOWN = 8 };

struct placed_host {
        const struct host *host;
        size_t index, domain; /* the second by number of domain */
};

struct network_domain {
        const char *name;        /* key; NULL = hosts without one, the last */
        size_t number, first, n; /* place in v[], first host in the order, hosts */
        size_t segments, take;   /* whole ones that it has, and that the job takes */
        UT_hash_handle hh;
};

struct network_domains {
        struct network_domain *v; /* at most one a host */
        size_t n;
};

/* ---- sorting ---- */

/* Compares by the number of the leaf switch in the topology file; without a number by the path that
 * Slurm has told. Hosts with neither come last. */
static int compare_sites(const struct host_site *a, const struct host_site *b)
{
        int x = a ? a->number : -1, y = b ? b->number : -1;
        const char *p = a ? a->path : NULL, *q = b ? b->path : NULL;

        if (x != y)
                return x < 0 ? 1 : y < 0 ? -1 : x < y ? -1 : 1;
        if (x < 0 && (p || q))
                return !p ? 1 : !q ? -1 : strverscmp(p, q);
        return 0;
}

/* qsort() is not stable: equal names keep the order of the list by their index. */
static int by_switch_and_name(const void *a, const void *b)
{
        const struct placed_host *x = a, *y = b;
        int order = (host_domain(x->host) == NULL) - (host_domain(y->host) == NULL);

        if (!order)
                order = compare_sites(x->host->site, y->host->site);
        if (!order)
                order = strverscmp(x->host->name, y->host->name);
        return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Numbers the domains in the order of their first hosts. */
static void number_domains(struct placed_host *v, size_t n, struct network_domains *to)
{
        struct network_domain *by_name = NULL, *d;

        to->v = xcalloc(n + 1, sizeof(*to->v));
        for (size_t i = 0; i < n; i++) {
                const char *name = host_domain(v[i].host);

                d = NULL;
                if (name)
                        HASH_FIND_STR(by_name, name, d);
                /* Hosts without a domain are sorted behind all others, so their domain is the
                 * last. */
                else if (to->n && !to->v[to->n - 1].name)
                        d = &to->v[to->n - 1];
                if (!d) {
                        d = &to->v[to->n];
                        *d = (struct network_domain){ .name = name, .number = to->n++ };
                        if (name)
                                HASH_ADD_KEYPTR(hh, by_name, d->name, strlen(d->name), d);
                }
                v[i].domain = d->number;
                d->n++;
        }
        HASH_CLEAR(hh, by_name);
        for (size_t i = 1; i < to->n; i++)
                to->v[i].first = to->v[i - 1].first + to->v[i - 1].n;
}

/* Puts the hosts in the order of the network, domain by domain. */
static void sort_hosts(struct placed_host *v, size_t n, struct network_domains *domains)
{
        struct placed_host *sorted = xcalloc(n, sizeof(*sorted));
        size_t *next;

        if (n)
                qsort(v, n, sizeof(*v), by_switch_and_name);
        number_domains(v, n, domains);
        next = xcalloc(domains->n, sizeof(*next));
        for (size_t i = 0; i < domains->n; i++)
                next[i] = domains->v[i].first;
        for (size_t i = 0; i < n; i++)
                sorted[next[v[i].domain]++] = v[i];
        memcpy(v, sorted, n * sizeof(*v));
        free(next);
        free(sorted);
}

/* ---- choosing ---- */

/* Hosts without a domain come last: they hold no segment, and are the last choice without
 * --segment. */
static int by_most_segments(const void *a, const void *b)
{
        const struct network_domain *x = *(struct network_domain *const *)a;
        const struct network_domain *y = *(struct network_domain *const *)b;
        int order = (x->name == NULL) - (y->name == NULL);

        if (!order)
                order = (y->segments > x->segments) - (y->segments < x->segments);
        return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Returns the smallest domain from @i on with at least @left segments, the first of equal ones. */
static size_t find_smallest(struct network_domain *const *sorted, size_t n, size_t i, size_t left)
{
        size_t best = i;

        for (; i < n && sorted[i]->name && sorted[i]->segments >= left; i++)
                if (sorted[i]->segments < sorted[best]->segments)
                        best = i;
        return best;
}

/* Sets how many segments each domain gives. Returns how many are missing. */
static size_t choose_domains(struct network_domains *domains, size_t left)
{
        struct network_domain **sorted = xcalloc(domains->n, sizeof(*sorted)), *d;

        for (size_t i = 0; i < domains->n; i++)
                sorted[i] = &domains->v[i];
        if (domains->n)
                qsort(sorted, domains->n, sizeof(struct network_domain *), by_most_segments);
        for (size_t i = 0; i < domains->n && left; i++) {
                d = sorted[i];
                /* The rest fits here: a smaller domain with room enough leaves a large one
                 * whole. */
                if (d->segments >= left)
                        d = sorted[find_smallest(sorted, domains->n, i, left)];
                d->take = MIN(d->segments, left);
                left -= d->take;
        }
        free(sorted);
        return left;
}

/* Adds an error: too few whole segments, or a number of nodes that they cannot make up. */
static void refuse_segments(const struct hosts *h, const struct placed_host *v, size_t n,
                            size_t needed, size_t segment, struct diags *d)
{
        size_t *nodes = xcalloc(n, sizeof(*nodes));
        CLEANUP(free_textp) char *domains = NULL;
        bool divides = needed % segment == 0;
        struct diag *error;

        for (size_t i = 0; i < n; i++)
                nodes[i] = v[i].index;
        domains = host_order_describe(h, nodes, n);
        if (divides)
                error = diag_add(d, HN_SEGMENTS, EX_UNAVAILABLE,
                                 "segments of %zu nodes do not fit: %s", segment, domains);
        else
                error = diag_add(d, HN_SEGMENTS, EX_UNAVAILABLE,
                                 "%zu nodes are no multiple of --segment %zu: %s", needed, segment,
                                 domains);
        if (divides)
                diag_note(error, "%zu segment%s needed, each within one domain", needed / segment,
                          needed == segment ? " is" : "s are");
        diag_help(error, "--nodes N takes N of the hosts, and chooses those that fit");
        free(nodes);
}

size_t *host_order_choose(const struct hosts *h, const bool *usable, size_t needed, size_t segment,
                          struct diags *d)
{
        struct placed_host *v = xcalloc(h->n, sizeof(*v));
        size_t *order = xcalloc(h->n + 1, sizeof(*order)), n = 0, chosen = 0, each, rest;
        struct network_domains domains = { 0 };
        bool fits;

        for (size_t i = 0; i < h->n; i++)
                if (usable[i])
                        v[n++] = (struct placed_host){ .host = &h->v[i], .index = i };
        sort_hosts(v, n, &domains);
        each = MAX(segment, (size_t)1);
        needed = needed ? MIN(needed, n) : n;
        for (size_t i = 0; i < domains.n; i++)
                domains.v[i].segments = domains.v[i].name || each == 1 ? domains.v[i].n / each : 0;
        fits = needed % each == 0 && !choose_domains(&domains, needed / each);
        rest = needed;
        for (size_t i = 0; i < n && fits; i++) {
                const struct network_domain *of = &domains.v[v[i].domain];

                if (i < of->first + of->take * each)
                        order[chosen++] = v[i].index;
                else
                        order[rest++] = v[i].index;
        }
        rest = n;
        for (size_t i = 0; i < h->n; i++)
                if (!usable[i])
                        order[rest++] = i;
        if (!fits) {
                refuse_segments(h, v, n, needed, each, d);
                free(order);
                order = NULL;
        }
        free(domains.v);
        free(v);
        return order;
}

size_t host_order_find_split(const struct hosts *h, const size_t *nodes, size_t n, size_t segment)
{
        for (size_t i = 0; i < n; i += segment) {
                /* The last segment has too few nodes. */
                if (i + segment > n)
                        return i;
                for (size_t k = i + 1; k < i + segment; k++)
                        if (!host_shares_domain(&h->v[nodes[i]], &h->v[nodes[k]]))
                                return i;
        }
        return n;
}

/* ---- words ---- */

char *host_order_domain_name(const char *domain)
{
        size_t digits = strspn(domain, "0123456789abcdef");

        if (digits != UUID_DIGITS || domain[digits] != '.')
                return xstrdup(domain);
        return xasprintf("%.*s%s", UUID_SHOWN, domain, domain + digits);
}

char *host_order_describe(const struct hosts *h, const size_t *nodes, size_t n)
{
        struct placed_host *v = xcalloc(n, sizeof(*v));
        struct network_domains domains = { 0 };
        size_t *members = xcalloc(n, sizeof(*members));
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < n; i++)
                v[i] = (struct placed_host){ .host = &h->v[nodes[i]], .index = nodes[i] };
        sort_hosts(v, n, &domains);
        for (size_t i = 0; i < domains.n && i < DOMAINS_SHOWN; i++) {
                const struct network_domain *d = &domains.v[i];
                CLEANUP(free_textp)
                char *name = d->name ? host_order_domain_name(d->name) : NULL;
                CLEANUP(free_textp) char *hosts = NULL;

                for (size_t k = 0; k < d->n; k++)
                        members[k] = v[d->first + k].index;
                hosts = hosts_fold(h, members, d->n);
                if (d->name)
                        buf_printf(&out, "%s%s has %zu node%s (%s)", i ? ", " : "domain ", name,
                                   d->n, d->n == 1 ? "" : "s", hosts);
                else
                        buf_printf(&out, "%s%zu node%s in no known domain (%s)", i ? ", " : "",
                                   d->n, d->n == 1 ? " is" : "s are", hosts);
        }
        if (domains.n > DOMAINS_SHOWN)
                buf_printf(&out, ", and %zu more", domains.n - DOMAINS_SHOWN);
        free(members);
        free(domains.v);
        free(v);
        return buf_steal(&out);
}

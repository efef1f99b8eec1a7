/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign_spares() decides which host takes the place of each failed one, without a change of the
 * list: too few hosts leave the list as it was. Hosts of the list that stand by come first, since
 * their agents are there already. Both kinds need as many slots as the failed host.
 */
#include "head/hosts/spare_hosts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"

/* ---- choosing ---- */

/* Counts the hosts that get ranks. */
static size_t count_working(const struct hosts *h)
{
        size_t n = 0;

        for (size_t i = 0; i < h->n; i++)
                n += !h->v[i].spare;
        return n;
}

/* Adds the error that @option wants more than the @n hosts. -EINVAL. */
static int complain_few(const char *option, int value, size_t n, const struct spare_rule *r,
                        struct diags *d)
{
        diag_help(diag_add(d, HN_FEW_HOSTS, EX_USAGE, "%s %d, but there %s %zu%s", option, value,
                           n == 1 ? "is only" : "are only", n,
                           r->spares > 0 && r->spares != value ? " beside the spare hosts" : ""),
                  "add hosts, or give a lower number");
        return -EINVAL;
}

/* Hosts with a true out[i] are not among the first: they stand by, or are dropped. */
static void move_out(struct hosts *h, bool *out, const struct spare_rule *r)
{
        bool is_auto = r->spares == SPARES_AUTO;

        if (is_auto && !r->connect) {
                hosts_put_aside(h, out);
                return;
        }
        for (size_t i = 0; i < h->n; i++) {
                h->v[i].spare |= is_auto && out[i];
                out[i] = is_auto || !out[i];
        }
        hosts_retain(h, out);
}

int spare_hosts_choose(struct hosts *h, const struct spare_rule *r, struct diags *d)
{
        size_t n = count_working(h), left = (size_t)MAX(r->spares, 0), first, seen = 0;
        bool *out;

        /* At least one host must be left to run ranks. */
        if (left && left >= n)
                return complain_few("--spares", r->spares, n, r, d);
        n -= left;
        /* From the end; hosts marked in the file are spare in addition. */
        for (size_t i = h->n; i-- && left;)
                if (!h->v[i].spare) {
                        h->v[i].spare = true;
                        left--;
                }
        if (!r->min && (size_t)r->nodes > n)
                return complain_few("--nodes", r->nodes, n, r, d);
        if ((size_t)r->min > n)
                return complain_few("--min-nodes", r->min, n, r, d);
        first = r->nodes ? (size_t)r->nodes : r->spares == SPARES_AUTO ? r->needed : 0;
        if (!first || first >= n)
                return 0;
        out = xcalloc(h->n, sizeof(*out));
        for (size_t i = 0; i < h->n; i++)
                out[i] = !h->v[i].spare && seen++ >= first;
        move_out(h, out, r);
        free(out);
        return 0;
}

/* ---- replacing ---- */

/* Returns the index of a host of the list for place @at, of the same domain if there is one; h->n:
 * there is none. */
static size_t find_spare(const struct hosts *h, const bool *usable, size_t at)
{
        size_t first = h->n;

        for (size_t i = 0; i < h->n; i++) {
                if (!usable[i] || h->v[i].slots < h->v[at].slots)
                        continue;
                if (!h->v[at].site || host_shares_domain(&h->v[i], &h->v[at]))
                        return i;
                first = MIN(first, i);
        }
        return first;
}

/* The same of the hosts that stand by unconnected. */
static size_t find_aside(const struct hosts *h, const bool *taken, size_t at)
{
        size_t n = hosts_aside(h), first = n;

        for (size_t i = 0; i < n; i++) {
                const struct host *host = &h->aside->v[h->stood_in + i];

                if (taken[i] || host->slots < h->v[at].slots)
                        continue;
                if (!h->v[at].site || host_shares_domain(host, &h->v[at]))
                        return i;
                first = MIN(first, i);
        }
        return first;
}

/* Decides by[], without a change of @h. Returns how many places have no host. */
static size_t assign_spares(const struct hosts *h, const bool *failed, size_t *by)
{
        size_t n = hosts_aside(h), missing = 0;
        bool *usable = xcalloc(h->n, sizeof(*usable)), *taken = xcalloc(n + 1, sizeof(*taken));

        for (size_t i = 0; i < h->n; i++)
                usable[i] = h->v[i].spare && !failed[i];
        for (size_t i = 0; i < h->n; i++) {
                size_t k, away;

                by[i] = SPARE_NONE;
                if (h->v[i].spare || !failed[i])
                        continue;
                k = find_spare(h, usable, i);
                away = find_aside(h, taken, i);
                if (k < h->n) {
                        by[i] = SPARE_FIRST + k;
                        usable[k] = false;
                } else if (away < n) {
                        by[i] = SPARE_STOOD_IN;
                        taken[away] = true;
                } else {
                        missing++;
                }
        }
        free(usable);
        free(taken);
        return missing;
}

/* Returns how many hosts are missing: 0, too, when --min-nodes does without them. */
static size_t assign_or_leave_out(const struct hosts *h, const bool *failed, int min, size_t *by)
{
        size_t missing = assign_spares(h, failed, by), working = count_working(h) - missing;

        return min && working && working >= (size_t)min ? 0 : missing;
}

bool spare_hosts_suffice(const struct hosts *h, const bool *failed, int min)
{
        size_t *by = xcalloc(h->n, sizeof(*by));
        bool suffice = !assign_or_leave_out(h, failed, min, by);

        free(by);
        return suffice;
}

size_t spare_hosts_replace(struct hosts *h, const bool *failed, int min, size_t *by)
{
        size_t missing = assign_or_leave_out(h, failed, min, by);
        bool *was_spare;

        if (missing)
                return missing;
        /* The loop below changes .spare of hosts that it has yet to reach. */
        was_spare = xcalloc(h->n, sizeof(*was_spare));
        for (size_t i = 0; i < h->n; i++)
                was_spare[i] = h->v[i].spare;
        for (size_t i = 0; i < h->n; i++) {
                if (was_spare[i] || !failed[i])
                        continue;
                if (by[i] == SPARE_STOOD_IN) {
                        hosts_stand_in(h, i);
                        continue;
                }
                h->v[i].spare = true;
                /* Left out: the job starts with fewer hosts. */
                if (by[i] == SPARE_NONE)
                        continue;
                h->v[by[i] - SPARE_FIRST].spare = false;
                h->v[by[i] - SPARE_FIRST].place = h->v[i].place ? h->v[i].place : i + 1;
        }
        free(was_spare);
        return 0;
}

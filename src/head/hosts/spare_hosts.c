/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/spare_hosts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"

static size_t count_working(const struct hosts *h)
{
        size_t n = 0;

        for (size_t i = 0; i < h->n; i++)
                n += !h->v[i].spare;
        return n;
}

static int complain_few(const char *option, int value, size_t n, const struct spare_rule *r,
                        struct diags *d)
{
        diag_help(diag_add(d, HN_FEW_HOSTS, EX_USAGE, "%s %d, but there %s %zu%s", option, value,
                           n == 1 ? "is only" : "are only", n,
                           r->spares && r->spares != value ? " beside the spare hosts" : ""),
                  "add hosts, or give a lower number");
        return -EINVAL;
}

int spare_hosts_choose(struct hosts *h, const struct spare_rule *r, struct diags *d)
{
        size_t n = count_working(h), left = (size_t)r->spares, seen = 0;
        bool *keep;

        if (left && left >= n)
                return complain_few("--spares", r->spares, n, r, d);
        for (size_t i = h->n; i-- && left;)
                if (!h->v[i].spare) {
                        h->v[i].spare = true;
                        left--;
                }
        n -= (size_t)r->spares;
        if ((size_t)r->nodes > n)
                return complain_few("--nodes", r->nodes, n, r, d);
        if ((size_t)r->min > n)
                return complain_few("--min-nodes", r->min, n, r, d);
        if (!r->nodes)
                return 0;
        keep = xcalloc(h->n, sizeof(*keep));
        for (size_t i = 0; i < h->n; i++)
                keep[i] = h->v[i].spare || seen++ < (size_t)r->nodes;
        hosts_retain(h, keep);
        free(keep);
        return 0;
}

/* Returns the index of a host for place @at; h->n: there is none. */
static size_t find_spare(const struct hosts *h, const bool *was_spare, const bool *failed,
                         size_t at)
{
        size_t i = 0;

        while (i < h->n &&
               (!was_spare[i] || failed[i] || h->v[i].place || h->v[i].slots < h->v[at].slots))
                i++;
        return i;
}

size_t spare_hosts_replace(struct hosts *h, const bool *failed, int min)
{
        size_t missing = 0, working;
        bool *was_spare = xcalloc(h->n, sizeof(*was_spare));

        for (size_t i = 0; i < h->n; i++)
                was_spare[i] = h->v[i].spare;
        for (size_t i = 0; i < h->n; i++) {
                size_t k;

                if (was_spare[i] || !failed[i])
                        continue;
                k = find_spare(h, was_spare, failed, i);
                h->v[i].spare = true;
                if (k == h->n) {
                        missing++;
                        continue;
                }
                h->v[k].spare = false;
                h->v[k].place = i + 1;
        }
        working = count_working(h);
        if (missing && min && working && working >= (size_t)min)
                missing = 0;
        for (size_t i = 0; i < h->n && missing; i++) {
                h->v[i].spare = was_spare[i];
                h->v[i].place = 0;
        }
        free(was_spare);
        return missing;
}

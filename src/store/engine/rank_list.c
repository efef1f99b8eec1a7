/* SPDX-License-Identifier: Apache-2.0 */
#include "store/engine/rank_list.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

enum { HOSTS_MAX = 8 }; /* hosts named before "and N more" */

/* Returns the end of the run of consecutive ranks on one host beginning at @i. */
static uint32_t end_of_run(const uint32_t *ranks, uint32_t n, uint32_t i)
{
        while (i + 1 < n && ranks[i + 1] == ranks[i] + 1)
                i++;
        return i + 1;
}

static uint32_t end_of_host(const uint32_t *ranks, uint32_t n, uint32_t i,
                            const char *(*host_of)(void *, int), void *ctx)
{
        const char *host = host_of(ctx, (int)ranks[i]);

        while (i < n && strcmp(host_of(ctx, (int)ranks[i]), host) == 0)
                i++;
        return i;
}

/* Appends "2", "2,3" or "2-4", and returns the new length. As with snprintf(), a length of @size or
 * more means that the text was cut. */
static size_t append_run(char *to, size_t size, size_t at, const char *sep, uint32_t first,
                         uint32_t last)
{
        int n;

        if (at >= size)
                return at;
        if (last > first + 1)
                n = snprintf(to + at, size - at, "%s%u-%u", sep, first, last);
        else if (last > first)
                n = snprintf(to + at, size - at, "%s%u,%u", sep, first, last);
        else
                n = snprintf(to + at, size - at, "%s%u", sep, first);
        return at + (size_t)MAX(n, 0);
}

void rank_list_describe(char *to, size_t size, const uint32_t *ranks, uint32_t n,
                        const char *(*host_of)(void *ctx, int rank), void *ctx)
{
        size_t at = (size_t)snprintf(to, size, "rank%s ", n == 1 ? "" : "s");
        uint32_t i = 0, hosts = 0, end, run;

        for (; i < n && hosts < HOSTS_MAX && at < size; hosts++) {
                const char *host = host_of(ctx, (int)ranks[i]);
                const char *sep = hosts ? ", " : "";

                end = end_of_host(ranks, n, i, host_of, ctx);
                for (; i < end; i = run, sep = ",") {
                        run = end_of_run(ranks, end, i);
                        at = append_run(to, size, at, sep, ranks[i], ranks[run - 1]);
                }
                if (at < size)
                        at += (size_t)snprintf(to + at, size - at, " (%s)", host);
        }
        if (i < n && at < size)
                snprintf(to + at, size - at, " and %u more", n - i);
}

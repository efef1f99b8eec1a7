/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: storm nccl|poll|last|count RANKS [RANKS PER NODE]
 *
 * Runs the pattern through hnlaunch's own parts and then its traffic through a bare loop (storm.h).
 * Prints one JSON object.
 */
#include "bench/storm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pair.h"

enum { RANKS_MAX = 1 << 17 };

static const char *const names[STORM_PATTERNS] = { "nccl", "poll", "last", "count" };

static bool real_head(void *ctx, int listener)
{
        return storm_head(ctx, listener);
}

static bool real_agents(void *ctx, const char *name)
{
        return storm_agents(ctx, name);
}

static bool bare_head(void *ctx, int listener)
{
        return floor_head(ctx, listener);
}

static bool bare_agents(void *ctx, const char *name)
{
        return floor_agents(ctx, name);
}

static void report(const char *name, const struct storm_result *r, uint64_t up, uint64_t down,
                   const char *end)
{
        printf(" \"%s\": {\"wall_ms\": %.3f, \"head_ms\": %.3f, \"agents_ms\": %.3f, "
               "\"head_kb\": %" PRId64 ", \"agents_kb\": %" PRId64 ", \"messages_up\": %" PRIu64
               ", \"messages_down\": %" PRIu64 ", \"bytes_up\": %" PRIu64
               ", \"bytes_down\": %" PRIu64 "}%s\n",
               name, (double)r->wall_ns / 1e6, (double)r->head_ns / 1e6, (double)r->agents_ns / 1e6,
               r->head_kb, r->agents_kb, r->up, r->down, up, down, end);
}

static void report_all(const struct storm *s)
{
        uint64_t up = 0, down = 0, writes = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++) {
                up += s->traffic[i].written;
                down += s->traffic[i].read;
                writes += s->traffic[i].writes;
        }
        printf("{\"pattern\": \"%s\", \"ranks\": %u, \"nodes\": %u, \"writes_up\": %" PRIu64 ",\n",
               names[s->pattern], s->n_ranks, s->n_nodes, writes);
        report("real", &s->real, up, down, ",");
        report("floor", &s->floor, up, down, "}");
}

static struct storm *shared(enum storm_pattern pattern, uint32_t n_ranks, uint32_t per_node)
{
        uint32_t n_nodes = (n_ranks + per_node - 1) / per_node;
        struct storm *s = pair_memory(sizeof(*s) + n_nodes * sizeof(s->traffic[0]));

        s->pattern = pattern;
        s->n_ranks = n_ranks;
        s->per_node = per_node;
        s->n_nodes = n_nodes;
        return s;
}

int main(int argc, char **argv)
{
        int pattern = 0, n_ranks = argc > 2 ? atoi(argv[2]) : 0;
        int per_node = argc > 3 ? atoi(argv[3]) : 8;
        struct storm *s;

        while (argc > 1 && pattern < STORM_PATTERNS && strcmp(names[pattern], argv[1]) != 0)
                pattern++;
        if (argc < 3 || pattern == STORM_PATTERNS || n_ranks < 1 || n_ranks > RANKS_MAX ||
            per_node < 1) {
                fputs("usage: storm nccl|poll|last|count RANKS [RANKS PER NODE]\n", stderr);
                return 64;
        }
        s = shared((enum storm_pattern)pattern, (uint32_t)n_ranks, (uint32_t)per_node);
        pair_files(s->n_nodes);
        pair_run("real", s->n_nodes, real_head, real_agents, s);
        pair_run("floor", s->n_nodes, bare_head, bare_agents, s);
        report_all(s);
        return 0;
}

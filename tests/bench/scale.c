/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: scale NODES [RANKS PER NODE [SECONDS | fail | lose | check [FILE]]]
 *
 * Launches a job on simulated nodes with hnlaunch's own head, and then sends its traffic through a
 * bare loop (scale.h). With SECONDS its ranks wait so long behind the barrier, with 10,000 pings a
 * second, and the traffic is that of the wait. With fail rank 0 exits with 3, with lose
 * every second node drops its link, and the others are stopped. With check no ranks start: the
 * nodes are checked, a few of them with faults, the traffic is that of the check, and the table is
 * written to FILE. Prints one JSON object.
 */
#include "bench/scale.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "bench/pair.h"
#include "bench/usage.h"

enum { NODES_MAX = 1 << 16, RANKS_MAX = 1 << 19, SECONDS_MAX = 120 };

static const struct {
        const char *word;
        int code; /* of hnlaunch */
} ends[] = { [SCALE_WELL] = { "", 0 },
             [SCALE_FAIL] = { "fail", SCALE_CODE },
             [SCALE_LOSE] = { "lose", 125 },
             [SCALE_CHECK] = { "check", 0 } };

void scale_mark(struct scale *s, enum scale_step step)
{
        s->marks[step] = (struct scale_mark){ usage_now_ns(), usage_of(s->head).cpu_ns };
}

static bool real_head(void *ctx, int listener)
{
        return scale_head(ctx, listener);
}

static bool real_agents(void *ctx, const char *name)
{
        return scale_agents(ctx, name);
}

static bool bare_head(void *ctx, int listener)
{
        return floor_head(((struct scale *)ctx)->floor, listener);
}

static bool bare_agents(void *ctx, const char *name)
{
        return floor_agents(((struct scale *)ctx)->floor, name);
}

static bool is_as_expected(const struct scale *s)
{
        uint32_t faults = 0;

        if (s->end != SCALE_CHECK)
                return s->exit_code == ends[s->end].code && s->joined == s->n_ranks;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                faults += scale_fault_of(i) != SCALE_FAULTS;
        return s->joined == faults && !s->false_alarms;
}

static struct scale *shared(uint32_t n_nodes, uint32_t per_node, int idle_s, enum scale_end end)
{
        struct scale *s = pair_memory(sizeof(*s));

        *s = (struct scale){ .n_nodes = n_nodes,
                             .per_node = per_node,
                             .n_ranks = n_nodes * per_node,
                             .idle_s = idle_s,
                             .end = end };
        s->floor = pair_memory(sizeof(*s->floor) + n_nodes * sizeof(s->floor->traffic[0]));
        s->floor->n_nodes = n_nodes;
        return s;
}

static void report_step(const struct scale *s, const char *name, enum scale_step from,
                        enum scale_step to)
{
        const struct scale_mark *a = &s->marks[from], *b = &s->marks[to];

        printf(" \"%s\": {\"wall_ms\": %.3f, \"cpu_ms\": %.3f},\n", name,
               (double)(b->at_ns - a->at_ns) / 1e6, (double)(b->cpu_ns - a->cpu_ns) / 1e6);
}

static void report(const struct scale *s)
{
        const struct storm_result *f = &s->floor->floor;
        uint64_t writes = 0, up = 0, down = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++) {
                writes += s->floor->traffic[i].writes;
                up += s->floor->traffic[i].written;
                down += s->floor->traffic[i].read;
        }
        printf("{\"nodes\": %u, \"ranks\": %u, \"exit\": %d, \"joined\": %u,\n", s->n_nodes,
               s->n_ranks, s->exit_code, s->joined);
        report_step(s, "connect", SCALE_START, SCALE_READY);
        report_step(s, s->end == SCALE_CHECK ? "ask" : "plan", SCALE_READY, SCALE_LAUNCH);
        report_step(s, s->end == SCALE_CHECK ? "judge" : "barrier", SCALE_LAUNCH, SCALE_BARRIER);
        report_step(s, "idle", SCALE_BARRIER, SCALE_IDLE);
        report_step(s, "end", SCALE_IDLE, SCALE_END);
        if (s->end == SCALE_CHECK)
                printf(" \"found\": %u, \"false_alarms\": %u,\n", s->joined, s->false_alarms);
        printf(" \"pings\": %" PRIu64 ", \"start_kb\": %" PRId64 ", \"peak_kb\": %" PRId64 ",\n",
               s->pings, s->start_kb, s->peak_kb);
        printf(" \"writes_up\": %" PRIu64 ", \"bytes_up\": %" PRIu64 ", \"bytes_down\": %" PRIu64
               ",\n",
               writes, up, down);
        printf(" \"floor\": {\"wall_ms\": %.3f, \"cpu_ms\": %.3f, \"open_ms\": %.3f, \"peak_kb\": "
               "%" PRId64 "}}\n",
               (double)f->wall_ns / 1e6, (double)f->head_ns / 1e6, (double)f->open_ns / 1e6,
               f->head_kb);
}

int main(int argc, char **argv)
{
        int n_nodes = argc > 1 ? atoi(argv[1]) : 0, per_node = argc > 2 ? atoi(argv[2]) : 8;
        int idle_s = argc > 3 ? atoi(argv[3]) : 0;
        enum scale_end end = SCALE_WELL;
        struct scale *s;

        while (argc > 3 && end < SCALE_CHECK && strcmp(ends[end].word, argv[3]) != 0)
                end++;
        if (argc > 3 && strcmp(ends[end].word, argv[3]) != 0)
                end = SCALE_WELL;
        if (n_nodes < 1 || n_nodes > NODES_MAX || per_node < 1 || per_node > RANKS_MAX / n_nodes ||
            idle_s < 0 || idle_s > SECONDS_MAX) {
                fputs("usage: scale NODES [RANKS PER NODE [SECONDS | fail | lose | check "
                      "[FILE]]]\n",
                      stderr);
                return 64;
        }
        s = shared((uint32_t)n_nodes, (uint32_t)per_node, idle_s, end);
        s->table = argc > 4 ? argv[4] : NULL;
        pair_files(s->n_nodes);
        pair_run("head", s->n_nodes, real_head, real_agents, s);
        pair_run("floor", s->n_nodes, bare_head, bare_agents, s);
        report(s);
        return is_as_expected(s) ? 0 : 1;
}

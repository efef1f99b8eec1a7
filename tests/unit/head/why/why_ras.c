/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's RAS beside the other sources: when it is evidence, and when only a note. */
#include "head/why/why_ras.h"

#include <stdio.h>

#include "base/memory.h"
#include "lib/unit.h"

enum { N = 4 };

#define SYNCING    "#0  0x1 poll\n#1  0x2 wait_for_gpu\n#2  0x3 main\n"
#define LOADING    "#0  0x1 poll\n#1  0x2 load_batch\n#2  0x3 main\n"
#define MEETING    "#0  0x1 poll\n#1  0x2 ncclAllReduce\n#2  0x3 main\n"
#define RANK(r, n) "{\"rank\":" #r ",\"pid\":10" #r ",\"collective_counts\":{\"AllReduce\":" #n "}}"
#define COMM(ranks, missing)                                                                       \
        "{\"nccl_version\":\"2.29.7\",\"communicators\":[{\"hash\":\"0xab\",\"size\":4,"           \
        "\"ranks\":[" ranks "],\"missing_ranks\":[" missing "]}]}"
#define BEHIND COMM(RANK(0, 41) "," RANK(1, 41) "," RANK(2, 40) "," RANK(3, 41), "")
#define EVEN   COMM(RANK(0, 41) "," RANK(1, 41) "," RANK(2, 41) "," RANK(3, 41), "")
#define SILENT                                                                                     \
        COMM(RANK(0, 41) "," RANK(1, 41) "," RANK(3, 41),                                          \
             "{\"rank\":2,\"pid\":102,\"status\":{\"unresponsive\":true}}")

/* Which stack the ranks have, and what rank 2 does. */
struct scene {
        const char *others, *odd;
        char state;
        uint32_t cpu_permille;
        const char *ras;
        enum why_kind kind;
        bool is_used;
        const char *text; /* a part of the text, or of the note if RAS is not used */
};

static const struct scene scenes[] = {
        /* Only RAS knows that the others wait; rank 2 sleeps. */
        { SYNCING, LOADING, 'S', 0, BEHIND, WHY_HANG, true,
          "NCCL's RAS, communicator ab (4 ranks): rank 2 has launched 40 AllReduce, the other 3 "
          "ranks 41; rank 2 (gpu001, pid 102) sleeps in load_batch" },
        /* Rank 2 computes: maybe it is only slower. */
        { SYNCING, LOADING, 'R', 990, BEHIND, WHY_NO_HANG, false,
          "NCCL's RAS alone says, communicator ab (4 ranks): rank 2 has launched 40 AllReduce" },
        /* Other sources have named it already. */
        { MEETING, LOADING, 'S', 0, BEHIND, WHY_HANG, true,
          "sleeps in load_batch; NCCL's RAS agrees, communicator ab (4 ranks): rank 2 has" },
        { MEETING, LOADING, 'T', 0, SILENT, WHY_HANG, true,
          "NCCL's RAS agrees, communicator ab (4 ranks): rank 2 does not answer" },
        /* All wait in one call, as far as the stacks tell. */
        { MEETING, MEETING, 'S', 0, BEHIND, WHY_ALL_WAIT, false, "NCCL's RAS alone says, " },
        /* RAS has seen no difference in jobs that hung. */
        { MEETING, LOADING, 'S', 0, EVEN, WHY_HANG, false,
          "NCCL's RAS (2.29.7) sees no difference between ranks" },
};

static int rank_of_pid(void *ctx UNUSED, const struct ras_process *p)
{
        return p->pid - 100;
}

static void take_scene_rank(struct why_rank *r, int rank, const struct scene *s)
{
        struct inspected m = { .pid = 100 + (uint32_t)rank,
                               .state = rank == 2 ? (uint8_t)s->state : 'S',
                               .cpu_permille = rank == 2 ? s->cpu_permille : 0,
                               .stack = xstrdup(rank == 2 ? s->odd : s->others) };

        snprintf(m.source, sizeof(m.source), "eu-stack");
        *r = (struct why_rank){ .rank = rank, .replica = -1, .host = "gpu001" };
        why_rank_take(r, &m);
}

TEST(ras_is_evidence_beside_others_only)
{
        for (size_t i = 0; i < ARRAY_SIZE(scenes); i++) {
                const struct scene *s = &scenes[i];
                struct why_rank ranks[N];
                struct why_finding f;
                struct ras_answer a;
                const char *told;

                for (int r = 0; r < N; r++)
                        take_scene_rank(&ranks[r], r, s);
                assert_true(ras_parse(&a, s->ras, strlen(s->ras)));
                ras_map(&a, rank_of_pid, NULL);
                why_find(ranks, N, &f);
                why_use_ras(ranks, N, &a, &f);
                told = s->is_used ? f.text : f.notes.n ? f.notes.v[0] : "";
                if (!strstr(told, s->text))
                        fail_msg("scene %zu: \"%s\"", i, told);
                assert_int_equal(f.kind, s->kind);
                assert_int_equal(f.uses_ras, s->is_used);
                assert_int_equal(f.outliers.n, s->kind == WHY_HANG);
                if (f.outliers.n)
                        assert_int_equal(f.outliers.v[0], 2);
                why_finding_finish(&f);
                ras_finish(&a);
                for (int r = 0; r < N; r++)
                        why_rank_finish(&ranks[r]);
        }
}

TEST(a_hang_that_ras_has_shown_is_sure)
{
        struct why_rank ranks[N];
        struct why_finding f;
        struct ras_answer a;

        for (int r = 0; r < N; r++)
                take_scene_rank(&ranks[r], r, &scenes[0]);
        assert_true(ras_parse(&a, BEHIND, strlen(BEHIND)));
        ras_map(&a, rank_of_pid, NULL);
        why_find(ranks, N, &f);
        assert_false(f.is_sure);
        why_use_ras(ranks, N, &a, &f);
        assert_true(f.is_sure);
        why_finding_finish(&f);

        ranks[1].life = WHY_SILENT; /* not all were seen */
        why_find(ranks, N, &f);
        why_use_ras(ranks, N, &a, &f);
        assert_false(f.is_sure);
        why_finding_finish(&f);
        ras_finish(&a);
        for (int r = 0; r < N; r++)
                why_rank_finish(&ranks[r]);
}

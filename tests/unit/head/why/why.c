/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank is named, and what is said of it, for hangs and for what is none. */
#include "head/why/why.h"

#include <stdio.h>

#include "base/memory.h"
#include "lib/unit.h"

#define WAITING                                                                                    \
        "Thread 1 (idle): \"MainThread\"\n"                                                        \
        "    all_reduce (torch/distributed/distributed_c10d.py:9)\n"                               \
        "    train (train.py:57)\n"
#define GATHERING                                                                                  \
        "Thread 1 (idle): \"MainThread\"\n"                                                        \
        "    all_gather (torch/distributed/distributed_c10d.py:8)\n"                               \
        "    train (train.py:60)\n"
#define LOADING                                                                                    \
        "Thread 1 (idle): \"MainThread\"\n"                                                        \
        "    load_batch (loader.py:88)\n"                                                          \
        "    train (train.py:50)\n"
#define MEETING     "#0  0x1 poll\n#1  0x2 hn_barrier\n#2  0x3 main\n"
#define IN_MPI      "#0  0x1 MPI_Barrier\n#1  0x2 main\n"
#define ADDING(way) "#0  0x1 poll\n#1  0x2 hn_all_reduce\n#2  0x3 add_up\n#3  0x4 " way "\n"
#define BACKWARD                                                                                   \
        "Thread 1 (idle): \"MainThread\"\n"                                                        \
        "    _engine_run_backward (torch/autograd/graph.py:8)\n"                                   \
        "    train (train.py:55)\n"

/* The evidence about one rank. */
struct sight {
        enum why_life life;
        char state;
        uint32_t cpu_permille, io_kib;
        const char *stack;
        const char *wait;
        uint32_t wait_ms;
        const char *channel, *blocked;
        const char *stack_before; /* NULL = the same */
        char state_before;        /* 0 = the same */
};

#define SLEEPS_IN(text)                                                                            \
        {                                                                                          \
                .state = 'S', .stack = (text)                                                      \
        }
/* Waits for a processor: counts as a tenth of a core. */
#define STARVED_IN(text)                                                                           \
        {                                                                                          \
                .state = 'S', .cpu_permille = 100, .stack = (text)                                 \
        }
#define COMPUTES_IN(text)                                                                          \
        {                                                                                          \
                .state = 'R', .cpu_permille = 980, .stack = (text)                                 \
        }

static struct inspected see(const struct sight *s, const char *stack)
{
        struct inspected m = { .pid = 4711,
                               .state = (uint8_t)s->state,
                               .cpu_permille = s->cpu_permille,
                               .io_kib = s->io_kib,
                               .stack = xstrdup(stack ? stack : "") };

        snprintf(m.source, sizeof(m.source), "py-spy");
        snprintf(m.channel, sizeof(m.channel), "%s", s->channel ? s->channel : "");
        snprintf(m.blocked, sizeof(m.blocked), "%s", s->blocked ? s->blocked : "");
        return m;
}

static void take_sight(struct why_rank *r, int rank, const struct sight *s)
{
        struct inspected m;

        *r = (struct why_rank){ .rank = rank, .replica = -1, .host = "gpu001", .life = s->life };
        snprintf(r->wait, sizeof(r->wait), "%s", s->wait ? s->wait : "");
        r->wait_ms = s->wait_ms;
        if (s->life != WHY_ALIVE)
                return;
        m = see(s, s->stack_before ? s->stack_before : s->stack);
        m.state = (uint8_t)(s->state_before ? s->state_before : s->state);
        why_rank_take(r, &m);
        m = see(s, s->stack);
        why_rank_take(r, &m);
}

static const struct {
        struct sight sights[4];
        enum why_kind kind;
        const char *text, *brief; /* NULL = not compared */
} cases[] = {
        /* MPI spins: a program that meets again and again looks the same. */
        { { COMPUTES_IN(IN_MPI), COMPUTES_IN(IN_MPI), COMPUTES_IN(IN_MPI), COMPUTES_IN(IN_MPI) },
          WHY_ALL_WAIT,
          "ranks 0-3 wait in MPI_Barrier (MPI), called in main; no rank is elsewhere, so none is "
          "seen to keep the others waiting; MPI and NCCL use the processor while they wait, so the "
          "ranks may also go on" },
        { { COMPUTES_IN(IN_MPI), COMPUTES_IN(IN_MPI), COMPUTES_IN(IN_MPI), SLEEPS_IN(LOADING) },
          WHY_HANG,
          "ranks 0-2 wait in MPI_Barrier (MPI), called in main; rank 3 (gpu001, pid 4711) does "
          "not: "
          "it sleeps in load_batch (loader.py:88)" },
        /* Crossed groups: one call, on two ways. */
        { { SLEEPS_IN(ADDING("sync_model")), SLEEPS_IN(ADDING("sync_model")),
            SLEEPS_IN(ADDING("sync_experts")), SLEEPS_IN(ADDING("sync_model")) },
          WHY_MISMATCH,
          "the ranks wait in different operations: ranks 0-1,3 wait in hn_all_reduce "
          "(libhnlaunch), "
          "called in add_up <- sync_model; rank 2 waits in hn_all_reduce (libhnlaunch), called in "
          "add_up <- sync_experts" },
        { { SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), SLEEPS_IN(LOADING) },
          WHY_HANG,
          "ranks 0-2 wait in all_reduce (torch.distributed), called in train (train.py:57); rank 3 "
          "(gpu001, pid 4711) does not: it sleeps in load_batch (loader.py:88)",
          "rank 3 on gpu001 sleeps in load_batch (loader.py:88); 3 ranks wait in all_reduce "
          "(torch.distributed), called in train (train.py:57)" },
        { { SLEEPS_IN(WAITING),
            SLEEPS_IN(WAITING),
            { .state = 'S', .stack = LOADING, .blocked = "read /tmp/fifo" },
            SLEEPS_IN(WAITING) },
          WHY_HANG,
          "ranks 0-1,3 wait in all_reduce (torch.distributed), called in train (train.py:57); rank "
          "2 (gpu001, pid 4711) does not: it waits to read /tmp/fifo in load_batch "
          "(loader.py:88)" },
        /* The others may have failed without it. */
        { { { .life = WHY_ENDED },
            { .life = WHY_ENDED },
            SLEEPS_IN(LOADING),
            { .life = WHY_ENDED } },
          WHY_NO_HANG,
          "no hang is visible: no rank is seen to wait for another; rank 2 (gpu001, pid 4711) "
          "sleeps "
          "in load_batch (loader.py:88)",
          "rank 2 on gpu001 sleeps in load_batch (loader.py:88)" },
        { { SLEEPS_IN(WAITING),
            { .state = 'T', .stack = WAITING },
            SLEEPS_IN(WAITING),
            { .life = WHY_ENDED } },
          WHY_HANG,
          "ranks 0,2 wait in all_reduce (torch.distributed), called in train (train.py:57); rank 1 "
          "(gpu001, pid 4711) does not: it is stopped by a signal (state T) in train "
          "(train.py:57); rank 3 (gpu001) does not: it has ended",
          "rank 1 (gpu001, pid 4711) is stopped by a signal (state T) in train (train.py:57); rank "
          "3 "
          "(gpu001) has ended; 2 ranks wait in all_reduce (torch.distributed), called in train "
          "(train.py:57)" },
        { { SLEEPS_IN(WAITING),
            { .state = 'D', .stack = LOADING, .channel = "nfs_wait_on_request" },
            SLEEPS_IN(WAITING),
            { .life = WHY_SILENT } },
          WHY_HANG,
          "ranks 0,2 wait in all_reduce (torch.distributed), called in train (train.py:57); rank 1 "
          "(gpu001, pid 4711) does not: it waits for a file system or a device (state D) in "
          "load_batch (loader.py:88), in the kernel's nfs_wait_on_request; rank 3 (gpu001) does "
          "not: it is on a node that does not answer" },
        { { SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), { .life = WHY_LOST } },
          WHY_HANG,
          "ranks 0-2 wait in all_reduce (torch.distributed), called in train (train.py:57); rank 3 "
          "(gpu001) does not: it is lost with its node" },
        /* The store alone, without stacks. */
        { { { .state = 'S', .wait = "in barrier `x`", .wait_ms = 41000 },
            { .state = 'S', .wait = "in barrier `x`", .wait_ms = 40000 },
            { .state = 'S', .channel = "futex_wait" },
            { .state = 'S', .wait = "in barrier `x`", .wait_ms = 40000 } },
          WHY_HANG,
          "ranks 0-1,3 wait in barrier `x`, for 41.0s; rank 2 (gpu001, pid 4711) does not: it "
          "sleeps, in the kernel's futex_wait" },
        /* A small share of a core is no computing in backward, which may wait. */
        { { SLEEPS_IN(BACKWARD), SLEEPS_IN(BACKWARD), SLEEPS_IN(BACKWARD), SLEEPS_IN(LOADING) },
          WHY_HANG,
          "ranks 0-2 wait in backward (torch.autograd), called in train (train.py:55); rank 3 "
          "(gpu001, pid 4711) does not: it sleeps in load_batch (loader.py:88)" },
        /* Ranks that wait for each other and, on a busy node, for a processor. */
        { { STARVED_IN(WAITING), STARVED_IN(WAITING), STARVED_IN(GATHERING), STARVED_IN(WAITING) },
          WHY_MISMATCH,
          "the ranks wait in different operations: ranks 0-1,3 wait in all_reduce "
          "(torch.distributed), called in train (train.py:57); rank 2 waits in all_gather "
          "(torch.distributed), called in train (train.py:60)" },
        { { STARVED_IN(WAITING), STARVED_IN(LOADING), STARVED_IN(WAITING), STARVED_IN(WAITING) },
          WHY_NO_HANG,
          "no hang is visible: ranks 0,2-3 wait in all_reduce (torch.distributed), called in train "
          "(train.py:57); rank 1 (gpu001, pid 4711) does not: it computes (10 % of a core) in "
          "load_batch (loader.py:88), so it may only be slower" },
        /* A lock in memory. */
        { { SLEEPS_IN(WAITING), SLEEPS_IN(WAITING),
            SLEEPS_IN("#0  0x1 futex_wait\n#1  0x2 __lll_lock_wait\n#2  0x3 pthread_mutex_lock\n"
                      "#3  0x4 exchange_halo\n#4  0x5 main\n"),
            SLEEPS_IN(WAITING) },
          WHY_HANG,
          "ranks 0-1,3 wait in all_reduce (torch.distributed), called in train (train.py:57); rank "
          "2 "
          "(gpu001, pid 4711) does not: it waits for a mutex in exchange_halo" },
        /* In state D by chance: in one look of two. */
        { { SLEEPS_IN(WAITING),
            { .state = 'D', .state_before = 'S', .stack = LOADING, .channel = "unlink_file_vma" },
            SLEEPS_IN(WAITING),
            SLEEPS_IN(WAITING) },
          WHY_HANG,
          "ranks 0,2-3 wait in all_reduce (torch.distributed), called in train (train.py:57); rank "
          "1 "
          "(gpu001, pid 4711) does not: it sleeps in load_batch (loader.py:88), in the kernel's "
          "unlink_file_vma" },
        /* Other orders of operations. */
        { { SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), SLEEPS_IN(GATHERING), SLEEPS_IN(WAITING) },
          WHY_MISMATCH,
          "the ranks wait in different operations: ranks 0-1,3 wait in all_reduce "
          "(torch.distributed), called in train (train.py:57); rank 2 waits in all_gather "
          "(torch.distributed), called in train (train.py:60)",
          "rank 2 on gpu001 waits in all_gather (torch.distributed), called in train "
          "(train.py:60); 3 ranks wait in all_reduce (torch.distributed), called in train "
          "(train.py:57)" },
        { { SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), SLEEPS_IN(WAITING) },
          WHY_ALL_WAIT,
          "ranks 0-3 wait in all_reduce (torch.distributed), called in train (train.py:57); no "
          "rank is elsewhere, so none is seen to keep the others waiting",
          "4 ranks wait in all_reduce (torch.distributed), called in train (train.py:57)" },
        /* No hangs. */
        { { SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), SLEEPS_IN(WAITING), COMPUTES_IN(LOADING) },
          WHY_NO_HANG,
          "no hang is visible: ranks 0-2 wait in all_reduce (torch.distributed), called in train "
          "(train.py:57); rank 3 (gpu001, pid 4711) does not: it computes (98 % of a core) in "
          "load_batch (loader.py:88), so it may only be slower" },
        { { SLEEPS_IN(WAITING),
            { .state = 'D', .stack = LOADING, .io_kib = 900 },
            SLEEPS_IN(WAITING),
            SLEEPS_IN(WAITING) },
          WHY_NO_HANG,
          "no hang is visible: ranks 0,2-3 wait in all_reduce (torch.distributed), called in train "
          "(train.py:57); rank 1 (gpu001, pid 4711) does not: it reads or writes (900 KiB in a "
          "second) in load_batch (loader.py:88), so it may only be slower" },
        { { COMPUTES_IN(LOADING), COMPUTES_IN(LOADING), COMPUTES_IN(LOADING),
            COMPUTES_IN(LOADING) },
          WHY_NO_HANG,
          "no hang is visible: no rank is seen to wait for another; ranks 0-3: each computes (98 "
          "% of a core) in load_batch (loader.py:88)" },
        { { SLEEPS_IN(WAITING),
            SLEEPS_IN(WAITING),
            { .state = 'S', .stack = LOADING, .stack_before = WAITING },
            SLEEPS_IN(WAITING) },
          WHY_NO_HANG,
          "no hang is visible: ranks 0-1,3 wait in all_reduce (torch.distributed), called in train "
          "(train.py:57); rank 2 (gpu001, pid 4711) does not: it goes on in load_batch "
          "(loader.py:88), so it may only be slower" },
        { { { .state = 'S', .stack = WAITING, .stack_before = LOADING },
            SLEEPS_IN(GATHERING),
            SLEEPS_IN(WAITING),
            SLEEPS_IN(WAITING) },
          WHY_NO_HANG,
          "no hang is visible: ranks 0,2-3 wait in all_reduce (torch.distributed), called in train "
          "(train.py:57); rank 1 waits in all_gather (torch.distributed), called in train "
          "(train.py:60); the ranks go on" },
        /* Met in the call by chance: no request to the store is open. */
        { { SLEEPS_IN(MEETING), SLEEPS_IN(MEETING), SLEEPS_IN(MEETING), SLEEPS_IN(MEETING) },
          WHY_NO_HANG,
          "no hang is visible: ranks 0-3 wait in hn_barrier (libhnlaunch), called in main; the "
          "ranks "
          "go on" },
        { { { .life = WHY_NOT_STARTED },
            { .life = WHY_NOT_STARTED },
            { .state = 'T', .stack = LOADING },
            COMPUTES_IN(LOADING) },
          WHY_HANG,
          "no rank is seen to wait for another, but rank 2 (gpu001, pid 4711) is stopped by a "
          "signal (state T) in load_batch (loader.py:88)" },
};

TEST(the_finding_follows_the_evidence)
{
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct why_rank ranks[4];
                struct why_finding f;

                for (int r = 0; r < 4; r++)
                        take_sight(&ranks[r], r, &cases[i].sights[r]);
                why_find(ranks, 4, &f);
                assert_string_equal(f.text, cases[i].text);
                assert_int_equal(f.kind, cases[i].kind);
                if (cases[i].brief)
                        assert_string_equal(f.brief, cases[i].brief);
                else if (f.kind == WHY_NO_HANG || strstr(f.text, "may also go on"))
                        assert_null(f.brief);
                assert_int_equal(f.is_sure, !strstr(f.text, "no rank is seen to wait") &&
                                                    !strstr(f.text, "does not answer") &&
                                                    !strstr(f.text, "is lost") &&
                                                    !strstr(f.text, "may also go on"));
                why_finding_finish(&f);
                for (int r = 0; r < 4; r++)
                        why_rank_finish(&ranks[r]);
        }
}

/* A node that is slow to answer one question, but has answered another, is not silent. */
TEST(an_answer_to_any_question_breaks_the_silence)
{
        struct sight s = SLEEPS_IN(WAITING);
        CLEANUP(why_rank_finish) struct why_rank r = { 0 };
        struct inspected m;

        take_sight(&r, 0, &s);
        why_rank_miss(&r, 8);
        assert_int_equal(r.life, WHY_SILENT);
        m = see(&s, WAITING);
        m.number = 8;
        why_rank_take(&r, &m);
        assert_int_equal(r.life, WHY_ALIVE);
        why_rank_miss(&r, 8);
        assert_int_equal(r.life, WHY_ALIVE);
        why_rank_miss(&r, 9);
        assert_int_equal(r.life, WHY_SILENT);
}

/* Many ranks at other places each: the sentence stays short, the rows end. */
TEST(a_large_world_stays_readable)
{
        enum { N = 3000 };
        struct why_rank *ranks = xcalloc(N, sizeof(*ranks));
        struct why_finding f;
        char stack[200];
        json_t *j;

        for (int i = 0; i < N; i++) {
                struct sight s = SLEEPS_IN(stack);

                snprintf(stack, sizeof(stack),
                         i < 8 ? WAITING : "Thread 1: \"MainThread\"\n    f%d (a.py:1)\n", i);
                take_sight(&ranks[i], i, &s);
        }
        why_find(ranks, N, &f);
        assert_int_equal(f.kind, WHY_HANG);
        assert_int_equal(f.outliers.n, N - 8);
        assert_true(strlen(f.text) < 500);
        assert_non_null(strstr(f.text, "; and 2989 more"));
        j = why_describe(&f, ranks, N);
        assert_int_equal(json_array_size(json_object_get(j, "rows")), 25);
        assert_string_equal(json_string_value(json_array_get(json_object_get(j, "rows"), 24)),
                            "and 2976 more ranks");
        assert_int_equal(json_array_size(json_object_get(j, "ranks")), N);
        json_decref(j);
        why_finding_finish(&f);
        for (int i = 0; i < N; i++)
                why_rank_finish(&ranks[i]);
        free(ranks);
}

TEST(reasons_are_folded)
{
        struct why_rank ranks[3] = { 0 };
        struct why_finding f;
        const char *text;
        json_t *j;

        for (int i = 0; i < 3; i++) {
                struct sight s = { .state = 'S' };

                take_sight(&ranks[i], i, &s);
                ranks[i].host = i < 2 ? "gpu001" : "gpu002";
                snprintf(ranks[i].seen.problem, sizeof(ranks[i].seen.problem),
                         "not installed: gdb");
        }
        why_find(ranks, 3, &f);
        j = why_describe(&f, ranks, 3);
        text = json_string_value(json_array_get(json_object_get(j, "problems"), 0));
        assert_string_equal(text, "no stack of ranks 0-2 on gpu[001-002]: not installed: gdb");
        assert_int_equal(json_array_size(json_object_get(j, "problems")), 1);
        json_decref(j);
        why_finding_finish(&f);
        for (int i = 0; i < 3; i++)
                why_rank_finish(&ranks[i]);
}

/* Three worlds: the trainers hang, the server sleeps as it should, and what has ended is no part of
 * the hang. */
TEST(ranks_are_compared_within_their_world)
{
        struct sight sights[] = { SLEEPS_IN(WAITING),
                                  SLEEPS_IN(LOADING),
                                  SLEEPS_IN(WAITING),
                                  SLEEPS_IN(LOADING),
                                  { .life = WHY_ENDED } };
        static const char *const roles[] = { "router", "train", "train", "train", "once" };
        static const int firsts[] = { 0, 1, 1, 1, 4 };
        struct why_rank ranks[5] = { 0 };
        struct why_finding f;
        json_t *j;

        sights[0] = (struct sight)SLEEPS_IN(LOADING);
        sights[1] = (struct sight)SLEEPS_IN(WAITING);
        for (int i = 0; i < 5; i++) {
                take_sight(&ranks[i], i, &sights[i]);
                ranks[i].world = i == 0 ? 0 : i < 4 ? 1 : 2;
                ranks[i].first = firsts[i];
                ranks[i].role = roles[i];
        }
        why_find(ranks, 5, &f);
        assert_int_equal(f.kind, WHY_HANG);
        assert_true(f.is_sure);
        assert_int_equal(f.outliers.n, 1);
        assert_int_equal(f.outliers.v[0], 3);
        assert_int_equal(f.culprit, 3);
        assert_string_equal(f.text,
                            "role train: ranks 0-1 wait in all_reduce (torch.distributed), called "
                            "in train (train.py:57); rank 2 (gpu001, pid 4711) does not: it sleeps "
                            "in load_batch (loader.py:88)");
        assert_string_equal(f.brief,
                            "role train, rank 2 on gpu001 sleeps in load_batch (loader.py:88); 2 "
                            "ranks wait in all_reduce (torch.distributed), called in train "
                            "(train.py:57)");
        assert_int_equal(f.worlds.n, 1);
        assert_int_equal(f.worlds.v[0], 1);
        j = why_describe(&f, ranks, 5);
        assert_non_null(strstr(json_string_value(json_array_get(json_object_get(j, "rows"), 0)),
                               "role train, rank 2 on gpu001"));
        json_decref(j);
        why_finding_finish(&f);

        /* One world waits as a whole, another sleeps: nothing is odd. */
        for (int i = 1; i < 4; i++) {
                ranks[i].world = i == 3 ? 2 : 1;
                ranks[i].role = i == 3 ? "once" : "train";
                ranks[i].first = i == 3 ? 3 : 1;
        }
        ranks[4].first = 3;
        why_find(ranks, 5, &f);
        assert_int_equal(f.kind, WHY_ALL_WAIT);
        assert_int_equal(f.outliers.n, 0);
        why_finding_finish(&f);
        for (int i = 0; i < 5; i++)
                why_rank_finish(&ranks[i]);
}

/* Ranks 0 and 1 are a server whose rank 0 sleeps while rank 1 waits, ranks 2 and 3 trainers of
 * which rank 2 does as @trainer. */
static void find_beside_server(const struct sight *trainer, enum why_share server,
                               enum why_share trainers, struct why_finding *f)
{
        static const struct sight sleeps = SLEEPS_IN(LOADING), waits = SLEEPS_IN(WAITING);
        struct why_rank ranks[4] = { 0 };

        take_sight(&ranks[0], 0, &sleeps);
        take_sight(&ranks[1], 1, &waits);
        take_sight(&ranks[2], 2, trainer);
        take_sight(&ranks[3], 3, &waits);
        for (int i = 0; i < 4; i++) {
                ranks[i].world = i / 2;
                ranks[i].first = i / 2 * 2;
                ranks[i].role = i < 2 ? "server" : "train";
                ranks[i].share = i < 2 ? server : trainers;
        }
        why_find(ranks, 4, f);
        for (int i = 0; i < 4; i++)
                why_rank_finish(&ranks[i]);
}

TEST(a_server_may_idle)
{
        static const struct sight sleeps = SLEEPS_IN(LOADING), computes = COMPUTES_IN(LOADING);
        CLEANUP(why_finding_finish) struct why_finding f;

        find_beside_server(&computes, WHY_JUDGED, WHY_JUDGED, &f);
        assert_int_equal(f.kind, WHY_HANG);
        assert_int_equal(f.culprit, 0);
        why_finding_finish(&f);

        /* Trainers that compute need no server now. */
        find_beside_server(&computes, WHY_IDLES, WHY_JUDGED, &f);
        assert_int_equal(f.kind, WHY_NO_HANG);
        assert_int_equal(f.worlds.n, 0);
        assert_null(strstr(f.text, "server"));
        why_finding_finish(&f);

        /* A hang of the trainers is theirs. */
        find_beside_server(&sleeps, WHY_IDLES, WHY_JUDGED, &f);
        assert_int_equal(f.kind, WHY_HANG);
        assert_int_equal(f.outliers.n, 1);
        assert_int_equal(f.culprit, 2);
        assert_int_equal(f.worlds.n, 1);
        assert_int_equal(f.worlds.v[0], 1);
        why_finding_finish(&f);

        /* What goes on is not judged, and then the server is all that is left. */
        find_beside_server(&sleeps, WHY_IDLES, WHY_LEFT_OUT, &f);
        assert_int_equal(f.culprit, 0);
        assert_int_equal(f.worlds.v[0], 0);
        why_finding_finish(&f);
        find_beside_server(&sleeps, WHY_LEFT_OUT, WHY_LEFT_OUT, &f);
        assert_int_equal(f.kind, WHY_NO_HANG);
        assert_string_equal(f.text, "no hang is visible: all ranks go on");
}

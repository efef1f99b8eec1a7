/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pmix/pmix_describe.h"

#include "lib/unit.h"
#include "wire/helper/pmix_msg.h"

/* Describes 5 ranks on 3 nodes, with @local of node 1, and decodes that. */
static void describe(struct pmix_job *ret, const uint32_t *node_of_rank, uint32_t *local,
                     uint32_t n, struct strv *base)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        char *argv[] = { (char *)"./a.out", NULL };
        struct launch_program program = { .argv = { argv, 1, 2 } };
        struct launch_rank *ranks = calloc(n, sizeof(*ranks));
        struct launch_order l = { .run_id = "k3f9a",
                                  .world_size = 5,
                                  .num_nodes = 3,
                                  .node_rank = 1,
                                  .programs = &program,
                                  .n_programs = 1,
                                  .cwd = (char *)"/home",
                                  .ranks = ranks,
                                  .n_ranks = n };
        struct pmix_setup s = { .order = &l, .base = base, .cores = 2 };
        struct frame f;

        for (uint32_t i = 0; i < n; i++)
                ranks[i].rank = local[i];
        pmix_describe(&b, &s, node_of_rank, "/tmp/job/pmix");
        assert_int_equal(frame_peek(&b, &f, NULL), 1);
        assert_int_equal(f.type, PMIX_MSG_JOB);
        assert_int_equal(pmix_job_decode(ret, &f, NULL), 0);
        free(ranks);
}

TEST(ranks_are_mapped_to_nodes)
{
        static const uint32_t block[] = { 0, 0, 1, 1, 2 }, round[] = { 0, 1, 2, 0, 1 },
                              empty[] = { 0, 0, 0, 1, 1 };
        static const struct {
                const uint32_t *node_of_rank;
                uint32_t local[2];
                const char *ranks;
        } cases[] = { { block, { 2, 3 }, "0,1;2,3;4" },
                      { round, { 1, 4 }, "0,3;1,4;2" },
                      { empty, { 3, 4 }, "0,1,2;3,4;" } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint32_t local[] = { cases[i].local[0], cases[i].local[1] };
                struct strv base = STRV_INIT;
                CLEANUP(pmix_job_finish) struct pmix_job job;

                describe(&job, cases[i].node_of_rank, local, 2, &base);
                assert_string_equal(job.nodes, "node0,node1,node2");
                assert_string_equal(job.ranks, cases[i].ranks);
                assert_int_equal(job.n_local, 2);
                assert_int_equal(job.local[1], local[1]);
                assert_false(job.oversubscribed);
                assert_string_equal(job.run_id, "k3f9a");
                assert_string_equal(job.folder, "/tmp/job/pmix");
                assert_string_equal(job.program, "./a.out");
                assert_string_equal(job.cwd, "/home");
        }
}

TEST(the_prefix_of_the_ranks_comes_first)
{
        static const uint32_t nodes[] = { 0, 1, 1, 1, 2 };
        uint32_t local[] = { 1, 2, 3 };
        CLEANUP(strv_finish) struct strv base = STRV_INIT;
        CLEANUP(pmix_job_finish) struct pmix_job job;

        unsetenv("PMIX_PREFIX");
        describe(&job, nodes, local, 3, &base);
        assert_string_equal(job.prefix, "");
        assert_true(job.oversubscribed); /* 3 ranks, 2 processors */
        pmix_job_finish(&job);
        setenv("PMIX_PREFIX", "/node", 1);
        describe(&job, nodes, local, 3, &base);
        assert_string_equal(job.prefix, "/node");
        pmix_job_finish(&job);
        strv_push(&base, "PMIX_PREFIX=/rank");
        describe(&job, nodes, local, 3, &base);
        assert_string_equal(job.prefix, "/rank");
}

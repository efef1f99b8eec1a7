/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/helper/pmix_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"

TEST(job_comes_back)
{
        uint32_t local[] = { 2, 3 }, programs[] = { 0, 1 };
        const struct pmix_job m = { .run_id = "k3f9a",
                                    .restart = 1,
                                    .world_size = 4,
                                    .num_nodes = 2,
                                    .node = 1,
                                    .nodes = (char *)"node0,node1",
                                    .ranks = (char *)"0,1;2,3",
                                    .local = local,
                                    .n_local = 2,
                                    .programs = programs,
                                    .n_programs = 2,
                                    .oversubscribed = true,
                                    .folder = (char *)"/tmp/x",
                                    .program = (char *)"./a.out",
                                    .cwd = (char *)"/home",
                                    .prefix = (char *)"" };
        CLEANUP(pmix_job_finish) struct pmix_job got;

        ASSERT_ONLY_WHOLE(pmix_job, PMIX_MSG_JOB, &m);
        ASSERT_COMES_BACK(pmix_job, PMIX_MSG_JOB, &got, &m);
        assert_string_equal(got.run_id, "k3f9a");
        assert_int_equal(got.world_size, 4);
        assert_int_equal(got.node, 1);
        assert_string_equal(got.nodes, "node0,node1");
        assert_string_equal(got.ranks, "0,1;2,3");
        assert_int_equal(got.n_local, 2);
        assert_int_equal(got.local[1], 3);
        assert_int_equal(got.programs[1], 1);
        assert_true(got.oversubscribed);
        assert_string_equal(got.program, "./a.out");
        assert_string_equal(got.prefix, "");
}

TEST(env_comes_back_within_its_limit)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct pmix_env m = { .rank = 7, .vars = STRV_INIT }, got;
        struct frame f;

        strv_push(&m.vars, "PMIX_RANK=7");
        strv_push(&m.vars, "PMIX_NAMESPACE=x");
        pmix_env_encode(&b, &m);
        f = first_frame(&b);
        assert_int_equal(pmix_env_decode(&got, &f, NULL), 0);
        assert_int_equal(got.rank, 7);
        assert_int_equal(got.vars.n, 2);
        assert_string_equal(got.vars.v[1], "PMIX_NAMESPACE=x");
        pmix_env_finish(&got);
        while (m.vars.n <= PMIX_ENV_MAX)
                strv_push(&m.vars, "A=1");
        buf_clear(&b);
        pmix_env_encode(&b, &m);
        f = first_frame(&b);
        assert_int_equal(pmix_env_decode(&got, &f, NULL), -EPROTO);
        strv_finish(&m.vars);
}

TEST(note_comes_back)
{
        uint32_t ranks[] = { 0, 5 };
        struct pmix_note m = { .id = 9,
                               .rank = 3,
                               .status = -46,
                               .ranks = ranks,
                               .n_ranks = 2,
                               .data = (const unsigned char *)"a\0b",
                               .len = 3 };
        CLEANUP(pmix_note_finish) struct pmix_note got;

        ASSERT_COMES_BACK(pmix_note, PMIX_MSG_FENCE, &got, PMIX_MSG_FENCE, &m);
        assert_int_equal(got.id, 9);
        assert_int_equal(got.rank, 3);
        assert_int_equal(got.status, -46);
        assert_int_equal(got.n_ranks, 2);
        assert_int_equal(got.ranks[1], 5);
        assert_int_equal(got.len, 3);
        assert_memory_equal(got.data, "a\0b", 3);
}

/* A number of ranks that the bytes cannot hold allocates nothing. */
TEST(lying_counts_are_refused)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct pmix_note got;
        struct frame f;

        put_u32(&b, 1);
        put_u32(&b, 1);
        put_u32(&b, 0);
        put_u32(&b, UINT32_MAX);
        f = (struct frame){ PMIX_MSG_FENCE, buf_data(&b), buf_len(&b) };
        assert_int_equal(pmix_note_decode(&got, &f, NULL), -EPROTO);
        assert_null(got.ranks);
}

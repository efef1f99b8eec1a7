/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/status_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/msg.h"

enum { BUDGET = 210 }; /* bytes of a node with eight ranks and eight GPUs */

static struct frame encode_sample(struct buf *b, const struct sample *m)
{
        struct frame f;

        sample_encode(b, m);
        assert_int_equal(frame_peek(b, &f, NULL), 1);
        assert_int_equal(f.type, MSG_SAMPLED);
        return f;
}

TEST(a_busy_node_is_told_with_few_bytes)
{
        struct sample_rank ranks[8];
        struct sample_gpu gpus[8];
        struct sample in = { .mono_ms = UINT64_C(86400000) * 30,
                             .interval_ms = 1000,
                             .cpu_permille = 730,
                             .memory_mib = 900000,
                             .in_kib = 24000000,
                             .out_kib = 25000000,
                             .ranks = ranks,
                             .n_ranks = 8,
                             .gpus = gpus,
                             .n_gpus = 8 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT, again = BUF_INIT;
        CLEANUP(sample_finish) struct sample out;
        struct frame f;

        for (uint64_t i = 0; i < 8; i++) {
                ranks[i] = (struct sample_rank){ 5000 + i, 'R', 1350, 61000, 30, 13, 700 };
                gpus[i] = (struct sample_gpu){ 98, 79000 + i, 80, 71, 690 };
        }
        f = encode_sample(&b, &in);
        assert_true(buf_len(&b) <= BUDGET);
        assert_int_equal(sample_decode(&out, &f, NULL), 0);
        assert_int_equal(out.n_ranks, 8);
        assert_int_equal(out.ranks[7].rank, 5007);
        assert_int_equal(out.ranks[7].wait_ds, 700);
        assert_int_equal(out.n_gpus, 8);
        assert_int_equal(out.gpus[7].memory_mib, 79007);
        encode_sample(&again, &out);
        assert_int_equal(buf_len(&again), buf_len(&b));
        assert_memory_equal(buf_data(&again), buf_data(&b), buf_len(&b));
}

TEST(half_a_sample_is_refused)
{
        struct sample_rank rank = { .rank = 3, .state = 'S' };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f = encode_sample(&b, &(struct sample){ .ranks = &rank, .n_ranks = 1 });
        struct sample out;

        while (f.len--) {
                assert_int_equal(sample_decode(&out, &f, NULL), -EPROTO);
                assert_null(out.ranks);
        }
}

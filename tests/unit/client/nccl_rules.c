/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <hnlaunch/nccl_rules.h>

#include "lib/unit.h"

TEST(one_id_serves_128_ranks)
{
        static const struct {
                int ranks, ids;
        } cases[] = { { 1, 1 },   { 2, 1 },   { 127, 1 }, { 128, 1 },  { 129, 2 },
                      { 256, 2 }, { 257, 3 }, { 384, 3 }, { 1000, 8 }, { 16384, 128 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(hn_nccl_ids_for(cases[i].ranks), cases[i].ids);
}

/* Which id NCCL asks for @rank: the rule of NCCL's guide, literally. */
static int block_of(int rank, int n, int n_ids)
{
        int start = 0;

        for (int id = 0; id < n_ids; id++) {
                start += n / n_ids + (id < n % n_ids);
                if (rank < start)
                        return id;
        }
        return -1;
}

TEST(the_first_rank_of_each_block_makes_its_id)
{
        for (int n = 1; n <= 300; n++)
                for (int ids = 1; ids <= n; ids += n > 40 ? 7 : 1)
                        for (int rank = 0; rank < n; rank++) {
                                int block = block_of(rank, n, ids);
                                int first = rank == 0 || block_of(rank - 1, n, ids) != block;

                                assert_int_equal(hn_nccl_id_of(rank, n, ids), first ? block : -1);
                        }
}

TEST(every_id_is_made_once_at_any_size)
{
        for (int n = 1; n <= 4100; n += 13) {
                int ids = hn_nccl_ids_for(n), next = 0;

                for (int rank = 0; rank < n; rank++)
                        if (hn_nccl_id_of(rank, n, ids) >= 0)
                                assert_int_equal(hn_nccl_id_of(rank, n, ids), next++);
                assert_int_equal(next, ids);
        }
}

/* Eight GPUs on each of @n / 8 nodes. */
static void deal(hn_nccl_card *cards, int n)
{
        for (int i = 0; i < n; i++) {
                cards[i] = (hn_nccl_card){ .version = 22809, .node = i / 8, .device = i % 8 };
                snprintf(cards[i].address, sizeof(cards[i].address), "0000:%02x:00.0",
                         0x1b + i % 8);
        }
}

TEST(equal_gpus_of_different_nodes_are_fine)
{
        hn_nccl_card cards[64];
        int a = -1, b = -1;

        deal(cards, 64);
        assert_int_equal(hn_nccl_find_trouble(cards, 64, &a, &b), HN_NCCL_FINE);
        assert_int_equal(hn_nccl_find_trouble(cards, 1, &a, &b), HN_NCCL_FINE);
        assert_int_equal(a, -1);
}

TEST(two_ranks_on_one_gpu_are_found)
{
        hn_nccl_card cards[64];
        int a = -1, b = -1;

        deal(cards, 64);
        memcpy(cards[45].address, cards[42].address, sizeof(cards[42].address));
        assert_int_equal(hn_nccl_find_trouble(cards, 64, &a, &b), HN_NCCL_SHARED);
        assert_int_equal(a, 42);
        assert_int_equal(b, 45);
        cards[45].may_share = 1;
        assert_int_equal(hn_nccl_find_trouble(cards, 64, &a, &b), HN_NCCL_FINE);
        /* Not known is not equal. */
        deal(cards, 64);
        cards[42].address[0] = cards[45].address[0] = '\0';
        assert_int_equal(hn_nccl_find_trouble(cards, 64, &a, &b), HN_NCCL_FINE);
}

TEST(another_version_is_found_first)
{
        hn_nccl_card cards[16];
        int a = -1, b = -1;

        deal(cards, 16);
        cards[9].version = 22703;
        memcpy(cards[2].address, cards[1].address, sizeof(cards[1].address));
        assert_int_equal(hn_nccl_find_trouble(cards, 16, &a, &b), HN_NCCL_VERSIONS);
        assert_int_equal(a, 0);
        assert_int_equal(b, 9);
}

/* The sentences, in a world of one with a group of one: every member is rank 0. */
TEST(trouble_is_told_with_hosts_and_devices)
{
        hn_init_opts opts = { .size = sizeof(opts), .flags = HN_INIT_ALLOW_SINGLETON };
        hn_nccl_card cards[2];

        assert_int_equal(hn_init(&opts), HN_OK);
        deal(cards, 2);
        assert_int_equal(hn_nccl_compare_cards(NULL, cards, 2), HN_OK);
        memcpy(cards[1].address, cards[0].address, sizeof(cards[0].address));
        assert_int_equal(hn_nccl_compare_cards(NULL, cards, 2), HN_ERR_MISMATCH);
        assert_non_null(strstr(hn_last_error(), "both use GPU 0 (0000:1b:00.0): call "
                                                "cudaSetDevice(hn_local_rank()) first"));
        assert_non_null(strstr(hn_last_error(), hn_hostname_of(0)));
        cards[1].version = 21805;
        assert_int_equal(hn_nccl_compare_cards(NULL, cards, 2), HN_ERR_MISMATCH);
        assert_non_null(strstr(hn_last_error(), "has NCCL 2.28.9, rank"));
        assert_non_null(
                strstr(hn_last_error(), "has NCCL 2.18.5: all ranks need the same libnccl.so.2"));
        assert_int_equal(hn_finalize(), HN_OK);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of answers of NCCL's RAS: recorded ones of NCCL 2.29.7, and made ones. */
#include "head/why/ras_text.h"

#include "base/fd.h"
#include "base/memory.h"
#include "lib/unit.h"

#define ALL_AHEAD                                                                                  \
        "{\"nccl_version\":\"2.29.7\",\"communicators\":[{\"hash\":\"0xb98c7f3ba72a04f5\","        \
        "\"size\":4,\"ranks\":["                                                                   \
        "{\"rank\":0,\"pid\":1,\"host\":\"h\",\"collective_counts\":{\"AllReduce\":42}}]}]}"

static void parse_file(struct ras_answer *a, const char *name)
{
        CLEANUP(free_textp)
        char *path = xasprintf("%s/tests/fuzz/corpus/ras_text/%s", getenv("SOURCE_ROOT"), name);
        CLEANUP(free_textp) char *text = NULL;
        size_t len;

        assert_int_equal(fd_read_file(path, 1 << 20, &text, &len), 0);
        assert_true(ras_parse(a, text, len));
}

static void assert_count(const struct ras_count *k, uint64_t launched, size_t n_ranks)
{
        assert_string_equal(k->operation, "AllReduce");
        assert_int_equal(k->launched, launched);
        assert_int_equal(k->n_ranks, n_ranks);
}

static void assert_mismatch(const char *name, size_t named, int pid)
{
        CLEANUP(ras_finish) struct ras_answer a;

        parse_file(&a, name);
        assert_string_equal(a.version, "2.29.7");
        assert_int_equal(a.n_comms, 1);
        assert_int_equal(a.comms->size, 4);
        assert_int_equal(strlen(a.comms->name), 16);
        assert_int_equal(a.comms->n_counts, 2);
        assert_count(&a.comms->counts[0], 40, 1);
        assert_int_equal(a.comms->counts[0].n, 1);
        assert_int_equal(a.comms->counts[0].v->rank, 2);
        assert_int_equal(a.comms->counts[0].v->pid, pid);
        assert_string_equal(a.comms->counts[0].v->host, "127.0.0.1");
        assert_count(&a.comms->counts[1], 41, 3);
        assert_int_equal(a.comms->counts[1].n, named);
        assert_int_equal(a.comms->n_missing, 0);
}

TEST(a_rank_that_is_behind_is_found)
{
        assert_mismatch("nccl-2.29.7-mismatch.json", 3, 6210);
        assert_mismatch("nccl-2.29.7-mismatch.txt", 0, 6210);
}

TEST(ranks_that_are_even_are_no_difference)
{
        CLEANUP(ras_finish) struct ras_answer a;

        parse_file(&a, "nccl-2.29.7-even.json");
        assert_int_equal(a.n_all, 1);
        assert_int_equal(a.n_comms, 0);
        ras_finish(&a);
        parse_file(&a, "nccl-2.29.7-even.txt");
        assert_int_equal(a.n_comms, 0);
}

TEST(a_rank_without_an_answer_is_missing)
{
        static const char *const names[] = { "nccl-2.29.7-stopped.json", "nccl-2.29.7-stopped.txt",
                                             "nccl-2.29.7-dead.json", "nccl-2.29.7-dead.txt" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                CLEANUP(ras_finish) struct ras_answer a;

                parse_file(&a, names[i]);
                assert_int_equal(a.n_comms, 1);
                assert_int_equal(a.comms->n_counts, 0);
                assert_int_equal(a.comms->n_missing, 1);
                assert_int_equal(a.comms->missing->rank, 2);
                assert_true(a.comms->missing->pid > 0);
        }
}

TEST(text_of_older_releases_is_read)
{
        CLEANUP(ras_finish) struct ras_answer a;

        parse_file(&a, "made-2.27-counts.txt");
        assert_string_equal(a.version, "2.27.7");
        assert_int_equal(a.n_comms, 1);
        assert_string_equal(a.comms->name, "0d2f8ac9e2b3a6a1");
        assert_int_equal(a.comms->size, 8);
        assert_int_equal(a.comms->n_counts, 2);
        assert_string_equal(a.comms->counts[0].operation, "ReduceScatter");
        assert_int_equal(a.comms->counts[0].launched, 0);
        assert_int_equal(a.comms->counts[0].n_ranks, 2);
        assert_int_equal(a.comms->counts[0].n, 2);
        assert_int_equal(a.comms->counts[0].v[1].rank, 5);
        assert_int_equal(a.comms->counts[0].v[1].pid, 712);
        assert_string_equal(a.comms->counts[0].v[1].host, "10.0.0.8");
        assert_int_equal(a.comms->counts[1].launched, 12);
}

TEST(what_is_no_answer_is_refused)
{
        static const char *const texts[] = { "", "{", "{}", "HTTP/1.1 400 Bad Request\r\n",
                                             "{\"nccl_version\":\"2.29.7\"}" };
        struct ras_answer a;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                assert_false(ras_parse(&a, texts[i], strlen(texts[i])));
                ras_finish(&a);
        }
}

TEST(only_what_lasts_is_kept)
{
        CLEANUP(ras_finish) struct ras_answer a, b;

        parse_file(&a, "nccl-2.29.7-mismatch.json");
        parse_file(&b, "nccl-2.29.7-mismatch.json");
        ras_keep_lasting(&b, &a);
        assert_int_equal(b.n_comms, 1);
        assert_int_equal(b.comms->n_counts, 2);
        ras_finish(&a);
        assert_true(ras_parse(&a, ALL_AHEAD, strlen(ALL_AHEAD)));
        ras_keep_lasting(&b, &a);
        assert_int_equal(b.n_comms, 0);
        ras_finish(&a);
        ras_finish(&b);

        parse_file(&a, "nccl-2.29.7-stopped.json");
        parse_file(&b, "nccl-2.29.7-stopped.txt");
        ras_keep_lasting(&b, &a);
        assert_int_equal(b.n_comms, 1);
        assert_int_equal(b.comms->n_missing, 1);
}

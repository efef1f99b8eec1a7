/* SPDX-License-Identifier: Apache-2.0 */
#include "head/record/trace_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/store_msg.h"

static const int node_of[] = { 0, 0, 1 };
static const struct trace_places places = { node_of, 3, 2 };

static void begin_piece(struct buf *piece)
{
        buf_clear(piece);
        trace_begin(piece, 5000000);
}

static void put_step(struct buf *piece, uint64_t us, uint32_t rank, uint64_t step)
{
        trace_put(piece, 5000000,
                  &(struct trace_record){
                          .kind = TRACE_STEP, .us = us, .rank = rank, .number = step });
}

/* The node's clock is @offset_us ahead. */
static void end_piece(struct buf *file, const struct buf *piece, unsigned number, int node,
                      long long offset_us)
{
        buf_printf(file, "%u %d %lld 12 %zu\n", number, node, offset_us, buf_len(piece));
        buf_append(file, buf_data(piece), buf_len(piece));
        buf_append(file, "\n", 1);
}

TEST(nodes_are_merged_on_one_clock)
{
        CLEANUP(buf_finish) struct buf file = BUF_INIT, piece = BUF_INIT;
        CLEANUP(trace_log_finish) struct trace_log log;

        begin_piece(&piece);
        put_step(&piece, 5000000, 0, 7);
        end_piece(&file, &piece, 1, 0, 5000000 - 200);
        begin_piece(&piece);
        put_step(&piece, 5000000, 2, 8);
        end_piece(&file, &piece, 1, 1, 5000000 - 100);
        trace_log_read(&log, buf_data(&file), buf_len(&file), &places);
        assert_int_equal(log.n, 2);
        assert_true(log.v[0].us == 100 && log.v[0].rank == 2 && log.v[0].number == 8);
        assert_true(log.v[1].us == 200 && log.v[1].rank == 0 && log.v[1].number == 7);
        assert_true(log.nodes[0].there && log.nodes[1].there);
        assert_true(log.nodes[1].error_us == 12);
}

TEST(the_newest_answer_of_each_node_counts)
{
        CLEANUP(buf_finish) struct buf file = BUF_INIT, piece = BUF_INIT;
        CLEANUP(trace_log_finish) struct trace_log log;

        begin_piece(&piece);
        put_step(&piece, 5000001, 0, 1);
        end_piece(&file, &piece, 1, 0, 0);
        end_piece(&file, &piece, 2, 0, 0);
        begin_piece(&piece);
        put_step(&piece, 5000002, 2, 1);
        end_piece(&file, &piece, 1, 1, 0); /* node 1 was lost before the second request */
        trace_log_read(&log, buf_data(&file), buf_len(&file), &places);
        assert_int_equal(log.n, 2);
}

TEST(nodes_tell_of_their_own_ranks_only)
{
        CLEANUP(buf_finish) struct buf file = BUF_INIT, piece = BUF_INIT;
        CLEANUP(trace_log_finish) struct trace_log log;

        begin_piece(&piece);
        put_step(&piece, 5000001, 2, 1);
        put_step(&piece, 5000001, 3, 1);
        put_step(&piece, 5000001, UINT32_MAX, 1);
        end_piece(&file, &piece, 1, 0, 0);
        end_piece(&file, &piece, 1, 2, 0);
        end_piece(&file, &piece, 1, -1, 0);
        trace_log_read(&log, buf_data(&file), buf_len(&file), &places);
        assert_int_equal(log.n, 0);
}

TEST(samples_and_keys_are_kept)
{
        struct sample_rank ranks[] = { { .rank = 1, .state = 'R', .cpu_percent = 95 },
                                       { .rank = 2, .state = 'S' } };
        struct sample sample = { .cpu_permille = 300, .ranks = ranks, .n_ranks = 2 };
        CLEANUP(buf_finish) struct buf file = BUF_INIT, piece = BUF_INIT, body = BUF_INIT;
        CLEANUP(trace_log_finish) struct trace_log log;

        sample_encode(&body, &sample);
        begin_piece(&piece);
        trace_put(&piece, 5000000,
                  &(struct trace_record){ .kind = TRACE_SAMPLE,
                                          .us = 5000000,
                                          .data = buf_data(&body) + FRAME_HEADER,
                                          .len = buf_len(&body) - FRAME_HEADER });
        for (uint64_t i = 0; i < 3; i++)
                trace_put(&piece, 5000000 + i,
                          &(struct trace_record){ .kind = TRACE_OP,
                                                  .us = 5000001 + i,
                                                  .rank = 1,
                                                  .number = i ? STORE_BARRIER : STORE_SET,
                                                  .data = i ? "world" : "",
                                                  .len = i ? 5 : 0 });
        end_piece(&file, &piece, 1, 0, 0);
        trace_log_read(&log, buf_data(&file), buf_len(&file), &places);
        assert_int_equal(log.n_samples, 1);
        assert_int_equal(log.samples[0].s.cpu_permille, 300);
        assert_int_equal(log.n, 4); /* rank 2 is of the other node */
        assert_int_equal(log.v[0].kind, TRACE_SAMPLE);
        assert_true(log.v[0].number == 95 && log.v[0].more == 'R');
        assert_false(trace_event_waits(&log.v[0]) || trace_event_waits(&log.v[1]));
        assert_true(trace_event_waits(&log.v[2]));
        assert_int_equal(log.v[1].key, 0);
        assert_int_equal(log.v[2].key, log.v[3].key);
        assert_string_equal(log.keys[log.v[2].key], "world");
}

/* Whatever is cut off or changed, the rest is read, and nothing else. */
TEST(a_damaged_file_is_read_as_far_as_it_goes)
{
        CLEANUP(buf_finish) struct buf file = BUF_INIT, piece = BUF_INIT;
        struct trace_log log;
        unsigned char *copy;
        size_t len;

        for (int i = 0; i < 3; i++) {
                begin_piece(&piece);
                put_step(&piece, 5000001, 0, 1);
                end_piece(&file, &piece, 1, 0, 0);
        }
        len = buf_len(&file);
        copy = xcalloc(len, 1);
        for (size_t cut = 0; cut <= len; cut++) {
                trace_log_read(&log, buf_data(&file), cut, &places);
                assert_true(log.n <= 3 && (cut < len || log.n == 3));
                trace_log_finish(&log);
        }
        for (size_t at = 0; at < len; at++) {
                memcpy(copy, buf_data(&file), len);
                copy[at] ^= 0xff;
                trace_log_read(&log, copy, len, &places);
                assert_true(log.n <= 4);
                trace_log_finish(&log);
        }
        free(copy);
}

TEST(a_missing_file_is_none)
{
        CLEANUP(trace_log_finish) struct trace_log log;
        struct error err;

        assert_int_equal(trace_log_load(&log, AT_FDCWD, "/nowhere/trace", &places, &err), 0);
        assert_int_equal(log.n, 0);
        assert_false(log.nodes[0].there);
        trace_log_finish(&log);
        assert_true(trace_log_load(&log, AT_FDCWD, "/", &places, &err) < 0);
        assert_non_null(strstr(err.text, "cannot read /: "));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/run/output_file.h"
#include "lib/files.h"
#include "lib/unit.h"
#include "wire/msg.h"

static void append_to(const char *name, const char *text)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", scratch, name);

        append_to_file(path, text);
}

static void turn(void)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/output", scratch);
        CLEANUP(free_textp) char *old = xasprintf("%s/output.old", scratch);

        assert_int_equal(rename(path, old), 0);
}

static int remove_files(void **state UNUSED)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/output", scratch);
        CLEANUP(free_textp) char *old = xasprintf("%s/output.old", scratch);

        unlink(path);
        unlink(old);
        return 0;
}

static void expect_bytes(struct output_file *f, int rank, const char *text)
{
        struct output_piece p;

        assert_true(output_file_next(f, &p));
        assert_int_equal(p.kind, OUTPUT_BYTES);
        assert_int_equal(p.rank, rank);
        assert_int_equal(p.len, strlen(text));
        assert_string_equal(p.bytes, text);
}

static void expect_end(struct output_file *f)
{
        struct output_piece p;

        assert_false(output_file_next(f, &p));
}

TEST_WITH(NULL, remove_files, pieces_have_ranks_and_streams)
{
        CLEANUP(output_file_finish) struct output_file f;
        struct output_piece p;

        append_to("output", "5 3 out 4\none\n\n6 12 err 2\nto\n7 -1 err 9\nhnlaunch\n\n"
                            "8 - gap 4096\n9 - detached\n");
        output_file_open(&f, scratch_fd, (struct output_place){ 0 });
        assert_true(output_file_next(&f, &p));
        assert_int_equal(p.us, 5);
        assert_int_equal(p.stream, MSG_STDOUT);
        assert_string_equal(p.bytes, "one\n");
        assert_true(output_file_next(&f, &p));
        assert_int_equal(p.rank, 12);
        assert_int_equal(p.stream, MSG_STDERR);
        expect_bytes(&f, -1, "hnlaunch\n");
        assert_true(output_file_next(&f, &p));
        assert_int_equal(p.kind, OUTPUT_GAP);
        assert_int_equal(p.len, 4096);
        assert_true(output_file_next(&f, &p));
        assert_int_equal(p.kind, OUTPUT_DETACHED);
        expect_end(&f);
}

TEST_WITH(NULL, remove_files, what_is_half_written_is_read_later)
{
        CLEANUP(output_file_finish) struct output_file f;

        output_file_open(&f, scratch_fd, (struct output_place){ 0 });
        expect_end(&f); /* no file yet */
        append_to("output", "5 0 ou");
        expect_end(&f);
        append_to("output", "t 6\nfir");
        expect_end(&f);
        append_to("output", "st\n\n");
        expect_bytes(&f, 0, "first\n");
        expect_end(&f);
}

TEST_WITH(NULL, remove_files, a_reader_follows_the_next_file)
{
        CLEANUP(output_file_finish) struct output_file f;

        append_to("output", "1 0 out 1\na\n");
        output_file_open(&f, scratch_fd, (struct output_place){ 0 });
        expect_bytes(&f, 0, "a");
        append_to("output", "2 0 out 1\nb\n");
        turn();
        expect_bytes(&f, 0, "b"); /* the next file is not there yet */
        expect_end(&f);
        append_to("output", "3 0 out 1\nc\n");
        expect_bytes(&f, 0, "c");
        expect_end(&f);
}

TEST_WITH(NULL, remove_files, a_reader_that_is_too_slow_tells_a_gap)
{
        CLEANUP(output_file_finish) struct output_file f;
        struct output_piece p;

        append_to("output", "1 0 out 1\na\n");
        output_file_open(&f, scratch_fd, (struct output_place){ 0 });
        expect_bytes(&f, 0, "a");
        turn();
        append_to("output", "2 0 out 1\nb\n");
        turn();
        append_to("output", "3 0 out 1\nc\n");
        assert_true(output_file_next(&f, &p));
        assert_int_equal(p.kind, OUTPUT_GAP);
        expect_bytes(&f, 0, "b");
        expect_bytes(&f, 0, "c");
}

TEST_WITH(NULL, remove_files, a_place_is_found_again)
{
        CLEANUP(output_file_finish) struct output_file f;
        struct output_place place;

        append_to("output", "1 0 out 1\na\n2 0 out 1\nb\n");
        output_file_open(&f, scratch_fd, (struct output_place){ 0 });
        expect_bytes(&f, 0, "a");
        place = output_file_tell(&f);
        output_file_finish(&f);
        turn();
        append_to("output", "3 0 out 1\nc\n");
        output_file_open(&f, scratch_fd, place);
        expect_bytes(&f, 0, "b");
        expect_bytes(&f, 0, "c");
        place = output_file_tell(&f);
        output_file_finish(&f);
        output_file_open(&f, scratch_fd, place);
        expect_end(&f);
}

TEST_WITH(NULL, remove_files, a_place_that_is_gone_is_the_beginning)
{
        CLEANUP(output_file_finish) struct output_file f;
        struct output_place place;

        /* The file system may give the number of the first file to the third one. */
        append_to("output", "1 0 out 1\nx\n");
        output_file_open(&f, scratch_fd, (struct output_place){ 0 });
        expect_bytes(&f, 0, "x");
        place = output_file_tell(&f);
        output_file_finish(&f);
        turn();
        append_to("output", "2 0 out 3\nyyy\n");
        turn();
        append_to("output", "3 0 out 3\nzzz\n");
        output_file_open(&f, scratch_fd, place);
        expect_bytes(&f, 0, "yyy");
        expect_bytes(&f, 0, "zzz");
        output_file_finish(&f);
        remove_files(NULL);
        append_to("output", "1 0 out 1\na\n");
        output_file_open(&f, scratch_fd, (struct output_place){ .file = 1, .at = 5 });
        expect_bytes(&f, 0, "a");
}

UNIT_MAIN(make_scratch, remove_scratch)

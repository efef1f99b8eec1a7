/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/run/recorder.h"
#include "lib/files.h"
#include "lib/unit.h"
#include "wire/msg.h"

enum { WAIT_MS = 60000, PIECE = 64 << 10 };

static const struct recorder_keep keep_all = { 100, INT64_MAX };

static char *path_of(const char *run, const char *name)
{
        return xasprintf("%s/runs/%s/%s", scratch, run, name);
}

/* Returns a file of a run, malloc'ed. */
static char *read_of(const char *run, const char *name)
{
        CLEANUP(free_textp) char *path = path_of(run, name);
        char *text = NULL;

        assert_int_equal(fd_read_file(path, 64 << 20, &text, NULL), 0);
        return text;
}

static void file_is(const char *run, const char *name, const char *want)
{
        CLEANUP(free_textp) char *text = read_of(run, name);

        assert_string_equal(text, want);
}

static bool exists(const char *run)
{
        CLEANUP(free_textp) char *path = path_of(run, "");

        return access(path, F_OK) == 0;
}

static struct recorder *make_run(const char *run, struct recorder_keep keep)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/runs", scratch);

        return recorder_create(folder, run, NULL, keep);
}

static void finish_well(struct recorder *r)
{
        struct error err;

        assert_int_equal(recorder_finish(r, WAIT_MS, &err), 0);
        recorder_destroy(r);
}

static void record_run(const char *run, struct recorder_keep keep)
{
        struct recorder *r = make_run(run, keep);

        recorder_put(r, RECORD_RUN, "{}", 2);
        recorder_put(r, RECORD_SUMMARY, "{}", 2);
        recorder_open(r);
        finish_well(r);
}

TEST(nothing_is_made_before_it_is_opened)
{
        struct recorder *r = make_run("early", keep_all);

        recorder_put(r, RECORD_RUN, "{}", 2);
        finish_well(r);
        assert_false(exists("early"));
}

TEST(files_have_what_was_put)
{
        struct recorder *r = make_run("plain", keep_all);

        recorder_put(r, RECORD_RUN, "{}", 2);
        recorder_put(r, RECORD_EVENTS, "a\n", 2);
        recorder_open(r);
        recorder_put(r, RECORD_EVENTS, "b\n", 2);
        recorder_put_output(r, 7, 3, MSG_STDOUT, "one\n", 4);
        recorder_put_output(r, 8, 12, MSG_STDERR, "two", 3);
        recorder_put_output(NULL, 9, 0, MSG_STDOUT, "x", 1);
        finish_well(r);
        file_is("plain", "output", "7 3 out 4\none\n\n8 12 err 3\ntwo\n");
        file_is("plain", "run.json", "{}");
        file_is("plain", "events.ndjson", "a\nb\n");
}

TEST(the_last_description_of_a_run_counts)
{
        struct recorder *r = make_run("again", keep_all);
        struct error err;

        recorder_put(r, RECORD_RUN, "{\"n\":1}", 7);
        recorder_put(r, RECORD_RUN, "{\"n\": 2}", 8);
        recorder_open(r);
        assert_int_equal(recorder_await(r, &err), 0);
        file_is("again", "run.json", "{\"n\": 2}");
        recorder_put(r, RECORD_RUN, "{}", 2);
        finish_well(r);
        file_is("again", "run.json", "{}");
}

TEST(what_does_not_fit_is_a_marked_gap)
{
        struct recorder *r = make_run("gap", keep_all);
        CLEANUP(free_textp) char *output = NULL, *piece = xcalloc(PIECE, 1);
        unsigned long long gap;
        size_t pieces = 0;
        const char *at;

        memset(piece, 'x', PIECE);
        for (int i = 0; i < 100; i++) /* nobody takes them yet */
                recorder_put_output(r, i, 0, MSG_STDOUT, piece, PIECE);
        recorder_open(r);
        finish_well(r);
        output = read_of("gap", "output");
        for (at = output; (at = strstr(at, " out 65536\n")); at++)
                pieces++;
        at = strstr(output, " - gap ");
        assert_non_null(at);
        assert_int_equal(sscanf(at, " - gap %llu", &gap), 1);
        assert_true(pieces > 10);
        assert_int_equal(pieces * PIECE + gap, 100 * PIECE);
        assert_null(strstr(at + 1, " - gap "));
}

static void count_room(void *ctx)
{
        __atomic_add_fetch((int *)ctx, 1, __ATOMIC_SEQ_CST);
}

/* Without a terminal nothing is left out, as long as the caller waits for room. */
TEST(a_lone_recorder_keeps_all)
{
        static char piece[PIECE];
        int room = 0, waits = 0, told = 0;
        CLEANUP(free_textp) char *text = NULL;
        struct recorder *r = make_run("alone", keep_all);
        size_t total = 0;

        memset(piece, 'x', sizeof(piece));
        recorder_open(r);
        recorder_stand_alone(r, 7, (struct recorder_room){ count_room, &room });
        for (int i = 0; i < 400; i++, total += sizeof(piece)) {
                if (recorder_put_output(r, i, 0, MSG_STDOUT, piece, sizeof(piece)))
                        continue;
                for (waits++; __atomic_load_n(&room, __ATOMIC_SEQ_CST) == told;)
                        usleep(1000);
                told = __atomic_load_n(&room, __ATOMIC_SEQ_CST);
        }
        finish_well(r);
        assert_true(waits > 0);
        text = read_of("alone", "output");
        assert_memory_equal(text, "7 - detached\n", 13);
        assert_null(strstr(text, " gap "));
        assert_true(strlen(text) > total);
}

/* The clock of a file system may stand still between two runs. */
static void make_older(const char *run, int seconds)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/runs/%s", scratch, run);
        struct timespec at[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };

        assert_int_equal(utimensat(AT_FDCWD, folder, at, 0), 0);
}

TEST(the_oldest_go)
{
        static const struct recorder_keep three = { 3, INT64_MAX }, small = { 100, 1 };
        CLEANUP(free_textp) char *own = path_of("r1", "mine");
        CLEANUP(free_textp) char *answer = path_of("r2", "why-1.txt");
        CLEANUP(free_textp) char *dumps = path_of("r2", "flight-recorder-why-1");
        CLEANUP(free_textp) char *dump = xasprintf("%s/nccl_trace_rank_0", dumps);
        CLEANUP(free_textp) char *summary = path_of("r1", "summary.json");

        record_run("r1", keep_all);
        assert_int_equal(close(creat(own, 0600)), 0);
        record_run("r2", keep_all);
        assert_int_equal(close(creat(answer, 0600)), 0);
        assert_int_equal(mkdir(dumps, 0700), 0);
        assert_int_equal(close(creat(dump, 0600)), 0);
        record_run("r3", keep_all);
        make_older("r1", 30);
        make_older("r2", 20);
        make_older("r3", 10);
        record_run("r4", three);
        assert_true(exists("r2") && exists("r3") && exists("r4"));
        assert_true(access(own, F_OK) == 0 && access(summary, F_OK) < 0);
        assert_true(exists("plain")); /* without a summary: it may go on on another machine */
        record_run("r5", small);
        assert_true(exists("r5") && !exists("r2") && !exists("r3") && !exists("r4"));
}

static int count_apart(void)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/apart", scratch);
        struct dirent **names;
        int n = scandir(folder, &names, NULL, NULL);

        for (int i = 0; i < n; i++)
                free(names[i]);
        free(names);
        return n - 2; /* "." and ".." */
}

/* Records @run in the folder "apart", in which two runs are kept, until there are @most. */
static void record_apart(const char *run, int most)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/apart", scratch);
        struct recorder_keep two = { 2, INT64_MAX };
        struct recorder *r = recorder_create(folder, run, NULL, two);
        struct error err;

        recorder_put(r, RECORD_RUN, "{}", 2);
        recorder_put(r, RECORD_SUMMARY, "{}", 2);
        recorder_open(r);
        assert_int_equal(recorder_await(r, &err), 0);
        while (count_apart() > most)
                usleep(1000);
        finish_well(r);
}

/* Removing takes longer than a short run does. */
TEST(short_runs_leave_the_oldest_until_there_are_twice_as_many)
{
        record_apart("a", 5);
        record_apart("b", 5);
        record_apart("c", 5);
        record_apart("d", 5);
        assert_int_equal(count_apart(), 4);
        record_apart("e", 5);
        assert_int_equal(count_apart(), 2);
        record_apart("f", 5);
        assert_int_equal(count_apart(), 3);
        record_apart("g", 2); /* for as long as it takes */
}

/* Another machine's clock may not be this one's, and a run lasts for months. */
TEST(runs_of_other_machines_may_go_on)
{
        static const char other[] = "{\"host\":\"elsewhere.invalid\"}";
        CLEANUP(free_textp) char *file = xasprintf("%s/runs/notes.md", scratch);
        CLEANUP(free_textp) char *folder = xasprintf("%s/runs/mine", scratch);
        CLEANUP(free_textp) char *fifo = path_of("mine", "run.json");
        struct recorder *r = make_run("other", keep_all);

        recorder_put(r, RECORD_RUN, other, sizeof(other) - 1);
        recorder_open(r);
        finish_well(r);
        assert_int_equal(close(creat(file, 0600)), 0);
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        make_older("other", 29 * 86400);
        make_older("notes.md", 400 * 86400);
        make_older("mine", 400 * 86400);
        record_run("first", (struct recorder_keep){ 1, INT64_MAX });
        assert_true(exists("other"));
        make_older("other", 31 * 86400);
        record_run("second", (struct recorder_keep){ 1, INT64_MAX });
        assert_false(exists("other"));
        assert_true(access(file, F_OK) == 0 && access(fifo, F_OK) == 0);
}

TEST(the_start_can_be_awaited)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/begin", scratch);
        struct recorder *r = make_run("begin", keep_all);
        struct error err;

        recorder_put(r, RECORD_RUN, "{}", 2);
        recorder_open(r);
        assert_int_equal(recorder_await(r, &err), 0);
        file_is("begin", "run.json", "{}");
        finish_well(r);
        assert_int_equal(close(creat(folder, 0600)), 0);
        r = recorder_create(folder, "x", NULL, keep_all);
        recorder_put(r, RECORD_RUN, "{}", 2);
        recorder_open(r);
        assert_int_equal(recorder_await(r, &err), -ENOTDIR);
        recorder_finish(r, WAIT_MS, &err);
        recorder_destroy(r);
}

TEST(a_place_that_is_taken_is_told)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/file", scratch);
        struct recorder *r;
        struct error err;

        assert_int_equal(close(creat(folder, 0600)), 0);
        r = recorder_create(folder, "x", NULL, keep_all);
        recorder_put(r, RECORD_RUN, "{}", 2);
        recorder_open(r);
        recorder_put_output(r, 1, 0, MSG_STDOUT, "x", 1);
        assert_true(recorder_finish(r, WAIT_MS, &err) < 0);
        assert_non_null(strstr(err.text, "/file/x: Not a directory"));
        recorder_destroy(r);
}

TEST(after_an_error_output_is_cut_and_the_summary_kept)
{
        struct recorder *r = make_run("cut", keep_all);
        CLEANUP(free_textp) char *path = path_of("cut", "output");
        CLEANUP(free_textp) char *events = path_of("cut", "events.ndjson");
        struct stat st = { 0 };
        struct error err;

        recorder_open(r);
        recorder_put_output(r, 7, 3, MSG_STDOUT, "one\n", 4);
        while (stat(path, &st) < 0 || !st.st_size)
                usleep(1000);
        assert_int_equal(mkdir(events, 0700), 0);
        recorder_put(r, RECORD_EVENTS, "a\n", 2);
        recorder_put(r, RECORD_SUMMARY, "{}", 2);
        assert_true(recorder_finish(r, WAIT_MS, &err) < 0);
        assert_non_null(strstr(err.text, "/cut/events.ndjson: "));
        recorder_destroy(r);
        file_is("cut", "output", "7 3 out 4\none\n");
        file_is("cut", "summary.json", "{}");
}

TEST(the_folder_behind_a_link_gets_the_output)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/runs", scratch);
        CLEANUP(free_textp) char *there = xasprintf("%s/there", scratch);
        struct recorder *r = recorder_create(folder, "there", there, keep_all);

        assert_int_equal(mkdir(there, 0700), 0);
        recorder_put_output(r, 1, 0, MSG_STDOUT, "x", 1);
        recorder_open(r);
        finish_well(r);
        file_is("there", "output", "1 0 out 1\nx\n");
}

TEST(a_link_leads_elsewhere)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/runs", scratch);
        CLEANUP(free_textp) char *link = xasprintf("%s/link", folder);
        struct recorder *r = recorder_create(folder, "link", "/there/link", keep_all);
        char to[64] = "";
        struct error err;

        recorder_put(r, RECORD_RUN, "{}", 2);
        recorder_put_output(r, 1, 0, MSG_STDOUT, "x", 1);
        recorder_open(r);
        /* The output has no place. */
        assert_int_equal(recorder_await(r, &err), -ENOENT);
        assert_int_equal(recorder_finish(r, WAIT_MS, &err), -ENOENT);
        assert_non_null(strstr(err.text, "/runs/link: No such file or directory"));
        recorder_destroy(r);
        assert_int_equal(readlink(link, to, sizeof(to) - 1), 11);
        assert_string_equal(to, "/there/link");
        record_run("after", (struct recorder_keep){ 1, INT64_MAX });
        assert_true(readlink(link, to, sizeof(to) - 1) < 0); /* it led nowhere */
}

UNIT_MAIN(make_scratch, remove_scratch)

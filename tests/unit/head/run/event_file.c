/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/run/event_file.h"
#include "lib/files.h"
#include "lib/unit.h"

static FILE *open_events(const char *mode)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/events", scratch);
        FILE *f = fopen(path, mode);

        assert_non_null(f);
        return f;
}

/* Writes lines until the file has @size bytes: one of @every is no progress. */
static void write_events(size_t size, int every)
{
        FILE *f = open_events("w");

        for (int i = 0; (size_t)ftello(f) < size; i++)
                fprintf(f, "{\"n\":%d,\"ev\":\"%s\",\"text\":\"%s\"}\n", i,
                        i % every ? "rank.progress" : "rank.exited",
                        i % every ? "" : "\\\"ev\\\":\\\"rank.progress\\\"");
        fclose(f);
}

struct counts {
        int exits, steps, first_step, first_exit, last, lines_cut;
};

static struct counts count_events(void)
{
        FILE *f = open_events("r");
        struct counts c = { 0, 0, -1, -1, -1, 0 };
        char line[256];
        int n;

        while (fgets(line, sizeof(line), f)) {
                c.lines_cut += sscanf(line, "{\"n\":%d,", &n) != 1 || !strchr(line, '\n');
                c.last = n;
                if (strstr(line, "rank.exited")) {
                        c.first_exit = c.exits++ ? c.first_exit : n;
                } else {
                        c.first_step = c.steps++ ? c.first_step : n;
                }
        }
        fclose(f);
        return c;
}

TEST(older_steps_go_first)
{
        struct counts before, after;
        uint64_t bytes = 0;
        struct stat st;
        CLEANUP(fd_closep) int fd;

        write_events((size_t)EVENT_FILE_MAX + 1, 1000);
        before = count_events();
        fd = event_file_shorten(scratch_fd, "events", &bytes);
        assert_true(fd >= 0);
        after = count_events();
        assert_int_equal(after.exits, before.exits);
        assert_true(after.steps < before.steps / 3 && after.steps > before.steps / 5);
        assert_int_equal(after.last, before.last);
        assert_int_equal(after.lines_cut, 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal((uint64_t)st.st_size, bytes);
        assert_true(st.st_mode % 01000 == 0600);
        assert_int_equal(fd_write_all(fd, "{\"n\":7,\"ev\":\"rank.exited\"}\n", 27), 0);
        assert_int_equal(count_events().last, 7);
}

TEST(then_all_older_lines)
{
        struct counts after;
        uint64_t bytes = 0;
        CLEANUP(fd_closep) int fd;

        write_events((size_t)EVENT_FILE_MAX + 1, 1);
        fd = event_file_shorten(scratch_fd, "events", &bytes);
        assert_true(fd >= 0);
        after = count_events();
        assert_true(bytes <= EVENT_FILE_MAX / 4 * 3 && bytes > EVENT_FILE_MAX / 2);
        assert_true(after.first_exit > 0);
        assert_int_equal(after.lines_cut, 0);
}

TEST(a_file_that_cannot_be_replaced_stays)
{
        CLEANUP(free_textp) char *new = xasprintf("%s/events.new", scratch);
        struct counts before;
        uint64_t bytes = 0;

        write_events(4096, 2);
        before = count_events();
        assert_int_equal(mkdir(new, 0700), 0);
        assert_true(event_file_shorten(scratch_fd, "events", &bytes) < 0);
        assert_int_equal(count_events().last, before.last);
        assert_int_equal(rmdir(new), 0);
        assert_true(event_file_shorten(scratch_fd, "missing", &bytes) < 0);
}

UNIT_MAIN(make_scratch, remove_scratch)

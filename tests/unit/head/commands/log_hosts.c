/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/memory.h"
#include "head/commands/log_hosts.h"
#include "lib/files.h"
#include "lib/unit.h"

enum { RANKS = 2 };

#define START(us, rank, host)                                                                      \
        "{\"us\":" #us ",\"ev\":\"rank.started\",\"rank\":" #rank ",\"host\":\"" host "\"}\n"
#define STEP "{\"us\":5,\"ev\":\"rank.progress\",\"rank\":0,\"step\":1}\n"

static void append_events(const char *name, const char *text)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", scratch, name);

        append_to_file(path, text);
}

/* Puts a file with @text in the place of the events, as event_file_shorten() does. */
static void replace_events(const char *text)
{
        append_events("new", text);
        assert_int_equal(renameat(scratch_fd, "new", scratch_fd, "events.ndjson"), 0);
}

static void expect_move(struct log_hosts *h, int rank, const char *host)
{
        assert_int_equal(log_hosts_find_move(h, 1000), rank);
        log_hosts_move(h);
        assert_string_equal(h->now[rank], host);
}

TEST(a_file_that_is_replaced_is_followed)
{
        const char *now[RANKS] = { "n0", "n1" };
        CLEANUP(log_hosts_finish) struct log_hosts h;

        append_events("events.ndjson", START(1, 0, "n0") START(1, 1, "n1") STEP);
        log_hosts_open(&h, scratch_fd, now, RANKS);
        assert_int_equal(log_hosts_find_move(&h, 1000), -1);
        append_events("events.ndjson", START(20, 0, "n2"));
        expect_move(&h, 0, "n2");
        /* Lines of the old file that were read count once, lines that were not count as well. */
        append_events("events.ndjson", START(30, 0, "n3"));
        replace_events(START(1, 0, "n0") START(1, 1, "n1") START(20, 0, "n2") START(30, 0, "n3")
                               START(40, 1, "n4"));
        expect_move(&h, 0, "n3");
        expect_move(&h, 1, "n4");
        assert_int_equal(log_hosts_find_move(&h, 1000), -1);
        append_events("events.ndjson", STEP START(50, 1, "n5"));
        expect_move(&h, 1, "n5");
        /* The last start is no longer in the file: all in the file are later. */
        replace_events(START(60, 0, "n6"));
        expect_move(&h, 0, "n6");
        assert_int_equal(log_hosts_find_move(&h, 1000), -1);
}

UNIT_MAIN(make_scratch, remove_scratch)

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <time.h>

#include <jansson.h>

#include "base/memory.h"
#include "head/output/event_line.h"
#include "lib/unit.h"

/* The line without its clock, which is checked here. Freed by the caller. */
static char *make_line(const struct event *e)
{
        struct event_clock clock = { 0 };
        char *line = event_line_make(&clock, "k3f9q", NULL, e), *us;
        struct tm tm = { 0 };

        assert_non_null(line);
        assert_memory_equal(line, "{\"v\":1,\"t\":\"", 12);
        us = strptime(line + 12, "%Y-%m-%dT%H:%M:%S", &tm);
        assert_non_null(us);
        /* time() reads a clock that is a tick behind. */
        assert_in_range(time(NULL) + 1 - timegm(&tm), 0, 6);
        assert_int_equal(*us, '.');
        assert_int_equal(strspn(us + 1, "0123456789"), 6);
        assert_memory_equal(us + 7, "Z\",", 3);
        memmove(line, us + 10, strlen(us + 10) + 1);
        return line;
}

static void assert_line(struct event e, const char *expected)
{
        CLEANUP(free_textp) char *line = make_line(&e);

        assert_string_equal(line, expected);
}

TEST(members_follow_the_kind)
{
        assert_line((struct event){ EVENT_RUN_START, .us = 1, .node = -1, .rank = -1, .value = 8,
                                    .count = 2 },
                    "\"us\":1,\"ev\":\"run.start\",\"run\":\"k3f9q\",\"nodes\":2,\"ranks\":8}\n");
        assert_line((struct event){ EVENT_RUN_SHRUNK, .us = 1, .node = -1, .rank = -1, .value = 6,
                                    .count = 2 },
                    "\"us\":1,\"ev\":\"run.shrunk\",\"nodes\":2,\"ranks\":6}\n");
        assert_line((struct event){ EVENT_RESTART, .us = 1, .node = 1, .rank = -1, .value = 1,
                                    .count = 3, .pause_ms = 2990, .host = "n1",
                                    .text = "lost node n1" },
                    "\"us\":1,\"ev\":\"run.restart\",\"node\":1,\"host\":\"n1\",\"attempt\":1,"
                    "\"spares\":3,\"ms\":2990,\"text\":\"lost node n1\"}\n");
        assert_line((struct event){ EVENT_RANK_STARTED, .us = 0, .node = 0, .rank = 0,
                                    .value = 4194303, .host = "n0" },
                    "\"us\":0,\"ev\":\"rank.started\",\"node\":0,\"host\":\"n0\",\"rank\":0,"
                    "\"pid\":4194303}\n");
        assert_line(
                (struct event){ EVENT_RANK_EXITED, .us = 10, .node = -1, .rank = 12, .value = -9 },
                "\"us\":10,\"ev\":\"rank.exited\",\"rank\":12,\"signal\":9}\n");
        assert_line((struct event){ EVENT_RANK_PROGRESS, .us = 2, .node = -1, .rank = 1,
                                    .value = INT64_MIN },
                    "\"us\":2,\"ev\":\"rank.progress\",\"rank\":1,\"step\":-9223372036854775808,"
                    "\"total\":null}\n");
        assert_line((struct event){ EVENT_RANK_PROGRESS, .us = 2, .node = -1, .rank = 1, .value = 7,
                                    .count = 9 },
                    "\"us\":2,\"ev\":\"rank.progress\",\"rank\":1,\"step\":7,\"total\":9}\n");
        assert_line((struct event){ EVENT_ROLE_READY, .us = 3, .node = 1, .rank = 4, .value = 2100,
                                    .count = 2, .host = "n1" },
                    "\"us\":3,\"ev\":\"role.ready\",\"node\":1,\"host\":\"n1\",\"rank\":4,"
                    "\"ms\":2100,\"instance\":2}\n");
        assert_line((struct event){ EVENT_ROLE_WAITS, .us = 3, .node = -1, .rank = -1,
                                    .text = "role b waits for a", .brief = "b" },
                    "\"us\":3,\"ev\":\"role.waits\",\"role\":\"b\","
                    "\"text\":\"role b waits for a\"}\n");
        assert_line((struct event){ EVENT_NODE_READY, .us = 2, .node = 3, .rank = -1, .value = 1 },
                    "\"us\":2,\"ev\":\"node.ready\",\"node\":3,\"uploaded\":true}\n");
        assert_line((struct event){ EVENT_RUN_END, .us = 2, .node = -1, .rank = -1, .value = 68,
                                    .count = 41, .text = "no" },
                    "\"us\":2,\"ev\":\"run.end\",\"code\":68,\"hn\":\"HN041\",\"text\":\"no\"}\n");
        assert_line((struct event){ EVENT_RUN_END, .us = 2, .node = -1, .rank = -1 },
                    "\"us\":2,\"ev\":\"run.end\",\"code\":0,\"hn\":null}\n");
}

TEST(any_text_is_valid)
{
        static const char *const texts[] = { "",         "a\"b\\c",   "tab\there\n", "\x1b[31mred",
                                             "\xc3\xa4", "torn \xc3", "del \x7f",    "~ }{" };
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                struct event e = { EVENT_STOP, .node = -1, .rank = -1, .text = texts[i] };
                struct event_clock clock = { 0 };
                CLEANUP(free_textp) char *line = event_line_make(&clock, "", NULL, &e);
                json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
                const char *text = json_string_value(json_object_get(j, "text"));

                assert_non_null(text);
                assert_string_equal(text, i == 5 ? "torn \xef\xbf\xbd" : texts[i]);
                for (const char *p = line; p[1]; p++)
                        assert_false((unsigned char)*p < ' ' || *p == 0x7f);
                json_decref(j);
        }
}

TEST(ranks_have_their_role)
{
        struct listed_role entry = {
                .name = (char *)"infer", .first = 4, .size = 2, .role_rank = 1
        };
        const struct role_list roles = { &entry, 1 };
        struct event_clock clock = { 0 };

        for (int rank = 3; rank < 6; rank++) {
                struct event e = { EVENT_RANK_JOINED, .node = -1, .rank = rank };
                CLEANUP(free_textp) char *line = event_line_make(&clock, "", &roles, &e);
                const char *tail = strstr(line, "\"rank\":");

                assert_string_equal(
                        tail, rank == 3   ? "\"rank\":3}\n"
                              : rank == 4 ? "\"rank\":4,\"role\":\"infer\",\"role_rank\":1}\n"
                                          : "\"rank\":5,\"role\":\"infer\",\"role_rank\":2}\n");
        }
        entry.replica = 1;
        entry.replicas = 2;
        CLEANUP(free_textp)
        char *line = event_line_make(&clock, "", &roles,
                                     &(struct event){ EVENT_RANK_JOINED, .node = -1, .rank = 4 });

        assert_non_null(strstr(line, "\"role\":\"infer\",\"role_rank\":1,\"replica\":1}\n"));
}

TEST(steps_of_a_start_have_no_line)
{
        struct event_clock clock = { 0 };

        for (int kind = 0; kind < EVENT_KINDS; kind++) {
                struct event e = { (enum event_kind)kind, .node = -1, .rank = -1 };
                CLEANUP(free_textp) char *line = event_line_make(&clock, "", NULL, &e);
                bool none = kind == EVENT_NODE_PHASE || kind == EVENT_PUSH_PROGRESS ||
                            kind == EVENT_PUSH_HASHING;

                assert_int_equal(line == NULL, none);
        }
}

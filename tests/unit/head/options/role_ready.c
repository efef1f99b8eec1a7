/* SPDX-License-Identifier: Apache-2.0 */
#include "head/options/role_ready.h"
#include "lib/unit.h"

static void assert_ready(const char *text, enum ready_kind kind, const char *port, const char *rest)
{
        CLEANUP(role_ready_finish) struct role_ready r = { .timeout_ms = 7 };
        struct error err;

        if (value_ready(&r, NULL, text, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        assert_int_equal(r.kind, kind);
        assert_int_equal(r.timeout_ms, 7);
        if (port)
                assert_string_equal(r.port, port);
        else
                assert_null(r.port);
        if (rest)
                assert_string_equal(r.text, rest);
        else
                assert_null(r.text);
}

TEST(each_kind_is_read)
{
        assert_ready("start", READY_START, NULL, NULL);
        assert_ready("tcp:8000", READY_TCP, "8000", NULL);
        assert_ready("tcp:grpc_1", READY_TCP, "grpc_1", NULL);
        assert_ready("http:/health", READY_HTTP, "http", "/health");
        assert_ready("http:api/v1/models?x=1", READY_HTTP, "api", "/v1/models?x=1");
        assert_ready("http:65535/", READY_HTTP, "65535", "/");
        assert_ready("file:up", READY_FILE, NULL, "up");
        assert_ready("file:/tmp/a b:c", READY_FILE, NULL, "/tmp/a b:c");
        assert_ready("key:model/loaded", READY_KEY, NULL, "model/loaded");
        assert_ready("line:^Uvicorn (running|up) on .*:[0-9]+", READY_LINE, NULL,
                     "^Uvicorn (running|up) on .*:[0-9]+");
}

TEST(wrong_values_are_told_with_the_right_form)
{
        static const struct {
                const char *value, *told;
        } cases[] = {
                { "", "must be start, tcp:PORT," },
                { "begin", "must be start, tcp:PORT," },
                { "tcp", "must be start, tcp:PORT," },
                { "start:", "must be start, tcp:PORT," },
                { "HTTP:/x", "must be start, tcp:PORT," },
                { "tcp:", "tcp: needs a port" },
                { "tcp:0", "tcp: needs a port" },
                { "tcp:65536", "tcp: needs a port" },
                { "tcp:4294967297", "tcp: needs a port" },
                { "tcp:Http", "tcp: needs a port" },
                { "http:health", "http: needs a path" },
                { "http:", "http: needs a path" },
                { "http:/a b", "http: needs a path" },
                { "http:/a\r\nX: y", "http: needs a path" },
                { "http:Api/x", "http: needs a path" },
                { "http://host:80/x", "http: needs a path" },
                { "file:", "file: needs a path" },
                { "key:", "key: needs the name" },
                { "line:", "line: needs an extended regular expression" },
                { "line:(a", "line: needs an extended regular expression" },
                { "line:(a)\\1", "it has a back reference" },
                { "line:a{100}", "its repeats, written out, add more than 64 parts" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct role_ready r = { .kind = READY_START };
                struct error err = { 0 };

                assert_int_equal(value_ready(&r, NULL, cases[i].value, &err), -22);
                if (!strstr(err.text, cases[i].told))
                        fail_msg("%s: %s", cases[i].value, err.text);
                assert_null(r.text);
        }
}

TEST(the_last_value_counts)
{
        CLEANUP(role_ready_finish) struct role_ready r = { .kind = READY_START };
        struct launch_ready m = { 0 };

        assert_int_equal(value_ready(&r, NULL, "http:/x", NULL), 0);
        assert_string_equal(role_ready_port(&r), "http");
        role_ready_fill(&r, true, &m);
        assert_int_equal(m.kind, READY_HTTP);
        assert_true(m.is_first_only);
        free(m.port);
        free(m.path);
        assert_int_equal(value_ready(&r, NULL, "tcp:80", NULL), 0);
        assert_null(role_ready_port(&r)); /* a number needs no reservation */
        assert_int_equal(value_ready(&r, NULL, "key:k", NULL), 0);
        assert_null(role_ready_port(&r));
        m = (struct launch_ready){ 0 };
        role_ready_fill(&r, false, &m);
        assert_int_equal(m.kind, READY_START); /* the head looks for keys */
}

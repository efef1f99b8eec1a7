/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "head/metrics/metrics_server.h"
#include "lib/unit.h"

TEST(an_address_is_a_port_or_has_one)
{
        static const struct {
                const char *text, *host;
                int port;
        } good[] = {
                { "9400", "127.0.0.1", 9400 }, { "0", "127.0.0.1", 0 },
                { "0.0.0.0:1", "0.0.0.0", 1 }, { "login.example:65535", "login.example", 65535 },
                { "[::1]:9400", "::1", 9400 },
        };
        static const char *const bad[] = {
                "",   "x",        ":9400",   "host:",     "host:65536", "-1",    "+1",
                "1 ", "::1:9400", "[]:9400", "/run/sock", "host:12x",   "000001"
        };
        struct metrics_address a;
        struct error err;

        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(metrics_address_parse(&a, good[i].text, &err), 0);
                assert_string_equal(a.host, good[i].host);
                assert_int_equal(a.port, good[i].port);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_true(metrics_address_parse(&a, bad[i], &err) < 0);
}

/* Judges an exact copy, so that a sanitizer sees a byte too many. */
static int judge(const char *text, size_t len)
{
        char *copy = malloc(len ? len : 1);
        int status;

        memcpy(copy, text, len);
        status = metrics_request_status(copy, len);
        free(copy);
        return status;
}

TEST(a_request_is_judged_when_it_is_whole)
{
        static const struct {
                const char *text;
                int status;
        } requests[] = {
                { "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200 },
                { "GET /metrics HTTP/1.0\n\n", 200 },
                { "GET /metrics?name=x HTTP/1.1\r\n\r\n", 200 },
                { "GET / HTTP/1.1\r\n\r\n", 404 },
                { "GET /metricsx HTTP/1.1\r\n\r\n", 404 },
                { "GET /metric HTTP/1.1\r\n\r\n", 404 },
                { "POST /metrics HTTP/1.1\r\n\r\n", 405 },
                { "GETX /metrics HTTP/1.1\r\n\r\n", 405 },
                { "G /metrics HTTP/1.1\r\n\r\n", 405 },
        };
        static const char *const bad[] = { "\r\n",
                                           "\n",
                                           "GET\r\n",
                                           "GET \r\n",
                                           "GET /metrics\r\n",
                                           "GET /metrics HTTP/2\r\n",
                                           "GET /metrics HTTP/2.0\r\n",
                                           "GET /metrics HTTP/1.1 x\r\n",
                                           "GET metrics HTTP/1.1\r\n",
                                           " /metrics HTTP/1.1\r\n",
                                           "\x16\x03\x01\x02\n" };

        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                size_t len = strlen(requests[i].text);

                for (size_t n = 0; n < len; n++)
                        assert_int_equal(judge(requests[i].text, n), 0);
                assert_int_equal(judge(requests[i].text, len), requests[i].status);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(judge(bad[i], strlen(bad[i])), 400);
}

TEST(a_host_is_an_address_or_a_name_of_the_machine)
{
        static const char *const names[] = { "Login1.site", "login1", NULL };
        static const char *const known[] = { "127.0.0.1",      "10.1.2.3:9400", "[::1]",
                                             "[fe80::1]:80",   "localhost",     "LOCALHOST:1",
                                             "login1",         "LOGIN1.SITE:9", "login1.",
                                             "\t localhost \t" };
        static const char *const unknown[] = { "x",         "login1.evil", "login1.site.evil:80",
                                               "",          "localhost.x", "127.0.0.1.x",
                                               "[x]",       "log in1",     "127.0.0.1@x",
                                               "[login1 x", "login1, x" };
        char text[200];

        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
                snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nA: b\r\nhOST:%s\r\n\r\n", known[i]);
                assert_true(metrics_request_knows_host(text, strlen(text), names));
        }
        for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
                snprintf(text, sizeof(text), "GET / HTTP/1.1\nHost: localhost\nHost: %s\n\n",
                         unknown[i]);
                assert_false(metrics_request_knows_host(text, strlen(text), names));
        }
        assert_true(metrics_request_knows_host("GET / HTTP/1.0\n\n", 16, names));
        assert_false(metrics_request_knows_host("GET / HTTP/1.0\nHost:x", 21, names));
}

TEST(a_request_has_8_kib)
{
        char text[8192];

        memset(text, 'x', sizeof(text));
        memcpy(text, "GET /metrics HTTP/1.1\r\n", 23);
        assert_int_equal(judge(text, sizeof(text) - 1), 0);
        assert_int_equal(judge(text, sizeof(text)), 400);
        memcpy(text + sizeof(text) - 4, "\r\n\r\n", 4);
        assert_int_equal(judge(text, sizeof(text)), 200);
}

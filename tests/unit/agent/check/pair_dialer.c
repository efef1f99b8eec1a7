/* SPDX-License-Identifier: Apache-2.0 */
/* A listener and a dialer on one loop, over the loopback device. */
#include "agent/check/pair_dialer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/check/pair_listener.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

#define TOKEN "abcdefghijkmnpqrstuvwxyz23456789"

static uv_loop_t loop;
static struct pair_listener *listener;
static struct measure_target target;
static struct measure_order order;
static struct measured_target result;
static struct measure_nccl nccl; /* of the listener */
static char failure[160];
static bool is_done;

static void on_done(void *ctx UNUSED, const struct measured_target *results, uint32_t n,
                    const char *why)
{
        assert_int_equal(n, 1);
        result = results[0];
        snprintf(failure, sizeof(failure), "%s", why);
        is_done = true;
}

static int begin(void **state UNUSED)
{
        struct error err;

        uv_loop_init(&loop);
        listener = pair_listener_open(&loop, &nccl, &err);
        assert_non_null(listener);
        target = (struct measure_target){ .port = pair_listener_port(listener) };
        strv_push(&target.addrs, "127.0.0.1");
        order = (struct measure_order){ .token = TOKEN,
                                        .listen = true,
                                        .timeout_ms = 10000,
                                        .send_ms = 100,
                                        .send_bytes = 8 << 20,
                                        .targets = &target,
                                        .n_targets = 1 };
        pair_listener_renew(listener, &order);
        is_done = false;
        return 0;
}

static int end(void **state UNUSED)
{
        pair_listener_close(listener);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        strv_finish(&target.addrs);
        return 0;
}

#define TEST_PAIR(name) TEST_WITH(begin, end, name)

/* Measures with the peer; @with is NCCL, or NULL. */
static void dial(const struct measure_nccl *with)
{
        pair_dialer_start(&loop, &order, with, on_done, NULL);
        while (!is_done)
                uv_run(&loop, UV_RUN_ONCE);
}

TEST_PAIR(a_peer_is_reached_and_measured)
{
        dial(NULL);
        assert_int_equal(result.error, 0);
        assert_true(result.latency_us > 0 && result.latency_us < 10000000);
        assert_true(result.sent > 100000);
        assert_true(result.received > 100000);
}

TEST_PAIR(a_peer_is_reached_without_bytes)
{
        order.send_bytes = 0;
        dial(NULL);
        assert_int_equal(result.error, 0);
        assert_true(result.sent == 0 && result.received == 0);
}

/* The listener goes on to send after an order that only asks whether peers answer. */
TEST_PAIR(what_to_send_is_kept)
{
        order.send_bytes = 0;
        pair_listener_renew(listener, &order);
        order.send_bytes = 8 << 20;
        dial(NULL);
        assert_int_equal(result.error, 0);
        assert_true(result.received > 100000);
}

TEST_PAIR(the_best_address_that_answers_counts)
{
        strv_finish(&target.addrs);
        strv_push(&target.addrs, "nowhere");
        strv_push(&target.addrs, "127.0.0.1");
        dial(NULL);
        assert_int_equal(result.error, 0);
        assert_int_equal(result.addr, 1);
}

TEST_PAIR(a_closed_port_is_an_error)
{
        pair_listener_close(listener);
        listener = NULL;
        uv_run(&loop, UV_RUN_NOWAIT);
        order.timeout_ms = 50;
        dial(NULL);
        assert_int_equal(result.error, ECONNREFUSED);
}

TEST_PAIR(another_token_is_not_answered)
{
        order.token[0] = 'X';
        dial(NULL);
        assert_int_equal(result.error, ECONNRESET);
}

TEST(a_dialer_is_cancelled_at_any_step)
{
        for (int turns = 0; turns < 40; turns++) {
                struct pair_dialer *d;

                begin(NULL);
                d = pair_dialer_start(&loop, &order, NULL, on_done, NULL);
                for (int i = 0; i < turns && !is_done; i++)
                        uv_run(&loop, UV_RUN_ONCE);
                if (!is_done)
                        pair_dialer_cancel(d);
                end(NULL);
        }
}

/* Whatever this machine has: the first library that lacks is told. */
TEST(a_helper_tells_why_nccl_fails)
{
        nccl.library = (char *)"/nonexistent/libnccl.so.2";
        begin(NULL);
        dial(&nccl);
        assert_int_equal(result.error, MEASURE_NCCL_FAILED);
        assert_non_null(strstr(failure, "cannot open shared object file"));
        assert_true(result.sent == 0 && result.received == 0);
        nccl.library = NULL;
        end(NULL);
}

static int connect_plainly(void)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)target.port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        return fd;
}

/* Returns what @fd reads, while the loop turns; 0 = it was closed. */
static ssize_t read_slowly(int fd, char *to, size_t size)
{
        ssize_t n;

        while ((n = recv(fd, to, size, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
                uv_run(&loop, UV_RUN_NOWAIT);
        return n < 0 ? 0 : n;
}

TEST_PAIR(silent_connections_turn_no_peer_away)
{
        enum { SILENT = 600 };
        struct rlimit files;
        int fds[SILENT];

        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_max < 3 * SILENT)
                skip();
        for (int i = 0; i < SILENT; i++) {
                fds[i] = connect_plainly();
                uv_run(&loop, UV_RUN_NOWAIT);
        }
        dial(NULL);
        assert_int_equal(result.error, 0);
        for (int i = 0; i < SILENT; i++)
                close(fds[i]);
}

TEST(who_does_not_know_the_token_gets_no_byte)
{
        static const char *const greetings[] = { "GET / HTTP/1.0\r\n\r\n",
                                                 ENDPOINT_PROBE "abcdefghijkmnpqX" };
        char got[64];

        for (int i = 0; i < 2; i++) {
                int fd;

                begin(NULL);
                fd = connect_plainly();
                assert_true(write(fd, greetings[i], strlen(greetings[i])) > 0);
                assert_int_equal(read_slowly(fd, got, sizeof(got)), 0);
                close(fd);
                end(NULL);
        }
}

TEST_PAIR(who_knows_the_token_gets_the_other_half_and_echoes)
{
        int fd = connect_plainly();
        char got[64];

        assert_true(write(fd, ENDPOINT_PROBE "abcdefghijkmnpqr", 24) == 24);
        assert_int_equal(read_slowly(fd, got, sizeof(got)), 16);
        assert_memory_equal(got, "stuvwxyz23456789", 16);
        assert_true(write(fd, "12345678more", 12) == 12);
        assert_int_equal(read_slowly(fd, got, sizeof(got)), 8);
        assert_memory_equal(got, "12345678", 8);
        close(fd);
}

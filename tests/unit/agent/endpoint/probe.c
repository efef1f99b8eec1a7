/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "agent/endpoint/probe.h"
#include "base/fd.h"
#include "base/strv.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

enum {
        DOORS = 2,
        TIMEOUT_MS = 60000,
        HALF = ENDPOINT_TOKEN / 2,
        QUESTION = sizeof(ENDPOINT_PROBE) - 1 + HALF,
};

#define TOKEN "abcdefghijkmnpqrstuvwxyz23456789"

/* One endpoint at two addresses of this machine, and who tries them. */
struct scene {
        uv_loop_t loop;
        int listeners[DOORS], guests[DOORS];
        struct probe_order order;
        bool done;
        uint32_t errors[DOORS];
};

static int listen_on(uint32_t addr, in_port_t *port)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(addr),
                                  .sin_port = *port };
        socklen_t len = sizeof(at);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 8) < 0) {
                fd_close(fd);
                return -1;
        }
        getsockname(fd, (struct sockaddr *)&at, &len);
        *port = at.sin_port;
        return fd;
}

/* The port that is free at one address may be taken at the other. */
static in_port_t open_endpoints(struct scene *s)
{
        for (int i = 0; i < 100; i++) {
                in_port_t port = 0;

                s->listeners[0] = listen_on(INADDR_LOOPBACK, &port);
                assert_true(s->listeners[0] >= 0);
                s->listeners[1] = listen_on(INADDR_LOOPBACK + 1, &port);
                if (s->listeners[1] >= 0)
                        return ntohs(port);
                fd_close(s->listeners[0]);
        }
        fail_msg("no port is free at two addresses");
        return 0;
}

static int build(void **state)
{
        struct scene *s = xcalloc(1, sizeof(*s));

        uv_loop_init(&s->loop);
        s->order.timeout_ms = TIMEOUT_MS;
        memcpy(s->order.token, TOKEN, sizeof(s->order.token));
        s->order.port = open_endpoints(s);
        strv_push(&s->order.addrs, "127.0.0.1");
        strv_push(&s->order.addrs, "127.0.0.2");
        for (int i = 0; i < DOORS; i++)
                s->guests[i] = -1;
        *state = s;
        return 0;
}

static int tear_down(void **state)
{
        struct scene *s = *state;
        int r;

        uv_run(&s->loop, UV_RUN_DEFAULT);
        r = uv_loop_close(&s->loop);
        for (int i = 0; i < DOORS; i++) {
                fd_close(s->listeners[i]);
                fd_close(s->guests[i]);
        }
        strv_finish(&s->order.addrs);
        free(s);
        return r;
}

static void on_done(void *ctx, const struct probed *result)
{
        struct scene *s = ctx;

        assert_int_equal(result->n, DOORS);
        for (int i = 0; i < DOORS; i++)
                s->errors[i] = result->results[i].error;
        s->done = true;
}

static bool is_readable(struct scene *s, int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };

        uv_run(&s->loop, UV_RUN_NOWAIT);
        return poll(&p, 1, 1) != 0;
}

static bool is_delivered(int fd)
{
        int unsent;

        assert_int_equal(ioctl(fd, SIOCOUTQ, &unsent), 0);
        return unsent == 0;
}

/* Every address has been asked. */
static void let_in(struct scene *s)
{
        char question[QUESTION];

        for (int i = 0; i < DOORS; i++) {
                wait_for(is_readable(s, s->listeners[i]));
                s->guests[i] = accept(s->listeners[i], NULL, NULL);
                wait_for(is_readable(s, s->guests[i]));
                assert_int_equal(recv(s->guests[i], question, QUESTION, MSG_WAITALL), QUESTION);
                assert_memory_equal(question, ENDPOINT_PROBE TOKEN, QUESTION);
        }
}

static void answer(struct scene *s, int endpoint)
{
        assert_int_equal(send(s->guests[endpoint], TOKEN + HALF, HALF, 0), HALF);
}

static void run_to_the_end(struct scene *s)
{
        while (!s->done)
                uv_run(&s->loop, UV_RUN_ONCE);
}

#define TEST_SCENE(name) TEST_OF(build, tear_down, struct scene *s, name)

TEST_SCENE(both_addresses_answer)
{
        probe_start(&s->loop, &s->order, on_done, s);
        let_in(s);
        answer(s, 1);
        answer(s, 0);
        run_to_the_end(s);
        assert_int_equal(s->errors[0], 0);
        assert_int_equal(s->errors[1], 0);
}

TEST_SCENE(an_address_that_stays_silent_is_not_waited_for)
{
        probe_start(&s->loop, &s->order, on_done, s);
        let_in(s);
        answer(s, 1);
        run_to_the_end(s);
        assert_int_equal(s->errors[0], ETIMEDOUT);
        assert_int_equal(s->errors[1], 0);
}

TEST_SCENE(an_answer_that_came_while_we_hung_counts)
{
        probe_start(&s->loop, &s->order, on_done, s);
        let_in(s);
        answer(s, 1);
        wait_for(is_readable(s, s->guests[1])); /* it has been read: who asked has hung up */
        answer(s, 0);
        usleep(500000); /* the loop is not turned */
        wait_for(is_delivered(s->guests[0]));
        run_to_the_end(s);
        assert_int_equal(s->errors[0], 0);
        assert_int_equal(s->errors[1], 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "call/caller.h"
#include "lib/unit.h"

static uint8_t psk[NOISE_KEY];

/* Makes a caller with a connection. Returns the other end. */
static int open_call(struct caller *c)
{
        int fds[2];

        dial_psk(psk, "0123456789abcdef");
        *c = (struct caller)CALLER_INIT;
        assert_int_equal(fd_pair(fds), 0);
        c->fd = fds[0];
        return fds[1];
}

TEST(a_caller_tells_what_is_wrong_with_the_other_side)
{
        static const char page[DIAL_GREETING] = "HTTP/1.1 400 Bad Request\r\n";
        struct caller c;
        int head = open_call(&c);

        assert_int_equal(caller_greet(&c, psk, 1), -ETIMEDOUT);
        caller_finish(&c);
        close(head);

        head = open_call(&c);
        shutdown(head, SHUT_WR);
        assert_int_equal(caller_greet(&c, psk, 60000), -ECONNRESET);
        caller_finish(&c);
        close(head);

        head = open_call(&c);
        assert_int_equal(fd_write_all(head, page, sizeof(page)), 0);
        assert_int_equal(caller_greet(&c, psk, 60000), -EPROTO);
        caller_finish(&c);
        close(head);
}

/* Answers the greeting, and sends WELCOME when JOIN has come. Returns an exit code. */
static int play_head(int fd)
{
        uint8_t in[DIAL_GREETING], out[DIAL_GREETING];
        struct caller c = { .fd = fd };
        struct dial_record r;
        struct dial_join m;

        if (read(fd, in, sizeof(in)) != sizeof(in) || dial_answer(&c.stream, psk, in, out) < 0 ||
            fd_write_all(fd, out, sizeof(out)) < 0 || caller_take(&c, &r) < 0 ||
            dial_join_decode(&m, &r) < 0 || m.rank != 3 || strcmp(m.name, "gpu03") != 0)
                return 1;
        if (caller_put(&c, DIAL_WELCOME, NULL, 0) < 0)
                return 1;
        caller_finish(&c);
        return 0;
}

TEST(a_caller_joins_and_is_welcome)
{
        struct caller c;
        struct dial_record r;
        int head = open_call(&c), status;
        pid_t pid = fork();

        if (pid == 0) {
                close(c.fd);
                _exit(play_head(head));
        }
        close(head);
        assert_int_equal(caller_greet(&c, psk, 60000), 0);
        assert_int_equal(caller_join(&c, &(struct dial_join){ .rank = 3, .name = "gpu03" }), 0);
        assert_int_equal(caller_take(&c, &r), 0);
        assert_int_equal(r.type, DIAL_WELCOME);
        buf_consume(&c.in, r.whole);
        assert_int_equal(caller_take(&c, &r), -ECONNRESET);
        caller_finish(&c);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

TEST(an_address_without_a_listener_refuses)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct caller c = CALLER_INIT;
        socklen_t len = sizeof(to);

        assert_int_equal(bind(bound, (struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(getsockname(bound, (struct sockaddr *)&to, &len), 0);
        assert_int_equal(caller_connect(&c, (struct sockaddr *)&to, sizeof(to)), -ECONNREFUSED);
        assert_int_equal(c.fd, -1);
        assert_int_equal(listen(bound, 1), 0);
        assert_int_equal(caller_connect(&c, (struct sockaddr *)&to, sizeof(to)), 0);
        caller_finish(&c);
        close(bound);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that the agent closes long before the object that polled them goes: their numbers are
 * soon those of other connections, which must still be read. */

#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/rank/stdin_writer.h"
#include "agent/tree/child_agent.h"
#include "base/fd.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

/* A connection with a number that was another's. */
struct next {
        uv_poll_t poll;
        int near, far;
        bool heard;
};

static bool is_open(int fd)
{
        return fcntl(fd, F_GETFD) >= 0;
}

static void on_readable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        struct next *n = poll->data;

        n->heard = true;
        uv_poll_stop(poll);
}

static void take_number(struct next *n, uv_loop_t *loop, int number)
{
        int fds[2];

        assert_false(is_open(number));
        assert_int_equal(fd_pair(fds), 0);
        if (fds[1] == number)
                fds[1] = dup(number);
        if (fds[0] != number) {
                assert_int_equal(dup2(fds[0], number), number);
                fd_close(fds[0]);
        }
        *n = (struct next){ .near = number, .far = fds[1] };
        assert_int_equal(uv_poll_init(loop, &n->poll, n->near), 0);
        n->poll.data = n;
        uv_poll_start(&n->poll, UV_READABLE, on_readable);
        uv_run(loop, UV_RUN_NOWAIT);
}

static bool turn_until_heard(const struct next *n)
{
        uv_run(n->poll.loop, UV_RUN_NOWAIT);
        return n->heard;
}

static void assert_still_heard(struct next *n)
{
        assert_int_equal(write(n->far, "x", 1), 1);
        wait_for(turn_until_heard(n));
        uv_close((uv_handle_t *)&n->poll, NULL);
        fd_close(n->near);
        fd_close(n->far);
}

static void finish_loop(uv_loop_t *loop)
{
        uv_run(loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(loop), 0);
}

TEST(standard_input_that_ended)
{
        struct uplink up = { 0 };
        struct stdin_writer *w;
        struct next next;
        uv_loop_t loop;
        int fds[2];

        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(pipe(fds), 0);
        fd_set_nonblock(fds[1]);
        w = stdin_writer_open(&loop, &up, 0, fds[1]);
        assert_non_null(w);
        stdin_writer_push(w, NULL, 0);
        take_number(&next, &loop, fds[1]);
        stdin_writer_close(w);
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_still_heard(&next);
        finish_loop(&loop);
        fd_close(fds[0]);
        buf_finish(&up.out);
}

static void on_bytes(void *ctx UNUSED, const void *data UNUSED, size_t len UNUSED)
{
}

static void on_written(void *ctx UNUSED, uint32_t bytes UNUSED)
{
}

static void on_ended(void *ctx UNUSED, int status UNUSED)
{
}

static bool turn_until_closed(uv_loop_t *loop, int number)
{
        uv_run(loop, UV_RUN_NOWAIT);
        return !is_open(number);
}

TEST(stream_of_an_ssh_that_closed_it)
{
        static const struct child_agent_ops ops = { on_bytes, on_written, on_bytes, on_ended };
        struct child_agent_order o = { .number = 1, .argv = STRV_INIT };
        struct child_agent *c;
        struct next next;
        struct error err;
        uv_loop_t loop;
        int number;
        pid_t pid;

        assert_int_equal(uv_loop_init(&loop), 0);
        strv_push(&o.argv, "sh");
        strv_push(&o.argv, "-c");
        strv_push(&o.argv, "exec sleep 600 <&- >&-");
        number = dup(STDIN_FILENO); /* the lowest that is free */
        fd_close(number);
        c = child_agent_open(&loop, &o, NULL, &ops, NULL, &err);
        if (!c)
                fail_msg("%s", err.text);
        strv_finish(&o.argv);
        assert_true(is_open(number));
        wait_for(turn_until_closed(&loop, number));
        take_number(&next, &loop, number);
        pid = child_agent_pid(c);
        child_agent_destroy(c);
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_still_heard(&next);
        finish_loop(&loop);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

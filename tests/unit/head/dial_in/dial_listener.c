/* SPDX-License-Identifier: Apache-2.0 */
#include "head/dial_in/dial_listener.h"

#include <unistd.h>

#include "lib/unit.h"

static int n_closed;

static void note_closed(uv_handle_t *h UNUSED)
{
        n_closed++;
}

static void do_nothing(uv_poll_t *h UNUSED, int status UNUSED, int events UNUSED)
{
}

/* libuv refuses a descriptor whose number another handle has: that file was closed meanwhile. */
TEST(the_handle_of_a_refused_port_is_closed_with_the_callback)
{
        struct dial_listener l = { 0 };
        struct error err;
        uv_loop_t loop;
        uv_poll_t other;
        int fds[2];

        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(uv_poll_init(&loop, &other, fds[0]), 0);
        assert_int_equal(uv_poll_start(&other, UV_READABLE, do_nothing), 0);
        close(fds[0]); /* the lowest free number */
        assert_int_equal(dial_listener_open(&l, &loop, NULL, 0, note_closed, &err), UV_EEXIST);
        assert_int_equal(l.tcp.type, UV_TCP);
        assert_true(uv_is_closing((uv_handle_t *)&l.tcp));
        uv_close((uv_handle_t *)&other, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(n_closed, 1);
        close(fds[1]);
        assert_int_equal(uv_loop_close(&loop), 0);
}

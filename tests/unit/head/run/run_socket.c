/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that look on at a run: each gets the first line at once, a slow one fewer of the next,
 * and the run is told when the last one has gone.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/run/run_socket.h"
#include "lib/unit.h"

enum { LINE = 1 << 20, LINES = 64 };

struct setup {
        uv_loop_t loop;
        uv_timer_t busy; /* a loop without work does not turn, and the socket is none */
        struct run_socket *socket;
        char folder[64], path[96];
        int looks, rests;
};

static char *begin_look(void *ctx)
{
        struct setup *s = ctx;

        s->looks++;
        return xstrdup("{\"first\":1}\n");
}

static void rest(void *ctx)
{
        struct setup *s = ctx;

        s->rests++;
}

static void on_never(uv_timer_t *t)
{
        (void)t;
}

static int set_up(void **state)
{
        struct setup *s = xcalloc(1, sizeof(*s));
        struct run_socket_ops ops = { .top = begin_look, .top_rest = rest };
        struct error err;

        uv_loop_init(&s->loop);
        uv_timer_init(&s->loop, &s->busy);
        uv_timer_start(&s->busy, on_never, 1000000, 0);
        strcpy(s->folder, "/tmp/hnrunsocket.XXXXXX");
        assert_non_null(mkdtemp(s->folder));
        snprintf(s->path, sizeof(s->path), "%s/a.sock", s->folder);
        s->socket = run_socket_open(&s->loop, s->path, ops, s, &err);
        assert_non_null(s->socket);
        *state = s;
        return 0;
}

static int tear_down(void **state)
{
        struct setup *s = *state;

        run_socket_close(s->socket);
        uv_close((uv_handle_t *)&s->busy, NULL);
        uv_run(&s->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&s->loop), 0);
        rmdir(s->folder);
        free(s);
        return 0;
}

static void turn(struct setup *s)
{
        for (int i = 0; i < 8; i++)
                uv_run(&s->loop, UV_RUN_NOWAIT);
}

static int look(struct setup *s)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        static const char request[] = "{\"do\":\"top\"}\n";
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        strcpy(to.sun_path, s->path);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
        turn(s);
        return fd;
}

/* Reads until no more comes, with the loop at work. Returns the number of lines, and the last. */
static int read_lines(struct setup *s, int fd, char *last, size_t size)
{
        static char bytes[1 << 16];
        size_t len = 0;
        int lines = 0, idle = 0;

        while (idle < 4) {
                ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

                turn(s);
                idle = n > 0 ? 0 : idle + 1;
                for (ssize_t i = 0; i < n; i++) {
                        if (bytes[i] == '\n') {
                                last[MIN(len, size - 1)] = '\0';
                                lines++;
                                len = 0;
                        } else if (len++ < size) {
                                last[len - 1] = bytes[i];
                        }
                }
        }
        return lines;
}

TEST_WITH(set_up, tear_down, the_last_one_ends_the_look)
{
        struct setup *s = *state;
        char last[64];
        int a = look(s), b = look(s);

        assert_int_equal(s->looks, 2);
        run_socket_tell_top(s->socket, "{\"second\":1}\n");
        assert_int_equal(read_lines(s, a, last, sizeof(last)), 2);
        assert_string_equal(last, "{\"second\":1}");
        close(a);
        turn(s);
        assert_int_equal(s->rests, 0);
        run_socket_tell_top(s->socket, "{\"third\":1}\n");
        assert_int_equal(read_lines(s, b, last, sizeof(last)), 3);
        close(b);
        turn(s);
        assert_int_equal(s->rests, 1);
        run_socket_tell_top(s->socket, "{\"fourth\":1}\n"); /* to nobody */
        b = look(s);
        assert_int_equal(read_lines(s, b, last, sizeof(last)), 1);
        run_socket_tell_end(s->socket, 7, "the verdict", NULL);
        assert_int_equal(read_lines(s, b, last, sizeof(last)), 1);
        assert_string_equal(last, "{\"code\":7,\"verdict\":\"the verdict\"}");
        close(b);
        turn(s);
        assert_int_equal(s->rests, 2);
}

/* One that does not read costs the head a line or two, and gets the end all the same. */
TEST_WITH(set_up, tear_down, a_slow_one_gets_fewer_lines)
{
        struct setup *s = *state;
        char *line = xcalloc(LINE + 2, 1), last[64];
        int slow = look(s), fast = look(s), got = 0, n;

        memset(line, 'x', LINE);
        line[LINE] = '\n';
        for (int i = 0; i < LINES; i++) {
                run_socket_tell_top(s->socket, line);
                got += read_lines(s, fast, last, sizeof(last));
        }
        assert_int_equal(got, LINES + 1);
        run_socket_tell_end(s->socket, 0, "over", NULL);
        n = read_lines(s, slow, last, sizeof(last));
        assert_int_equal(n, 3); /* the first, one that filled the socket, the end */
        assert_non_null(strstr(last, "over"));
        close(slow);
        close(fast);
        turn(s);
        assert_int_equal(s->rests, 1);
        free(line);
}

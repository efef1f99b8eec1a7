/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "agent/endpoint/endpoint_unix.h"
#include "base/buf.h"
#include "base/fd.h"
#include "lib/unit.h"
#include "wire/frame.h"
#include "wire/msg.h"

enum { NOBODY = 65534, TURNS = 20000 };

/* An endpoint with a relay behind it that never hears an answer. */
struct house {
        char folder[32];
        char *path;
        uv_loop_t loop;
        struct relay *relay;
        struct endpoint_unix *endpoint;
};

static void up(void *ctx UNUSED, const void *body UNUSED, size_t len UNUSED)
{
}

static int build(void **state)
{
        struct house *h = xcalloc(1, sizeof(*h));

        strcpy(h->folder, "/tmp/hntest-door-XXXXXX");
        assert_non_null(mkdtemp(h->folder));
        h->path = xasprintf("%s/store", h->folder);
        uv_loop_init(&h->loop);
        h->relay = relay_create((struct relay_ops){ .up = up }, NULL);
        h->endpoint = endpoint_unix_create(&h->loop, h->path, h->relay, NULL);
        *state = h;
        return h->endpoint ? 0 : -1;
}

static int tear_down(void **state)
{
        struct house *h = *state;
        int r;

        endpoint_unix_destroy(h->endpoint);
        uv_run(&h->loop, UV_RUN_DEFAULT);
        relay_destroy(h->relay);
        r = uv_loop_close(&h->loop) | rmdir(h->folder);
        free(h->path);
        free(h);
        return r;
}

static int dial(const char *path)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        memcpy(to.sun_path, path, strlen(path));
        return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? fd : -1;
}

static void turn(struct house *h)
{
        uv_run(&h->loop, UV_RUN_NOWAIT);
        relay_turn(h->relay);
        usleep(200);
}

static void put_request(struct buf *b, uint32_t tag)
{
        size_t mark = frame_begin(b, MSG_STORE);

        store_request_encode(
                b, &(struct store_request){ .op = STORE_GET, .tag = tag, .key = bytes_of("key") });
        frame_end(b, mark);
}

/* Sends all of @b, which is emptied; the endpoint reads meanwhile. */
static void say(struct house *h, int fd, struct buf *b)
{
        while (buf_len(b)) {
                ssize_t n = send(fd, buf_data(b), buf_len(b), MSG_DONTWAIT | MSG_NOSIGNAL);

                assert_true(n > 0 || errno == EAGAIN);
                buf_consume(b, n > 0 ? (size_t)n : 0);
                turn(h);
        }
}

static bool is_closed(int fd)
{
        char byte;
        ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

        return n == 0 || (n < 0 && errno != EAGAIN);
}

static void closes(struct house *h, int fd)
{
        for (int i = 0; i < TURNS && !is_closed(fd); i++)
                turn(h);
        assert_true(is_closed(fd));
}

/* Until the relay has got @n requests from all clients. */
static void serves(struct house *h, uint64_t n)
{
        for (int i = 0; i < TURNS && relay_counts(h->relay).requests < n; i++)
                turn(h);
        assert_int_equal(relay_counts(h->relay).requests, n);
}

#define TEST_ENDPOINT(name) TEST_OF(build, tear_down, struct house *h, name)

TEST_ENDPOINT(a_client_that_breaks_a_rule_goes_alone)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        int good = dial(h->path), bad = dial(h->path);

        put_request(&b, 1);
        say(h, good, &b);
        serves(h, 1);
        buf_append(&b, "\1\0\0\0\377", 5); /* an empty frame of a type that there is not */
        say(h, bad, &b);
        closes(h, bad);
        put_request(&b, 2);
        say(h, good, &b);
        serves(h, 2);
        fd_close(good);
        fd_close(bad);
}

TEST_ENDPOINT(more_requests_than_may_wait_are_too_many)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        CLEANUP(fd_closep) int fd = dial(h->path);

        for (uint32_t tag = 1; tag <= STORE_INFLIGHT_MAX; tag++)
                put_request(&b, tag);
        say(h, fd, &b);
        serves(h, STORE_INFLIGHT_MAX);
        assert_false(is_closed(fd));
        put_request(&b, STORE_INFLIGHT_MAX + 1);
        say(h, fd, &b);
        closes(h, fd);
        assert_int_equal(relay_counts(h->relay).requests, STORE_INFLIGHT_MAX);
}

/* The folder and the mode of the socket keep them out already; here both are open. */
TEST_ENDPOINT(another_user_is_not_let_in)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        int status = -1, fd;
        char byte;
        pid_t pid;

        if (geteuid() != 0)
                skip();
        assert_int_equal(chmod(h->folder, 0711), 0);
        assert_int_equal(chmod(h->path, 0666), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                if (setresuid(NOBODY, NOBODY, NOBODY) < 0 || (fd = dial(h->path)) < 0)
                        _exit(1);
                _exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 2);
        }
        while (waitpid(pid, &status, WNOHANG) == 0)
                turn(h);
        assert_int_equal(status, 0);
        fd = dial(h->path);
        put_request(&b, 1);
        say(h, fd, &b);
        serves(h, 1);
        fd_close(fd);
}

TEST_ENDPOINT(the_socket_is_for_its_user_alone)
{
        struct stat st;

        assert_int_equal(stat(h->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

TEST_ENDPOINT(a_folder_that_is_open_to_others_is_refused)
{
        char *path, folder[] = "/tmp/hntest-door-XXXXXX";
        struct error err;

        assert_non_null(mkdtemp(folder));
        path = xasprintf("%s/store", folder);
        assert_int_equal(chmod(folder, 0710), 0);
        assert_null(endpoint_unix_create(&h->loop, path, h->relay, &err));
        assert_int_equal(err.code, EPERM);
        assert_non_null(strstr(err.text, folder));
        uv_run(&h->loop, UV_RUN_NOWAIT);
        assert_int_equal(rmdir(folder), 0);
        free(path);
}

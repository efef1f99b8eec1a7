/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ready/rank_probe.h"
#include "base/fd.h"
#include "base/memory.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

enum { RANK = 7 };

struct rank_scene {
        uv_loop_t loop;
        struct rank_probe *probe;
        int listener, guest;
        uint16_t port;
        bool alone;
        int ready; /* how often */
        char request[512];
};

static void on_scene_ready(void *ctx, uint32_t rank)
{
        struct rank_scene *s = ctx;

        assert_int_equal(rank, RANK);
        s->ready++;
        s->probe = NULL;
}

/* Binds to a port, the same in all calls; -1: it is not free at this address. */
static int bind_rank(struct rank_scene *s, const char *address)
{
        struct sockaddr_storage at = { 0 };
        struct sockaddr_in *v4 = (struct sockaddr_in *)&at;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&at;
        bool is_v6 = strchr(address, ':');
        socklen_t len = is_v6 ? sizeof(*v6) : sizeof(*v4);
        int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        at.ss_family = is_v6 ? AF_INET6 : AF_INET;
        *(is_v6 ? &v6->sin6_port : &v4->sin_port) = htons(s->port);
        if (is_v6)
                inet_pton(AF_INET6, address, &v6->sin6_addr);
        else
                inet_pton(AF_INET, address, &v4->sin_addr);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
        if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0) {
                fd_close(fd);
                return -1;
        }
        getsockname(fd, (struct sockaddr *)&at, &len);
        s->port = ntohs(is_v6 ? v6->sin6_port : v4->sin_port);
        return fd;
}

static int build_scene(void **state)
{
        struct rank_scene *s = xcalloc(1, sizeof(*s));

        uv_loop_init(&s->loop);
        s->guest = -1;
        s->listener = bind_rank(s, "127.0.0.1"); /* not listening: connections are refused */
        assert_true(s->listener >= 0);
        *state = s;
        return 0;
}

static int drop_scene(void **state)
{
        struct rank_scene *s = *state;
        int r;

        rank_probe_end(s->probe);
        uv_run(&s->loop, UV_RUN_DEFAULT);
        r = uv_loop_close(&s->loop);
        fd_close(s->listener);
        fd_close(s->guest);
        free(s);
        return r;
}

static void begin_probe(struct rank_scene *s, uint8_t kind, const char *path)
{
        struct rank_probe_order order = { kind, s->port, path, s->alone };

        s->probe = rank_probe_start(&s->loop, &order, on_scene_ready, s, RANK);
}

static void turn_for(struct rank_scene *s, int ms)
{
        int64_t until = wait_now_ms() + ms;

        while (wait_now_ms() < until) {
                uv_run(&s->loop, UV_RUN_NOWAIT);
                poll(NULL, 0, 2);
        }
}

static bool is_ready(struct rank_scene *s)
{
        uv_run(&s->loop, UV_RUN_NOWAIT);
        return s->ready;
}

static bool has_guest(struct rank_scene *s)
{
        uv_run(&s->loop, UV_RUN_NOWAIT);
        fd_close(s->guest);
        s->guest = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        return s->guest >= 0;
}

static bool has_request(struct rank_scene *s)
{
        size_t n = strlen(s->request);
        ssize_t got;

        uv_run(&s->loop, UV_RUN_NOWAIT);
        got = recv(s->guest, s->request + n, sizeof(s->request) - 1 - n, 0);
        return got > 0 && strstr(s->request, "\r\n\r\n");
}

/* Takes the next request and answers it. */
static void answer(struct rank_scene *s, const char *text)
{
        memset(s->request, 0, sizeof(s->request));
        wait_for(has_guest(s));
        wait_for(has_request(s));
        assert_int_equal(write(s->guest, text, strlen(text)), strlen(text));
}

static void listen_without_waiting(struct rank_scene *s)
{
        assert_int_equal(listen(s->listener, 8), 0);
        fcntl(s->listener, F_SETFL, O_NONBLOCK);
}

#define TEST_SCENE(name) TEST_OF(build_scene, drop_scene, struct rank_scene *s, name)

TEST_SCENE(a_port_is_ready_when_it_listens)
{
        begin_probe(s, READY_TCP, "");
        turn_for(s, 250);
        assert_int_equal(s->ready, 0);
        listen_without_waiting(s);
        wait_for(is_ready(s));
        turn_for(s, 150);
        assert_int_equal(s->ready, 1);
}

TEST_SCENE(other_addresses_are_asked)
{
        int six = bind_rank(s, "::1");

        if (six < 0) {
                print_message("skipped: no ::1\n");
                return;
        }
        assert_int_equal(listen(six, 8), 0);
        begin_probe(s, READY_TCP, "");
        wait_for(is_ready(s));
        fd_close(six);
}

TEST_SCENE(http_is_ready_with_a_good_status)
{
        listen_without_waiting(s);
        begin_probe(s, READY_HTTP, "/health?a=b");
        answer(s, "HTTP/1.1 503 Service Unavailable\r\n\r\n");
        assert_non_null(strstr(s->request, "GET /health?a=b HTTP/1.1\r\n"));
        assert_non_null(strstr(s->request, "\r\nConnection: close\r\n"));
        answer(s, "SSH-2.0-OpenSSH_9.6\r\n");
        answer(s, "HTTP/1.1 2");
        fd_close(s->guest);
        s->guest = -1;
        assert_false(is_ready(s));
        answer(s, "HTTP/1.1 4");
        answer(s, "HTTP/1.0 204\r\n");
        wait_for(is_ready(s));
        assert_int_equal(s->ready, 1);
}

static bool is_closed(struct rank_scene *s)
{
        char byte;

        uv_run(&s->loop, UV_RUN_NOWAIT);
        errno = 0;
        return recv(s->guest, &byte, 1, 0) == 0 || errno != EAGAIN;
}

/* Writes an answer in two pieces, and wants an orderly end of the connection. */
static void answer_in_pieces(struct rank_scene *s, const char *status)
{
        answer(s, status);
        uv_run(&s->loop, UV_RUN_NOWAIT); /* reads the status */
        assert_int_equal(write(s->guest, "a body longer than a status", 27), 27);
        shutdown(s->guest, SHUT_WR);
        wait_for(is_closed(s));
        assert_int_equal(errno, 0);
}

TEST_SCENE(the_whole_answer_is_read)
{
        listen_without_waiting(s);
        begin_probe(s, READY_HTTP, "/");
        answer_in_pieces(s, "HTTP/1.1 404 Not Found\r\n\r\n");
        answer_in_pieces(s, "HTTP/1.1 200 OK\r\n\r\n");
        wait_for(is_ready(s));
        assert_int_equal(s->ready, 1);
        s->ready = 0;
        begin_probe(s, READY_HTTP, "/");
        answer(s, "HTTP/1.1 200 OK\r\n\r\n"); /* and no end: the status is enough after a while */
        wait_for(is_ready(s));
}

TEST_SCENE(a_probe_may_end_at_any_time)
{
        begin_probe(s, READY_TCP, "");
        rank_probe_end(s->probe);
        begin_probe(s, READY_TCP, "");
        turn_for(s, 20);
        rank_probe_end(s->probe);
        listen_without_waiting(s);
        begin_probe(s, READY_HTTP, "/");
        wait_for(has_guest(s));
        rank_probe_end(s->probe);
        begin_probe(s, READY_FILE, "/nowhere/at/all");
        uv_run(&s->loop, UV_RUN_NOWAIT); /* the look is on its way */
        rank_probe_end(s->probe);
        s->probe = NULL;
        turn_for(s, 300);
        assert_int_equal(s->ready, 0);
}

TEST_SCENE(a_file_is_ready_when_it_is_there)
{
        char folder[] = "/tmp/rank_probe.XXXXXX", path[64];
        int fd;

        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/up", folder);
        begin_probe(s, READY_FILE, path);
        turn_for(s, 250);
        assert_int_equal(s->ready, 0);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        wait_for(is_ready(s));
        fd_close(fd);
        unlink(path);
        s->ready = 0;
        s->alone = true;
        begin_probe(s, READY_FILE, path);
        turn_for(s, 250);
        assert_int_equal(s->ready, 0);
        assert_int_equal(mkdir(path, 0700), 0); /* a folder will do */
        wait_for(is_ready(s));
        rmdir(path);
        rmdir(folder);
}

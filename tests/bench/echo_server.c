/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo server: the floor of a store: what libuv and the kernel cost when there is nothing to do
 *
 * usage: echo_server PATH        a Unix socket
 *        echo_server 0           TCP, 127.0.0.1, any port
 *        echo_server --behind .. the same, with a second process behind the first
 *
 * Prints the path or the port in a line, then serves until standard input ends. A request is a u32
 * length of all, a u32 length of the answer, and bytes. --behind passes every request with the
 * number of its client through a socketpair to a second process and its answer back, as an agent
 * and a head do: the floor of that way. Requests of one turn of the loop travel in one write.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"

enum { READ_SIZE = 64 << 10, ANSWER_MAX = 4096, BACKLOG = 4096, FDS = 1 << 16 };

struct header {
        uint32_t len, answer;
};

/* Between the two processes. */
struct passed {
        uint32_t len, client;
        struct header header; /* of the request */
};

struct client {
        union {
                uv_stream_t stream;
                uv_tcp_t tcp;
                uv_pipe_t pipe;
        };
        uint32_t id;
        struct buf in;
};

static uv_loop_t loop;
static char answer[ANSWER_MAX];
static bool is_tcp;

/* The link to the second process, or in it to the first. */
static struct {
        uv_pipe_t pipe;
        uv_prepare_t flush;
        uv_write_t write;
        struct buf in, out, flying;
        bool used, writing;
} behind;

static struct client *clients[FDS];

static void die(const char *what, int error)
{
        fprintf(stderr, "echo_server: %s: %s\n", what, uv_strerror(error));
        exit(1);
}

/* A closed-loop client reads every answer before it asks again: it always fits. */
static void write_now(uv_stream_t *s, const void *p, size_t n)
{
        uv_buf_t piece = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
        int r = uv_try_write(s, &piece, 1);

        if (r >= 0 && (size_t)r != n)
                die("a client that does not read", UV_EAGAIN);
}

static void client_closed(uv_handle_t *h)
{
        struct client *c = h->data;

        clients[c->id] = NULL;
        buf_finish(&c->in);
        free(c);
}

static void pass_on(const struct client *c, const struct header *h, const unsigned char *body)
{
        struct passed p = { (uint32_t)sizeof(p) + h->len - (uint32_t)sizeof(*h), c->id, *h };

        buf_append(&behind.out, &p, sizeof(p));
        buf_append(&behind.out, body, h->len - sizeof(*h));
}

/* Answers the whole requests at @p; returns how many bytes they were. */
static size_t serve(struct client *c, const unsigned char *p, size_t n)
{
        size_t done = 0;
        struct header h;

        while (n - done >= sizeof(h)) {
                memcpy(&h, p + done, sizeof(h));
                if (n - done < h.len)
                        break;
                if (behind.used)
                        pass_on(c, &h, p + done + sizeof(h));
                else
                        write_now(&c->stream, answer, MIN(h.answer, (uint32_t)sizeof(answer)));
                done += h.len;
        }
        return done;
}

/* One room for all clients: their requests are small and mostly whole. */
static void on_alloc(uv_handle_t *h UNUSED, size_t suggested UNUSED, uv_buf_t *ret)
{
        static char room[READ_SIZE];

        *ret = uv_buf_init(room, sizeof(room));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to)
{
        struct client *c = s->data;

        if (n < 0) {
                uv_close((uv_handle_t *)s, client_closed);
        } else if (buf_len(&c->in)) {
                buf_append(&c->in, to->base, (size_t)n);
                buf_consume(&c->in, serve(c, buf_data(&c->in), buf_len(&c->in)));
        } else {
                size_t done = serve(c, (unsigned char *)to->base, (size_t)n);

                buf_append(&c->in, to->base + done, (size_t)n - done);
        }
}

static void on_connection(uv_stream_t *listener, int status)
{
        struct client *c = calloc(1, sizeof(*c));
        static uint32_t next;

        if (status < 0 || !c)
                die("accept", status);
        if (is_tcp) {
                uv_tcp_init(&loop, &c->tcp);
                uv_tcp_nodelay(&c->tcp, 1);
        } else {
                uv_pipe_init(&loop, &c->pipe, 0);
        }
        c->stream.data = c;
        while (clients[next % FDS])
                next++;
        c->id = next++ % FDS;
        clients[c->id] = c;
        if (uv_accept(listener, &c->stream) < 0)
                uv_close((uv_handle_t *)&c->stream, client_closed);
        else
                uv_read_start(&c->stream, on_alloc, on_read);
}

/* --- the process behind ----------------------------------------------------------------------- */

/* In front: an answer goes out to its client. Behind: a request is answered. */
static void take_passed(const struct passed *p, const unsigned char *body)
{
        struct passed back = { (uint32_t)sizeof(back) + p->header.answer, p->client, p->header };
        struct client *c = clients[p->client];

        if (!behind.used) {
                buf_append(&behind.out, &back, sizeof(back));
                buf_append(&behind.out, answer, p->header.answer);
        } else if (c) {
                write_now(&c->stream, body, p->header.answer);
        }
}

static void on_behind_alloc(uv_handle_t *h UNUSED, size_t suggested UNUSED, uv_buf_t *ret)
{
        ret->base = buf_reserve(&behind.in, READ_SIZE);
        ret->len = ret->base ? READ_SIZE : 0;
}

static void on_passed(uv_stream_t *s UNUSED, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct passed p;

        if (n < 0)
                exit(0);
        buf_advance(&behind.in, (size_t)n);
        while (buf_len(&behind.in) >= sizeof(p)) {
                memcpy(&p, buf_data(&behind.in), sizeof(p));
                if (buf_len(&behind.in) < p.len)
                        break;
                take_passed(&p, buf_data(&behind.in) + sizeof(p));
                buf_consume(&behind.in, p.len);
        }
}

static void on_written(uv_write_t *req UNUSED, int status)
{
        if (status < 0)
                die("the second process", status);
        behind.writing = false;
        buf_clear(&behind.flying);
}

static void on_prepare(uv_prepare_t *h UNUSED)
{
        struct buf empty = behind.flying;
        uv_buf_t piece;

        if (behind.writing || !buf_len(&behind.out))
                return;
        behind.flying = behind.out;
        behind.out = empty;
        piece = uv_buf_init((char *)(uintptr_t)buf_data(&behind.flying),
                            (unsigned)buf_len(&behind.flying));
        uv_write(&behind.write, (uv_stream_t *)&behind.pipe, &piece, 1, on_written);
        behind.writing = true;
}

static void join(int fd)
{
        uv_pipe_init(&loop, &behind.pipe, 0);
        uv_pipe_open(&behind.pipe, fd);
        uv_read_start((uv_stream_t *)&behind.pipe, on_behind_alloc, on_passed);
        uv_prepare_init(&loop, &behind.flush);
        uv_prepare_start(&behind.flush, on_prepare);
}

/* Returns in the process in front; prints the pid of the one behind. */
static void split(void)
{
        int ends[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
                die("socketpair", -1);
        pid = fork();
        if (pid != 0) {
                close(ends[1]);
                uv_loop_init(&loop);
                join(ends[0]);
                behind.used = true;
                printf("%d ", (int)pid);
                return;
        }
        close(ends[0]);
        uv_loop_init(&loop);
        join(ends[1]);
        exit(uv_run(&loop, UV_RUN_DEFAULT));
}

/* ---------------------------------------------------------------------------------------------- */

static void on_stdin(uv_poll_t *h UNUSED, int status UNUSED, int events UNUSED)
{
        exit(0);
}

static int listen_tcp(uv_tcp_t *at)
{
        struct sockaddr_in addr;
        int len = sizeof(addr), r;

        uv_ip4_addr("127.0.0.1", 0, &addr);
        uv_tcp_init(&loop, at);
        r = uv_tcp_bind(at, (struct sockaddr *)&addr, 0);
        if (r == 0)
                r = uv_listen((uv_stream_t *)at, BACKLOG, on_connection);
        if (r == 0)
                r = uv_tcp_getsockname(at, (struct sockaddr *)&addr, &len);
        if (r == 0)
                printf("%d\n", ntohs(addr.sin_port));
        return r;
}

static int listen_unix(uv_pipe_t *at, const char *path)
{
        int r;

        unlink(path);
        uv_pipe_init(&loop, at, 0);
        r = uv_pipe_bind(at, path);
        if (r == 0)
                r = uv_listen((uv_stream_t *)at, BACKLOG, on_connection);
        if (r == 0)
                printf("%s\n", path);
        return r;
}

int main(int argc, char **argv)
{
        bool two = argc == 3 && strcmp(argv[1], "--behind") == 0;
        const char *where = argv[argc - 1];
        uv_pipe_t pipe;
        uv_poll_t in;
        uv_tcp_t tcp;
        int r;

        if (argc != 2 && !two) {
                fputs("usage: echo_server [--behind] PATH | 0\n", stderr);
                return 64;
        }
        signal(SIGPIPE, SIG_IGN); /* clients leave in the middle of an answer */
        memset(answer, 'e', sizeof(answer));
        if (two)
                split();
        else
                uv_loop_init(&loop);
        is_tcp = strcmp(where, "0") == 0;
        r = is_tcp ? listen_tcp(&tcp) : listen_unix(&pipe, where);
        if (r < 0)
                die(where, r);
        fflush(stdout);
        uv_poll_init(&loop, &in, 0);
        uv_poll_start(&in, UV_READABLE, on_stdin); /* readable = its end */
        return uv_run(&loop, UV_RUN_DEFAULT);
}

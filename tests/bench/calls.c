/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls: agents that call the head, all at once (head/dial_in/dial_listener.h)
 *
 * usage: calls [CONNECTIONS [REPEATS]]
 *
 * Another process opens the connections, so many at once. Two contestants take turns as the server:
 *
 *   hnlaunch   the head's listener: greeting, JOIN and WELCOME of each agent
 *   libuv      accept, and as many bytes as these have, in the same reads and writes
 *
 * Beside them the primitives alone: the Noise handshake and two sealed records per agent. What is
 * printed is processor time of the server, medians, and
 *
 *   ratio = hnlaunch / (libuv + primitives)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>
#include <uv.h>

#include "base/macros.h"
#include "base/memory.h"
#include "bench/usage.h"
#include "head/dial_in/dial_listener.h"
#include "wire/msg.h"

enum { AT_ONCE = 256, WELCOME_BYTES = 2 + 1 + NOISE_TAG, JOIN_MAX = 256, REPEATS_MAX = 99 };

static const uint8_t psk[NOISE_KEY] = { 1 };
static size_t join_bytes; /* of the record */

static void fail_bench(const char *what)
{
        fprintf(stderr, "calls: %s\n", what);
        exit(1);
}

static const struct dial_join join = { .version = MSG_VERSION, .name = "node00001" };

/* --- the agents ------------------------------------------------------------------------------- */

struct caller {
        uv_tcp_t tcp;
        uv_connect_t connect;
        uv_write_t write;
        struct dial_stream stream;
        struct buf in, out;
        bool greeted;
};

struct callers {
        uv_loop_t loop;
        struct sockaddr_in to;
        struct caller *all;
        size_t n, begun, welcome;
};

static void begin_caller(struct callers *c);

static void on_caller_written(uv_write_t *w UNUSED, int status)
{
        if (status < 0)
                fail_bench(uv_strerror(status));
}

static void send_caller(struct caller *c)
{
        uv_buf_t piece = uv_buf_init((char *)c->out.mem + c->out.start, (unsigned)buf_len(&c->out));

        uv_write(&c->write, (uv_stream_t *)&c->tcp, &piece, 1, on_caller_written);
}

static void on_caller_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *ret)
{
        struct caller *c = h->data;

        *ret = uv_buf_init(buf_reserve(&c->in, JOIN_MAX), JOIN_MAX);
}

static void on_caller_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b UNUSED)
{
        struct caller *c = s->data;
        struct callers *all = s->loop->data;

        if (n < 0)
                fail_bench("a connection was closed");
        buf_advance(&c->in, (size_t)n);
        if (!c->greeted && buf_len(&c->in) >= DIAL_GREETING) {
                c->greeted = true;
                dial_take_answer(&c->stream, buf_data(&c->in)); /* the probe's is none */
                buf_consume(&c->in, DIAL_GREETING);
                buf_clear(&c->out);
                dial_join_put(&c->stream, &join, &c->out);
                send_caller(c);
        }
        if (!c->greeted || buf_len(&c->in) < WELCOME_BYTES)
                return;
        uv_read_stop(s);
        all->welcome++;
        begin_caller(all);
}

static void on_caller_connected(uv_connect_t *r, int status)
{
        struct caller *c = r->data;
        uint8_t greeting[DIAL_GREETING];

        if (status < 0)
                fail_bench(uv_strerror(status));
        dial_greet(&c->stream, psk, greeting);
        buf_append(&c->out, greeting, sizeof(greeting));
        uv_read_start((uv_stream_t *)&c->tcp, on_caller_alloc, on_caller_read);
        send_caller(c);
}

static void begin_caller(struct callers *all)
{
        struct caller *c;

        if (all->begun == all->n)
                return;
        c = &all->all[all->begun++];
        uv_tcp_init(&all->loop, &c->tcp);
        c->tcp.data = c->connect.data = c;
        uv_tcp_connect(&c->connect, &c->tcp, (struct sockaddr *)&all->to, on_caller_connected);
}

/* Makes @n connections to @port, and keeps them until @until is closed. */
static void call_all(int port, size_t n, int until)
{
        static struct callers all;
        char byte;

        uv_loop_init(&all.loop);
        all.loop.data = &all;
        uv_ip4_addr("127.0.0.1", port, &all.to);
        all.all = xcalloc(n, sizeof(*all.all));
        all.n = n;
        for (size_t i = 0; i < AT_ONCE; i++)
                begin_caller(&all);
        while (all.welcome < n && uv_run(&all.loop, UV_RUN_ONCE))
                ;
        while (read(until, &byte, 1) > 0)
                ;
}

/* --- hnlaunch --------------------------------------------------------------------------------- */

struct server {
        uv_loop_t loop;
        uv_tcp_t tcp;
        struct dial_listener listener;
        struct dial_rejects rejects;
        size_t n, joined;
};

static void on_agent_joined(struct dial_peer *p, const struct dial_join *m UNUSED)
{
        struct server *s = p->owner;

        dial_listener_join(&s->listener, p);
        dial_peer_send(p, DIAL_WELCOME, NULL, 0);
        if (++s->joined == s->n)
                uv_stop(&s->loop);
}

static void on_agent_record(struct dial_peer *p UNUSED, const struct dial_record *r UNUSED)
{
}

static void on_agent_peer(struct dial_peer *p UNUSED)
{
}

static void on_agent_broken(struct dial_peer *p UNUSED, enum dial_peer_fault f UNUSED,
                            const char *text)
{
        fail_bench(text);
}

static int listen_as_head(struct server *s)
{
        static const struct dial_peer_ops ops = { .joined = on_agent_joined,
                                                  .record = on_agent_record,
                                                  .writable = on_agent_peer,
                                                  .broken = on_agent_broken,
                                                  .closed = on_agent_peer };
        struct error err;
        struct sockaddr_in own;
        int len = sizeof(own);

        s->listener.psk = psk;
        s->listener.rejects = &s->rejects;
        s->listener.ops = &ops;
        s->listener.owner = s;
        if (dial_listener_open(&s->listener, &s->loop, "127.0.0.1", 0, NULL, &err) < 0)
                fail_bench(err.text);
        uv_tcp_getsockname(&s->listener.tcp, (struct sockaddr *)&own, &len);
        return ntohs(own.sin_port);
}

/* --- libuv ------------------------------------------------------------------------------------ */

struct floor_peer {
        uv_tcp_t tcp;
        uv_write_t writes[2];
        size_t got;
        char in[DIAL_GREETING + JOIN_MAX];
};

static void on_floor_written(uv_write_t *w UNUSED, int status UNUSED)
{
}

static void answer_floor(struct floor_peer *p, int number, size_t n)
{
        static char zeros[DIAL_GREETING];
        uv_buf_t piece = uv_buf_init(zeros, (unsigned)n);

        uv_write(&p->writes[number], (uv_stream_t *)&p->tcp, &piece, 1, on_floor_written);
}

static void on_floor_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *ret)
{
        struct floor_peer *p = h->data;

        *ret = uv_buf_init(p->in + p->got, (unsigned)(sizeof(p->in) - p->got));
}

static void on_floor_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b UNUSED)
{
        struct floor_peer *p = stream->data;
        struct server *s = stream->loop->data;
        size_t before = p->got;

        if (n < 0)
                fail_bench("a connection was closed");
        p->got += (size_t)n;
        if (before < DIAL_GREETING && p->got >= DIAL_GREETING)
                answer_floor(p, 0, DIAL_GREETING);
        if (p->got < DIAL_GREETING + join_bytes)
                return;
        answer_floor(p, 1, WELCOME_BYTES);
        if (++s->joined == s->n)
                uv_stop(&s->loop);
}

static void on_floor_connection(uv_stream_t *listener, int status UNUSED)
{
        struct floor_peer *p = xcalloc(1, sizeof(*p));

        uv_tcp_init(listener->loop, &p->tcp);
        p->tcp.data = p;
        if (uv_accept(listener, (uv_stream_t *)&p->tcp) < 0)
                fail_bench("accept");
        uv_tcp_nodelay(&p->tcp, 1);
        uv_read_start((uv_stream_t *)&p->tcp, on_floor_alloc, on_floor_read);
}

static int listen_as_floor(struct server *s)
{
        struct sockaddr_in own;
        int len = sizeof(own);

        uv_ip4_addr("127.0.0.1", 0, &own);
        uv_tcp_init(&s->loop, &s->tcp);
        uv_tcp_bind(&s->tcp, (struct sockaddr *)&own, 0);
        if (uv_listen((uv_stream_t *)&s->tcp, SOMAXCONN, on_floor_connection) < 0)
                fail_bench("listen");
        uv_tcp_getsockname(&s->tcp, (struct sockaddr *)&own, &len);
        return ntohs(own.sin_port);
}

/* --- measuring -------------------------------------------------------------------------------- */

/* Returns the processor time of a server for @n agents, in a process of its own. */
static int64_t time_server(int (*listen_as)(struct server *), size_t n)
{
        int result[2], end[2];
        int64_t ns = 0;
        pid_t pid;

        if (pipe(result) < 0 || pipe(end) < 0)
                fail_bench("pipe");
        pid = fork();
        if (pid == 0) {
                static struct server s;
                int port;
                int64_t before;

                uv_loop_init(&s.loop);
                s.loop.data = &s;
                s.n = n;
                port = listen_as(&s);
                if (fork() == 0) {
                        close(end[1]);
                        call_all(port, n, end[0]);
                        _exit(0);
                }
                close(end[0]);
                before = usage_of(getpid()).cpu_ns;
                uv_run(&s.loop, UV_RUN_DEFAULT);
                ns = usage_of(getpid()).cpu_ns - before;
                if (write(result[1], &ns, sizeof(ns)) != sizeof(ns))
                        fail_bench("write");
                _exit(0);
        }
        close(result[1]);
        close(end[0]);
        close(end[1]);
        if (read(result[0], &ns, sizeof(ns)) != sizeof(ns))
                fail_bench("a server gave up");
        close(result[0]);
        waitpid(pid, NULL, 0);
        return ns;
}

/* Returns the time of the head's cryptography for @n agents. */
static int64_t time_primitives(size_t n)
{
        int64_t ns = 0;

        for (size_t i = 0; i < n; i++) {
                struct dial_stream agent, head;
                uint8_t greeting[DIAL_GREETING], answer[DIAL_GREETING];
                struct buf joined = BUF_INIT, out = BUF_INIT;
                struct dial_record rec;
                int64_t begin;

                dial_greet(&agent, psk, greeting);
                begin = usage_of(getpid()).cpu_ns;
                dial_answer(&head, psk, greeting, answer);
                ns += usage_of(getpid()).cpu_ns - begin;
                dial_take_answer(&agent, answer);
                dial_join_put(&agent, &join, &joined);
                join_bytes = buf_len(&joined);
                begin = usage_of(getpid()).cpu_ns;
                if (dial_take(&head, &joined, &rec) != 1)
                        fail_bench("a record does not open");
                dial_put(&head, DIAL_WELCOME, NULL, 0, &out);
                ns += usage_of(getpid()).cpu_ns - begin;
                buf_finish(&joined);
                buf_finish(&out);
        }
        return ns;
}

static int compare_times(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

static double median_us(int64_t *v, size_t repeats, size_t n)
{
        qsort(v, repeats, sizeof(*v), compare_times);
        return (double)v[repeats / 2] / 1000 / (double)n;
}

int main(int argc, char **argv)
{
        size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
        size_t repeats = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
        int64_t head[REPEATS_MAX], uv[REPEATS_MAX], own[REPEATS_MAX];
        struct rlimit files;
        double a, b, c;

        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        if (sodium_init() < 0 || !n || !repeats || repeats > REPEATS_MAX ||
            files.rlim_cur < n + 64) {
                fprintf(stderr, "usage: calls [CONNECTIONS [REPEATS]], below the limit of files\n");
                return 64;
        }
        for (size_t i = 0; i < repeats; i++) {
                own[i] = time_primitives(n);
                uv[i] = time_server(listen_as_floor, n);
                head[i] = time_server(listen_as_head, n);
        }
        a = median_us(head, repeats, n);
        b = median_us(uv, repeats, n);
        c = median_us(own, repeats, n);
        printf("%zu agents, us of processor time per agent: hnlaunch %.1f, libuv %.1f, primitives "
               "%.1f, ratio %.2f\n",
               n, a, b, c, a / (b + c));
        return 0;
}

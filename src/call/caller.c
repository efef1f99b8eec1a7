/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node has nothing else to do until WELCOME, so all calls block. Each wait has a deadline, but
 * for the wait for a record: other nodes may come late.
 */
#include "call/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "base/fd.h"

enum { CONNECT_MS = 5000, CALL_READ = 64 << 10 };

/* Waits until @fd is ready; -1 ms: without a limit. 0, or -ETIMEDOUT. */
static int await_ready(int fd, short events, int ms)
{
        struct pollfd p = { .fd = fd, .events = events };
        int r;

        do
                r = poll(&p, 1, ms);
        while (r < 0 && errno == EINTR);
        return r > 0 ? 0 : -ETIMEDOUT;
}

/* @fd is non-blocking, so that the wait has a limit. 0, or -errno. */
static int await_connection(int fd, const struct sockaddr *to, socklen_t len)
{
        socklen_t size = sizeof(int);
        int error = 0;

        if (connect(fd, to, len) == 0)
                return 0;
        if (errno != EINPROGRESS)
                return -errno;
        if (await_ready(fd, POLLOUT, CONNECT_MS) < 0)
                return -ETIMEDOUT;
        /* A socket is also writable after a failure. */
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? -errno : -error;
}

int caller_connect(struct caller *c, const struct sockaddr *to, socklen_t len)
{
        int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;
        int on = 1, idle = 5, probes = 3;

        if (fd < 0)
                return -errno;
        r = await_connection(fd, to, len);
        if (r < 0) {
                fd_close(fd);
                return r;
        }
        /* From here on reads and writes block; a limit of time comes from poll(). */
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        /* While the node waits for the other nodes, nothing else tells of the loss of the head's
         * machine. */
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
        c->fd = fd;
        return 0;
}

/* Appends bytes that come within @ms to c->in. 0, or -errno. */
static int read_sealed(struct caller *c, int ms)
{
        char *to = buf_reserve(&c->in, CALL_READ);
        ssize_t n;

        if (!to)
                return -ENOMEM;
        if (await_ready(c->fd, POLLIN, ms) < 0)
                return -ETIMEDOUT;
        n = read(c->fd, to, CALL_READ);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        buf_advance(&c->in, (size_t)n);
        return n ? 0 : -ECONNRESET;
}

int caller_greet(struct caller *c, const uint8_t psk[NOISE_KEY], int answer_ms)
{
        uint8_t greeting[DIAL_GREETING];
        int r;

        dial_greet(&c->stream, psk, greeting);
        r = fd_write_all(c->fd, greeting, sizeof(greeting));
        while (r == 0 && buf_len(&c->in) < sizeof(greeting))
                r = read_sealed(c, answer_ms);
        if (r == 0)
                r = dial_take_answer(&c->stream, buf_data(&c->in));
        if (r == 0)
                buf_consume(&c->in, sizeof(greeting));
        return r;
}

/* Writes all of @out and frees @out. */
static int send_records(struct caller *c, struct buf *out)
{
        int r = fd_write_all(c->fd, buf_data(out), buf_len(out));

        buf_finish(out);
        return r;
}

int caller_put(struct caller *c, enum dial_type type, const void *body, size_t len)
{
        struct buf out = BUF_INIT;

        dial_put(&c->stream, type, body, len, &out);
        return send_records(c, &out);
}

int caller_join(struct caller *c, const struct dial_join *m)
{
        struct buf out = BUF_INIT;

        dial_join_put(&c->stream, m, &out);
        return send_records(c, &out);
}

/* Bytes behind the record stay in @in, for the next call. */
int caller_take(struct caller *c, struct dial_record *ret)
{
        for (;;) {
                int r = dial_take(&c->stream, &c->in, ret);

                if (r != 0)
                        return r > 0 ? 0 : r;
                r = read_sealed(c, -1);
                if (r < 0)
                        return r;
        }
}

void caller_finish(struct caller *c)
{
        c->fd = fd_close(c->fd);
        buf_finish(&c->in);
}

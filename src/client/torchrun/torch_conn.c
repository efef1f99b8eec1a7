/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets are non-blocking; torch_conn_send() and torch_conn_read() try first and wait with poll()
 * only when needed, so an answer already there costs one call. The first connection finds out the
 * dialect (torch_conn_greet()) and retries refused connections until the deadline; later ones fail
 * at once, because a server that was there and refuses is gone. Dialect C needs VALIDATE as the
 * first command of every connection.
 */
#include "client/torchrun/torch_conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "wire/codec.h"

enum { PAUSE_MS = 100, VALUE_MAX = 64 << 20 };

static hn_status fail_lost_server(const char *why)
{
        return set_error(HN_ERR_ABORTED, "lost the connection to the store of torchrun's agent: %s",
                         why);
}

/* Waits until @fd is ready. An answer already there counts even after the deadline. */
static hn_status wait_fd(int fd, short events, int64_t deadline)
{
        struct pollfd p = { .fd = fd, .events = events };
        int n;

        do
                n = poll(&p, 1, deadline_left(deadline));
        while (n == 0 && clock_ms() < deadline);
        if (n < 0 && errno != EINTR)
                return fail_lost_server(strerror(errno));
        return n != 0 ? HN_OK
                      : set_error(HN_ERR_TIMEOUT, "no answer from the store of torchrun's agent");
}

/* --- connecting ------------------------------------------------------------------------------- */

/* Returns the descriptor, or -errno. */
static int connect_address(const struct addrinfo *to, int64_t deadline)
{
        int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
        int error = 0;
        socklen_t size = sizeof(error);

        if (fd < 0)
                return -errno;
        if (connect(fd, to->ai_addr, to->ai_addrlen) < 0) {
                error = errno;
                if (error == EINPROGRESS)
                        error = wait_fd(fd, POLLOUT, deadline) == HN_OK ? 0 : ETIMEDOUT;
                if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                        error = errno;
        }
        if (error) {
                fd_close(fd);
                return -error;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return fd;
}

/* Tries every address once. */
static int connect_any(const struct addrinfo *list, int64_t deadline)
{
        int fd = -EADDRNOTAVAIL;

        for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
                fd = connect_address(a, deadline);
        return fd;
}

/* The agent listens before it starts the ranks, but a node may be slow to get a route: until the
 * dialect is known a refusal is not final. */
static hn_status connect_server(const struct torch_server *s, int64_t deadline, int *ret_fd)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
        bool patient = s->dialect == TCPSTORE_UNKNOWN;
        int r = getaddrinfo(s->host, s->port, &hints, &list), fd;

        if (r)
                return set_error(HN_ERR_SYSTEM, "MASTER_ADDR=%s: %s", s->host, gai_strerror(r));
        while ((fd = connect_any(list, deadline)) < 0 && patient && clock_ms() < deadline)
                poll(NULL, 0, MIN(PAUSE_MS, (unsigned)deadline_left(deadline)));
        freeaddrinfo(list);
        if (fd < 0 && patient)
                return set_error(HN_ERR_TIMEOUT,
                                 "cannot connect to MASTER_ADDR:MASTER_PORT (%s:%s): %s", s->host,
                                 s->port, strerror(-fd));
        if (fd < 0)
                return fail_lost_server(strerror(-fd));
        *ret_fd = fd;
        return HN_OK;
}

hn_status torch_conn_open(const struct torch_server *server, int64_t deadline,
                          struct torch_conn **ret)
{
        struct tcpstore_command validate = { .op = TCPSTORE_VALIDATE, .number = TCPSTORE_MAGIC };
        struct torch_conn *conn = calloc(1, sizeof(*conn));
        struct buf b = BUF_INIT;
        hn_status status;

        if (!conn)
                return set_error(HN_ERR_NOMEM, "out of memory");
        conn->fd = -1;
        status = connect_server(server, deadline, &conn->fd);
        if (status == HN_OK && server->dialect == TCPSTORE_C) {
                tcpstore_command_encode(&b, TCPSTORE_C, &validate);
                status = torch_conn_send(conn, &b, deadline);
                buf_finish(&b);
        }
        if (status == HN_OK)
                *ret = conn;
        else
                torch_conn_close(conn);
        return status;
}

void torch_conn_close(struct torch_conn *conn)
{
        if (!conn)
                return;
        fd_close(conn->fd);
        free(conn);
}

/* --- bytes ------------------------------------------------------------------------------------ */

hn_status torch_conn_send(struct torch_conn *conn, const struct buf *b, int64_t deadline)
{
        hn_status status = HN_OK;
        size_t at = 0;

        if (buf_failed(b))
                return set_error(HN_ERR_NOMEM, "out of memory");
        while (at < buf_len(b) && status == HN_OK) {
                ssize_t n = send(conn->fd, buf_data(b) + at, buf_len(b) - at, MSG_NOSIGNAL);

                if (n > 0)
                        at += (size_t)n;
                else if (errno == EAGAIN)
                        status = wait_fd(conn->fd, POLLOUT, deadline);
                else if (errno != EINTR)
                        status = fail_lost_server(strerror(errno));
        }
        return status;
}

hn_status torch_conn_read(struct torch_conn *conn, void *to, size_t n, int64_t deadline)
{
        hn_status status = HN_OK;
        size_t at = 0;

        while (at < n && status == HN_OK) {
                ssize_t got = recv(conn->fd, (char *)to + at, n - at, 0);

                if (got > 0)
                        at += (size_t)got;
                else if (got == 0)
                        status = fail_lost_server("the agent closed the connection");
                else if (errno == EAGAIN)
                        status = wait_fd(conn->fd, POLLIN, deadline);
                else if (errno != EINTR)
                        status = fail_lost_server(strerror(errno));
        }
        return status;
}

hn_status torch_conn_read_i64(struct torch_conn *conn, int64_t *ret, int64_t deadline)
{
        unsigned char bytes[8];
        hn_status status = torch_conn_read(conn, bytes, sizeof(bytes), deadline);
        struct reader r = READER_INIT(bytes, sizeof(bytes));

        if (status == HN_OK)
                *ret = (int64_t)take_u64(&r);
        return status;
}

hn_status torch_conn_read_bytes(struct torch_conn *conn, void **ret, size_t *ret_len,
                                int64_t deadline)
{
        int64_t len = 0;
        hn_status status = torch_conn_read_i64(conn, &len, deadline);
        char *value;

        if (status != HN_OK)
                return status;
        if (len < 0 || len > VALUE_MAX)
                return set_error(HN_ERR_PROTOCOL, "torchrun's agent sends a value of %lld bytes",
                                 (long long)len);
        value = malloc((size_t)len + 1);
        if (!value)
                return set_error(HN_ERR_NOMEM, "out of memory");
        value[len] = '\0';
        status = torch_conn_read(conn, value, (size_t)len, deadline);
        if (status == HN_OK) {
                *ret = value;
                *ret_len = (size_t)len;
        } else {
                free(value);
        }
        return status;
}

/* --- the dialect ------------------------------------------------------------------------------ */

/*
 * Sends @bytes on a new connection: *ret = the connection when the server has answered @want bytes,
 * NULL when the server closed it, which is how servers reject bytes.
 */
static hn_status try_greeting(const struct torch_server *s, const void *bytes, size_t n,
                              size_t want, int64_t deadline, struct torch_conn **ret)
{
        unsigned char answer[32];
        struct buf b = BUF_INIT;
        struct torch_conn *conn = NULL;
        hn_status status = torch_conn_open(s, deadline, &conn);

        if (status != HN_OK)
                return status;
        buf_append(&b, bytes, n);
        status = torch_conn_send(conn, &b, deadline);
        if (status == HN_OK)
                status = torch_conn_read(conn, answer, want, deadline);
        buf_finish(&b);
        *ret = status == HN_OK ? conn : NULL;
        if (status != HN_OK)
                torch_conn_close(conn);
        return status == HN_ERR_ABORTED ? HN_OK : status;
}

/*
 * torchrun does not tell its release, and the wrong greeting is no error to an old server: it takes
 * VALIDATE for a SET and the magic for half of a key's length. A server of 1.9 to 2.1, which has
 * one thread and reads blocking, then waits for the other half and serves no client meanwhile, or
 * allocates a key of 60 GB. So VALIDATE goes with four NUM_KEYS, 8 bytes in all: C and D answer 32
 * bytes; A and B read a key length of 5e17 bytes, more than any address space has, and close the
 * connection at once. (Tried with 1.13.1, 2.1.2, 2.4.1 and both servers of 2.15.0.)
 *
 * A or B: only B knows CANCEL_WAIT, one byte, and answers one.
 */
hn_status torch_conn_greet(struct torch_server *server, int64_t deadline, struct torch_conn **ret)
{
        static const unsigned char c[] = { 0, 0xce, 0xf7, 0x85, 0x3c, 7, 7, 7, 7 }, b[] = { 11 };
        hn_status status = try_greeting(server, c, sizeof(c), 4 * sizeof(int64_t), deadline, ret);

        if (status != HN_OK)
                return status;
        if (*ret) {
                server->dialect = TCPSTORE_C;
                return HN_OK;
        }
        status = try_greeting(server, b, sizeof(b), 1, deadline, ret);
        if (status != HN_OK)
                return status;
        server->dialect = *ret ? TCPSTORE_B : TCPSTORE_A;
        return *ret ? HN_OK : torch_conn_open(server, deadline, ret);
}

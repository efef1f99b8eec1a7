/* SPDX-License-Identifier: Apache-2.0 */
/*
 * try_addresses() starts a non-blocking connect() to each address in turn until an attempt is under
 * way; the poll or the timer then decides: connected, or give_up_address(), which goes on with the
 * next. Errors inside ssh_dial_start() are reported through the timer, so that done() always comes
 * from the loop. Each attempt has a separate poll handle, which libuv frees after the end of the
 * attempt.
 */
#include "head/ssh/ssh_dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/memory.h"

#define IDLE_S        10 /* silence before the first keepalive probe */
#define PROBE_S       5
#define PROBES        3
#define UNANSWERED_MS 60000 /* for unacknowledged bytes, beyond the silence */
#define SHARE_MIN_MS  1000  /* of an address, however many there are */

struct ssh_dial {
        const struct addrinfo *at;
        const struct ssh_source *source;
        ssh_dial_done done;
        void *ctx;
        int share_ms, unanswered_ms, fd;
        struct ssh_dial_failure why;
        uv_poll_t *poll; /* of the present attempt */
        uv_timer_t timer;
};

static void try_addresses(struct ssh_dial *d);

static void free_dial_poll(uv_handle_t *h)
{
        free(h);
}

static void on_dial_closed(uv_handle_t *h)
{
        free(h->data);
}

static void stop_attempt(struct ssh_dial *d)
{
        if (d->poll)
                uv_close((uv_handle_t *)d->poll, free_dial_poll);
        d->poll = NULL;
        uv_timer_stop(&d->timer);
}

/* The callback gets the socket; @d is freed when the timer is closed. */
static void finish_dial(struct ssh_dial *d)
{
        int fd = d->fd;

        d->fd = -1;
        stop_attempt(d);
        d->done(d->ctx, fd, &d->why);
        uv_close((uv_handle_t *)&d->timer, on_dial_closed);
}

static void give_up_address(struct ssh_dial *d, int error)
{
        stop_attempt(d);
        d->fd = fd_close(d->fd);
        d->why.error = error;
        d->at = d->at->ai_next;
        try_addresses(d);
}

static void on_dial_ready(uv_poll_t *poll, int status, int events UNUSED)
{
        struct ssh_dial *d = poll->data;
        int error = 0;
        socklen_t len = sizeof(error);

        /* The result of a connect() without waiting; reading clears it. */
        if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
                error = errno;
        if (!error && status < 0)
                error = -status;
        if (error)
                give_up_address(d, error);
        else
                finish_dial(d);
}

static void on_dial_timeout(uv_timer_t *timer)
{
        struct ssh_dial *d = timer->data;

        if (d->at)
                give_up_address(d, ETIMEDOUT);
        else
                finish_dial(d); /* all attempts failed */
}

/* Sets the socket to send small packets at once, and the kernel to notice a dead peer. */
static void set_dial_options(int fd, int unanswered_ms)
{
        const struct {
                int level, name, value;
        } options[] = {
                { IPPROTO_TCP, TCP_NODELAY, 1 },
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S },
                { IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S },
                { IPPROTO_TCP, TCP_KEEPCNT, PROBES },
                { IPPROTO_TCP, TCP_USER_TIMEOUT, unanswered_ms },
        };

        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                /* Unchecked: a connection works without these options, too. */
                setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                           sizeof(options[i].value));
}

/* Makes the socket of an attempt; -1 with errno, and perhaps a socket, on failure. */
static int open_dial_socket(struct ssh_dial *d, int family)
{
        int r;

        d->why.binding = false;
        d->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (d->fd < 0)
                return -1;
        set_dial_options(d->fd, d->unanswered_ms);
        r = ssh_source_bind(d->source, d->fd, family);
        d->why.binding = r < 0;
        /* As for connect(), so that the caller has one way to the reason. */
        errno = r < 0 ? -r : 0;
        return r < 0 ? -1 : 0;
}

/* Waits for the end of the attempt. 0 or -errno. */
static int watch_attempt(struct ssh_dial *d)
{
        uv_poll_t *poll = xcalloc(1, sizeof(*poll));
        int r = uv_poll_init(d->timer.loop, poll, d->fd);

        if (r < 0) {
                free(poll);
                return r;
        }
        d->poll = poll;
        d->poll->data = d;
        uv_poll_start(d->poll, UV_WRITABLE, on_dial_ready);
        uv_timer_start(&d->timer, on_dial_timeout, (uint64_t)d->share_ms, 0);
        return 0;
}

/* Starts to connect to the next address; without another the timer reports the last error. */
static void try_addresses(struct ssh_dial *d)
{
        int r;

        for (; d->at; d->at = d->at->ai_next) {
                const struct addrinfo *a = d->at;

                getnameinfo(a->ai_addr, a->ai_addrlen, d->why.address, sizeof(d->why.address), NULL,
                            0, NI_NUMERICHOST);
                if (open_dial_socket(d, a->ai_family) == 0 &&
                    (connect(d->fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS))
                        r = watch_attempt(d);
                else
                        r = -errno;
                if (!r)
                        return;
                d->why.error = -r;
                d->fd = fd_close(d->fd);
        }
        /* d->at is NULL here: on_dial_timeout() reports the last failure. */
        uv_timer_start(&d->timer, on_dial_timeout, 0, 0);
}

struct ssh_dial *ssh_dial_start(uv_loop_t *loop, const struct addrinfo *addresses,
                                const struct ssh_source *source, int timeout_ms, int64_t silence_ms,
                                ssh_dial_done done, void *ctx)
{
        struct ssh_dial *d = xcalloc(1, sizeof(*d));
        int n = 0;

        for (const struct addrinfo *a = addresses; a; a = a->ai_next)
                n++;
        d->at = addresses;
        d->source = source;
        d->done = done;
        d->ctx = ctx;
        /* A dead address must not use up the time of the others. */
        d->share_ms = MIN(MAX(timeout_ms / MAX(n, 1), SHARE_MIN_MS), timeout_ms);
        d->unanswered_ms = (int)MIN(silence_ms + UNANSWERED_MS, (int64_t)INT32_MAX);
        d->fd = -1;
        d->timer.data = d;
        uv_timer_init(loop, &d->timer);
        try_addresses(d);
        return d;
}

void ssh_dial_cancel(struct ssh_dial *d)
{
        if (!d)
                return;
        stop_attempt(d);
        d->fd = fd_close(d->fd);
        uv_close((uv_handle_t *)&d->timer, on_dial_closed);
}

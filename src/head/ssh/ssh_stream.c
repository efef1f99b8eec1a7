/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a stream works. ssh_stream_pump() runs after every event of the session, the poll or the
 * timer: it opens the channel and starts the command (one state each), then copies in both
 * directions until either side would block. Bytes from the remote side go straight from libssh's
 * callback into the local socket as far as possible; the rest stays in the channel, or in
 * @to_local, a window each at most. Bytes from the local side wait in the socket, or in @to_remote
 * after a partial write.
 *
 * Facts about libssh 0.10 to 0.12, by measurement: a reopened window is not announced and must be
 * looked up after every event; recv() with length 0 looks like an end; after SSH_WRITE_PENDING
 * writing must stop or the output buffer grows without limit; bytes not taken by the data callback
 * stay in the channel and must be fetched by reading later; EOF is not the end of the channel;
 * ssh_channel_poll() sends and receives for all channels of the session, so that the pump of one
 * stream may reopen the window of another, or end a SSH_WRITE_PENDING for which that one stopped.
 */
#include "head/ssh/ssh_stream.h"

#include <errno.h>
#include <libssh/callbacks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

#define PIECE 32768u /* bytes read from our process at once */
/* Pieces in a row before other streams have their turn; the poll is level-triggered. */
#define TURNS 16
/* libssh accepts bytes beyond the window, which is 2 MiB at most. */
#define OVERRUN (4u << 20)

enum stream_state { STREAM_OPENING, STREAM_EXECUTING, STREAM_RUNNING, STREAM_REFUSED };

/* The socket towards our process. */
struct stream_local {
        int fd;
        int outer; /* the caller's end of the socketpair until handed out, then -1 */
        uv_poll_t poll;
        int armed;    /* events of the poll, 0 = stopped */
        bool blocked; /* the socket is full */
        bool eof;     /* our process stopped writing */
        bool gone;    /* our process closed the socket */
};

/* The far end of the channel. */
struct stream_remote {
        bool eof, closed;
        bool eof_sent;  /* ours to the remote side */
        bool eof_shown; /* the remote side's to our process */
        bool overrun;   /* more bytes wait than the window allows */
        bool full;      /* took nothing of the last write: the window is used up, or keys change */
};

struct ssh_stream {
        ssh_session session;
        ssh_channel channel;
        struct ssh_channel_callbacks_struct callbacks;
        const struct ssh_stream_ops *ops;
        void *ctx;
        enum stream_state state;
        struct ssh_stream_order order;
        char *host; /* the order's */
        struct stream_local local;
        struct stream_remote remote;
        struct ssh_stream_end end;
        struct buf to_local, to_remote; /* bytes not yet taken by the other side */
        bool active;
};

/* Sends bytes of the server to our process. Returns how many are done with; all when our process is
 * gone. */
static ssize_t send_to_local(struct ssh_stream *s, const void *data, size_t len)
{
        ssize_t n;

        do
                n = send(s->local.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n >= 0) {
                s->local.blocked = (size_t)n < len;
                return n;
        }
        if (errno == EAGAIN) {
                s->local.blocked = true;
                return 0;
        }
        s->local.gone = true;
        shutdown(s->local.fd, SHUT_RDWR); /* bytes are missing: our process shall see the end */
        return (ssize_t)len;
}

/* Returns how many bytes were taken: libssh keeps the others, and so does not open the server's
 * window further while our process does not read. */
static int on_channel_data(ssh_session session UNUSED, ssh_channel channel UNUSED, void *data,
                           uint32_t len, int is_stderr, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->active = true;
        if (is_stderr) {
                if (s->ops->noise)
                        s->ops->noise(s->ctx, data, len);
                return (int)len;
        }
        /* Taken and dropped, so that the server goes on and comes to its end. */
        if (s->local.gone)
                return (int)len;
        if (s->local.blocked || buf_len(&s->to_local)) {
                /* @len counts all bytes that libssh holds, so a server without regard for the
                 * window is found. */
                s->remote.overrun = len > OVERRUN;
                return 0;
        }
        return (int)send_to_local(s, data, len);
}

static void on_channel_eof(ssh_session session UNUSED, ssh_channel channel UNUSED, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->remote.eof = s->active = true;
}

static void on_channel_close(ssh_session session UNUSED, ssh_channel channel UNUSED, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->remote.eof = s->remote.closed = s->active = true;
}

static void on_channel_exit_status(ssh_session session UNUSED, ssh_channel channel UNUSED,
                                   int status, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->end.exited = true;
        s->end.exit_status = status;
}

static void on_channel_exit_signal(ssh_session session UNUSED, ssh_channel channel UNUSED,
                                   const char *signal, int core UNUSED, const char *message UNUSED,
                                   const char *lang UNUSED, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->end.exited = true;
        snprintf(s->end.exit_signal, sizeof(s->end.exit_signal), "%s", signal);
}

static void set_channel_callbacks(struct ssh_stream *s)
{
        s->callbacks.userdata = s;
        s->callbacks.channel_data_function = on_channel_data;
        s->callbacks.channel_eof_function = on_channel_eof;
        s->callbacks.channel_close_function = on_channel_close;
        s->callbacks.channel_exit_status_function = on_channel_exit_status;
        s->callbacks.channel_exit_signal_function = on_channel_exit_signal;
        ssh_callbacks_init(&s->callbacks);
        ssh_set_channel_callbacks(s->channel, &s->callbacks);
}

static void on_local_ready(uv_poll_t *poll, int status, int events)
{
        struct ssh_stream *s = poll->data;

        if (status < 0) {
                s->local.gone = s->local.eof = true;
                s->local.armed = 0; /* libuv has stopped the poll */
        }
        if (events & UV_WRITABLE)
                s->local.blocked = false;
        s->ops->ready(s->ctx);
}

/* Continues to open the channel and to start the command. -1: the session is lost. */
static int advance_opening(struct ssh_stream *s)
{
        int r = SSH_OK;

        if (!s->channel) {
                s->channel = ssh_channel_new(s->session);
                if (!s->channel)
                        return -1;
                /* Before the answer: the answer may bring the last bytes of a dropped
                 * connection. */
                set_channel_callbacks(s);
        }
        if (s->state == STREAM_OPENING) {
                r = s->order.command ? ssh_channel_open_session(s->channel)
                                     : ssh_channel_open_forward(s->channel, s->order.host,
                                                                s->order.port, "127.0.0.1", 0);
                if (r == SSH_OK)
                        s->state = STREAM_EXECUTING;
        }
        if (s->state == STREAM_EXECUTING) {
                if (s->order.wants_agent)
                        /* Unchecked: without the forwarding the login from there fails. */
                        ssh_channel_request_auth_agent(s->channel);
                /* Asked once: the function is called again until the command runs. */
                s->order.wants_agent = false;
                if (s->order.command)
                        r = ssh_channel_request_exec(s->channel, s->order.command);
                if (r == SSH_OK)
                        s->state = STREAM_RUNNING;
        }
        if (r == SSH_OK || (r == SSH_AGAIN && !s->remote.closed))
                return 0;
        /* Without a connection the refusal is not the server's. */
        if (!ssh_is_connected(s->session))
                return -1;
        s->state = STREAM_REFUSED;
        snprintf(s->end.refused, sizeof(s->end.refused), "%s",
                 s->remote.closed ? "the channel was closed" : ssh_get_error(s->session));
        return 0;
}

/* Moves bytes not taken by the data callback. All of them at once: libssh 0.10 grants a whole
 * window with each read, whatever it still holds. */
static void pump_to_local(struct ssh_stream *s)
{
        for (int i = 0; !s->local.blocked; i++) {
                void *to;
                int n;

                if (i == TURNS) {
                        /* The poll is level-triggered and reports at once. */
                        s->local.blocked = true;
                        return;
                }
                if (buf_len(&s->to_local)) {
                        size_t len = buf_len(&s->to_local);

                        buf_consume(&s->to_local,
                                    (size_t)send_to_local(s, buf_data(&s->to_local), len));
                        if (!buf_len(&s->to_local))
                                buf_finish(&s->to_local);
                        continue;
                }
                n = ssh_channel_poll(s->channel, 0);
                if (n <= 0)
                        break;
                to = buf_reserve(&s->to_local, (size_t)n);
                if (!to)
                        return;
                n = ssh_channel_read_nonblocking(s->channel, to, (uint32_t)n, 0);
                if (n <= 0)
                        break;
                buf_advance(&s->to_local, (size_t)n);
        }
        /* The end is shown behind the last byte. */
        if (s->remote.eof && !s->remote.eof_shown && !buf_len(&s->to_local) &&
            (s->local.gone || ssh_channel_is_eof(s->channel))) {
                s->remote.eof_shown = true;
                shutdown(s->local.fd, SHUT_WR);
        }
}

static bool remote_is_writable(const struct ssh_stream *s)
{
        return !s->remote.closed && ssh_channel_window_size(s->channel) > 0 &&
               !(ssh_get_poll_flags(s->session) & SSH_WRITE_PENDING);
}

/* Reads once from the socketpair into to_remote. False: there is nothing to read. */
static bool read_local(struct ssh_stream *s)
{
        size_t size = MIN(ssh_channel_window_size(s->channel), PIECE);
        void *to = buf_reserve(&s->to_remote, size);
        /* Without memory the stream ends as if our process had closed. */
        ssize_t n = to ? recv(s->local.fd, to, size, MSG_DONTWAIT) : 0;

        if (n > 0) {
                buf_advance(&s->to_remote, (size_t)n);
                return true;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        s->local.eof = true;
        s->local.gone = s->local.gone || n < 0;
        return false;
}

/* Moves bytes of our process to the server, as far as the server's window allows, and the end of
 * the bytes behind them. */
static void pump_to_remote(struct ssh_stream *s)
{
        for (int i = 0; i < TURNS && remote_is_writable(s); i++) {
                int n;

                if (!buf_len(&s->to_remote)) {
                        if (!s->local.eof && read_local(s))
                                continue;
                        break;
                }
                n = ssh_channel_write(s->channel, buf_data(&s->to_remote),
                                      (uint32_t)buf_len(&s->to_remote));
                /* The channel takes no more: the rest is lost, and the end is near. */
                if (n < 0) {
                        buf_clear(&s->to_remote);
                        s->local.eof = true;
                        return;
                }
                buf_consume(&s->to_remote, (size_t)n);
                s->remote.full = n == 0;
                if (s->remote.full)
                        break;
        }
        if (!s->local.eof || buf_len(&s->to_remote) || s->remote.eof_sent || s->remote.closed)
                return;
        s->remote.eof_sent = true;
        ssh_channel_send_eof(s->channel);
        /* No peer behind a jump host needs a half-closed connection. */
        if (!s->order.command)
                ssh_channel_close(s->channel);
}

/* Waits for bytes only while there is a place for them, or the loop would spin. */
static void arm_local_poll(struct ssh_stream *s)
{
        int events = 0;

        if (!s->local.eof && !buf_len(&s->to_remote) && remote_is_writable(s))
                events |= UV_READABLE;
        if (s->local.blocked && !s->local.gone)
                events |= UV_WRITABLE;
        if (events == s->local.armed)
                return;
        s->local.armed = events;
        if (events)
                uv_poll_start(&s->local.poll, events, on_local_ready);
        else
                uv_poll_stop(&s->local.poll);
}

int ssh_stream_pump(struct ssh_stream *s)
{
        s->active = false;
        if (s->remote.overrun)
                return -EPROTO;
        if (s->state < STREAM_RUNNING && advance_opening(s) < 0)
                return -1;
        if (s->state != STREAM_RUNNING)
                return 0;
        pump_to_local(s);
        pump_to_remote(s);
        arm_local_poll(s);
        return 0;
}

int ssh_stream_take_fd(struct ssh_stream *s)
{
        int fd = s->local.outer;

        if (s->state != STREAM_RUNNING)
                return -1;
        s->local.outer = -1;
        return fd;
}

const struct ssh_stream_end *ssh_stream_done(const struct ssh_stream *s)
{
        bool done = s->state == STREAM_REFUSED ||
                    (s->remote.closed && (s->remote.eof_shown || s->local.gone));

        return done ? &s->end : NULL;
}

bool ssh_stream_blocked(const struct ssh_stream *s)
{
        return s->local.blocked && !s->local.gone;
}

/* Whether the server takes bytes by now that the last pump left where they were. Nothing would wake
 * the stream: its poll is stopped, and the session has nothing more to wait for. */
static bool was_left_behind(const struct ssh_stream *s)
{
        bool waits = s->local.armed & UV_READABLE;

        return s->state == STREAM_RUNNING && !waits && remote_is_writable(s) && !s->remote.full &&
               (buf_len(&s->to_remote) || !s->local.eof);
}

bool ssh_stream_active(const struct ssh_stream *s)
{
        return s->active || was_left_behind(s);
}

/* Takes @fd, also on failure: NULL with errno. */
static struct ssh_stream *new_stream(uv_loop_t *loop, ssh_session session,
                                     const struct ssh_stream_ops *ops, void *ctx, int fd)
{
        struct ssh_stream *s = xcalloc(1, sizeof(*s));
        int r = uv_poll_init(loop, &s->local.poll, fd);

        if (r < 0) {
                free(s);
                fd_close(fd);
                errno = -r;
                return NULL;
        }
        s->session = session;
        s->ops = ops;
        s->ctx = ctx;
        s->local.fd = fd;
        s->local.outer = -1;
        s->local.poll.data = s;
        return s;
}

struct ssh_stream *ssh_stream_create(uv_loop_t *loop, ssh_session session,
                                     const struct ssh_stream_ops *ops, void *ctx,
                                     const struct ssh_stream_order *order)
{
        struct ssh_stream *s;
        int fds[2];

        if (fd_pair(fds) < 0)
                return NULL;
        fd_set_nonblock(fds[0]);
        fd_set_nonblock(fds[1]);
        s = new_stream(loop, session, ops, ctx, fds[0]);
        if (!s) {
                fd_close(fds[1]);
                return NULL;
        }
        s->local.outer = fds[1];
        s->order = *order;
        s->host = order->host ? xstrdup(order->host) : NULL;
        s->order.host = s->host;
        return s;
}

struct ssh_stream *ssh_stream_join(uv_loop_t *loop, ssh_session session,
                                   const struct ssh_stream_ops *ops, void *ctx, ssh_channel channel,
                                   int fd)
{
        struct ssh_stream *s = new_stream(loop, session, ops, ctx, fd);

        if (!s)
                return NULL;
        s->channel = channel;
        s->state = STREAM_RUNNING;
        set_channel_callbacks(s);
        return s;
}

static void on_stream_closed(uv_handle_t *h)
{
        struct ssh_stream *s = h->data;

        buf_finish(&s->to_local);
        buf_finish(&s->to_remote);
        free(s->host);
        free(s);
}

void ssh_stream_close(struct ssh_stream *s)
{
        if (s->channel) {
                /* libssh frees the channel when the server has answered, and must not call back
                 * until then. */
                ssh_remove_channel_callbacks(s->channel, &s->callbacks);
                ssh_channel_free(s->channel);
        }
        uv_close((uv_handle_t *)&s->local.poll, on_stream_closed);
        fd_close(s->local.fd);
        fd_close(s->local.outer);
}

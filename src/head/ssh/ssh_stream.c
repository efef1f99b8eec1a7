/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules learned by measuring libssh 0.10 to 0.12: a reopened window is announced to nobody, so it
 * is looked up after every event; recv() with length 0 looks like an end; after SSH_WRITE_PENDING
 * feeding must stop or the output buffer grows without limit; bytes that the data callback does
 * not take stay in the channel and must be fetched by reading later; EOF is not the end.
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
#include "base/strv.h"

#define PIECE 32768u
/* Pieces in a row before other streams get a turn; the poll is level-triggered. */
#define TURNS 16

enum stream_state { STREAM_OPENING, STREAM_EXECUTING, STREAM_RUNNING, STREAM_REFUSED };

struct ssh_stream {
        ssh_session session;
        ssh_channel channel;
        const struct ssh_stream_ops *ops;
        void *ctx;
        enum stream_state state;
        bool agent_wanted;
        char *command, *host;
        int port;
        struct ssh_channel_callbacks_struct callbacks;
        uv_poll_t poll;
        int armed; /* events the poll waits for, 0 = stopped */
        int fd, outer;
        struct buf to_local, to_remote; /* what one side gave and the other did not take yet */
        bool blocked;                   /* the pair is full */
        bool local_eof, local_gone;     /* our user stopped writing; closed its end */
        bool eof_sent, eof_shown;
        bool remote_eof, remote_closed;
        bool exited;
        int exit_status;
        char exit_signal[32];
        bool active;
};

static ssize_t send_local(struct ssh_stream *s, const void *data, size_t len)
{
        ssize_t n;

        do
                n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n >= 0) {
                s->blocked = (size_t)n < len;
                return n;
        }
        if (errno == EAGAIN) {
                s->blocked = true;
                return 0;
        }
        s->local_gone = true;
        return (ssize_t)len;
}

static int on_data(ssh_session session UNUSED, ssh_channel channel UNUSED, void *data, uint32_t len,
                   int is_stderr, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->active = true;
        if (is_stderr) {
                s->ops->noise(s->ctx, data, len);
                return (int)len;
        }
        if (s->local_gone)
                return (int)len;
        if (s->blocked || buf_len(&s->to_local))
                return 0;
        return (int)send_local(s, data, len);
}

static void on_eof(ssh_session session UNUSED, ssh_channel channel UNUSED, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->remote_eof = s->active = true;
}

static void on_close(ssh_session session UNUSED, ssh_channel channel UNUSED, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->remote_eof = s->remote_closed = s->active = true;
}

static void on_exit_status(ssh_session session UNUSED, ssh_channel channel UNUSED, int status,
                           void *ctx)
{
        struct ssh_stream *s = ctx;

        s->exited = true;
        s->exit_status = status;
}

static void on_exit_signal(ssh_session session UNUSED, ssh_channel channel UNUSED,
                           const char *signal, int core UNUSED, const char *message UNUSED,
                           const char *lang UNUSED, void *ctx)
{
        struct ssh_stream *s = ctx;

        s->exited = true;
        snprintf(s->exit_signal, sizeof(s->exit_signal), "%s", signal);
}

static void watch_channel(struct ssh_stream *s)
{
        s->callbacks.userdata = s;
        s->callbacks.channel_data_function = on_data;
        s->callbacks.channel_eof_function = on_eof;
        s->callbacks.channel_close_function = on_close;
        s->callbacks.channel_exit_status_function = on_exit_status;
        s->callbacks.channel_exit_signal_function = on_exit_signal;
        ssh_callbacks_init(&s->callbacks);
        ssh_set_channel_callbacks(s->channel, &s->callbacks);
}

static void local_ready(uv_poll_t *poll, int status, int events)
{
        struct ssh_stream *s = poll->data;

        if (status < 0) {
                s->local_gone = s->local_eof = true;
                s->armed = 0; /* libuv has stopped it */
        }
        if (events & UV_WRITABLE)
                s->blocked = false;
        s->ops->ready(s->ctx);
}

static void arm(struct ssh_stream *s, int events)
{
        if (events == s->armed)
                return;
        s->armed = events;
        if (events)
                uv_poll_start(&s->poll, events, local_ready);
        else
                uv_poll_stop(&s->poll);
}

static void refuse(struct ssh_stream *s, const char *why)
{
        s->state = STREAM_REFUSED;
        s->ops->refused(s->ctx, why);
}

/* 1 when @r means done, 0 to come back, -1 when the session is lost. */
static int judge(struct ssh_stream *s, int r)
{
        if (r == SSH_OK)
                return 1;
        if (r == SSH_AGAIN)
                return 0;
        if (!ssh_is_connected(s->session))
                return -1;
        refuse(s, ssh_get_error(s->session));
        return 0;
}

static int open_channel(struct ssh_stream *s)
{
        int r;

        if (!s->channel) {
                s->channel = ssh_channel_new(s->session);
                if (!s->channel)
                        return -1;
                /* Now: all that a dropped connection says may come with the answer. */
                watch_channel(s);
        }
        r = judge(s, s->command ? ssh_channel_open_session(s->channel)
                                : ssh_channel_open_forward(s->channel, s->host, s->port,
                                                           "127.0.0.1", 0));
        if (r <= 0)
                return r;
        s->state = STREAM_EXECUTING;
        return 1;
}

static int execute(struct ssh_stream *s)
{
        int fd, r = 1;

        if (s->agent_wanted)
                ssh_channel_request_auth_agent(s->channel);
        s->agent_wanted = false;
        if (s->command)
                r = judge(s, ssh_channel_request_exec(s->channel, s->command));
        if (r <= 0)
                return r;
        s->state = STREAM_RUNNING;
        fd = s->outer;
        s->outer = -1;
        s->ops->opened(s->ctx, fd);
        return 1;
}

static void show_eof(struct ssh_stream *s)
{
        if (s->eof_shown || !s->remote_eof || buf_len(&s->to_local) ||
            !(s->local_gone || ssh_channel_is_eof(s->channel)))
                return;
        s->eof_shown = true;
        shutdown(s->fd, SHUT_WR);
}

/* What the callback could not take. */
static void pump_to_local(struct ssh_stream *s)
{
        for (int i = 0; !s->blocked; i++) {
                int n;

                if (i == TURNS) {
                        s->blocked = true; /* the poll will say at once that it is not */
                        return;
                }
                if (buf_len(&s->to_local)) {
                        size_t len = buf_len(&s->to_local);

                        buf_consume(&s->to_local,
                                    (size_t)send_local(s, buf_data(&s->to_local), len));
                        continue;
                }
                if (!buf_reserve(&s->to_local, PIECE))
                        return;
                n = ssh_channel_read_nonblocking(s->channel, buf_reserve(&s->to_local, PIECE),
                                                 PIECE, 0);
                if (n <= 0)
                        break;
                buf_advance(&s->to_local, (size_t)n);
        }
        show_eof(s);
}

static bool remote_takes(const struct ssh_stream *s)
{
        return !s->remote_closed && ssh_channel_window_size(s->channel) > 0 &&
               !(ssh_get_poll_flags(s->session) & SSH_WRITE_PENDING);
}

/* One read of the pair into to_remote. False when there is nothing. */
static bool fetch_local(struct ssh_stream *s)
{
        size_t room = MIN(ssh_channel_window_size(s->channel), PIECE);
        void *to = buf_reserve(&s->to_remote, room);
        ssize_t n = to ? recv(s->fd, to, room, MSG_DONTWAIT) : 0;

        if (n > 0) {
                buf_advance(&s->to_remote, (size_t)n);
                return true;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        s->local_eof = true;
        s->local_gone = s->local_gone || n < 0;
        return false;
}

static void send_eof(struct ssh_stream *s)
{
        if (s->eof_sent || s->remote_closed)
                return;
        s->eof_sent = true;
        ssh_channel_send_eof(s->channel);
        /* Nothing that talks over a jump host closes one direction only. */
        if (!s->command)
                ssh_channel_close(s->channel);
}

static void pump_to_remote(struct ssh_stream *s)
{
        for (int i = 0; i < TURNS && remote_takes(s); i++) {
                int n;

                if (!buf_len(&s->to_remote)) {
                        if (!s->local_eof && fetch_local(s))
                                continue;
                        break;
                }
                n = ssh_channel_write(s->channel, buf_data(&s->to_remote),
                                      (uint32_t)buf_len(&s->to_remote));
                if (n < 0) {
                        buf_clear(&s->to_remote);
                        s->local_eof = true;
                        return;
                }
                buf_consume(&s->to_remote, (size_t)n);
                if (n == 0)
                        break;
        }
        if (s->local_eof && !buf_len(&s->to_remote))
                send_eof(s);
}

static void arm_running(struct ssh_stream *s)
{
        int events = 0;

        if (!s->local_eof && !buf_len(&s->to_remote) && remote_takes(s))
                events |= UV_READABLE;
        if (s->blocked && !s->local_gone)
                events |= UV_WRITABLE;
        arm(s, events);
}

int ssh_stream_pump(struct ssh_stream *s)
{
        int r = 1;

        s->active = false;
        while (r > 0 && s->state != STREAM_RUNNING && s->state != STREAM_REFUSED)
                r = s->state == STREAM_OPENING ? open_channel(s) : execute(s);
        if (r < 0 || s->state != STREAM_RUNNING)
                return r < 0 ? -1 : 0;
        pump_to_local(s);
        pump_to_remote(s);
        arm_running(s);
        return 0;
}

bool ssh_stream_done(const struct ssh_stream *s)
{
        return s->state == STREAM_REFUSED || (s->remote_closed && (s->eof_shown || s->local_gone));
}

bool ssh_stream_exited(const struct ssh_stream *s, int *ret_status, const char **ret_signal)
{
        *ret_status = s->exit_status;
        *ret_signal = s->exit_signal;
        return s->exited;
}

bool ssh_stream_active(const struct ssh_stream *s)
{
        return s->active;
}

static struct ssh_stream *stream_new(uv_loop_t *loop, ssh_session session,
                                     const struct ssh_stream_ops *ops, void *ctx, int fd)
{
        struct ssh_stream *s = xcalloc(1, sizeof(*s));

        s->session = session;
        s->ops = ops;
        s->ctx = ctx;
        s->fd = fd;
        s->outer = -1;
        s->poll.data = s;
        uv_poll_init(loop, &s->poll, s->fd);
        return s;
}

struct ssh_stream *ssh_stream_create(uv_loop_t *loop, ssh_session session,
                                     const struct ssh_stream_ops *ops, void *ctx,
                                     const char *command, const char *host, int port)
{
        struct ssh_stream *s;
        int fds[2];

        if (fd_pair(fds) < 0)
                return NULL;
        fd_set_nonblock(fds[0]);
        fd_set_nonblock(fds[1]);
        s = stream_new(loop, session, ops, ctx, fds[0]);
        s->outer = fds[1];
        s->command = command ? xstrdup(command) : NULL;
        s->host = host ? xstrdup(host) : NULL;
        s->port = port;
        return s;
}

struct ssh_stream *ssh_stream_join(uv_loop_t *loop, ssh_session session,
                                   const struct ssh_stream_ops *ops, void *ctx, ssh_channel channel,
                                   int fd)
{
        struct ssh_stream *s = stream_new(loop, session, ops, ctx, fd);

        s->channel = channel;
        s->state = STREAM_RUNNING;
        watch_channel(s);
        return s;
}

void ssh_stream_ask_agent(struct ssh_stream *s)
{
        s->agent_wanted = true;
}

static void stream_free(uv_handle_t *h)
{
        struct ssh_stream *s = h->data;

        buf_finish(&s->to_local);
        buf_finish(&s->to_remote);
        free(s->command);
        free(s->host);
        free(s);
}

void ssh_stream_close(struct ssh_stream *s)
{
        if (s->channel) {
                ssh_remove_channel_callbacks(s->channel, &s->callbacks);
                ssh_channel_free(s->channel);
        }
        uv_close((uv_handle_t *)&s->poll, stream_free);
        fd_close(s->fd);
        fd_close(s->outer);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One uv_poll for the stream, one for stderr, one timer. update_child_polling() derives the events
 * to wait for from the state: readable unless paused, writable while bytes or the agent's own file
 * are to be sent. Bytes in @out come from the head (counted, reported through written() as credit)
 * or from here (inserted, not reported).
 *
 * The end: child_agent_end() closes the stream and sends TERM, KILL after KILL_MS. ended() follows
 * when the process was reaped and both streams are closed; a stream that another process keeps open
 * is read for DRAIN_MS more and closed.
 */
#include "agent/tree/child_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/spawn.h"

enum {
        KILL_MS = 1000, /* from TERM to KILL */
        DRAIN_MS = 200, /* from exit to closing: another process may hold the stderr open */
        CHUNK = 64 << 10,
        LAST_CHUNKS = 32, /* read at once after that time */
};

struct child_agent {
        uint32_t number;
        pid_t pid;
        bool reaped, ended, paused, ending;
        int status;
        int stream, err, image; /* descriptors, -1 = closed; @image: our own file to be sent */
        uv_poll_t on_stream, on_err;
        uv_timer_t timer;
        int handles; /* not yet closed; the last close callback frees the object */
        struct buf out;
        size_t counted; /* bytes at the front of @out from child_agent_send(), */
        size_t own;     /* ... and child_agent_insert() */
        const struct child_agent_ops *ops;
        void *ctx;
};

uint32_t child_agent_number(const struct child_agent *c)
{
        return c->number;
}

pid_t child_agent_pid(const struct child_agent *c)
{
        return c->reaped ? 0 : c->pid;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void on_child_timeout(uv_timer_t *t);

static void finalize_child(struct child_agent *c)
{
        if (!c->reaped || c->stream >= 0 || c->err >= 0 || c->ended)
                return;
        c->ended = true;
        uv_timer_stop(&c->timer);
        c->ops->ended(c->ctx, c, c->status);
}

static void close_child_stream(struct child_agent *c)
{
        if (c->stream < 0)
                return;
        uv_poll_stop(&c->on_stream);
        c->stream = fd_close(c->stream);
        c->image = fd_close(c->image);
        buf_finish(&c->out);
}

static void close_child_stderr(struct child_agent *c)
{
        if (c->err < 0)
                return;
        uv_poll_stop(&c->on_err);
        c->err = fd_close(c->err);
}

/* Waits for the last output of an ssh that has exited. */
static void await_last_output(struct child_agent *c)
{
        uv_timer_start(&c->timer, on_child_timeout, c->stream < 0 && c->err < 0 ? 0 : DRAIN_MS, 0);
}

void child_agent_end(struct child_agent *c)
{
        if (c->ending || c->ended)
                return;
        c->ending = true;
        close_child_stream(c);
        if (c->reaped) {
                await_last_output(c);
                return;
        }
        kill(c->pid, SIGTERM);
        uv_timer_start(&c->timer, on_child_timeout, KILL_MS, 0);
}

void child_agent_reaped(struct child_agent *c, int status)
{
        c->reaped = true;
        c->status = status;
        await_last_output(c);
}

/* --- its streams ------------------------------------------------------------------------------ */

static void on_stream_ready(uv_poll_t *poll, int status, int events);

/* Polls for the events with work to do. */
static void update_child_polling(struct child_agent *c)
{
        bool sends = buf_len(&c->out) || c->image >= 0;
        int events = (c->paused ? 0 : UV_READABLE) | (sends ? UV_WRITABLE : 0);

        if (c->stream < 0)
                return;
        if (events)
                uv_poll_start(&c->on_stream, events, on_stream_ready);
        else
                uv_poll_stop(&c->on_stream);
}

/* Appends the next piece of the agent's own file, once all earlier bytes are written. */
static void take_binary_chunk(struct child_agent *c)
{
        void *to = buf_reserve(&c->out, CHUNK);
        ssize_t n = to ? read(c->image, to, CHUNK) : 0;

        if (n > 0)
                buf_advance(&c->out, (size_t)n);
        else
                c->image = fd_close(c->image);
}

/* Counts written bytes. Inserted bytes are assumed to go first, so that the head gets credit rather
 * too late than too early. */
static void count_written(struct child_agent *c, size_t written)
{
        size_t own = MIN(c->own, written), told = MIN(c->counted, written - own);

        c->own -= own;
        c->counted -= told;
        if (told)
                c->ops->written(c->ctx, c, (uint32_t)told);
}

static void write_child_stream(struct child_agent *c)
{
        ssize_t n;

        if (!buf_len(&c->out) && c->image >= 0)
                take_binary_chunk(c);
        if (!buf_len(&c->out))
                return;
        n = write(c->stream, buf_data(&c->out), buf_len(&c->out));
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
                close_child_stream(c); /* the process is ending: waitpid() tells how */
                return;
        }
        if (n <= 0)
                return;
        buf_consume(&c->out, (size_t)n);
        count_written(c, (size_t)n);
}

static void read_child_stream(struct child_agent *c)
{
        static unsigned char chunk[CHUNK];
        ssize_t n = read(c->stream, chunk, sizeof(chunk));

        if (n > 0)
                c->ops->received(c->ctx, c, chunk, (size_t)n);
        else if (!n || (errno != EAGAIN && errno != EINTR))
                close_child_stream(c);
}

static void on_stream_ready(uv_poll_t *poll, int status, int events)
{
        struct child_agent *c = poll->data;

        if (events & UV_READABLE || status < 0)
                read_child_stream(c);
        if (events & UV_WRITABLE && c->stream >= 0)
                write_child_stream(c);
        update_child_polling(c);
        finalize_child(c);
}

static void read_child_stderr(struct child_agent *c)
{
        char text[TUNNEL_NOISE_MAX];
        ssize_t n = read(c->err, text, sizeof(text));

        if (n > 0)
                c->ops->noise(c->ctx, c, text, (size_t)n);
        else if (!n || (errno != EAGAIN && errno != EINTR))
                close_child_stderr(c);
}

static void on_stderr_ready(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        struct child_agent *c = poll->data;

        read_child_stderr(c);
        finalize_child(c);
}

static bool is_fd_readable(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return fd >= 0 && poll(&p, 1, 0) > 0;
}

bool child_agent_readable(const struct child_agent *c)
{
        return is_fd_readable(c->stream);
}

/* Reads once more: after a pause of this process, output may be there that has not been read. */
static void read_last_output(struct child_agent *c)
{
        for (int i = 0; i < LAST_CHUNKS && !c->paused && child_agent_readable(c); i++)
                read_child_stream(c);
        for (int i = 0; i < LAST_CHUNKS && is_fd_readable(c->err); i++)
                read_child_stderr(c);
}

/* After TERM sends KILL; after the exit stops waiting for the ends of the streams. */
static void on_child_timeout(uv_timer_t *t)
{
        struct child_agent *c = t->data;

        if (!c->reaped) {
                kill(c->pid, SIGKILL);
                return;
        }
        read_last_output(c);
        if (c->paused && c->stream >= 0)
                return; /* no reader for the last output now: child_agent_pause() continues */
        close_child_stream(c);
        close_child_stderr(c);
        finalize_child(c);
}

void child_agent_send(struct child_agent *c, const void *data, size_t len)
{
        if (c->stream < 0)
                return;
        buf_append(&c->out, data, len);
        c->counted += len;
        update_child_polling(c);
}

void child_agent_insert(struct child_agent *c, const void *data, size_t len)
{
        if (c->stream < 0)
                return;
        buf_append(&c->out, data, len);
        c->own += len;
        update_child_polling(c);
}

void child_agent_upload(struct child_agent *c)
{
        if (c->stream < 0 || c->image >= 0)
                return;
        c->image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        update_child_polling(c);
}

void child_agent_pause(struct child_agent *c, bool paused)
{
        if (c->paused && !paused && c->reaped)
                await_last_output(c);
        c->paused = paused;
        update_child_polling(c);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* The head's own words, and in between where the keys are. */
static void build_ssh_argv(const struct child_agent_order *o, const char *known_hosts,
                           struct strv *argv)
{
        for (size_t i = 0; i < o->argv.n; i++) {
                if (i == o->options_at && known_hosts) {
                        strv_pushf(argv, "-oHostKeyAlias=%s", o->alias);
                        strv_pushf(argv, "-oUserKnownHostsFile=%s", known_hosts);
                        strv_push(argv, "-oGlobalKnownHostsFile=/dev/null");
                }
                strv_push(argv, o->argv.v[i]);
        }
}

/* With both ends of the stream and of the pipe for stderr. */
static int spawn_ssh(struct child_agent *c, char *const *argv, int theirs, int err_theirs,
                     struct error *err)
{
        struct spawn s = {
                .argv = argv,
                .fds = { theirs, theirs, err_theirs },
                .session = true,
                .death_signal = SIGKILL,
        };

        return spawn_process(&c->pid, &s, NULL, err);
}

static int open_child_pipes(struct child_agent *c, char *const *argv, struct error *err)
{
        int fds[2] = { -1, -1 }, errs[2] = { -1, -1 }, r = fd_pair(fds);

        if (r == 0 && pipe2(errs, O_CLOEXEC) < 0)
                r = -errno;
        if (r < 0)
                r = err_set(err, -r, "cannot make a pipe: %s", strerror(-r));
        else
                r = spawn_ssh(c, argv, fds[1], errs[1], err);
        fd_close(fds[1]);
        fd_close(errs[1]);
        c->stream = fds[0];
        c->err = errs[0];
        if (r == 0)
                return 0;
        c->stream = fd_close(c->stream);
        c->err = fd_close(c->err);
        return r;
}

struct child_agent *child_agent_open(uv_loop_t *loop, const struct child_agent_order *o,
                                     const char *known_hosts, const struct child_agent_ops *ops,
                                     void *ctx, struct error *err)
{
        struct child_agent *c = xcalloc(1, sizeof(*c));
        struct strv argv = STRV_INIT;
        int r;

        *c = (struct child_agent){ .number = o->number, .image = -1, .ops = ops, .ctx = ctx };
        build_ssh_argv(o, known_hosts, &argv);
        r = open_child_pipes(c, argv.v, err);
        strv_finish(&argv);
        if (r < 0) {
                free(c);
                return NULL;
        }
        fd_set_nonblock(c->err);
        uv_poll_init(loop, &c->on_stream, c->stream);
        uv_poll_init(loop, &c->on_err, c->err);
        uv_timer_init(loop, &c->timer);
        c->handles = 3;
        c->on_stream.data = c->on_err.data = c->timer.data = c;
        uv_poll_start(&c->on_err, UV_READABLE, on_stderr_ready);
        update_child_polling(c);
        return c;
}

static void on_handle_closed(uv_handle_t *h)
{
        struct child_agent *c = h->data;

        if (--c->handles == 0)
                free(c);
}

void child_agent_destroy(struct child_agent *c)
{
        if (!c->reaped)
                kill(c->pid, SIGKILL);
        close_child_stream(c);
        close_child_stderr(c);
        uv_close((uv_handle_t *)&c->on_stream, on_handle_closed);
        uv_close((uv_handle_t *)&c->on_err, on_handle_closed);
        uv_close((uv_handle_t *)&c->timer, on_handle_closed);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One uv_poll for the stream, one for stderr, one timer. update_child_polling() derives the events
 * to wait for from the state: readable unless paused, writable while bytes or the agent's own file
 * are to be sent. Bytes in @out come from the head (counted, reported through written() as credit)
 * or from here (inserted, not reported).
 *
 * The end: child_agent_end() closes the stream and sends TERM, KILL after KILL_MS; an agent on this
 * node has lost its head with the stream, and gets KILL after HERE_KILL_MS. ended() follows
 * when the process was reaped and both streams are closed; a stream kept open by another process is
 * read for DRAIN_MS more and closed.
 */
#include "agent/tree/child_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/fd_unwatch.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "wire/msg.h"

enum {
        KILL_MS = 1000, /* from TERM to KILL */
        HERE_KILL_MS = MSG_LOST_GRACE_MS + 8000,
        DRAIN_MS = 200, /* from exit to closing: another process may hold the stderr open */
        CHUNK = 64 << 10,
        LAST_CHUNKS = 32, /* read at once after that time */
};

struct child_agent {
        pid_t pid;
        bool reaped, ended, paused, ending;
        bool here; /* runs this program, on this node */
        int status;
        int stream, err, image; /* descriptors, -1 = closed; @image: our own file to be sent */
        uv_poll_t on_stream, on_err;
        uv_timer_t timer;
        int handles; /* not yet closed; the last close callback frees the object */
        struct buf out;
        size_t counted; /* bytes at the front of @out that are the head's, */
        size_t own;     /* ... and inserted ones */
        const struct child_agent_ops *ops;
        void *ctx;
};

pid_t child_agent_pid(const struct child_agent *c)
{
        return c->reaped ? 0 : c->pid;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void on_child_timeout(uv_timer_t *t);

/* Calls ended(), once, when all three ends have come. */
static void finalize_child(struct child_agent *c)
{
        if (!c->reaped || c->stream >= 0 || c->err >= 0 || c->ended)
                return;
        c->ended = true;
        uv_timer_stop(&c->timer);
        c->ops->ended(c->ctx, c->status);
}

static void on_handle_closed(uv_handle_t *h)
{
        struct child_agent *c = h->data;

        if (--c->handles == 0)
                free(c);
}

static void close_child_stream(struct child_agent *c)
{
        if (c->stream < 0)
                return;
        fd_unwatch(&c->on_stream, &c->stream, on_handle_closed);
        c->image = fd_close(c->image);
        buf_finish(&c->out);
}

static void close_child_stderr(struct child_agent *c)
{
        if (c->err < 0)
                return;
        fd_unwatch(&c->on_err, &c->err, on_handle_closed);
}

/* Waits for the last output of an ssh that has exited. */
static void await_last_output(struct child_agent *c)
{
        /* 0: from the loop, never from inside of the call. */
        uv_timer_start(&c->timer, on_child_timeout, c->stream < 0 && c->err < 0 ? 0 : DRAIN_MS, 0);
}

void child_agent_end(struct child_agent *c)
{
        if (c->ending || c->ended)
                return;
        c->ending = true;
        /* An end of file is what an agent ends at; TERM is for an ssh without a connection. */
        close_child_stream(c);
        if (c->reaped) {
                await_last_output(c);
                return;
        }
        if (!c->here)
                kill(c->pid, SIGTERM);
        uv_timer_start(&c->timer, on_child_timeout, c->here ? HERE_KILL_MS : KILL_MS, 0);
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

/* Writes the waiting bytes, and behind them piece by piece the agent's own file. */
static void write_child_stream(struct child_agent *c)
{
        size_t own, told;
        ssize_t n;

        if (!buf_len(&c->out) && c->image >= 0) {
                void *to = buf_reserve(&c->out, CHUNK);

                n = to ? read(c->image, to, CHUNK) : 0;
                if (n > 0)
                        buf_advance(&c->out, (size_t)n);
                else
                        c->image = fd_close(c->image);
        }
        if (!buf_len(&c->out))
                return;
        n = write(c->stream, buf_data(&c->out), buf_len(&c->out));
        if (n < 0 && errno != EAGAIN && errno != EINTR)
                close_child_stream(c); /* the process is ending: waitpid() tells how */
        if (n <= 0)
                return;
        buf_consume(&c->out, (size_t)n);
        /* Inserted bytes are assumed to go first, so the head gets credit rather too late than too
         * early. */
        own = MIN(c->own, (size_t)n);
        told = MIN(c->counted, (size_t)n - own);
        c->own -= own;
        c->counted -= told;
        if (told)
                c->ops->written(c->ctx, (uint32_t)told);
}

static void read_child_stream(struct child_agent *c)
{
        /* One for all child agents: the receiver copies before it returns. */
        static unsigned char chunk[CHUNK];
        ssize_t n = read(c->stream, chunk, sizeof(chunk));

        if (n > 0)
                c->ops->received(c->ctx, chunk, (size_t)n);
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
                c->ops->noise(c->ctx, text, (size_t)n);
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

/* After TERM sends KILL; after the exit stops waiting for the ends of the streams. */
static void on_child_timeout(uv_timer_t *t)
{
        struct child_agent *c = t->data;

        if (!c->reaped) {
                kill(c->pid, SIGKILL);
                return;
        }
        /* After a pause of this process, unread output may be there. */
        for (int i = 0; i < LAST_CHUNKS && !c->paused && child_agent_readable(c); i++)
                read_child_stream(c);
        for (int i = 0; i < LAST_CHUNKS && is_fd_readable(c->err); i++)
                read_child_stderr(c);
        if (c->paused && c->stream >= 0)
                return; /* no reader for the last output now: child_agent_pause() continues */
        close_child_stream(c);
        close_child_stderr(c);
        finalize_child(c);
}

void child_agent_send(struct child_agent *c, const void *data, size_t len, bool inserted)
{
        if (c->stream < 0)
                return;
        buf_append(&c->out, data, len);
        if (inserted)
                c->own += len;
        else
                c->counted += len;
        update_child_polling(c);
}

void child_agent_upload(struct child_agent *c)
{
        if (c->stream < 0 || c->image >= 0)
                return;
        /* The file may have been removed or replaced since the agent started. */
        c->image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        update_child_polling(c);
}

void child_agent_pause(struct child_agent *c, bool paused)
{
        /* The last output was left unread while paused: see on_child_timeout(). */
        if (c->paused && !paused && c->reaped)
                await_last_output(c);
        c->paused = paused;
        update_child_polling(c);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* Starts the program with both ends of its stream and a pipe for stderr. */
static int spawn_child(struct child_agent *c, char *const *argv, struct error *err)
{
        int fds[2] = { -1, -1 }, errs[2] = { -1, -1 }, r = fd_pair(fds);
        struct spawn s = { .argv = argv };

        if (r == 0 && pipe2(errs, O_CLOEXEC) < 0)
                r = -errno;
        if (r < 0) {
                err_set(err, -r, "cannot make a pipe: %s", strerror(-r));
        } else {
                /* ssh reads and writes one socket, so the agent needs one descriptor for both
                 * directions. */
                s.fds[0] = s.fds[1] = fds[1];
                s.fds[2] = errs[1];
                r = spawn_process(&c->pid, &s, NULL, err);
        }
        fd_close(fds[1]);
        fd_close(errs[1]);
        c->stream = r < 0 ? fd_close(fds[0]) : fds[0];
        c->err = r < 0 ? fd_close(errs[0]) : errs[0];
        return r;
}

/* Watches stream and standard error. 0; or -errno with @err: the child is killed, and @c goes. */
static int watch_child(struct child_agent *c, uv_loop_t *loop, struct error *err)
{
        int r = uv_poll_init(loop, &c->on_stream, c->stream);

        c->on_stream.data = c->on_err.data = c->timer.data = c;
        c->handles = r == 0;
        if (r == 0)
                r = uv_poll_init(loop, &c->on_err, c->err);
        if (r == 0) {
                uv_timer_init(loop, &c->timer);
                c->handles = 3;
                return 0;
        }
        err_set(err, -r, "cannot watch the child agent: %s", strerror(-r));
        kill(c->pid, SIGKILL); /* the agent reaps the process */
        fd_close(c->err);
        if (c->handles) {
                close_child_stream(c);
        } else {
                fd_close(c->stream);
                free(c);
        }
        return r;
}

/* Returns a path of this program, malloc'ed: that of its file, which names the process, unless the
 * file was removed or replaced. */
static char *find_own_program(void)
{
        static const char self[] = "/proc/self/exe";
        char path[PATH_MAX];
        ssize_t n = readlink(self, path, sizeof(path) - 1);
        struct stat at, own;

        path[MAX(n, (ssize_t)0)] = '\0';
        return n > 0 && stat(path, &at) == 0 && stat(self, &own) == 0 && at.st_dev == own.st_dev &&
                               at.st_ino == own.st_ino
                       ? xstrdup(path)
                       : xstrdup(self);
}

struct child_agent *child_agent_open(uv_loop_t *loop, const struct child_agent_order *o,
                                     const char *known_hosts, const struct child_agent_ops *ops,
                                     void *ctx, struct error *err)
{
        struct child_agent *c = xcalloc(1, sizeof(*c));
        struct strv argv = STRV_INIT;
        int r;

        *c = (struct child_agent){ .image = -1, .ops = ops, .ctx = ctx, .here = !o->argv.n };
        if (c->here) {
                CLEANUP(free_textp) char *program = find_own_program();

                strv_push(&argv, program);
        }
        /* The head's own words, and in between where the keys are. */
        for (size_t i = 0; i < o->argv.n; i++) {
                if (i == o->options_at && known_hosts) {
                        strv_pushf(&argv, "-oHostKeyAlias=%s", o->alias);
                        strv_pushf(&argv, "-oUserKnownHostsFile=%s", known_hosts);
                        strv_push(&argv, "-oGlobalKnownHostsFile=/dev/null");
                }
                strv_push(&argv, o->argv.v[i]);
        }
        r = spawn_child(c, argv.v, err);
        strv_finish(&argv);
        if (r < 0) {
                free(c);
                return NULL;
        }
        fd_set_nonblock(c->err);
        if (watch_child(c, loop, err) < 0)
                return NULL;
        uv_poll_start(&c->on_err, UV_READABLE, on_stderr_ready);
        update_child_polling(c);
        return c;
}

void child_agent_destroy(struct child_agent *c)
{
        if (!c->reaped)
                kill(c->pid, SIGKILL);
        close_child_stream(c);
        close_child_stderr(c);
        uv_close((uv_handle_t *)&c->timer, on_handle_closed);
}

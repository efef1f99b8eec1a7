/* SPDX-License-Identifier: Apache-2.0 */
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
        DRAIN_MS = 200, /* from its exit: something else may hold its stderr open */
        CHUNK = 64 << 10,
        LAST_CHUNKS = 32, /* that are read at once when that time is up */
};

struct child {
        uint32_t number;
        pid_t pid;
        bool reaped, ended, paused, ending;
        int status;
        int stream, err, image; /* descriptors, -1 = closed; @image: our own file to be sent */
        uv_poll_t on_stream, on_err;
        uv_timer_t timer;
        int handles; /* not yet closed; the last one frees the branch */
        struct buf out;
        size_t counted; /* bytes at the front of @out that child_agent_send() brought, */
        size_t own;     /* ... and child_agent_insert() */
        const struct child_agent_ops *ops;
        void *ctx;
};

uint32_t child_agent_number(const struct child *b)
{
        return b->number;
}

pid_t child_agent_pid(const struct child *b)
{
        return b->reaped ? 0 : b->pid;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void time_is_up(uv_timer_t *t);

static void settle(struct child *b)
{
        if (!b->reaped || b->stream >= 0 || b->err >= 0 || b->ended)
                return;
        b->ended = true;
        uv_timer_stop(&b->timer);
        b->ops->ended(b->ctx, b, b->status);
}

static void close_stream(struct child *b)
{
        if (b->stream < 0)
                return;
        uv_poll_stop(&b->on_stream);
        b->stream = fd_close(b->stream);
        b->image = fd_close(b->image);
        buf_finish(&b->out);
}

static void close_err(struct child *b)
{
        if (b->err < 0)
                return;
        uv_poll_stop(&b->on_err);
        b->err = fd_close(b->err);
}

/* It has left: what it said last is still read. */
static void drain(struct child *b)
{
        uv_timer_start(&b->timer, time_is_up, b->stream < 0 && b->err < 0 ? 0 : DRAIN_MS, 0);
}

void child_agent_end(struct child *b)
{
        if (b->ending || b->ended)
                return;
        b->ending = true;
        close_stream(b);
        if (b->reaped) {
                drain(b);
                return;
        }
        kill(b->pid, SIGTERM);
        uv_timer_start(&b->timer, time_is_up, KILL_MS, 0);
}

void child_agent_reaped(struct child *b, int status)
{
        b->reaped = true;
        b->status = status;
        drain(b);
}

/* --- its streams ------------------------------------------------------------------------------ */

static void ready(uv_poll_t *poll, int status, int events);

/* What we wait for follows from what there is to do. */
static void watch(struct child *b)
{
        bool sends = buf_len(&b->out) || b->image >= 0;
        int events = (b->paused ? 0 : UV_READABLE) | (sends ? UV_WRITABLE : 0);

        if (b->stream < 0)
                return;
        if (events)
                uv_poll_start(&b->on_stream, events, ready);
        else
                uv_poll_stop(&b->on_stream);
}

/* The next piece of our own file, when all before it has gone. */
static void take_image(struct child *b)
{
        void *to = buf_reserve(&b->out, CHUNK);
        ssize_t n = to ? read(b->image, to, CHUNK) : 0;

        if (n > 0)
                buf_advance(&b->out, (size_t)n);
        else
                b->image = fd_close(b->image);
}

/* Whose bytes they were is not known: ours count first, so that the head is told too late rather
 * than too early. */
static void count(struct child *b, size_t written)
{
        size_t own = MIN(b->own, written), told = MIN(b->counted, written - own);

        b->own -= own;
        b->counted -= told;
        if (told)
                b->ops->took(b->ctx, b, (uint32_t)told);
}

static void push(struct child *b)
{
        ssize_t n;

        if (!buf_len(&b->out) && b->image >= 0)
                take_image(b);
        if (!buf_len(&b->out))
                return;
        n = write(b->stream, buf_data(&b->out), buf_len(&b->out));
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
                close_stream(b); /* it leaves: waitpid() says how */
                return;
        }
        if (n <= 0)
                return;
        buf_consume(&b->out, (size_t)n);
        count(b, (size_t)n);
}

static void pull(struct child *b)
{
        static unsigned char room[CHUNK];
        ssize_t n = read(b->stream, room, sizeof(room));

        if (n > 0)
                b->ops->said(b->ctx, b, room, (size_t)n);
        else if (!n || (errno != EAGAIN && errno != EINTR))
                close_stream(b);
}

static void ready(uv_poll_t *poll, int status, int events)
{
        struct child *b = poll->data;

        if (events & UV_READABLE || status < 0)
                pull(b);
        if (events & UV_WRITABLE && b->stream >= 0)
                push(b);
        watch(b);
        settle(b);
}

static void complain(struct child *b)
{
        char text[TUNNEL_NOISE_MAX];
        ssize_t n = read(b->err, text, sizeof(text));

        if (n > 0)
                b->ops->noise(b->ctx, b, text, (size_t)n);
        else if (!n || (errno != EAGAIN && errno != EINTR))
                close_err(b);
}

static void complained(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        struct child *b = poll->data;

        complain(b);
        settle(b);
}

static bool is_readable(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return fd >= 0 && poll(&p, 1, 0) > 0;
}

bool child_agent_readable(const struct child *b)
{
        return is_readable(b->stream);
}

/* Whoever was not scheduled for so long has not yet seen what came meanwhile. */
static void last_look(struct child *b)
{
        for (int i = 0; i < LAST_CHUNKS && !b->paused && child_agent_readable(b); i++)
                pull(b);
        for (int i = 0; i < LAST_CHUNKS && is_readable(b->err); i++)
                complain(b);
}

/* After TERM it is time for KILL, after its exit for the end of its streams. */
static void time_is_up(uv_timer_t *t)
{
        struct child *b = t->data;

        if (!b->reaped) {
                kill(b->pid, SIGKILL);
                return;
        }
        last_look(b);
        if (b->paused && b->stream >= 0)
                return; /* nobody reads its last words now: child_agent_pause() goes on */
        close_stream(b);
        close_err(b);
        settle(b);
}

void child_agent_send(struct child *b, const void *data, size_t len)
{
        if (b->stream < 0)
                return;
        buf_append(&b->out, data, len);
        b->counted += len;
        watch(b);
}

void child_agent_insert(struct child *b, const void *data, size_t len)
{
        if (b->stream < 0)
                return;
        buf_append(&b->out, data, len);
        b->own += len;
        watch(b);
}

void child_agent_upload(struct child *b)
{
        if (b->stream < 0 || b->image >= 0)
                return;
        b->image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        watch(b);
}

void child_agent_pause(struct child *b, bool paused)
{
        if (b->paused && !paused && b->reaped)
                drain(b);
        b->paused = paused;
        watch(b);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* The head's own words, and in between where the keys are. */
static void complete(const struct child_agent_order *o, const char *known_hosts, struct strv *argv)
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
static int start(struct child *b, char *const *argv, int theirs, int err_theirs, struct error *err)
{
        struct spawn s = {
                .argv = argv,
                .fds = { theirs, theirs, err_theirs },
                .session = true,
                .death_signal = SIGKILL,
        };

        return spawn_process(&b->pid, &s, NULL, err);
}

static int connect_pipes(struct child *b, char *const *argv, struct error *err)
{
        int fds[2] = { -1, -1 }, errs[2] = { -1, -1 }, r = fd_pair(fds);

        if (r == 0 && pipe2(errs, O_CLOEXEC) < 0)
                r = -errno;
        if (r < 0)
                r = err_set(err, -r, "cannot make a pipe: %s", strerror(-r));
        else
                r = start(b, argv, fds[1], errs[1], err);
        fd_close(fds[1]);
        fd_close(errs[1]);
        b->stream = fds[0];
        b->err = errs[0];
        if (r == 0)
                return 0;
        b->stream = fd_close(b->stream);
        b->err = fd_close(b->err);
        return r;
}

struct child *child_agent_open(uv_loop_t *loop, const struct child_agent_order *o,
                               const char *known_hosts, const struct child_agent_ops *ops,
                               void *ctx, struct error *err)
{
        struct child *b = xcalloc(1, sizeof(*b));
        struct strv argv = STRV_INIT;
        int r;

        *b = (struct child){ .number = o->number, .image = -1, .ops = ops, .ctx = ctx };
        complete(o, known_hosts, &argv);
        r = connect_pipes(b, argv.v, err);
        strv_finish(&argv);
        if (r < 0) {
                free(b);
                return NULL;
        }
        fd_set_nonblock(b->err);
        uv_poll_init(loop, &b->on_stream, b->stream);
        uv_poll_init(loop, &b->on_err, b->err);
        uv_timer_init(loop, &b->timer);
        b->handles = 3;
        b->on_stream.data = b->on_err.data = b->timer.data = b;
        uv_poll_start(&b->on_err, UV_READABLE, complained);
        watch(b);
        return b;
}

static void handle_closed(uv_handle_t *h)
{
        struct child *b = h->data;

        if (--b->handles == 0)
                free(b);
}

void child_agent_destroy(struct child *b)
{
        if (!b->reaped)
                kill(b->pid, SIGKILL);
        close_stream(b);
        close_err(b);
        uv_close((uv_handle_t *)&b->on_stream, handle_closed);
        uv_close((uv_handle_t *)&b->on_err, handle_closed);
        uv_close((uv_handle_t *)&b->timer, handle_closed);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminals, pipes and sockets are read by the loop. A regular file, which poll() always calls
 * readable, is read by a thread of the pool, piece by piece. A source is freed when its handle is
 * closed, or its read in the thread is over.
 *
 * taken[] counts by rank the bytes for which the agent has sent a CREDIT. The pump is paused while
 * sent - min(taken) is a window or more; a rank without interest counts as UINT64_MAX. After the
 * last piece an empty piece tells the end.
 *
 * A rank is closed until it has started: its agent would drop the bytes. While a rank is closed all
 * bytes are kept for it, so that the pump pauses early, and pieces go to each open rank by itself.
 */
#include "head/job/stdin_pump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/log.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/options/options.h"
#include "head/output/say.h"

struct stdin_source {
        struct stdin_pump *pump; /* NULL = left */
        union {
                uv_handle_t handle;
                uv_stream_t stream;
                uv_tty_t tty;
                uv_pipe_t pipe;
        } h;
        struct thread_pool_work work;
        ssize_t got; /* by the last read of a file */
        int error;   /* of that read */
        bool is_file, reading, lent;
        int fd;
        char buffer[32768];
};

enum { CTRL_C = 3, INTERRUPTS = 3, INTERRUPTS_MS = 1000 };
enum { KEPT_WINDOW = 32768 /* in place of MSG_WINDOW, while a rank is closed */ };

/* When the last Ctrl-C came, in a ring. */
struct interrupts {
        void (*fn)(void *ctx); /* NULL = they do not count */
        void *ctx;
        int64_t at_ms[INTERRUPTS];
        size_t n;
};

struct stdin_pump {
        struct cluster *cluster;
        const struct attempt *attempt;
        int rank; /* that is sent the bytes, -1 = every rank */
        uint64_t sent, *taken;
        bool *opened; /* by rank */
        int n_closed; /* ranks that are to be opened */
        char *kept;   /* the bytes sent so far, for these */
        size_t n_kept;
        struct thread_pool *pool;
        struct stdin_source *source; /* NULL = none now */
        bool paused;
        bool ended;  /* the ranks were sent the end */
        bool ending; /* the end follows the lent source */
        bool outlives_terminal;
        struct interrupts interrupts;
};

static void read_next_piece(struct stdin_source *s);

static void on_source_closed(uv_handle_t *h)
{
        free(h->data);
}

/* A source whose read waits in a thread is freed by on_piece(), one with a handle when that is
 * closed. */
static void leave_source(struct stdin_pump *p)
{
        struct stdin_source *s = p->source;

        p->source = NULL;
        if (!s)
                return;
        s->pump = NULL;
        if (!s->is_file)
                uv_close(&s->h.handle, on_source_closed);
        else if (!s->reading)
                free(s);
}

static void provide_buffer(uv_handle_t *h, size_t size UNUSED, uv_buf_t *ret)
{
        struct stdin_source *s = h->data;

        *ret = uv_buf_init(s->buffer, sizeof(s->buffer));
}

static void on_stdin(uv_stream_t *stream, ssize_t got, const uv_buf_t *b);

/* Pauses while the slowest rank has a full window of bytes under way. */
static void update_pause(struct stdin_pump *p)
{
        struct stdin_source *s = p->source;
        uint64_t least = p->sent;
        bool paused;

        if (p->rank >= 0)
                least = MIN(least, p->taken[p->rank]);
        for (int r = 0; p->rank < 0 && r < p->attempt->plan->world_size; r++)
                least = MIN(least, p->taken[r]);
        paused = p->sent - least >= (p->n_closed ? KEPT_WINDOW : MSG_WINDOW);
        if (p->paused == paused)
                return;
        p->paused = paused;
        if (!s)
                return;
        if (s->is_file && !paused && !s->reading)
                read_next_piece(s);
        else if (!s->is_file && paused)
                uv_read_stop(&s->h.stream);
        else if (!s->is_file)
                uv_read_start(&s->h.stream, provide_buffer, on_stdin);
}

static void send_stdin(struct node *n, uint32_t rank, const void *data, size_t len)
{
        rank_bytes_encode(&n->out, MSG_STDIN, rank, data, len);
        node_flush(n);
}

static void send_to_rank(const struct stdin_pump *p, int rank, const void *data, size_t len)
{
        struct node *n = &p->cluster->nodes[p->attempt->plan->ranks[rank].node];

        if (n->state == NODE_RUNNING)
                send_stdin(n, (uint32_t)rank, data, len);
}

static void append_kept(struct stdin_pump *p, const void *data, size_t len)
{
        p->kept = xrealloc(p->kept, p->n_kept + len, 1);
        memcpy(p->kept + p->n_kept, data, len);
        p->n_kept += len;
}

/* Sends a piece; @len 0 = the end. */
static void pump_piece(struct stdin_pump *p, const void *data, size_t len)
{
        p->ended |= !len;
        if (p->n_closed && len)
                append_kept(p, data, len);
        if (p->rank < 0 && !p->n_closed)
                for (struct node *n = NULL; (n = cluster_each_running(p->cluster, n));)
                        send_stdin(n, MSG_EVERY_RANK, data, len);
        else
                for (int r = 0; r < p->attempt->plan->world_size; r++)
                        if (p->opened[r] && p->taken[r] != UINT64_MAX)
                                send_to_rank(p, r, data, len);
        /* Also where no rank runs: the bytes are gone. */
        p->sent += len;
        update_pause(p);
}

/* The rank takes part from now on, or never will. */
static void open_rank(struct stdin_pump *p, int rank)
{
        p->opened[rank] = true;
        if (--p->n_closed)
                return;
        free(p->kept);
        p->kept = NULL;
        p->n_kept = 0;
}

/* An ioctl() to a terminal that has hung up fails with EIO, while read() returns 0 as at an end. */
static bool has_hung_up(int fd)
{
        struct termios t;

        return tcgetattr(fd, &t) < 0 && errno == EIO;
}

/* The ranks cannot tell the end of a source that failed from a true one. */
static void tell_unreadable(const struct stdin_pump *p, int error)
{
        const struct options *o = p->cluster->options;
        bool is_file = o->stdin_mode == STDIN_FILE;

        log_warning(HN_STDIN_UNREADABLE, "cannot read %s%s: %s; the input of the ranks ends here",
                    is_file ? "--stdin " : "standard input", is_file ? o->stdin_file : "",
                    strerror(error));
}

/* The source has come to its end, or failed with @error. The failure of a lent one is that of a
 * client, and a terminal that has hung up is none. */
static void end_source(struct stdin_pump *p, int error)
{
        struct stdin_source *s = p->source;
        /* Another `hnlaunch attach` may bring more input; with --on-hup detach the loss of the
         * terminal is no end of input. */
        bool stays = s->lent ? !p->ending : p->outlives_terminal && has_hung_up(s->fd);

        if (error && !s->lent && !has_hung_up(s->fd))
                tell_unreadable(p, error);
        leave_source(p);
        if (!stays)
                pump_piece(p, NULL, 0);
}

/* A rank with a terminal gets Ctrl-C as a key. Several within a second are meant for hnlaunch. */
static void count_interrupts(struct interrupts *i, const char *data, size_t len)
{
        int64_t now = clock_ms();

        for (const char *c = data; (c = memchr(c, CTRL_C, len - (size_t)(c - data))); c++) {
                /* The place to be written next has the oldest of the last three. */
                i->at_ms[i->n++ % INTERRUPTS] = now;
                if (i->n < INTERRUPTS || now - i->at_ms[i->n % INTERRUPTS] > INTERRUPTS_MS)
                        continue;
                i->n = 0;
                i->fn(i->ctx);
        }
}

static void on_stdin(uv_stream_t *stream, ssize_t got, const uv_buf_t *b)
{
        struct stdin_source *s = stream->data;

        if (got > 0 && s->pump->interrupts.fn)
                count_interrupts(&s->pump->interrupts, b->base, (size_t)got);
        /* The terminal has echoed the line, and the cursor stands on the next one. */
        if (got > 0 && s->h.handle.type == UV_TTY && memchr(b->base, '\n', (size_t)got))
                say_after_entry(s->fd);
        if (got > 0)
                pump_piece(s->pump, b->base, (size_t)got);
        else if (got < 0)
                end_source(s->pump, got == UV_EOF ? 0 : (int)-got);
}

/* In a thread. */
static void read_piece(struct thread_pool_work *w)
{
        struct stdin_source *s = container_of(w, struct stdin_source, work);

        s->got = read(s->fd, s->buffer, sizeof(s->buffer));
        s->error = s->got < 0 ? errno : 0;
}

/* A thread has read a piece of standard input. The source outlives the pump while a read() waits in
 * a thread. */
static void on_piece(struct thread_pool_work *w, int status UNUSED)
{
        struct stdin_source *s = container_of(w, struct stdin_source, work);
        struct stdin_pump *p = s->pump;

        s->reading = false;
        if (!p) {
                free(s);
        } else if (s->got <= 0) {
                end_source(p, s->error);
        } else {
                pump_piece(p, s->buffer, (size_t)s->got);
                if (!p->paused && !s->reading)
                        read_next_piece(s);
        }
}

/* One read at a time: the buffer belongs to the thread until on_piece(). */
static void read_next_piece(struct stdin_source *s)
{
        s->reading = true;
        s->work = (struct thread_pool_work){ .run = read_piece, .done = on_piece };
        thread_pool_run(s->pump->pool, &s->work);
}

/* Opens the handle for the kind of @fd; a negative errno. */
static int open_source(struct stdin_source *s, uv_loop_t *loop, int fd)
{
        int own;

        switch (uv_guess_handle(fd)) {
        case UV_TTY:
                return uv_tty_init(loop, &s->h.tty, fd, 1);
        case UV_NAMED_PIPE:
                /* libuv closes the descriptor with the handle, but standard input stays open. */
                own = s->lent ? fd : dup(fd);
                if (own < 0)
                        return -errno;
                uv_pipe_init(loop, &s->h.pipe, 0);
                /* For begin_source(): the handle is to be closed even if uv_pipe_open() fails. */
                s->h.handle.data = s;
                return uv_pipe_open(&s->h.pipe, own);
        default:
                s->is_file = true;
                return 0;
        }
}

/* Begins to read. A negative errno: @fd cannot be read. */
static int begin_source(struct stdin_pump *p, int fd, bool lent)
{
        struct stdin_source *s = xcalloc(1, sizeof(*s));
        int r;

        *s = (struct stdin_source){ .pump = p, .fd = fd, .lent = lent };
        r = open_source(s, p->cluster->loop, fd);
        if (r) {
                if (s->h.handle.data)
                        uv_close(&s->h.handle, on_source_closed);
                else
                        free(s);
                return r;
        }
        p->source = s;
        if (!s->is_file)
                s->h.handle.data = s;
        /* A paused pump begins to read with the next CREDIT (update_pause()). */
        if (!p->paused && s->is_file)
                read_next_piece(s);
        else if (!p->paused)
                uv_read_start(&s->h.stream, provide_buffer, on_stdin);
        return 0;
}

struct stdin_pump *stdin_pump_create(struct cluster *c, const struct attempt *a,
                                     struct thread_pool *pool, int rank)
{
        struct stdin_pump *p = xcalloc(1, sizeof(*p));

        p->cluster = c;
        p->attempt = a;
        p->rank = rank;
        p->taken = xcalloc((size_t)a->plan->world_size, sizeof(*p->taken));
        p->opened = xcalloc((size_t)a->plan->world_size, sizeof(*p->opened));
        p->n_closed = rank < 0 ? a->plan->world_size : 1;
        p->pool = pool;
        return p;
}

void stdin_pump_read(struct stdin_pump *p, int fd)
{
        int r = begin_source(p, fd, false);

        if (r == 0)
                return;
        tell_unreadable(p, -r);
        pump_piece(p, NULL, 0);
}

void stdin_pump_count_interrupts(struct stdin_pump *p, void (*fn)(void *ctx), void *ctx)
{
        p->interrupts = (struct interrupts){ .fn = fn, .ctx = ctx };
}

int stdin_pump_lend(struct stdin_pump *p, int fd, struct error *err)
{
        int r = !p          ? err_set(err, ENOENT, "its ranks have no standard input")
                : p->source ? err_set(err, EBUSY, "its ranks have another standard input")
                : p->ended  ? err_set(err, EPIPE, "the standard input of its ranks has ended")
                            : 0;

        if (r == 0 && begin_source(p, fd, true) < 0)
                r = err_set(err, EIO, "cannot read the connection");
        if (r < 0)
                close(fd);
        return r;
}

/* With a lent source end_source() sends the end, behind the last bytes. */
void stdin_pump_end(struct stdin_pump *p)
{
        if (!p || p->ended)
                return;
        p->ending = true;
        if (!p->source)
                pump_piece(p, NULL, 0);
}

void stdin_pump_leave_terminal(struct stdin_pump *p)
{
        if (p && p->source && !p->source->is_file && p->source->h.handle.type == UV_TTY)
                leave_source(p);
}

void stdin_pump_outlive_terminal(struct stdin_pump *p)
{
        if (p)
                p->outlives_terminal = true;
}

int stdin_pump_credit(struct stdin_pump *p, int rank, uint32_t bytes)
{
        if (!p || (p->rank >= 0 && rank != p->rank))
                return -EPROTO;
        /* A CREDIT that was under way when the rank ended. */
        if (p->taken[rank] == UINT64_MAX)
                return 0;
        if (bytes > p->sent - p->taken[rank])
                return -EPROTO;
        p->taken[rank] += bytes;
        update_pause(p);
        return 0;
}

void stdin_pump_started(struct stdin_pump *p, int rank)
{
        if (!p || (p->rank >= 0 && rank != p->rank) || p->opened[rank])
                return;
        if (p->n_kept)
                send_to_rank(p, rank, p->kept, p->n_kept);
        if (p->ended)
                send_to_rank(p, rank, NULL, 0);
        open_rank(p, rank);
        /* Any closed rank holds the pump back as much as all do. */
        if (!p->n_closed)
                update_pause(p);
}

void stdin_pump_left(struct stdin_pump *p, int rank)
{
        if (!p || (p->rank >= 0 && rank != p->rank))
                return;
        if (!p->opened[rank])
                open_rank(p, rank);
        p->taken[rank] = UINT64_MAX;
        update_pause(p);
}

void stdin_pump_destroy(struct stdin_pump *p)
{
        if (!p)
                return;
        leave_source(p);
        free(p->kept);
        free(p->opened);
        free(p->taken);
        free(p);
}

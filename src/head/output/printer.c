/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printer_put() copies bytes to the rank's file at once. For the terminal, bytes that are ready go
 * to the sink without a copy; the rest waits in the stream, and a stream with ready bytes is
 * queued. serve_terminal() takes the streams from the queue one by one, in order of arrival; while
 * a line has an owner, only the owner may write.
 *
 * "Ready" means: whole lines, and, after a moment without new bytes (the timer, PARTIAL_MS), an
 * unfinished line as well. The timer runs only while there is such a line or a queue behind an
 * owner.
 *
 * came >= shown, filed >= credited: bytes received, written to terminal and file, and credited to
 * the agent. Credit follows the slower of the two, so memory is bounded by the window of each
 * stream. A stream without a file, or not shown, counts as written there.
 */
#include "head/output/printer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/model/label.h"
#include "head/output/sink.h"
#include "head/term/columns.h"
#include "head/term/escapes.h"
#include "head/term/redraw.h"
#include "wire/msg.h"

enum {
        STREAMS = 3,       /* indexed by MSG_STDOUT and MSG_STDERR */
        WORDS = 4096,      /* of stderr kept for the report */
        WORDS_OUT = 1024,  /* and of stdout, written by many ranks */
        KEEP = 4096,       /* memory kept by a stream without bytes */
        LONG_LINE = 65536, /* a longer line is written in pieces by the owner */
        PARTIAL_MS = 200,
        REDRAW_MS = 500, /* between two states of a line */
};

/* The present line of a stream on the terminal. */
struct stream_line {
        char *prefix;
        size_t prefix_len;
        size_t columns;    /* of the line so far */
        uint64_t drawn_ms; /* when the last state of a line was drawn, 0 = never */
        bool redraws;      /* redrawn lines get special care */
        bool drawn;        /* the line so far is a state: whole enough to be left */
        bool mid_line;     /* the last byte on the terminal was not a newline */
        bool returned;     /* that byte was a carriage return, behind the prefix */
};

struct printer_stream {
        struct printer *o;
        int rank;
        uint8_t number;
        struct buf waiting;      /* received, not yet put to the terminal */
        struct buf words;        /* the newest bytes */
        struct escapes *escapes; /* NULL = escape sequences are not filtered */
        struct stream_line line;
        bool ended, queued, idle;
        bool counted;                /* in n_waiting */
        uint64_t came, shown, filed; /* bytes received, written to terminal, to the file */
        uint64_t credited;
        struct sink *file;
        struct printer_stream *next; /* in the terminal's queue */
};

struct terminal {
        struct sink *sink;
        bool is_tty;                  /* unfinished lines are shown */
        struct printer_stream *owner; /* in the middle of a line */
        struct printer_stream *first,
                **last; /* streams with something to write, in order of arrival */
};

struct printer {
        uv_loop_t *loop;
        uv_timer_t timer;
        bool timing, closing, flushing;
        struct printer_options opt;
        struct printer_ops ops;
        void *ctx;
        struct terminal out, err;
        struct terminal
                *terminals[STREAMS]; /* both are @out when stdout and stderr are the same file */
        struct label prefix;
        struct printer_stream *
                *streams[STREAMS]; /* by rank; NULL = nothing came yet, and no file */
        int n_ranks;
        size_t n_waiting; /* streams with bytes for a terminal */
};

/* --- flow control --- */

/* Credits in large pieces: a quarter of the window, or everything once nothing is under way. */
static void credit_stream(struct printer_stream *st)
{
        uint64_t written = MIN(st->shown, st->filed), due = written - st->credited;

        if (!due || (due < st->o->opt.window / 4 && st->came - written > 0))
                return;
        if (st->came - st->credited < st->o->opt.window / 4)
                return; /* far from the end of the window: the message can be saved */
        st->credited = written;
        st->o->ops.credit(st->o->ctx, st->rank, st->number, (uint32_t)due);
}

static void on_terminal_written(void *ctx, void *tag, size_t n)
{
        struct printer_stream *st = tag;

        (void)ctx;
        if (!st)
                return;
        st->shown += n;
        credit_stream(st);
}

static void on_file_written(void *ctx, void *tag, size_t n)
{
        struct printer_stream *st = tag;

        (void)ctx;
        st->filed += n;
        credit_stream(st);
}

static void on_terminal_broken(void *ctx, struct sink *s, int error)
{
        struct printer *o = ctx;
        uint8_t stream = s == o->terminals[MSG_STDOUT]->sink ? MSG_STDOUT : MSG_STDERR;

        o->ops.broken(o->ctx, stream, o->opt.fd[stream] == STDOUT_FILENO ? "stdout" : "stderr",
                      error);
}

static void on_file_broken(void *ctx, struct sink *s, int error)
{
        struct printer *o = ctx;

        (void)s;
        o->ops.broken(o->ctx, 0, o->opt.dir, error);
}

/* --- the terminal: whole lines, and an owner of an unfinished line --- */

static void queue_stream(struct printer_stream *st)
{
        struct terminal *t = st->o->terminals[st->number];

        if (st->queued)
                return;
        st->queued = true;
        st->next = NULL;
        *t->last = st;
        t->last = &st->next;
}

/* Appends a part of a line. The prefix is repeated behind a carriage return: the text there would
 * else be shown in its place. */
static void add_returning_text(struct printer_stream *st, struct buf *lines, const unsigned char *p,
                               const unsigned char *end)
{
        const unsigned char *next;

        for (; p < end; p = next) {
                next = memchr(p, '\r', (size_t)(end - p));
                next = next ? next + 1 : end;
                if (st->line.returned && *p != '\r' && *p != '\n')
                        buf_append(lines, st->line.prefix, st->line.prefix_len);
                buf_append(lines, p, (size_t)(next - p));
                st->line.returned = next[-1] == '\r';
        }
}

/* Appends each line behind the prefix. */
static void add_prefixed_lines(struct printer_stream *st, struct buf *lines, const unsigned char *p,
                               size_t n)
{
        const unsigned char *end = p + n, *nl;
        bool returns = !st->o->opt.raw && (st->line.returned || memchr(p, '\r', n));

        buf_reserve(lines, n + n / 4);
        for (; p < end; p = nl) {
                nl = memchr(p, '\n', (size_t)(end - p));
                nl = nl ? nl + 1 : end;
                if (!st->line.mid_line) {
                        buf_append(lines, st->line.prefix, st->line.prefix_len);
                        st->line.returned = false;
                }
                if (returns)
                        add_returning_text(st, lines, p, nl);
                else
                        buf_append(lines, p, (size_t)(nl - p));
                st->line.mid_line = nl[-1] != '\n';
        }
}

/* Draws only the last of the states in these bytes. @ends: a newline follows. */
static void draw_line(struct printer_stream *st, struct buf *to, const unsigned char *p, size_t n,
                      bool ends)
{
        const struct printer *o = st->o;
        ssize_t cr;

        n = redraw_body(p, n);
        cr = redraw_last(p, n);
        if (cr >= 0) {
                p += cr + 1;
                n -= (size_t)cr + 1;
                n = redraw_is_blank(p, n) ? 0 : n;
                /* The state before is erased; where the terminal cannot erase, its line ends. */
                if (st->line.mid_line && o->opt.erase &&
                    st->line.columns < columns_of_terminal(o->opt.fd[st->number]))
                        buf_appends(to, "\r\033[K");
                else if (st->line.mid_line)
                        buf_appends(to, "\n");
                st->line.mid_line = false;
                st->line.drawn = true;
        }
        if (!st->line.mid_line && (n || ends)) {
                buf_append(to, st->line.prefix, st->line.prefix_len);
                st->line.columns = columns_count(st->line.prefix, st->line.prefix_len);
        }
        buf_append(to, p, n);
        st->line.columns += columns_count((const char *)p, n);
        st->line.mid_line = (st->line.mid_line || n) && !ends;
        if (ends)
                buf_append(to, "\n", 1);
        st->line.drawn = st->line.drawn && st->line.mid_line;
}

static void draw_lines(struct printer_stream *st, struct buf *to, const unsigned char *p, size_t n)
{
        const unsigned char *end = p + n, *nl;

        for (; p < end; p = nl + 1) {
                nl = memchr(p, '\n', (size_t)(end - p));
                draw_line(st, to, p, (size_t)((nl ? nl : end) - p), nl != NULL);
                if (!nl)
                        break;
        }
        if (st->line.mid_line)
                escapes_pause(st->escapes, to);
}

/* Updates n_waiting; to be called after each change of the waiting bytes. */
static void count_waiting(struct printer_stream *st)
{
        size_t n = buf_len(&st->waiting);
        bool waits = st->o->terminals[st->number]->is_tty &&
                     (st->line.redraws ? redraw_body(buf_data(&st->waiting), n) : n) > 0;

        if (!n && st->waiting.cap > KEEP)
                buf_finish(&st->waiting);
        if (waits == st->counted)
                return;
        st->counted = waits;
        st->o->n_waiting += waits ? 1 : -(size_t)1;
}

/* Puts @n bytes of the stream to the terminal. */
static void write_bytes(struct printer_stream *st, const unsigned char *p, size_t n)
{
        struct terminal *t = st->o->terminals[st->number];
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        size_t len = n;
        struct buf *to;

        if (!n)
                return;
        if (st->escapes) {
                escapes_filter(st->escapes, &clean, p, n, !st->line.redraws);
                p = buf_data(&clean);
                len = buf_len(&clean);
        }
        to = sink_begin(t->sink);
        if (st->line.redraws) {
                draw_lines(st, to, p, len);
        } else if (st->line.prefix_len) {
                add_prefixed_lines(st, to, p, len);
        } else if (len) {
                buf_append(to, p, len);
                st->line.mid_line = p[len - 1] != '\n';
        }
        sink_end(t->sink, st, n);
}

/* Returns the ready bytes of an unfinished line on a terminal. A waiting carriage return announces
 * a new state of the line. */
static size_t ready_states(const struct printer_stream *st, const unsigned char *p, size_t n)
{
        size_t body = redraw_body(p, n);
        ssize_t last = redraw_last(p, n);

        if (n >= LONG_LINE)
                return n;
        if (last < 0)
                return st->idle || st->line.mid_line ? body : 0;
        if (st->line.drawn_ms && uv_now(st->o->loop) - st->line.drawn_ms < REDRAW_MS)
                return 0;
        return st->idle ? body : (size_t)last;
}

/* Returns how many of the @n waiting bytes may go out now. */
static size_t ready_bytes(const struct printer_stream *st, const unsigned char *p, size_t n)
{
        const unsigned char *nl = n ? memrchr(p, '\n', n) : NULL;
        size_t lines = nl ? (size_t)(nl + 1 - p) : 0;
        bool alone = st->o->n_ranks == 1 && !st->line.prefix_len;

        if (st->line.redraws && !st->ended && !st->o->flushing)
                return lines + ready_states(st, p + lines, n - lines);
        if (alone || st->ended || st->idle || st->o->flushing || n - lines >= LONG_LINE)
                return n;
        /* A line already begun on the terminal goes on at once. */
        return st->line.mid_line ? n : lines;
}

static size_t ready_waiting(const struct printer_stream *st)
{
        return ready_bytes(st, buf_data(&st->waiting), buf_len(&st->waiting));
}

static void restart_timer(struct printer *o);

/* Ends the line left unfinished by the owner, if there is an owner. */
static void break_owned_line(struct terminal *t)
{
        struct printer_stream *st = t->owner;

        t->owner = NULL;
        if (st && (st->line.prefix_len || st->line.drawn) && st->line.mid_line) {
                sink_put(t->sink, "\n", 1, NULL, 0);
                st->line.mid_line = st->line.drawn = false;
        }
}

/* Returns the stream for which all others wait: the owner, unless the line may be left unfinished.
 */
static struct printer_stream *line_holder(const struct terminal *t)
{
        return t->owner && !t->owner->line.drawn ? t->owner : NULL;
}

/* Shows bytes of the stream, on a new line or after the unfinished line of this stream; @more bytes
 * wait. */
static void show_next(struct printer_stream *st, const unsigned char *p, size_t n, size_t more)
{
        struct terminal *t = st->o->terminals[st->number];

        if (!n)
                return;
        if (t->owner != st)
                break_owned_line(t);
        write_bytes(st, p, n);
        st->line.drawn =
                st->line.mid_line && st->line.redraws && (st->line.drawn || (more && p[n] == '\r'));
        if (st->line.drawn)
                st->line.drawn_ms = MAX(uv_now(st->o->loop), (uint64_t)1);
        t->owner = st->line.mid_line ? st : NULL;
}

/* Skips states already replaced by a later state: a progress bar must not wait for the terminal. */
static void skip_replaced_states(struct printer_stream *st)
{
        CLEANUP(buf_finish) struct buf unseen = BUF_INIT;
        const unsigned char *p = buf_data(&st->waiting);
        size_t len = buf_len(&st->waiting), n;

        if (!st->line.redraws || !len || memchr(p, '\n', len))
                return;
        n = redraw_replaced(p, len);
        if (!n)
                return;
        escapes_filter(st->escapes, &unseen, p, n, false);
        buf_consume(&st->waiting, n);
        on_terminal_written(NULL, st, n);
}

/* Takes the next stream from the queue: the owner, else the first; NULL: none may write now. */
static struct printer_stream *take_next_stream(struct terminal *t)
{
        struct printer_stream **at = &t->first, *st, *first = line_holder(t);

        if (first && !first->queued)
                return NULL; /* all others wait, and may be very many */
        while (*at && first && *at != first)
                at = &(*at)->next;
        st = *at;
        if (!st)
                return NULL;
        *at = st->next;
        if (t->last == &st->next)
                t->last = at;
        st->queued = false;
        return st;
}

static void serve_terminal(struct terminal *t)
{
        struct printer_stream *st;
        size_t n;

        while ((st = take_next_stream(t))) {
                n = ready_waiting(st);
                show_next(st, buf_data(&st->waiting), n, buf_len(&st->waiting) - n);
                buf_consume(&st->waiting, n);
                count_waiting(st);
                if (st->ended && t->owner == st)
                        break_owned_line(t);
        }
}

/* After a moment without new bytes: shows unfinished lines, and breaks the line of a pausing owner.
 */
static void on_moment_passed(uv_timer_t *timer)
{
        struct printer *o = timer->data;

        o->timing = false;
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                struct terminal *t = o->terminals[s];

                if (t->owner && t->owner->idle && t->first)
                        break_owned_line(t);
                for (int r = 0; r < o->n_ranks; r++) {
                        struct printer_stream *st = o->streams[s][r];

                        if (!st)
                                continue;
                        if (st->idle && st->counted && (!line_holder(t) || t->owner == st)) {
                                queue_stream(st);
                                serve_terminal(t);
                        }
                        /* A stream is not idle while the terminal is slow. */
                        if ((buf_len(&st->waiting) || t->owner == st) && !sink_pending(t->sink))
                                st->idle = true;
                }
                serve_terminal(t);
        }
        restart_timer(o);
}

/* The timer runs only while a line is unfinished or streams wait for an owner. */
static void restart_timer(struct printer *o)
{
        bool needed = false;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                needed |= line_holder(o->terminals[s]) && o->terminals[s]->first;
        needed |= o->n_waiting > 0;
        if (!needed || o->timing || o->closing)
                return;
        o->timing = true;
        uv_timer_start(&o->timer, on_moment_passed, PARTIAL_MS, 0);
}

/* --- streams --- */

static void open_rank_file(struct printer_stream *st)
{
        const struct printer_options *opt = &st->o->opt;
        char *path = xasprintf("%s/rank-%05d.%s", opt->dir, st->rank,
                               st->number == MSG_STDOUT ? "out" : "err");
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (opt->append ? O_APPEND : O_TRUNC),
                      0600);

        if (fd < 0)
                st->o->ops.broken(st->o->ctx, 0, path, errno);
        else
                st->file = sink_create(opt->pool, fd, true,
                                       (struct sink_ops){ on_file_written, on_file_broken }, st->o);
        free(path);
}

static struct printer_stream *open_printer_stream(struct printer *o, int rank, uint8_t number)
{
        struct printer_stream *st = xcalloc(1, sizeof(*st));

        o->streams[number][rank] = st;
        *st = (struct printer_stream){ .o = o, .rank = rank, .number = number };
        st->line.prefix = label_make(&o->prefix, rank, number);
        st->line.prefix_len = strlen(st->line.prefix);
        if (o->terminals[number]->is_tty && !o->opt.raw) {
                st->escapes = xcalloc(1, sizeof(*st->escapes));
                st->line.redraws = o->n_ranks > 1 || st->line.prefix_len;
        }
        if (o->opt.dir)
                open_rank_file(st);
        return st;
}

/* --- bytes of ranks --- */

static void keep_newest(struct printer_stream *st, const void *data, size_t len)
{
        size_t most = st->number == MSG_STDERR ? WORDS : WORDS_OUT;
        struct buf *w = &st->words;

        if (len > most) {
                data = (const char *)data + len - most;
                len = most;
        }
        buf_append(w, data, len);
        if (buf_len(w) > most)
                buf_consume(w, buf_len(w) - most);
}

size_t printer_granted(const struct printer *o, int rank, uint8_t stream)
{
        const struct printer_stream *st = o->streams[stream][rank];

        return o->opt.window - (st ? (size_t)(st->came - st->credited) : 0);
}

void printer_put(struct printer *o, int rank, uint8_t stream, const void *data, size_t len)
{
        struct printer_stream *st = o->streams[stream][rank];
        struct terminal *t = o->terminals[stream];
        size_t passed = 0;

        if (!st && !len)
                return; /* most ranks never use stdout or never use stderr */
        if (!st)
                st = open_printer_stream(o, rank, stream);
        keep_newest(st, data, len);
        st->came += len;
        if (st->file && len)
                sink_put(st->file, data, len, st, len);
        else
                st->filed += len;
        if (o->opt.shown && !o->opt.shown[rank]) {
                st->shown += len;
                credit_stream(st);
                return;
        }
        st->idle = false;
        st->ended |= !len;
        /* Bytes that may go out at once are not copied to waiting. */
        if (!buf_len(&st->waiting) && (!line_holder(t) || t->owner == st)) {
                passed = ready_bytes(st, data, len);
                show_next(st, data, passed, len - passed);
        }
        buf_append(&st->waiting, (const char *)data + passed, len - passed);
        skip_replaced_states(st);
        count_waiting(st);
        if (ready_waiting(st) || (st->ended && t->owner == st))
                queue_stream(st);
        serve_terminal(t);
        restart_timer(o);
}

void printer_tell(struct printer *o, const char *text, size_t len)
{
        struct terminal *t = o->terminals[MSG_STDERR];

        if (t->owner)
                t->owner->line.mid_line = t->owner->line.drawn = false;
        t->owner = NULL;
        if (sink_is_mid_line(t->sink))
                sink_put(t->sink, "\n", 1, NULL, 0);
        sink_put(t->sink, text, len, NULL, 0);
        serve_terminal(t);
}

bool printer_is_mid_line(const struct printer *o)
{
        const struct sink *s = o->terminals[MSG_STDERR]->sink;

        return sink_is_mid_line(s) || sink_pending(s);
}

void printer_flush(struct printer *o)
{
        o->flushing = true;
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks; r++)
                        printer_put(o, r, (uint8_t)s, "", 0);
}

static const struct sink *find_rank_file(const struct printer *o, int stream, int rank)
{
        return o->streams[stream][rank] ? o->streams[stream][rank]->file : NULL;
}

size_t printer_pending(const struct printer *o)
{
        size_t n = sink_pending(o->out.sink) + (o->err.sink ? sink_pending(o->err.sink) : 0);

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir; r++)
                        n += find_rank_file(o, s, r) ? sink_pending(find_rank_file(o, s, r)) : 0;
        return n;
}

size_t printer_lost(const struct printer *o)
{
        size_t n = 0;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir; r++)
                        n += find_rank_file(o, s, r) ? sink_dropped(find_rank_file(o, s, r))
                                                     : o->streams[s][r]->came;
        return n;
}

char *printer_last_words(const struct printer *o, int rank, uint8_t stream)
{
        const struct printer_stream *st = o->streams[stream][rank];
        size_t n = st ? buf_len(&st->words) : 0;
        char *text = xcalloc(n + 1, 1);

        if (n)
                memcpy(text, buf_data(&st->words), n);
        return text;
}

/* --- life cycle --- */

/* With 2>&1, two sinks would write into the middle of each other's lines. */
bool printer_same_file(int a, int b)
{
        struct stat sa, sb;

        return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
               sa.st_ino == sb.st_ino;
}

static void open_terminal(struct printer *o, int stream, struct terminal *t)
{
        t->last = &t->first;
        t->is_tty = isatty(o->opt.fd[stream]);
        t->sink = sink_create(o->opt.pool, o->opt.fd[stream], false,
                              (struct sink_ops){ on_terminal_written, on_terminal_broken }, o);
        o->terminals[stream] = t;
}

struct printer *printer_create(uv_loop_t *loop, const struct plan *plan, const struct hosts *hosts,
                               const struct printer_options *opt, struct printer_ops ops, void *ctx)
{
        struct printer *o = xcalloc(1, sizeof(*o));

        *o = (struct printer){ .loop = loop, .opt = *opt, .ops = ops, .ctx = ctx };
        o->n_ranks = plan->world_size;
        label_init(&o->prefix, opt->label, plan, hosts, opt->net);
        uv_timer_init(loop, &o->timer);
        o->timer.data = o;
        uv_unref((uv_handle_t *)&o->timer);
        open_terminal(o, MSG_STDOUT, &o->out);
        if (printer_same_file(opt->fd[MSG_STDOUT], opt->fd[MSG_STDERR]))
                o->terminals[MSG_STDERR] = &o->out;
        else
                open_terminal(o, MSG_STDERR, &o->err);
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                o->streams[s] = xcalloc((size_t)o->n_ranks, sizeof(struct printer_stream *));
                /* A silent rank gets an empty file. */
                for (int r = 0; r < o->n_ranks && opt->dir; r++)
                        open_printer_stream(o, r, (uint8_t)s);
        }
        return o;
}

static void on_timer_closed(uv_handle_t *h)
{
        free(h->data);
}

void printer_destroy(struct printer *o)
{
        if (!o)
                return;
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                for (int r = 0; r < o->n_ranks; r++) {
                        struct printer_stream *st = o->streams[s][r];

                        if (!st)
                                continue;
                        buf_finish(&st->waiting);
                        buf_finish(&st->words);
                        free(st->escapes);
                        free(st->line.prefix);
                        sink_destroy(st->file);
                        free(st);
                }
                free(o->streams[s]);
        }
        label_finish(&o->prefix);
        sink_destroy(o->out.sink);
        sink_destroy(o->err.sink);
        o->closing = true;
        uv_close((uv_handle_t *)&o->timer, on_timer_closed);
}

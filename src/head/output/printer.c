/* SPDX-License-Identifier: Apache-2.0 */
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
        WORDS_OUT = 1024,  /* and of stdout, which many ranks write to */
        KEEP = 4096,       /* memory that a stream without bytes keeps */
        LONG_LINE = 65536, /* a line longer than this is written in pieces by its owner */
        PARTIAL_MS = 200,
        REDRAW_MS = 500, /* from one state of a line to the next */
};

struct stream {
        struct printer *o;
        int rank;
        uint8_t number;
        struct buf waiting;      /* came, not yet put to the terminal */
        struct buf words;        /* the newest */
        struct escapes *escapes; /* NULL = they are not sifted */
        char *prefix;
        size_t prefix_len;
        size_t columns;    /* of the line that it has begun on the terminal */
        uint64_t drawn_ms; /* when the last state of a line was drawn, 0 = never */
        bool redraws;      /* lines that are drawn again get special care */
        bool drawn;        /* the line that it has begun is a state: whole enough to be left */
        bool mid_line;     /* the terminal's last byte of this stream was not a newline */
        bool ended, queued, idle;
        bool counted;                /* as one that has bytes waiting */
        uint64_t came, shown, filed; /* bytes received, written to terminal, to the file */
        uint64_t credited;
        struct sink *file;
        struct stream *next; /* in the terminal's waiting line */
};

struct terminal {
        struct sink *sink;
        bool is_tty;                  /* a person watches: unfinished lines are shown */
        struct stream *owner;         /* in the middle of a line */
        struct stream *first, **last; /* streams with something to write, in order of arrival */
};

struct printer {
        uv_loop_t *loop;
        uv_timer_t timer;
        bool timing, closing, flushing;
        struct printer_options opt;
        struct printer_ops ops;
        void *ctx;
        struct terminal out, err;
        struct terminal *terminals[STREAMS]; /* both are @out when stdout and stderr are one file */
        struct label prefix;
        struct stream **streams[STREAMS]; /* by rank; NULL = nothing came yet, and no file */
        int n_ranks;
        size_t n_waiting; /* streams with bytes that a terminal has not got */
};

/* --- flow control ----------------------------------------------------------------------------- */

/* Credits in large pieces: a quarter of the window, or all once nothing is under way. */
static void give_credit(struct stream *st)
{
        uint64_t written = MIN(st->shown, st->filed), due = written - st->credited;

        if (!due || (due < st->o->opt.window / 4 && st->came - written > 0))
                return;
        if (st->came - st->credited < st->o->opt.window / 4)
                return; /* far from the end of the window: the message can be saved */
        st->credited = written;
        st->o->ops.credit(st->o->ctx, st->rank, st->number, (uint32_t)due);
}

static void terminal_written(void *ctx, void *tag, size_t n)
{
        struct stream *st = tag;

        (void)ctx;
        if (!st)
                return;
        st->shown += n;
        give_credit(st);
}

static void file_written(void *ctx, void *tag, size_t n)
{
        struct stream *st = tag;

        (void)ctx;
        st->filed += n;
        give_credit(st);
}

static void terminal_broken(void *ctx, struct sink *s, int error)
{
        struct printer *o = ctx;
        uint8_t stream = s == o->terminals[MSG_STDOUT]->sink ? MSG_STDOUT : MSG_STDERR;

        o->ops.broken(o->ctx, stream, o->opt.fd[stream] == STDOUT_FILENO ? "stdout" : "stderr",
                      error);
}

static void file_broken(void *ctx, struct sink *s, int error)
{
        struct printer *o = ctx;

        (void)s;
        o->ops.broken(o->ctx, 0, o->opt.dir, error);
}

/* --- the terminal: whole lines, one owner of an unfinished one -------------------------------- */

static void enqueue(struct stream *st)
{
        struct terminal *t = st->o->terminals[st->number];

        if (st->queued)
                return;
        st->queued = true;
        st->next = NULL;
        *t->last = st;
        t->last = &st->next;
}

/* Each line behind its prefix. */
static void add_prefixes(struct stream *st, struct buf *lines, const unsigned char *p, size_t n)
{
        const unsigned char *end = p + n, *nl;

        buf_reserve(lines, n + n / 4);
        for (; p < end; p = nl) {
                nl = memchr(p, '\n', (size_t)(end - p));
                nl = nl ? nl + 1 : end;
                if (!st->mid_line)
                        buf_append(lines, st->prefix, st->prefix_len);
                buf_append(lines, p, (size_t)(nl - p));
                st->mid_line = nl[-1] != '\n';
        }
}

/* The line of the stream goes away from the terminal, or stays above the next one. */
static void erase_line(struct stream *st, struct buf *to)
{
        const struct printer *o = st->o;

        if (st->mid_line && o->opt.erase &&
            st->columns < columns_of_terminal(o->opt.fd[st->number]))
                buf_appends(to, "\r\033[K");
        else if (st->mid_line)
                buf_appends(to, "\n");
        st->mid_line = false;
}

/* Of a line that is drawn again and again only the last state. @ends: a newline follows. */
static void draw_line(struct stream *st, struct buf *to, const unsigned char *p, size_t n,
                      bool ends)
{
        ssize_t cr;

        n = redraw_body(p, n);
        cr = redraw_last(p, n);
        if (cr >= 0) {
                p += cr + 1;
                n -= (size_t)cr + 1;
                n = redraw_is_blank(p, n) ? 0 : n;
                erase_line(st, to);
                st->drawn = true;
        }
        if (!st->mid_line && (n || ends)) {
                buf_append(to, st->prefix, st->prefix_len);
                st->columns = columns_count(st->prefix, st->prefix_len);
        }
        buf_append(to, p, n);
        st->columns += columns_count((const char *)p, n);
        st->mid_line = (st->mid_line || n) && !ends;
        if (ends)
                buf_append(to, "\n", 1);
        st->drawn = st->drawn && st->mid_line;
}

static void draw_lines(struct stream *st, struct buf *to, const unsigned char *p, size_t n)
{
        const unsigned char *end = p + n, *nl;

        for (; p < end; p = nl + 1) {
                nl = memchr(p, '\n', (size_t)(end - p));
                draw_line(st, to, p, (size_t)((nl ? nl : end) - p), nl != NULL);
                if (!nl)
                        break;
        }
        if (st->mid_line)
                escapes_pause(st->escapes, to);
}

/* After each change of what waits. */
static void count_waiting(struct stream *st)
{
        size_t n = buf_len(&st->waiting);
        bool waits = st->o->terminals[st->number]->is_tty &&
                     (st->redraws ? redraw_body(buf_data(&st->waiting), n) : n) > 0;

        if (!n && st->waiting.cap > KEEP)
                buf_finish(&st->waiting);
        if (waits == st->counted)
                return;
        st->counted = waits;
        st->o->n_waiting += waits ? 1 : -(size_t)1;
}

/* Puts @n bytes of the stream to the terminal. */
static void show(struct stream *st, const unsigned char *p, size_t n)
{
        struct terminal *t = st->o->terminals[st->number];
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        size_t len = n;
        struct buf *to;

        if (!n)
                return;
        if (st->escapes) {
                escapes_filter(st->escapes, &clean, p, n, !st->redraws);
                p = buf_data(&clean);
                len = buf_len(&clean);
        }
        to = sink_begin(t->sink);
        if (st->redraws) {
                draw_lines(st, to, p, len);
        } else if (st->prefix_len) {
                add_prefixes(st, to, p, len);
        } else if (len) {
                buf_append(to, p, len);
                st->mid_line = p[len - 1] != '\n';
        }
        sink_end(t->sink, st, n);
}

/* Ready bytes of an unfinished line on a terminal. A carriage return that waits there tells that
 * the line goes on with a new state. */
static size_t ready_states(const struct stream *st, const unsigned char *p, size_t n)
{
        size_t body = redraw_body(p, n);
        ssize_t last = redraw_last(p, n);

        if (n >= LONG_LINE)
                return n;
        if (last < 0)
                return st->idle || st->mid_line ? body : 0;
        if (st->drawn_ms && uv_now(st->o->loop) - st->drawn_ms < REDRAW_MS)
                return 0;
        return st->idle ? body : (size_t)last;
}

/* How many of @n bytes, which are all that is there, may go out now. */
static size_t ready_bytes(const struct stream *st, const unsigned char *p, size_t n)
{
        const unsigned char *nl = n ? memrchr(p, '\n', n) : NULL;
        size_t lines = nl ? (size_t)(nl + 1 - p) : 0;
        bool alone = st->o->n_ranks == 1 && !st->prefix_len;

        if (st->redraws && !st->ended && !st->o->flushing)
                return lines + ready_states(st, p + lines, n - lines);
        if (alone || st->ended || st->idle || st->o->flushing || n - lines >= LONG_LINE)
                return n;
        /* A line that has already begun on the terminal goes on as it comes. */
        return st->mid_line ? n : lines;
}

static size_t ready_waiting(const struct stream *st)
{
        return ready_bytes(st, buf_data(&st->waiting), buf_len(&st->waiting));
}

static void timer_start(struct printer *o);

/* Ends a line that its owner left unfinished; without an owner there is none. */
static void break_line(struct terminal *t)
{
        struct stream *st = t->owner;

        t->owner = NULL;
        if (st && (st->prefix_len || st->drawn) && st->mid_line) {
                sink_put(t->sink, "\n", 1, NULL, 0);
                st->mid_line = st->drawn = false;
        }
}

/* The stream that all others wait for: the owner, unless its line may be left as it is. */
static struct stream *holder(const struct terminal *t)
{
        return t->owner && !t->owner->drawn ? t->owner : NULL;
}

/* Shows bytes of the stream, on a line of its own or behind what it has shown of one; @more of them
 * wait. */
static void show_next(struct stream *st, const unsigned char *p, size_t n, size_t more)
{
        struct terminal *t = st->o->terminals[st->number];

        if (!n)
                return;
        if (t->owner != st)
                break_line(t);
        show(st, p, n);
        st->drawn = st->mid_line && st->redraws && (st->drawn || (more && p[n] == '\r'));
        if (st->drawn)
                st->drawn_ms = MAX(uv_now(st->o->loop), (uint64_t)1);
        t->owner = st->mid_line ? st : NULL;
}

/* States that a later one has replaced are passed over at once: a bar must not wait for us. */
static void pass_over(struct stream *st)
{
        CLEANUP(buf_finish) struct buf unseen = BUF_INIT;
        const unsigned char *p = buf_data(&st->waiting);
        size_t len = buf_len(&st->waiting), n;

        if (!st->redraws || !len || memchr(p, '\n', len))
                return;
        n = redraw_replaced(p, len);
        if (!n)
                return;
        escapes_filter(st->escapes, &unseen, p, n, false);
        buf_consume(&st->waiting, n);
        terminal_written(NULL, st, n);
}

/* Takes the stream that may write now out of the line: the owner, else the first; NULL: none. */
static struct stream *dequeue(struct terminal *t)
{
        struct stream **at = &t->first, *st, *first = holder(t);

        if (first && !first->queued)
                return NULL; /* all others wait for it: there may be very many */
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

static void serve(struct terminal *t)
{
        struct stream *st;
        size_t n;

        while ((st = dequeue(t))) {
                n = ready_waiting(st);
                show_next(st, buf_data(&st->waiting), n, buf_len(&st->waiting) - n);
                buf_consume(&st->waiting, n);
                count_waiting(st);
                if (st->ended && t->owner == st)
                        break_line(t);
        }
}

/* A moment without news: unfinished lines are shown, and an owner that pauses gives way. */
static void moment_passed(uv_timer_t *timer)
{
        struct printer *o = timer->data;

        o->timing = false;
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                struct terminal *t = o->terminals[s];

                if (t->owner && t->owner->idle && t->first)
                        break_line(t);
                for (int r = 0; r < o->n_ranks; r++) {
                        struct stream *st = o->streams[s][r];

                        if (!st)
                                continue;
                        if (st->idle && st->counted && (!holder(t) || t->owner == st)) {
                                enqueue(st);
                                serve(t);
                        }
                        /* Not idle while it is us who are slow. */
                        if ((buf_len(&st->waiting) || t->owner == st) && !sink_pending(t->sink))
                                st->idle = true;
                }
                serve(t);
        }
        timer_start(o);
}

/* The timer runs only while a line is unfinished or streams wait for an owner. */
static void timer_start(struct printer *o)
{
        bool needed = false;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                needed |= holder(o->terminals[s]) && o->terminals[s]->first;
        needed |= o->n_waiting > 0;
        if (!needed || o->timing || o->closing)
                return;
        o->timing = true;
        uv_timer_start(&o->timer, moment_passed, PARTIAL_MS, 0);
}

/* --- streams ------------------------------------------------------------------------------------
 */

static void file_open(struct stream *st)
{
        const struct printer_options *opt = &st->o->opt;
        char *path = xasprintf("%s/rank-%05d.%s", opt->dir, st->rank,
                               st->number == MSG_STDOUT ? "out" : "err");
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (opt->append ? O_APPEND : O_TRUNC),
                      0666);

        if (fd < 0)
                st->o->ops.broken(st->o->ctx, 0, path, errno);
        else
                st->file = sink_create(opt->pool, fd, true,
                                       (struct sink_ops){ file_written, file_broken }, st->o);
        free(path);
}

static struct stream *stream_open(struct printer *o, int rank, uint8_t number)
{
        struct stream *st = xcalloc(1, sizeof(*st));

        o->streams[number][rank] = st;
        st->o = o;
        st->rank = rank;
        st->number = number;
        st->prefix = label_make(&o->prefix, rank, number);
        st->prefix_len = strlen(st->prefix);
        if (o->terminals[number]->is_tty && !o->opt.raw) {
                st->escapes = xcalloc(1, sizeof(*st->escapes));
                st->redraws = o->n_ranks > 1 || st->prefix_len;
        }
        if (o->opt.dir)
                file_open(st);
        return st;
}

static void stream_close(struct stream *st)
{
        if (!st)
                return;
        buf_finish(&st->waiting);
        buf_finish(&st->words);
        free(st->escapes);
        free(st->prefix);
        sink_destroy(st->file);
        free(st);
}

/* --- the verbs -------------------------------------------------------------------------------- */

static void remember(struct stream *st, const void *data, size_t len)
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

/* As many bytes as may go out at once do so without waiting in memory of their own. */
static size_t pass_through(struct stream *st, const unsigned char *p, size_t n)
{
        struct terminal *t = st->o->terminals[st->number];
        size_t ready;

        if (buf_len(&st->waiting) || (holder(t) && t->owner != st))
                return 0;
        ready = ready_bytes(st, p, n);
        show_next(st, p, ready, n - ready);
        return ready;
}

void printer_put(struct printer *o, int rank, uint8_t stream, const void *data, size_t len)
{
        struct stream *st = o->streams[stream][rank];
        struct terminal *t = o->terminals[stream];
        size_t passed;

        if (!st && !len)
                return; /* most ranks never say anything on one of the two */
        if (!st)
                st = stream_open(o, rank, stream);
        remember(st, data, len);
        st->came += len;
        if (st->file && len)
                sink_put(st->file, data, len, st, len);
        else
                st->filed += len;
        if (o->opt.shown && !o->opt.shown[rank]) {
                st->shown += len;
                give_credit(st);
                return;
        }
        st->idle = false;
        st->ended |= !len;
        passed = pass_through(st, data, len);
        buf_append(&st->waiting, (const char *)data + passed, len - passed);
        pass_over(st);
        count_waiting(st);
        if (ready_waiting(st) || (st->ended && t->owner == st))
                enqueue(st);
        serve(t);
        timer_start(o);
}

void printer_tell(struct printer *o, const char *text, size_t len)
{
        struct terminal *t = o->terminals[MSG_STDERR];

        if (t->owner)
                t->owner->mid_line = t->owner->drawn = false;
        t->owner = NULL;
        if (sink_is_mid_line(t->sink))
                sink_put(t->sink, "\n", 1, NULL, 0);
        sink_put(t->sink, text, len, NULL, 0);
        serve(t);
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
                        printer_put(o, r, (uint8_t)s, NULL, 0);
}

static const struct sink *file_of(const struct printer *o, int stream, int rank)
{
        return o->streams[stream][rank] ? o->streams[stream][rank]->file : NULL;
}

size_t printer_pending(const struct printer *o)
{
        size_t n = sink_pending(o->out.sink) + (o->err.sink ? sink_pending(o->err.sink) : 0);

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir; r++)
                        n += file_of(o, s, r) ? sink_pending(file_of(o, s, r)) : 0;
        return n;
}

size_t printer_lost(const struct printer *o)
{
        size_t n = 0;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir; r++)
                        n += file_of(o, s, r) ? sink_dropped(file_of(o, s, r))
                                              : o->streams[s][r]->came;
        return n;
}

char *printer_last_words(const struct printer *o, int rank, uint8_t stream)
{
        const struct stream *st = o->streams[stream][rank];
        size_t n = st ? buf_len(&st->words) : 0;
        char *text = xcalloc(n + 1, 1);

        if (n)
                memcpy(text, buf_data(&st->words), n);
        return text;
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* With 2>&1 a long write of one stream could otherwise fall into a line of the other. */
bool printer_same_file(int a, int b)
{
        struct stat sa, sb;

        return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
               sa.st_ino == sb.st_ino;
}

static void terminal_open(struct printer *o, int stream, struct terminal *t)
{
        t->last = &t->first;
        t->is_tty = isatty(o->opt.fd[stream]);
        t->sink = sink_create(o->opt.pool, o->opt.fd[stream], false,
                              (struct sink_ops){ terminal_written, terminal_broken }, o);
        o->terminals[stream] = t;
}

struct printer *printer_create(uv_loop_t *loop, const struct plan *plan, const struct hosts *hosts,
                               const struct printer_options *opt, struct printer_ops ops, void *ctx)
{
        struct printer *o = xcalloc(1, sizeof(*o));

        o->loop = loop;
        o->opt = *opt;
        o->ops = ops;
        o->ctx = ctx;
        o->n_ranks = plan->world_size;
        label_init(&o->prefix, opt->label, plan, hosts);
        uv_timer_init(loop, &o->timer);
        o->timer.data = o;
        uv_unref((uv_handle_t *)&o->timer);
        terminal_open(o, MSG_STDOUT, &o->out);
        if (printer_same_file(opt->fd[MSG_STDOUT], opt->fd[MSG_STDERR]))
                o->terminals[MSG_STDERR] = &o->out;
        else
                terminal_open(o, MSG_STDERR, &o->err);
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                o->streams[s] = xcalloc((size_t)o->n_ranks, sizeof(struct stream *));
                /* A file shows by being empty that its rank said nothing. */
                for (int r = 0; r < o->n_ranks && opt->dir; r++)
                        stream_open(o, r, (uint8_t)s);
        }
        return o;
}

static void timer_closed(uv_handle_t *h)
{
        free(h->data);
}

void printer_destroy(struct printer *o)
{
        if (!o)
                return;
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                for (int r = 0; r < o->n_ranks; r++)
                        stream_close(o->streams[s][r]);
                free(o->streams[s]);
        }
        sink_destroy(o->out.sink);
        sink_destroy(o->err.sink);
        o->closing = true;
        uv_close((uv_handle_t *)&o->timer, timer_closed);
}

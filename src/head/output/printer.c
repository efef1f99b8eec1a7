/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printer_put() copies bytes to the rank's file at once. For the terminal, bytes that are ready go
 * to the sink without a copy; the rest waits in the stream, and a stream with ready bytes is
 * queued. serve_terminal() takes the streams from the queue one by one, in order of arrival; while
 * a line has an owner, only the owner may write.
 *
 * "Ready" means: whole lines, and, after a moment without new bytes (the timer, PARTIAL_MS), an
 * unfinished line as well. In a pipe or file it is ready after PIPE_IDLE_MS without new bytes, or
 * when its first bytes have waited for PIPE_WAIT_MS, and the line of another rank may follow at
 * once, on a new line. The timer runs only while there is such a line or a queue behind an owner.
 *
 * came >= shown, filed >= credited: bytes received, written to terminal and file, and credited to
 * the agent. Credit follows the slower of the two, so memory is bounded by the window of each
 * stream. A stream without a file, or not shown, counts as written there.
 */
#include "head/output/printer_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/output/say.h"
#include "head/term/columns.h"
#include "head/term/escapes.h"
#include "head/term/redraw.h"
#include "wire/msg.h"

enum {
        WORDS = 4096,         /* of stderr kept for the report, at least */
        WORDS_MAX = 32768,    /* at most: a reason with some hundred frames below it */
        WORDS_ALL = 16 << 20, /* of all ranks, unless that is less than WORDS for each */
        WORDS_OUT = 1024,     /* of stdout, written by many ranks */
        KEEP = 4096,          /* memory kept by a stream without bytes */
        LONG_LINE = 65536,    /* a longer line is written in pieces by the owner */
        /* How long an unfinished line on a terminal waits for its rest, such as a prompt. */
        PARTIAL_MS = 200,
        /* Between two looks at unfinished lines in pipes and files. */
        PIPE_LOOK_MS = 500,
        PIPE_IDLE_MS = 5000,
        PIPE_WAIT_MS = 10000,
        FOLD_MIN_MS = 10, /* between two looks at held lines */
        REDRAW_MS = 500,  /* between two states of a line */
};

/* --- flow control --- */

/* Credits in large pieces: a quarter of the window, or everything once nothing is under way. */
static void credit_stream(struct printer_stream *st)
{
        uint64_t written = MIN(st->shown, st->filed), due = written - st->credited;

        /* A small piece waits only while more bytes are under way, whose end calls again. */
        if (!due || st->o->held || (due < st->o->opt.window / 4 && st->came - written > 0))
                return;
        if (st->came - st->credited < st->o->opt.window / 4)
                return; /* far from the end of the window: the message can be saved */
        st->credited = written;
        st->o->ops.credit(st->o->ctx, st->rank, st->number, (uint32_t)due);
}

/* Counts written bytes of a stream. @tag NULL: the bytes are of hnlaunch itself. Dropped bytes are
 * within @n: credit goes on for a stream without a reader. */
static void on_terminal_written(void *ctx, void *tag, size_t n, size_t dropped)
{
        struct printer_stream *st = tag;

        (void)ctx;
        if (!st)
                return;
        st->shown += n;
        st->dropped += dropped;
        credit_stream(st);
}

/* Leaves labels out of the @len bytes of a text. */
static size_t count_payload(void *ctx, void *tag, const unsigned char *text, size_t len)
{
        const struct printer_stream *st = tag;
        size_t n = len, at = 0;

        (void)ctx;
        while (st && at < len) {
                n -= stream_line_find_label(&st->line, text + at, len - at);
                while (at < len && text[at] != '\n' && text[at] != '\r')
                        at++;
                at++;
        }
        return n;
}

static void on_file_written(void *ctx, void *tag, size_t n, size_t dropped UNUSED)
{
        struct printer_stream *st = tag;

        (void)ctx;
        st->filed += n;
        credit_stream(st);
}

/* Tells the owner once for each sink. With 2>&1 the one sink counts as standard output. */
static void on_terminal_broken(void *ctx, struct sink *s, int error)
{
        struct printer *o = ctx;
        uint8_t stream = s == o->terminals[MSG_STDOUT]->sink ? MSG_STDOUT : MSG_STDERR;
        int fd = o->opt.fd[stream];
        CLEANUP(free_textp)
        char *name = say_name_stream(fd == STDOUT_FILENO ? "stdout" : "stderr", fd);

        o->ops.broken(o->ctx, stream, name, error);
}

/* Names the folder, not the file: a full disk breaks the files of all ranks. */
static void on_file_broken(void *ctx, struct sink *s, int error)
{
        struct printer *o = ctx;

        (void)s;
        o->ops.broken(o->ctx, 0, o->opt.dir, error);
}

/* --- the terminal: whole lines, and an owner of an unfinished line --- */

void printer_queue(struct printer_stream *st)
{
        struct terminal *t = st->o->terminals[st->number];

        if (st->queued)
                return;
        st->queued = true;
        st->next = NULL;
        *t->last = st;
        t->last = &st->next;
}

/* Updates n_waiting, which keeps the timer running, and the count of bars; to be called after each
 * change of the waiting bytes. A bar in the block waits for its end without the timer. */
static void count_waiting(struct printer_stream *st)
{
        const unsigned char *p = buf_data(&st->waiting);
        size_t n = buf_len(&st->waiting);
        bool drawn = st->line.in_block && printer_draws_states(p, n);
        bool waits = !drawn && (st->line.redraws ? redraw_body(p, n) : n) > 0;

        if (!n && st->waiting.cap > KEEP)
                buf_finish(&st->waiting);
        printer_count_bar(st);
        if (waits == st->counted.waiting)
                return;
        st->counted.waiting = waits;
        st->o->n_waiting += waits ? 1 : -(size_t)1;
}

/* Puts @n bytes of the stream to the terminal, with labels and without harmful sequences. The sink
 * reports @n, the bytes that came, whatever their length on the terminal. */
static void write_bytes(struct printer_stream *st, const unsigned char *p, size_t n)
{
        struct terminal *t = st->o->terminals[st->number];
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        size_t len = n, len_before;
        struct buf *to;

        if (!n)
                return;
        if (st->escapes) {
                escapes_filter(st->escapes, &clean, p, n, !st->line.redraws);
                p = buf_data(&clean);
                len = buf_len(&clean);
        }
        to = sink_begin(t->sink);
        len_before = buf_len(to);
        stream_line_add(&st->line, to, p, len);
        printer_note_rows(t, st, buf_data(to) + len_before, buf_len(to) - len_before,
                          sink_is_mid_line(t->sink));
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
        if (st->line.in_block && printer_draws_states(p, n))
                return 0;
        if (last < 0)
                return st->idle || st->line.mid_line ? body : 0;
        /* The timer asks again; states that come meanwhile replace the waiting one. */
        if (st->line.drawn_ms && uv_now(st->o->loop) - st->line.drawn_ms < REDRAW_MS)
                return 0;
        return st->idle ? body : (size_t)last;
}

/* Returns how many of the @n waiting bytes may go out now. */
static size_t ready_bytes(const struct printer_stream *st, const unsigned char *p, size_t n)
{
        const unsigned char *nl = n ? memrchr(p, '\n', n) : NULL;
        size_t lines = nl ? (size_t)(nl + 1 - p) : 0;
        bool alone = st->o->n_ranks == 1 && !stream_line_is_labelled(&st->line);

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

void printer_erase_live(struct terminal *t)
{
        if (*t->live)
                sink_erase_lines(t->sink, printer_live_rows(t));
        *t->live = 0;
}

/* A line without a label is left as it is, but for a state on a terminal: a newline would be a byte
 * that no rank has written. */
void printer_break_line(struct terminal *t)
{
        struct printer_stream *st = t->owner;

        t->owner = NULL;
        if (st && st->line.mid_line &&
            (stream_line_is_labelled(&st->line) || (t->is_tty && st->line.drawn))) {
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
static void show_bytes(struct printer_stream *st, const unsigned char *p, size_t n, size_t more)
{
        struct terminal *t = st->o->terminals[st->number];

        if (!n)
                return;
        printer_erase_live(t);
        if (t->owner != st)
                printer_break_line(t);
        write_bytes(st, p, n);
        /* The line may be left unfinished if a new state of a bar is waiting behind, or if the line
         * has paused in a pipe. @p[n] exists, because @more bytes follow. */
        st->line.drawn = st->line.mid_line &&
                         (st->line.drawn || (st->line.redraws && more && p[n] == '\r') ||
                          (!t->is_tty && st->idle));
        if (st->line.drawn)
                st->line.drawn_ms = MAX(uv_now(st->o->loop), (uint64_t)1);
        t->owner = st->line.mid_line ? st : NULL;
}

static enum label_look choose_label_look(const struct terminal *t)
{
        if (t->o->opt.color && (t->is_tty || t->o->opt.color_anywhere))
                return LABEL_PAINTED;
        return t->is_tty ? LABEL_MARKED : LABEL_PLAIN;
}

/* Shows a line that several ranks may have written, as the lowest of them would. */
static void show_folded(void *ctx, const struct folded_line *line)
{
        struct terminal *t = ctx;
        struct printer_stream **streams = t->o->streams[line->kind],
                              *st = streams[line->ranks.v[0]];
        /* The label and the time of all ranks, for this line only. */
        const struct stream_line own = st->line;
        CLEANUP(free_textp)
        char *prefix = line->ranks.n > 1 ? label_make_folded(t->o->prefix, &line->ranks, line->kind,
                                                             choose_label_look(t))
                                         : NULL;

        st->line.us = line->us;
        if (prefix && own.prefix_len) {
                st->line.prefix = prefix;
                st->line.prefix_len = strlen(prefix);
        }
        show_bytes(st, (const unsigned char *)line->text, line->len, 0);
        if (line->ranks.n > 1)
                t->rows[0] = NULL; /* of no rank alone */
        st->line.prefix = own.prefix;
        st->line.prefix_len = own.prefix_len;
        st->line.us = own.us;
        for (size_t i = 1; i < line->ranks.n; i++) {
                CLEANUP(buf_finish) struct buf unseen = BUF_INIT;
                struct printer_stream *other = streams[line->ranks.v[i]];

                if (other->escapes) /* their state depends on every byte */
                        escapes_filter(other->escapes, &unseen, line->text, line->len,
                                       !other->line.redraws);
                /* The line stands for these bytes, too: the rank gets credit. */
                sink_put(t->sink, "", 0, other, line->len);
        }
}

/* With --fold, whole lines wait for the same lines of other ranks; other bytes follow the lines of
 * their rank that wait. */
static void fold_lines(struct printer_stream *st, const unsigned char *p, size_t n, size_t more)
{
        struct line_fold *f = st->o->terminals[st->number]->fold;
        const unsigned char *end = p + n, *nl;

        for (; p < end; p = nl) {
                nl = memchr(p, '\n', (size_t)(end - p));
                nl = nl ? nl + 1 : end;
                if (nl[-1] == '\n' && !st->line.mid_line && !memchr(p, '\r', (size_t)(nl - p))) {
                        line_fold_add(f, clock_ns() / 1000, st->rank, st->number, p,
                                      (size_t)(nl - p));
                        continue;
                }
                line_fold_end_rank(f, st->rank);
                show_bytes(st, p, (size_t)(nl - p), nl == end ? more : 0);
        }
}

/* Output of the rank with --pty is a dialogue with the user, and is never delayed by folding. */
static void show_next(struct printer_stream *st, const unsigned char *p, size_t n, size_t more)
{
        if (st->o->terminals[st->number]->fold && st->rank != st->o->opt.bare)
                fold_lines(st, p, n, more);
        else
                show_bytes(st, p, n, more);
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

/* Shows the last state of a bar that has waited for those of other ranks. */
static void show_bar_end(struct printer_stream *st)
{
        struct bar_end *e = STEAL(&st->end);
        struct escapes now = *st->escapes;

        /* The stream's filter is already behind the kept line. */
        *st->escapes = e->escapes;
        show_next(st, buf_data(&e->line), buf_len(&e->line), 0);
        *st->escapes = now;
        if (st->o->terminals[st->number]->owner == st)
                printer_break_line(st->o->terminals[st->number]);
        st->o->bars.ended--;
        buf_finish(&e->line);
        free(e);
}

/* Shows ready bytes of queued streams until the queue is empty or an owner has the terminal. A kept
 * end of a bar goes before later lines of its rank. */
static void serve_terminal(struct terminal *t)
{
        struct printer_stream *st;
        size_t n;

        while ((st = take_next_stream(t))) {
                n = ready_waiting(st);
                if (st->end && (n || st->end->due))
                        show_bar_end(st);
                show_next(st, buf_data(&st->waiting), n, buf_len(&st->waiting) - n);
                buf_consume(&st->waiting, n);
                if (n)
                        st->wait.waited_ms = 0;
                count_waiting(st);
                if (st->ended && t->owner == st)
                        printer_break_line(t);
        }
}

/* Whether lines wait for the end of the owner's line. */
static bool others_wait(const struct terminal *t)
{
        return t->first || (t->fold && line_fold_oldest(t->fold) != INT64_MAX);
}

/* Whether an unfinished line in a pipe or file has waited for long enough. Looks are counted, not
 * time: an hnlaunch that was suspended has not read what came meanwhile. */
static bool has_waited(struct printer_stream *st)
{
        const struct terminal *t = st->o->terminals[st->number];

        if (t->is_tty)
                return false;
        if (sink_pending(t->sink) || ready_waiting(st)) {
                st->wait.quiet_ms = st->wait.waited_ms = 0; /* a slow reader */
                return false;
        }
        st->wait.quiet_ms += st->o->look_ms;
        st->wait.waited_ms += st->o->look_ms;
        return st->wait.quiet_ms > PIPE_IDLE_MS || st->wait.waited_ms > PIPE_WAIT_MS;
}

/* After a moment without new bytes: shows unfinished lines, and breaks the line of a pausing owner.
 */
static void on_moment_passed(uv_timer_t *timer)
{
        struct printer *o = timer->data;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                struct terminal *t = o->terminals[s];

                if (t->owner && t->owner->idle && others_wait(t))
                        printer_break_line(t);
                for (int r = 0; r < o->n_ranks; r++) {
                        struct printer_stream *st = o->streams[s][r];

                        if (!st)
                                continue;
                        if (st->counted.waiting && (!line_holder(t) || t->owner == st)) {
                                st->idle |= has_waited(st);
                                if (st->idle)
                                        printer_queue(st);
                                serve_terminal(t);
                        }
                        /* A stream is not idle while the terminal is slow. */
                        if ((t->owner == st || (t->is_tty && buf_len(&st->waiting))) &&
                            !sink_pending(t->sink))
                                st->idle = true;
                }
                serve_terminal(t);
        }
        restart_timer(o);
}

/* The timer runs only while a line is unfinished or streams wait for an owner. */
static void restart_timer(struct printer *o)
{
        /* A running timer is never put off: steady output would starve looks. */
        unsigned ms = o->out.is_tty || o->err.is_tty ? PARTIAL_MS : PIPE_LOOK_MS;
        bool needed = o->n_waiting > 0;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                if (line_holder(o->terminals[s]) && others_wait(o->terminals[s])) {
                        needed = true;
                        ms = PARTIAL_MS;
                }
        if (!needed || o->closing ||
            (uv_is_active((uv_handle_t *)&o->timer) && uv_timer_get_due_in(&o->timer) <= ms))
                return;
        o->look_ms = ms;
        uv_timer_start(&o->timer, on_moment_passed, ms, 0);
}

static void restart_fold_timer(struct printer *o);

static void on_fold_due(uv_timer_t *timer)
{
        struct printer *o = timer->data;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                if (!line_holder(o->terminals[s]))
                        line_fold_end_until(o->terminals[s]->fold,
                                            clock_ns() / 1000 - LINE_FOLD_US);
        restart_fold_timer(o);
}

/* The timer runs only while folded lines are held. */
static void restart_fold_timer(struct printer *o)
{
        int64_t oldest, ms;

        if (!o->opt.fold || o->closing || uv_is_active((uv_handle_t *)&o->fold_timer))
                return;
        oldest = MIN(line_fold_oldest(o->terminals[MSG_STDOUT]->fold),
                     line_fold_oldest(o->terminals[MSG_STDERR]->fold));
        if (oldest == INT64_MAX)
                return;
        ms = (oldest + LINE_FOLD_US - clock_ns() / 1000) / 1000;
        uv_timer_start(&o->fold_timer, on_fold_due, (uint64_t)MAX(ms, (int64_t)FOLD_MIN_MS), 0);
}

/* --- streams --- */

/* Opens DIR/rank-00003.out. On failure the owner is told, and the stream goes on without a file:
 * its bytes count as filed for the credit, and as lost for printer_lost(). */
static void open_rank_file(struct printer_stream *st)
{
        const struct printer_options *opt = &st->o->opt;
        char *path = xasprintf("%s/rank-%05d.%s", opt->dir, st->rank,
                               st->number == MSG_STDOUT ? "out" : "err");
        int fd = openat(opt->dir_fd, strrchr(path, '/') + 1,
                        O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC |
                                (opt->append ? O_APPEND : O_TRUNC),
                        0600);

        if (fd < 0)
                st->o->ops.broken(st->o->ctx, 0, path, errno);
        else
                st->file = sink_create(opt->pool, fd, true,
                                       (struct sink_ops){ on_file_written, NULL, on_file_broken },
                                       st->o);
        free(path);
}

/* Makes the stream of a rank when its first bytes come, or at once with files. Most ranks write on
 * one stream only, so memory follows use. */
static struct printer_stream *open_printer_stream(struct printer *o, int rank, uint8_t number)
{
        struct printer_stream *st = xcalloc(1, sizeof(*st));

        o->streams[number][rank] = st;
        *st = (struct printer_stream){ .o = o, .rank = rank, .number = number };
        st->line.prefix = rank == o->opt.bare ? xstrdup("")
                                              : label_make(o->prefix, rank, number,
                                                           choose_label_look(o->terminals[number]));
        st->line.prefix_len = strlen(st->line.prefix);
        st->line.timed = o->opt.timestamps && rank != o->opt.bare;
        st->line.raw = o->opt.raw || rank == o->opt.bare;
        st->line.erase = o->opt.erase;
        st->line.fd = o->opt.fd[number];
        if (o->terminals[number]->is_tty && !st->line.raw) {
                /* The block of live rows is on the terminal of stderr only. */
                st->line.in_block = o->opt.live && o->opt.erase &&
                                    o->terminals[number] == o->terminals[MSG_STDERR];
                st->escapes = xcalloc(1, sizeof(*st->escapes));
                st->line.escapes = st->escapes;
                /* A lone rank without a label draws on the terminal as it likes. */
                st->line.redraws = o->n_ranks > 1 || stream_line_is_labelled(&st->line);
        }
        if (o->opt.dir)
                open_rank_file(st);
        return st;
}

/* --- bytes of ranks --- */

static void keep_newest(struct printer_stream *st, const void *data, size_t len)
{
        size_t share = (size_t)WORDS_ALL / (size_t)st->o->n_ranks;
        size_t most = st->number != MSG_STDERR ? WORDS_OUT : MIN(MAX(share, WORDS), WORDS_MAX);
        struct buf *w = &st->newest.words;

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
        CLEANUP(buf_finish) struct buf joined = BUF_INIT;
        size_t passed = 0;

        if (!st && !len)
                return; /* most ranks never use stdout or never use stderr */
        if (!st)
                st = open_printer_stream(o, rank, stream);
        keep_newest(st, data, len);
        if (len)
                burst_add(&st->newest.burst, clock_ns());
        if (o->opt.record && len)
                o->held |= !o->opt.record(o->opt.record_ctx, rank, stream, data, len);
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
        st->ended = !len; /* a rank may start again, and write */
        /* May change @len: a newline may be held back, and comes with later bytes. */
        data = printer_join_rows(st, data, &len, &joined);
        st->wait.quiet_ms = 0;
        if (!buf_len(&st->waiting))
                st->wait.waited_ms = 0;
        if (o->opt.timestamps)
                st->line.us = clock_ns() / 1000;
        /* Bytes that may go out at once are not copied to waiting. */
        if (!buf_len(&st->waiting) && !st->end && (!line_holder(t) || t->owner == st)) {
                passed = ready_bytes(st, data, len);
                show_next(st, data, passed, len - passed);
        }
        buf_append(&st->waiting, (const char *)data + passed, len - passed);
        printer_keep_bar_end(st);
        /* Skipped states count as shown, so a bar that draws without end gets credit. */
        passed = printer_skip_states(st);
        if (passed)
                on_terminal_written(NULL, st, passed, 0);
        count_waiting(st);
        if (!o->bars.drawn)
                printer_release_bar_ends(o, st);
        if (ready_waiting(st) || (st->ended && t->owner == st))
                printer_queue(st);
        serve_terminal(t);
        restart_timer(o);
        restart_fold_timer(o);
}

void printer_tell(struct printer *o, const char *text, size_t len)
{
        struct terminal *t = o->terminals[MSG_STDERR];

        if (t->fold && !line_holder(t))
                line_fold_end_all(t->fold); /* what ranks wrote before stands above */
        if (t->owner)
                /* The line of the owner ends here, and its rest begins a new line with a label. */
                t->owner->line.mid_line = t->owner->line.drawn = false;
        t->owner = NULL;
        printer_erase_live(t);
        if (sink_is_mid_line(t->sink))
                sink_put(t->sink, "\n", 1, NULL, 0);
        printer_note_rows(t, NULL, text, len, false);
        sink_put(t->sink, text, len, NULL, 0);
        serve_terminal(t);
}

void printer_release(struct printer *o)
{
        o->held = false;
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks; r++)
                        if (o->streams[s][r])
                                credit_stream(o->streams[s][r]);
}

/* While bytes are pending, the end of the output counts as within a line. */
bool printer_is_mid_line(const struct printer *o)
{
        const struct sink *s = o->terminals[MSG_STDERR]->sink;

        return sink_is_mid_line(s) || sink_pending(s);
}

void printer_flush(struct printer *o)
{
        o->flushing = true;
        printer_release_bar_ends(o, NULL);
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks; r++)
                        /* The end of each stream: with @flushing, also rests of lines are ready. */
                        printer_put(o, r, (uint8_t)s, "", 0);
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                if (o->terminals[s]->fold)
                        line_fold_end_all(o->terminals[s]->fold);
                printer_erase_live(o->terminals[s]);
        }
}

/* --- life cycle --- */

/* With 2>&1, two sinks would write into the middle of each other's lines. */
bool printer_same_file(int a, int b)
{
        struct stat sa, sb;

        return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
               sa.st_ino == sb.st_ino;
}

static int count_shown(const struct printer *o)
{
        int n = 0;

        for (int r = 0; r < o->n_ranks; r++)
                n += !o->opt.shown || o->opt.shown[r];
        return n;
}

static void open_terminal(struct printer *o, int stream, struct terminal *t)
{
        t->o = o;
        t->last = &t->first;
        /* Held lines have no credit yet: each stream keeps three quarters of the window. */
        if (o->opt.fold)
                t->fold = line_fold_create(o->n_ranks, count_shown(o), o->opt.window / 4,
                                           show_folded, t);
        t->is_tty = isatty(o->opt.fd[stream]);
        t->sink = sink_create(
                o->opt.pool, o->opt.fd[stream], false,
                (struct sink_ops){ on_terminal_written, count_payload, on_terminal_broken }, o);
        o->terminals[stream] = t;
}

struct printer *printer_create(uv_loop_t *loop, const struct plan *plan, const struct hosts *hosts,
                               const struct printer_options *opt, struct printer_ops ops, void *ctx)
{
        struct printer *o = xcalloc(1, sizeof(*o));

        *o = (struct printer){ .loop = loop, .opt = *opt, .ops = ops, .ctx = ctx };
        o->n_ranks = plan->world_size;
        o->prefix = label_create(opt->label, plan, hosts, opt->net);
        uv_timer_init(loop, &o->timer);
        o->timer.data = o;
        uv_unref((uv_handle_t *)&o->timer);
        uv_timer_init(loop, &o->fold_timer);
        o->fold_timer.data = o;
        uv_unref((uv_handle_t *)&o->fold_timer);
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

/* Both timers are members of the printer, so the memory goes after the second one is closed. */
static void on_timer_closed(uv_handle_t *h)
{
        free(h->data);
}

static void on_fold_timer_closed(uv_handle_t *h)
{
        struct printer *o = h->data;

        uv_close((uv_handle_t *)&o->timer, on_timer_closed);
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
                        if (st->end)
                                buf_finish(&st->end->line);
                        free(st->end);
                        buf_finish(&st->newest.words);
                        free(st->escapes);
                        redraw_rows_finish(&st->line.rows);
                        free(st->line.prefix);
                        sink_destroy(st->file);
                        free(st);
                }
                free(o->streams[s]);
        }
        label_destroy(o->prefix);
        line_fold_destroy(o->out.fold);
        line_fold_destroy(o->err.fold);
        sink_destroy(o->out.sink);
        sink_destroy(o->err.sink);
        o->closing = true;
        uv_timer_stop(&o->timer);
        uv_close((uv_handle_t *)&o->fold_timer, on_fold_timer_closed);
}

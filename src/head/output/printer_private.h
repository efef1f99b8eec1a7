/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printer private: what printer.c, printer_bars.c and printer_unwritten.c share
 */
#pragma once

#include "head/model/burst.h"
#include "head/model/label.h"
#include "head/output/line_fold.h"
#include "head/output/printer.h"
#include "head/output/sink.h"
#include "head/output/stream_line.h"

enum {
        STREAMS = 3, /* indexed by MSG_STDOUT and MSG_STDERR */
        SCREEN_ROWS = 64,
};

/* Milliseconds of looks since the newest and the oldest byte came. */
struct printer_wait {
        unsigned quiet_ms, waited_ms;
};

/* The last state of a bar, which is shown when the bars of all ranks have ended, in the order of
 * the ranks. Came before the bytes in printer_stream.waiting. */
struct bar_end {
        struct buf line;
        struct escapes escapes; /* of the stream before the line */
        bool due;               /* to be shown now */
};

struct printer_stream {
        struct printer *o;
        int rank;
        uint8_t number;
        struct buf waiting;       /* received, not yet put to the terminal */
        struct printer_wait wait; /* of these */
        struct {
                struct buf words;   /* the newest bytes */
                struct burst burst; /* of these bytes */
        } newest;
        struct bar_end *end;     /* NULL = none waits */
        struct escapes *escapes; /* NULL = escape sequences are not filtered */
        struct stream_line line;
        bool ended, queued, idle;
        struct {
                bool waiting, bar;
        } counted;                   /* in printer.n_waiting, in printer.bars.drawn */
        uint64_t came, shown, filed; /* bytes received, written to terminal, to the file */
        uint64_t credited;
        uint64_t dropped; /* of shown */
        struct sink *file;
        struct printer_stream *next; /* in the terminal's queue */
};

struct terminal {
        struct printer *o;
        struct sink *sink;
        struct line_fold *fold;        /* whole lines on their way to the sink; NULL = no --fold */
        bool is_tty;                   /* unfinished lines are shown soon */
        size_t live[PRINTER_ROWS + 1]; /* widths of the last lines, those of printer_draw_live(); 0
                                          ends */
        struct printer_stream *owner;  /* in the middle of a line */
        struct printer_stream *first,
                **last; /* streams with something to write, in order of arrival */
        const struct printer_stream *rows[SCREEN_ROWS]; /* of the last rows, the newest first; NULL
                                                           = no rank's */
};

struct printer {
        uv_loop_t *loop;
        uv_timer_t timer, fold_timer;
        bool closing, flushing, held;
        struct {
                bool dropped; /* printer_drop_bars() */
                size_t drawn; /* streams with a bar that has not ended */
                size_t ended; /* streams with a bar_end */
        } bars;
        unsigned look_ms; /* of the timer */
        struct printer_options opt;
        struct printer_ops ops;
        void *ctx;
        struct terminal out, err;
        struct terminal
                *terminals[STREAMS]; /* both are @out when stdout and stderr are the same file */
        struct label *prefix;
        struct printer_stream *
                *streams[STREAMS]; /* by rank; NULL = nothing came yet, and no file */
        int n_ranks;
        size_t n_waiting;     /* streams with bytes for a terminal */
        unsigned files_still; /* calls of printer_is_filing() since a file has taken bytes */
};

/* Whether the bytes of an unfinished line are states of a line that is drawn again and again. */
bool printer_draws_states(const unsigned char *p, size_t n);
/* Skips states of waiting bytes that a later state has replaced: a progress bar must not wait for
 * the terminal. Skips the last one, too, after the end of a stream with printer_drop_bars().
 * Returns how many bytes. */
size_t printer_skip_states(struct printer_stream *st);
/* Returns the next bytes of a stream with the rows of what it draws again and again as one: @data,
 * or those in @joined; see redraw_join_rows(). */
const void *printer_join_rows(struct printer_stream *st, const void *data, size_t *len,
                              struct buf *joined);
/* Keeps the line with the last state of a bar in .end, while other ranks draw theirs. */
void printer_keep_bar_end(struct printer_stream *st);
/* Counts the stream among those that draw a bar, or not. */
void printer_count_bar(struct printer_stream *st);
/* Has the ends of bars shown, in the order of the ranks, and in it what is ready of @last (NULL =
 * none). */
void printer_release_bar_ends(struct printer *o, struct printer_stream *last);
/* Has the bytes of the stream shown that are ready, after those of the streams before. */
void printer_queue(struct printer_stream *st);
void printer_erase_live(struct terminal *t);
/* Ends the line left unfinished by the owner, if there is an owner. */
void printer_break_line(struct terminal *t);
/* Notes of which stream (NULL = of no rank) the rows are that @text begins on a terminal, whose
 * cursor was within a row (@mid_line) or not. */
void printer_note_rows(struct terminal *t, const struct printer_stream *st, const void *text,
                       size_t n, bool mid_line);
/* Returns how many rows of the terminal these take: one that has become narrower may have wrapped
 * them. */
size_t printer_live_rows(const struct terminal *t);

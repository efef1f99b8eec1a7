/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printer: the bytes of ranks on the way to terminal and files
 *
 * Whole lines reach the terminal, never torn, in the order of each stream, with a prefix per line.
 * Bytes are neither lost nor added: a stream is credited (MSG_CREDIT) only for written bytes, so a
 * slow reader slows the ranks down, and memory stays bounded by the window.
 *
 * Of each terminal stream (stdout, stderr) a rank may be the *owner*: a rank with an unfinished,
 * very long line. Others wait for the end of the line; when the owner pauses for longer than a
 * moment, the line is broken (with a newline, if lines have prefixes).
 *
 * In a pipe or file an unfinished line is written 5 s after its last byte, or 10 s after its first.
 * Its rest follows without a label, unless another rank has written in between.
 *
 * On a terminal, of a line drawn again and again (redraw.h) the last state is shown, at most every
 * half second: in place as long as no other rank writes, else on a new line; the prefix stays.
 * Intermediate states are skipped. A lone rank without a prefix draws freely.
 *
 * With --fold, whole lines are held for LINE_FOLD_US, until the same lines of other ranks have
 * joined them (line_fold.h). Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/intlist.h"
#include "head/core/thread_pool.h"
#include "head/hosts/hosts.h"
#include "head/model/label.h"
#include "head/model/plan.h"

struct printer;

enum { PRINTER_ROWS = 8 };

struct printer_options {
        struct thread_pool *pool; /* writes; borrowed */
        int fd[3];                /* [MSG_STDOUT], [MSG_STDERR] of the terminal; borrowed */
        const char *label;        /* template, NULL = no prefix: see head/model/label.h */
        struct label_network net; /* taken over */
        bool raw;                 /* escape sequences of ranks reach a terminal unfiltered */
        bool timestamps;          /* the time in front of each line */
        bool fold;                /* equal lines of several ranks once */
        bool erase;               /* the terminal can erase a line: states are drawn in place */
        int bare;                 /* rank whose output is shown as it comes (--pty); -1 = none */
        bool color;               /* labels on a terminal have colours */
        bool color_anywhere;      /* ... those in pipes and files, too (--color always) */
        bool live;                /* ... in rows of printer_draw_live(), which is called */
        const char *dir;          /* a file per rank and stream, NULL = none */
        int dir_fd;               /* of @dir; borrowed */
        bool append;              /* the files exist and are continued */
        const bool *shown;        /* by rank: reaches the terminal; NULL = all */
        uint32_t window;          /* credit window per stream */
        /* Gets all bytes as they come; lent. False: no more are granted until printer_release().
         * NULL = not wanted. */
        bool (*record)(void *ctx, int rank, uint8_t stream, const void *data, size_t len);
        void *record_ctx;
};

struct printer_ops {
        /* So many bytes of this stream may follow. */
        void (*credit)(void *ctx, int rank, uint8_t stream, uint32_t bytes);
        /* Standard output (MSG_STDOUT) or stderr of hnlaunch itself, or a file, cannot be written.
         */
        void (*broken)(void *ctx, uint8_t stream, const char *what, int error);
};

struct printer *printer_create(uv_loop_t *loop, const struct plan *plan, const struct hosts *hosts,
                               const struct printer_options *o, struct printer_ops ops, void *ctx);

/* Returns how many bytes of this stream are granted and have not come: the window, without the
 * bytes that are not credited yet. The agent counts the same bytes, later credited than here, so an
 * honest agent never sends more. */
size_t printer_granted(const struct printer *o, int rank, uint8_t stream);

/* Takes bytes of a rank's stream, at most printer_granted(); @len 0 = the end: an unfinished last
 * line is written unchanged. @data is never NULL. */
void printer_put(struct printer *o, int rank, uint8_t stream, const void *data, size_t len);

/* From now on a bar that stands in a row goes with the end of its stream: its rank is stopped. */
void printer_drop_bars(struct printer *o);

/* Grants what was held back since record() returned false. */
void printer_release(struct printer *o);

/* The newest bytes of a rank's stream (4 KiB of stderr, 1 KiB of stdout), malloc'ed, for the
 * report. */
char *printer_last_words(const struct printer *o, int rank, uint8_t stream);
/* Returns the burst of these bytes. */
struct burst printer_last_burst(const struct printer *o, int rank, uint8_t stream);

/* Whether the last @lines of a rank's stream stand on the terminal of stderr, with few other rows
 * among and below them. A line folded with those of other ranks is another row; false where the
 * rank may move the cursor (@raw). */
bool printer_shows(const struct printer *o, int rank, uint8_t stream, size_t lines);

/* Writes lines of hnlaunch to stderr's destination, beginning on a new line. */
void printer_tell(struct printer *o, const char *text, size_t len);
/* Draws a line at the bottom of stderr's terminal, and above it a row for each line that a rank
 * draws again and again, PRINTER_ROWS in all at most: so many bars stand without the line. Without
 * such rows @bar stands behind the line (NULL = nothing). The next output erases them. Rows are cut
 * off to the terminal's width. Does nothing while output waits or a line is unfinished, nor where a
 * line cannot be erased. */
void printer_draw_live(struct printer *o, const char *text, const char *bar);
/* A user has ended a line on the terminal @fd, and its echo has begun the next line there. */
void printer_end_entered_line(struct printer *o, int fd);
/* Whether what printer_draw_live() has drawn stands at the bottom. */
bool printer_shows_live(const struct printer *o);
/* Erases a key that the terminal has echoed, "^C", but behind the unfinished line of a rank. */
void printer_erase_echo(struct printer *o);
bool printer_same_file(int a, int b); /* of two descriptors */
bool printer_is_mid_line(
        const struct printer *o); /* the destination of stderr ends within a line */

/* Ends the wait for unfinished lines: all received bytes are written. */
void printer_flush(struct printer *o);
size_t printer_pending(const struct printer *o); /* bytes not yet written anywhere */
size_t printer_lost(const struct printer *o);    /* bytes missing in files */
/* Whether bytes wait for files, and one of the last @calls calls has found that files have taken
 * some. */
bool printer_is_filing(struct printer *o, unsigned calls);
/* Bytes of this rank wait for a reader or a disk, so its node may wait for credit. */
bool printer_holds(const struct printer *o, int rank);
/* Gives up readers, and with @files also files, that have not taken all bytes: drops the bytes, and
 * grants the ranks credit for them and for all that follow. To be called again until nothing is
 * pending. */
void printer_abandon(struct printer *o, bool files);
/* Whether stdout (MSG_STDOUT) or stderr is a terminal, also one that has hung up meanwhile. */
bool printer_is_terminal(const struct printer *o, uint8_t stream);
/* Counts the bytes that stdout and stderr of hnlaunch did not get, except where the reader is gone
 * (EPIPE, EIO of a terminal). Adds their ranks to @ranks. */
size_t printer_unwritten(const struct printer *o, struct intlist *ranks);
void printer_destroy(struct printer *o); /* NULL is fine; pending must be 0 */

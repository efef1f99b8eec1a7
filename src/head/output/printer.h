/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printer: the workers' bytes on their way to terminal and files
 *
 * Whole lines reach the terminal, never torn, in the order in which each stream wrote them, with a
 * prefix per line. Bytes are neither lost nor added: a stream is credited (MSG_CREDIT) only for
 * what was written, so a slow reader slows the ranks down and memory stays bounded by the window.
 *
 * Of each terminal stream (stdout, stderr) one rank may be the *owner*: it has begun a line that is
 * not finished yet, because the line is very long. Others wait for its end; when the owner pauses
 * for longer than a moment its line is broken (with a newline, if lines have prefixes).
 *
 * On a terminal a line that is drawn again and again (redraw.h) shows its last state at most every
 * half second, in place as long as no other rank writes, else in a new line; its prefix stays. What
 * came in between is passed over. A lone rank without a prefix draws as it likes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "head/core/thread_pool.h"
#include "head/hosts/hosts.h"
#include "head/model/plan.h"

struct printer;

struct printer_options {
        struct thread_pool *pool; /* writes; borrowed */
        int fd[3];                /* [MSG_STDOUT], [MSG_STDERR] of the terminal; borrowed */
        const char *label;        /* template, NULL = no prefix: {host} {rank} {local} {stream} */
        bool raw;                 /* ranks may send escape sequences to a terminal as they are */
        bool erase;               /* the terminal can erase a line: its states are drawn in place */
        const char *dir;          /* one file per rank and stream, NULL = none */
        bool append;              /* the files are there and go on */
        const bool *shown;        /* by rank: reaches the terminal; NULL = all */
        uint32_t window;          /* credit window per stream */
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

/* Takes bytes of a rank's stream; @len 0 = its end: an unfinished last line is written as it is. */
void printer_put(struct printer *o, int rank, uint8_t stream, const void *data, size_t len);

/* The newest bytes of a rank's stream (4 KiB of stderr, 1 KiB of stdout), malloc'ed, for the
 * report. */
char *printer_last_words(const struct printer *o, int rank, uint8_t stream);

/* hnlaunch's own lines, to where stderr goes. They begin on a new line. */
void printer_tell(struct printer *o, const char *text, size_t len);
bool printer_same_file(int a, int b);              /* two descriptors */
bool printer_is_mid_line(const struct printer *o); /* what stderr goes to ends within a line */

/* Forgets waiting for unfinished lines: everything that came is written. */
void printer_flush(struct printer *o);
size_t printer_pending(const struct printer *o); /* bytes not yet written anywhere */
size_t printer_lost(const struct printer *o);    /* bytes that could not be written to files */
void printer_destroy(struct printer *o);         /* NULL is fine; pending must be 0 */

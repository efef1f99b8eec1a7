/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reason_forms: the meaning of lines on a program's stderr when the end is bad
 *
 * The table of known languages, libraries and launchers. Pure.
 */
#pragma once

enum reason_kind {
        LINE_PLAIN,    /* no known form */
        LINE_REASON,   /* why the program ends */
        LINE_PEER,     /* a reason: a peer is gone */
        LINE_WEAK,     /* a reason, unless another stands above */
        LINE_LAUNCHER, /* a launcher reports a failed process */
        LINE_IGNORED,  /* the traceback below was not fatal */
        LINE_THREAD,   /* the traceback below is weak: of a thread, or of the end */
        LINE_CHATTER,  /* often written after the reason */
        LINE_NOISE,    /* a frame, advice: no reason itself */
};

/* How a program ends after such a line, unless it went on. */
enum {
        END_1 = 1,
        END_2 = 2,
        END_101 = 4,    /* Rust */
        END_SIGNAL = 8, /* or with a shell's code for a signal */
        END_ANY = 16,
};

/* How the text of a reason is made. */
enum {
        ANYWHERE = 1,     /* @text is anywhere in the line, else at its start */
        FROM = 2,         /* the line from @with, or @text, on; else the whole line */
        UNFINISHED = 4,   /* if a line ends in ":", the text is below */
        PARAGRAPH = 8,    /* with the lines up to a blank one */
        ERROR_STACK = 16, /* the last of the lines "function(12): text" below is added */
        /* With @more: */
        BEHIND = 32, /* the text behind @more is added, else the text from @more on */
        LAST = 64,   /* of the last line with @more, as the cause; else of the first */
        NAME = 128,  /* of the first line only the name of the exception stays */
        OWN = 256, /* of the lines with @more that follow @after, the frame of the user's program */
};

struct reason_form {
        const char *text, *with; /* in the line, both; @with may be NULL */
        enum reason_kind kind;
        unsigned char ends;
        unsigned short make;
        const char *more, *after; /* @more is below, behind a line with @after; NULL = none */
};

/* Returns the form of a line, NULL = none known. */
const struct reason_form *reason_forms_find(const char *line);

/* Returns the kind of a reason by its text: LINE_PEER, LINE_WEAK or LINE_REASON. */
enum reason_kind reason_forms_weigh(const char *text);

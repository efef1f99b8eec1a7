/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reason_forms: what lines of a program's stderr mean when it ends badly
 *
 * The table of languages, libraries and launchers that are known. Pure.
 */
#pragma once

enum reason_kind {
        LINE_PLAIN,    /* nothing known of it */
        LINE_REASON,   /* why the program ends */
        LINE_PEER,     /* so, and it tells of a peer that is gone */
        LINE_WEAK,     /* so, unless a reason stands before it */
        LINE_LAUNCHER, /* a launcher tells that one of its processes has failed */
        LINE_IGNORED,  /* the traceback below it was not fatal */
        LINE_THREAD,   /* the traceback below it is weak: a thread's, or of the end */
        LINE_CHATTER,  /* often written after the reason */
        LINE_NOISE,    /* a frame, advice: no reason itself */
};

/* How a program that has written a line ends, unless it went on. */
enum {
        END_1 = 1,
        END_2 = 2,
        END_101 = 4,    /* Rust */
        END_SIGNAL = 8, /* or with the code that a shell makes of a signal */
        END_ANY = 16,
};

/* How the text of a reason is made. */
enum {
        ANYWHERE = 1,     /* @text is somewhere in the line, else the line begins with it */
        FROM = 2,         /* the line from @with, or @text, on; else the whole line */
        UNFINISHED = 4,   /* a line that ends in ":" is followed by its text */
        PARAGRAPH = 8,    /* the lines up to a blank one belong to it */
        ERROR_STACK = 16, /* the last of the lines "function(12): text" below is added */
        /* With @more: */
        BEHIND = 32, /* the text behind @more is added, else that from @more on */
        LAST = 64,   /* of the last line that has it, as the cause; else of the first */
        NAME = 128,  /* of the first line only the name of the exception stays */
};

struct reason_form {
        const char *text, *with; /* in the line, both; @with may be NULL */
        enum reason_kind kind;
        unsigned char ends, make;
        const char *more, *after; /* a line below has @more, behind one with @after; NULL = none */
};

/* Returns the form of a line, NULL = none known. */
const struct reason_form *reason_forms_find(const char *line);

/* Returns what the text of a reason shows: LINE_PEER, LINE_WEAK or LINE_REASON. */
enum reason_kind reason_forms_weigh(const char *text);

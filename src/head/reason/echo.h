/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo: whether the words of a rank tell of another's failure
 *
 * Pure. Words are the newest stderr of a rank, or its own report. Only the explanation of the end
 * is judged: the exceptions of the last traceback, else the last lines, without warnings.
 */
#pragma once

#include <stdbool.h>

enum echo {
        ECHO_NONE, /* the words are the rank's own, or there are none */
        ECHO_PEER, /* a peer is gone: connection reset, ncclRemoteError, a process of MPI failed */
        ECHO_WAIT, /* others have not come in time: a collective has timed out */
        ECHO_STOP, /* the rank was told to end: SIGTERM, KeyboardInterrupt */
};

/* Judges a single text of rank @rank, such as an exception or a report; may have lines. */
enum echo echo_of_text(const char *text, int rank);

/* Judges the newest stderr of @rank. @reason is the exception found there, or NULL. If @reason is
 * an echo, raised while an exception of the rank's own was handled, that exception is the reason:
 * *@ret_root is set to it (malloc'ed), else to NULL. */
enum echo echo_of_words(const char *words, const char *reason, int rank, char **ret_root);

/* Whether a line looks like the report of an error: "fatal", "cannot", "failed". */
bool echo_is_error_line(const char *line);
/* Whether the last traceback of @words comes from a handler of the order to end. */
bool echo_is_of_order(const char *words);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts are compared in small letters, line by line. A line is an echo if a phrase of the tables
 * below is in it (of the C library, Gloo, NCCL, PyTorch's store, MPI libraries, gRPC, Horovod,
 * Ray), or if it reports the loss of a peer or of another rank (tells_of_loss()). A line with the
 * name of a service, such as a database, is the rank's own failure: peers do not speak HTTP or SQL.
 *
 * A chain of Python's tracebacks ("During handling of the above exception") is judged by its first
 * exception, the root: the later exceptions follow from the root.
 */
#include "head/reason/echo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/reason/reason_lines.h"

enum {
        LAST_LINES = 8, /* judged without an exception: as many as a report shows */
        NEAR_CHARS = 60 /* between the words of one statement */
};

/* Whether the line tells that the rank was ordered to end, as handlers of SIGTERM and
 * KeyboardInterrupt print. */
static bool tells_of_stop(const char *line)
{
        static const char *const phrases[] = {
                "sigterm",           "signal: terminated",    "signal: 15",         "signal 15",
                "signalexc",         "keyboardinterrupt",     "shutdown requested", "shutting down",
                "signal terminated", "termination requested",
        };

        return reason_has_phrase(line, phrases, ARRAY_SIZE(phrases)) || !strcmp(line, "terminated");
}

/* Whether the line names a service outside of the job, or a command that the rank has started. A
 * loss of either is the rank's own failure. */
static bool tells_of_service(const char *line)
{
        static const char *const phrases[] = {
                "http",  "database", "sql",   "postgres",    "redis",
                "mongo", "s3://",    "kafka", "licen",       "connection to server at",
                "smtp",  "ftp://",   "wandb", "subprocess.", "command '",
        };

        return reason_has_phrase(line, phrases, ARRAY_SIZE(phrases));
}

/* Whether the line tells that others have not come in time. */
static bool tells_of_timeout(const char *line)
{
        static const char *const phrases[] = {
                "timed out",         "timing out",
                "wait timeout",      "read timeout",
                "write timeout",     "socket timeout",
                "connect timeout",   "heartbeat timeout",
                "deadline_exceeded", "failed to pass monitoredbarrier",
                "endpoint timeout",  "barrier timeout",
                "timeout waiting",   "timeouterror",
        };

        return reason_has_phrase(line, phrases, ARRAY_SIZE(phrases));
}

/* Whether the line tells of a lost connection, or of a failed process as MPI and others name it. */
static bool tells_of_connection(const char *line)
{
        static const char *const phrases[] = {
                /* the C library and its wrappers */
                "connection reset",
                "connection closed",
                "connection refused",
                "connection aborted",
                "connection lost",
                "lost connection",
                "lost-connection",
                "closed connection",
                "connection was closed",
                "connection was likely closed",
                "connection terminated",
                "connection abort",
                "closed by peer",
                "reset by peer",
                "broken pipe",
                "brokenpipe",
                "connectionreset",
                "connectionaborted",
                "connectionrefused",
                "econnreset",
                " epipe",
                "econnrefused",
                "econnaborted",
                "enotconn",
                "endpoint is not connected",
                "no route to host",
                "host is unreachable",
                "socket closed",
                "stream is closed",
                "closed network connection",
                "end of file [asio",
                "unexpectedeof",
                "closed by remote",
                "remote end closed",
                /* PyTorch, Gloo, NCCL */
                "ncclremoteerror",
                "remote process exited",
                "remote process exiting",
                "recvbytes",
                "sendbytes",
                "got 0 bytes",
                "caused pair closure",
                "connectfullmesh failed",
                "failed to connect, willretry",
                "failed to connect to",
                "nccl communicator was aborted",
                "socketprogress",
                "nccl operations have failed or timed out",
                "distnetworkerror",
                "hn_err_peer",
                /* MPI */
                "proc_failed",
                "): process failed",
                "mpi_err_revoked",
                "communication error with rank",
                "lost communication",
                "collective abort of all ranks",
                "pmix error: unreach",
                "request pending due to failure",
                "ofi poll failed",
                /* others */
                "unavailable:",
                "unavailableerror",
                "another task died",
                "tasks are unhealthy",
                "horovod has been shut down",
                "horovodinternalerror",
                "collective ops is aborted",
                "commclosederror",
                "actordied",
                "rayactorerror",
                "actor died",
                "workercrashed",
                "processexitedexception",
                "java.io.eofexception",
        };

        /* EOFError without a text is the end of a connection of Python's multiprocessing. */
        return reason_has_phrase(line, phrases, ARRAY_SIZE(phrases)) || !strcmp(line, "eoferror");
}

/* Returns the end of a word for another rank at @p, else NULL: "peer", "rank 3". */
static const char *skip_other_rank(const char *p, int rank)
{
        static const char *const nouns[] = {
                "peer",
                "neighbo",
                "partner",
                "another rank",
                "another process",
                "another task",
                "another worker",
                "other rank",
                "other process",
                "other worker",
                "other task",
                "remote rank",
                "remote process",
                "remote side",
                "remote peer",
                "remote endpoint",
        };
        char *end;

        for (size_t i = 0; i < ARRAY_SIZE(nouns); i++)
                if (!strncmp(p, nouns[i], strlen(nouns[i])))
                        return p + strlen(nouns[i]);
        if (strncmp(p, "rank", 4) != 0)
                return NULL;
        p += 4;
        p += *p == 's';
        p += *p == ' ' || *p == '=' || *p == ':';
        p += *p == ' ';
        return isdigit((unsigned char)*p) && strtol(p, &end, 10) != rank ? end : NULL;
}

/* Whether a line reports the loss of another rank: "peer 3 has left", "lost rank 2". */
static bool tells_of_loss(const char *line, int rank)
{
        static const char *const after[] = {
                " died",    " is dead",    " gone",     "lost",        " left",     " exited",
                " closed",  "disconnect",  "unreach",   " terminated", " failed",   " aborted",
                " crashed", " hung up",    " vanished", "not respond", "no answer", "shut down",
                "not come", " was killed", "killed by",
        };
        static const char *const before[] = {
                "lost ",         "losing ",     "cannot reach ",      "no answer ",
                "no message ",   "no reply ",   "no data ",           "no response ",
                "receive from ", "recv from ",  "read from ",         "send to ",
                "write to ",     "sending to ", "receiving from ",    "loss of ",
                "failure of ",   "death of ",   "disconnected from ",
        };

        for (const char *p = line; *p; p++) {
                const char *end = p == line || !isalnum((unsigned char)p[-1])
                                          ? skip_other_rank(p, rank)
                                          : NULL;
                CLEANUP(free_textp) char *behind = NULL, *ahead = NULL;
                /* Words far from the rank belong to another statement of a long line. */
                size_t from = p - line > NEAR_CHARS ? (size_t)(p - line) - NEAR_CHARS : 0;

                if (!end)
                        continue;
                behind = xstrndup(end, NEAR_CHARS);
                ahead = xstrndup(line + from, (size_t)(p - line) - from);
                if (reason_has_phrase(behind, after, ARRAY_SIZE(after)) ||
                    reason_has_phrase(ahead, before, ARRAY_SIZE(before)))
                        return true;
        }
        return false;
}

/* Judges a line in small letters, without blanks around. A lost peer counts before an order to end,
 * and both before a timeout, which may be a consequence of either. */
static enum echo echo_of_line(const char *line, int rank)
{
        bool service = tells_of_service(line);

        if (!service && (tells_of_connection(line) || tells_of_loss(line, rank)))
                return ECHO_PEER;
        if (tells_of_stop(line))
                return ECHO_STOP;
        return !service && tells_of_timeout(line) ? ECHO_WAIT : ECHO_NONE;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Returns the next line of *@text in small letters, without "[rank3]: " and blanks at both ends,
 * and sets *@ret_indented; NULL at the end. malloc'ed. */
static char *take_small_line(const char **text, bool *ret_indented)
{
        const char *p = *text, *end;
        size_t digits;
        char *line;

        if (!*p)
                return NULL;
        end = p + strcspn(p, "\n");
        *text = end + (*end == '\n');
        digits = strncmp(p, "[rank", 5) ? 0 : strspn(p + 5, "0123456789");
        if (digits && !strncmp(p + 5 + digits, "]: ", 3))
                p += 5 + digits + 3;
        *ret_indented = *p == ' ' || *p == '\t';
        while (p < end && isspace((unsigned char)*p))
                p++;
        while (end > p && isspace((unsigned char)end[-1]))
                end--;
        line = xstrndup(p, (size_t)(end - p));
        for (char *c = line; *c; c++)
                *c = (char)tolower((unsigned char)*c);
        return line;
}

enum echo echo_of_text(const char *text, int rank)
{
        enum echo found = ECHO_NONE;
        bool indented;
        char *line;

        while (found == ECHO_NONE && (line = take_small_line(&text, &indented))) {
                found = echo_of_line(line, rank);
                free(line);
        }
        return found;
}

/* Whether a line is a warning of PyTorch: "[W1120 10:12:01 ...]", of older releases
 * "[W socket.cpp:601] ...". */
static bool is_torch_warning(const char *line)
{
        return !strncmp(line, "[w", 2) && line[2] && strchr("0123456789 ", line[2]);
}

/* Whether a line is a warning or a frame of a stack: neither explains an end. */
static bool is_beside(const char *line)
{
        static const char *const phrases[] = { "warn", "retry", "exception ignored", "(w " };

        return (reason_has_phrase(line, phrases, ARRAY_SIZE(phrases)) &&
                !strstr(line, "willretry")) ||
               is_torch_warning(line) || !strncmp(line, "frame #", 7) || *line == '#';
}

/* Judges the last lines; the newest echo among them decides. */
static enum echo echo_of_last_lines(const char *words, int rank)
{
        enum echo last[LAST_LINES] = { ECHO_NONE }, found = ECHO_NONE;
        size_t n = 0;
        bool indented;
        char *line;

        while ((line = take_small_line(&words, &indented))) {
                if (*line && !is_beside(line))
                        /* A ring of the newest lines. */
                        last[n++ % LAST_LINES] = echo_of_line(line, rank);
                free(line);
        }
        for (size_t i = 0; i < LAST_LINES && i < n && found == ECHO_NONE; i++)
                found = last[(n - 1 - i) % LAST_LINES];
        return found;
}

bool echo_is_error_line(const char *line)
{
        static const char *const phrases[] = {
                "error",   "fatal",      "fail",          "cannot",    "can't",
                "unable",  "invalid",    "abort",         "panic",     "exception",
                "assert",  "corrupt",    "no such",       "not found", "denied",
                "illegal", "unexpected", "out of memory", "missing",   "refus",
        };
        bool indented;
        CLEANUP(free_textp) char *small = take_small_line(&line, &indented);

        return small && reason_has_phrase(small, phrases, ARRAY_SIZE(phrases));
}

bool echo_is_of_order(const char *words)
{
        static const char *const phrases[] = { "sigterm", "signum",  "signal", "handler",
                                               "on_term", "preempt", "_exit" };
        bool found = false, indented;
        char *line;

        while ((line = take_small_line(&words, &indented))) {
                found = strncmp(line, "traceback (most recent call last)", 33) != 0 &&
                        (found || reason_has_phrase(line, phrases, ARRAY_SIZE(phrases)));
                free(line);
        }
        return found;
}

/* --- chains of tracebacks --------------------------------------------------------------------- */

/* Whether the line joins two tracebacks of one chain, in the words of Python. */
static bool is_joint(const char *line)
{
        return !strncmp(line, "during handling of the above exception", 38) ||
               !strncmp(line, "the above exception was the direct cause", 40);
}

/* Copies the first line of @from without "[rank3]: ". malloc'ed. */
static char *copy_exception(const char *from)
{
        size_t digits = strncmp(from, "[rank", 5) ? 0 : strspn(from + 5, "0123456789");

        from += digits && !strncmp(from + 5 + digits, "]: ", 3) ? 5 + digits + 3 : 0;
        return xstrndup(from, strcspn(from, "\r\n"));
}

/* Finds the first exception of the last chain of tracebacks. malloc'ed, NULL = none. */
static char *find_root(const char *words)
{
        bool indented, frames = false, joined = false, has_root = false;
        char *root = NULL, *line;

        for (const char *at = words; (line = take_small_line(&words, &indented)); at = words) {
                if (!strncmp(line, "traceback (most recent call last)", 33)) {
                        /* A traceback without a joint before begins a new chain, with a root of its
                         * own. */
                        has_root &= joined;
                        joined = false;
                        frames = true;
                } else if (is_joint(line)) {
                        joined = true;
                } else if (frames && *line && !indented) {
                        frames = false;
                        if (!has_root) {
                                free(root);
                                root = copy_exception(at);
                                has_root = true;
                        }
                }
                free(line);
        }
        return root;
}

enum echo echo_of_words(const char *words, const char *reason, int rank, char **ret_root)
{
        CLEANUP(free_textp) char *root = reason ? find_root(words) : NULL;
        enum echo told = reason ? echo_of_text(reason, rank) : ECHO_NONE;
        enum echo first = root ? echo_of_text(root, rank) : told;

        *ret_root = NULL;
        if (!reason)
                return echo_of_last_lines(words, rank);
        /* An own failure at the root explains the echo that followed from it. */
        if (told != ECHO_NONE && first == ECHO_NONE && echo_is_error_line(root)) {
                *ret_root = STEAL(&root);
                return ECHO_NONE;
        }
        return first;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One piece is under way at a time: read, then written to the connection, which takes no more while
 * the ranks do not read. A regular file is always readable and is not watched. The end of the input
 * is a separate request, since the end of the connection only means that the command has left.
 */
#include "head/commands/attach_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/output/say.h"
#include "head/run/run_list.h"

enum { STDIN_ANSWER_MS = 5000 };

/* Standard input on the way to the run; .piece has bytes from .done to .len. */
struct attach_input {
        const char *socket;
        int from, to;
        bool is_terminal; /* opened once more: the loop makes @from non-blocking */
        bool is_file, paused;
        uv_poll_t readable, writable;
        int open; /* handles not yet closed */
        size_t len, done;
        char piece[16384];
};

struct attach_question {
        uv_poll_t key;
        int fd;
        struct termios modes;
        struct attach_input *in;
        void (*answer)(void *ctx, int key);
        void *ctx;
};

/* --- to the run ------------------------------------------------------------------------------- */

/* Frees with the last handle. Standard streams stay open. */
static void on_input_closed(uv_handle_t *h)
{
        struct attach_input *in = h->data;

        if (--in->open)
                return;
        fd_close(in->to);
        if (in->from > STDERR_FILENO)
                fd_close(in->from);
        free(in);
}

void attach_input_close(struct attach_input *in)
{
        if (!in)
                return;
        if (!in->is_file)
                uv_close((uv_handle_t *)&in->readable, on_input_closed);
        uv_close((uv_handle_t *)&in->writable, on_input_closed);
}

/* Reads when there is something; writing follows by watch_input(). */
static void on_input_readable(uv_poll_t *h, int status, int events);
static void on_run_writable(uv_poll_t *h, int status, int events);

/* Stops for good: the input has ended, or the run takes no more. */
static void stop_input(struct attach_input *in)
{
        in->paused = true;
        if (!in->is_file)
                uv_poll_stop(&in->readable);
        uv_poll_stop(&in->writable);
}

/* Sends the end of input to the ranks, behind all bytes. */
static void end_input(struct attach_input *in)
{
        struct error err;

        json_decref(
                run_ask(in->socket, json_pack("{s:s}", "do", "stdin-end"), STDIN_ANSWER_MS, &err));
        shutdown(in->to, SHUT_WR);
        stop_input(in);
}

/* Waits for what comes next: bytes from the input, or room in the connection for those at hand. */
static void watch_input(struct attach_input *in)
{
        if (in->paused)
                return;
        if (!in->is_file && !in->len)
                uv_poll_start(&in->readable, UV_READABLE | UV_DISCONNECT, on_input_readable);
        else
                uv_poll_start(&in->writable, UV_WRITABLE, on_run_writable);
}

/* Reads a piece. An error of the input, such as EIO in the background, is no end for the ranks. */
static void read_input(struct attach_input *in)
{
        ssize_t n = read(in->from, in->piece, sizeof(in->piece));

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        if (n == 0)
                end_input(in);
        else if (n < 0)
                stop_input(in);
        else
                in->len = (size_t)n;
        /* Enter was echoed: the cursor stands at the beginning of a line. */
        if (in->is_terminal && n > 0 && memchr(in->piece, '\n', (size_t)n))
                say_after_entry(in->from);
}

/* Passes a piece of standard input on when the run has room: input is read only as fast as the rank
 * reads. */
static void on_run_writable(uv_poll_t *h, int status UNUSED, int events UNUSED)
{
        struct attach_input *in = h->data;
        ssize_t n;

        uv_poll_stop(&in->writable);
        if (!in->len)
                read_input(in);
        if (in->len) {
                n = send(in->to, in->piece + in->done, in->len - in->done,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno != EAGAIN && errno != EINTR) {
                        stop_input(in);
                        return;
                }
                in->done += n > 0 ? (size_t)n : 0;
                if (in->done == in->len)
                        in->len = in->done = 0;
        }
        watch_input(in);
}

static void on_input_readable(uv_poll_t *h, int status UNUSED, int events UNUSED)
{
        struct attach_input *in = h->data;

        uv_poll_stop(&in->readable);
        read_input(in);
        watch_input(in);
}

struct attach_input *attach_input_open(uv_loop_t *loop, const char *socket, int fd,
                                       struct error *err)
{
        int to = run_request(socket, json_pack("{s:s}", "do", "stdin"), err);
        json_t *answer = to < 0 ? NULL : run_answer(to, STDIN_ANSWER_MS, err);
        const char *refusal = json_string_value(json_object_get(answer, "error"));
        struct attach_input *in = NULL;
        struct stat st;

        if (refusal)
                err_set(err, EBUSY, "%s", refusal);
        if (!answer || refusal) {
                fd_close(to);
                json_decref(answer);
                return NULL;
        }
        json_decref(answer);
        in = xcalloc(1, sizeof(*in));
        *in = (struct attach_input){ .socket = socket, .from = fd, .to = to, .open = 1 };
        /* A descriptor of its own: O_NONBLOCK on the shared one would stay behind for the shell. */
        in->is_terminal = isatty(fd);
        if (in->is_terminal && (fd = open("/dev/tty", O_RDONLY | O_CLOEXEC)) >= 0)
                in->from = fd;
        in->is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
        uv_poll_init(loop, &in->writable, to);
        in->writable.data = in;
        if (!in->is_file && uv_poll_init(loop, &in->readable, in->from) == 0) {
                in->readable.data = in;
                in->open = 2;
        } else {
                in->is_file = true; /* such as /dev/null */
        }
        watch_input(in);
        return in;
}

/* --- a question ------------------------------------------------------------------------------- */

bool attach_input_has_terminal(void)
{
        return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) &&
               tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Passes the key on; the question stays open until attach_ask_end(). */
static void on_key(uv_poll_t *h, int status UNUSED, int events UNUSED)
{
        struct attach_question *q = h->data;
        char key = 0;
        ssize_t n = read(q->fd, &key, 1);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        uv_poll_stop(&q->key);
        q->answer(q->ctx, n > 0 ? key : 0);
}

struct attach_question *attach_ask(uv_loop_t *loop, struct attach_input *in,
                                   void (*answer)(void *ctx, int key), void *ctx)
{
        struct attach_question *q = xcalloc(1, sizeof(*q));
        struct termios raw;

        *q = (struct attach_question){ .in = in, .answer = answer, .ctx = ctx };
        /* Opened anew, so that a redirected standard input does not answer. */
        q->fd = open("/dev/tty", O_RDONLY | O_CLOEXEC);
        if (tcgetattr(q->fd, &q->modes) < 0 || uv_poll_init(loop, &q->key, q->fd) < 0) {
                fd_close(q->fd);
                free(q);
                return NULL;
        }
        /* The key is meant for the question, not for the ranks. */
        if (in && !in->paused && in->is_terminal) {
                in->paused = true;
                uv_poll_stop(&in->readable);
        } else {
                q->in = NULL;
        }
        raw = q->modes;
        /* A single key without Enter; ISIG stays, so that Ctrl-C answers, too. */
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(q->fd, TCSADRAIN, &raw);
        q->key.data = q;
        uv_poll_start(&q->key, UV_READABLE, on_key);
        return q;
}

static void on_question_closed(uv_handle_t *h)
{
        struct attach_question *q = h->data;

        fd_close(q->fd);
        free(q);
}

void attach_ask_end(struct attach_question *q)
{
        if (!q)
                return;
        tcsetattr(q->fd, TCSADRAIN, &q->modes);
        if (q->in) {
                q->in->paused = false;
                watch_input(q->in);
        }
        uv_close((uv_handle_t *)&q->key, on_question_closed);
}

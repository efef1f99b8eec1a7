/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both streams of the program are read by poll() up to the deadline, also beyond their limits, so
 * that the program is never blocked by a full pipe. A background process may hold a stream open:
 * the deadline then ends the whole process group.
 */
#include "base/program_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/printable.h"

enum { STDERR_MAX = 4096 };

/* One of the program's two streams. */
struct program_stream {
        struct buf text;
        size_t max;
        bool is_tail; /* the last @max bytes are kept, else the first */
        int fd, theirs;
};

/* 0, or -errno; @s can be finished either way. */
static int open_program_stream(struct program_stream *s, size_t max)
{
        int fds[2];

        *s = (struct program_stream){ .max = max, .fd = -1, .theirs = -1 };
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        s->fd = fds[0];
        s->theirs = fds[1];
        return 0;
}

static void program_stream_finish(struct program_stream *s)
{
        fd_close(s->fd);
        fd_close(s->theirs);
        buf_finish(&s->text);
}

/* Reads all present bytes. Beyond the limit nothing is kept, and the length tells; of a tail the
 * last bytes are. */
static void read_program_stream(struct program_stream *s)
{
        char data[4096];
        ssize_t n = read(s->fd, data, sizeof(data));

        if (n > 0 && (s->is_tail || buf_len(&s->text) <= s->max)) {
                buf_append(&s->text, data, (size_t)n);
                if (s->is_tail && buf_len(&s->text) > s->max)
                        buf_consume(&s->text, buf_len(&s->text) - s->max);
        } else if (n == 0 || (n < 0 && errno != EINTR)) {
                s->fd = fd_close(s->fd);
        }
}

/* Reads both streams to their ends. False: @deadline passed. */
static bool read_program_streams(struct program_stream s[2], int64_t deadline)
{
        while (s[0].fd >= 0 || s[1].fd >= 0) {
                struct pollfd p[] = { { s[0].fd, POLLIN, 0 }, { s[1].fd, POLLIN, 0 } };
                int64_t left = deadline - clock_ms();

                if (left <= 0)
                        return false;
                /* A closed stream is -1, which poll() ignores. */
                if (poll(p, 2, (int)left) <= 0)
                        continue;
                for (int i = 0; i < 2; i++)
                        if (p[i].revents)
                                read_program_stream(&s[i]);
        }
        return true;
}

/* Puts the last line on standard error into a sentence. */
static int tell_program_failure(const char *name, int status, struct program_stream *errors,
                                struct error *err)
{
        CLEANUP(free_textp) char *line = NULL;
        char *text, *last;

        text = buf_steal(&errors->text);
        if (!text)
                text = xstrdup("");
        for (size_t n = strlen(text); n && strchr(" \r\n", text[n - 1]);)
                text[--n] = '\0';
        last = strrchr(text, '\n');
        line = printable_text(last ? last + 1 : text, PRINTABLE_QUOTE);
        free(text);
        if (WIFSIGNALED(status))
                return err_set(err, EIO, "%s was killed by signal %d", name, WTERMSIG(status));
        return err_set(err, EIO, "%s exited with code %d%s%s", name, WEXITSTATUS(status),
                       *line ? ": " : "", line);
}

/* Waits for the process, if its streams have @ended. Else, and at the deadline, kills its group. */
static bool wait_for_program(pid_t pid, bool ended, int64_t deadline, int *status)
{
        pid_t got = 0;

        /* The exit follows the end of the streams at once, as a rule. */
        while (ended && (got = waitpid(pid, status, WNOHANG)) == 0 && clock_ms() < deadline)
                poll(NULL, 0, 1);
        if (got == pid)
                return true;
        kill(-pid, SIGKILL); /* the program leads a group, see spawn_process() */
        waitpid(pid, status, 0);
        return false;
}

int program_output(const char *const *argv, int in, int timeout_ms, size_t max, char **ret_text,
                   size_t *ret_len, struct error *err)
{
        int64_t deadline = clock_ms() + timeout_ms;
        struct program_stream s[2];
        int status = 0, r;
        pid_t pid;

        r = open_program_stream(&s[0], max);
        /* Both are set, for program_stream_finish(). */
        r = MIN(r, open_program_stream(&s[1], STDERR_MAX));
        s[1].is_tail = true;
        if (r < 0) {
                err_set(err, -r, "cannot start %s: %s", *argv, strerror(-r));
        } else {
                const struct spawn program = { .argv = (char *const *)(uintptr_t)argv,
                                               .fds = { in, s[0].theirs, s[1].theirs } };

                r = spawn_process(&pid, &program, NULL, err);
        }
        /* Else the end of file never comes. */
        s[0].theirs = fd_close(s[0].theirs);
        s[1].theirs = fd_close(s[1].theirs);
        if (r == 0) {
                bool ended = read_program_streams(s, deadline);

                if (!wait_for_program(pid, ended, deadline, &status))
                        r = err_set(err, ETIMEDOUT, "%s has not ended after %d s", *argv,
                                    timeout_ms / 1000);
                else if (status)
                        r = tell_program_failure(*argv, status, &s[1], err);
                else if (buf_len(&s[0].text) > max)
                        r = err_set(err, EFBIG, "%s printed more than %zu bytes", *argv, max);
        }
        if (r == 0) {
                *ret_len = buf_len(&s[0].text);
                *ret_text = buf_steal(&s[0].text);
        }
        program_stream_finish(&s[0]);
        program_stream_finish(&s[1]);
        return r;
}

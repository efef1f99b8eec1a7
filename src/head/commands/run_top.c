/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run sends a line of JSON for each frame. With --json the lines are passed on. Without a whole
 * terminal a few frames are read until each host has told a processor time, and the last frame is
 * printed as a table. On a terminal hnlaunch-top.so draws the frames, and calls back for `why`, for
 * the order to stop and for `hnlaunch logs`; without the module the table is printed behind a
 * warning.
 */
#include "head/commands/run_top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "head/core/json_text.h"
#include "head/nodes/install_paths.h"
#include "head/term/columns.h"
#include "head/top/screen/top_screen.h"
#include "head/top/top_frame.h"
#include "head/top/top_layout.h"
#include "head/top/top_lines.h"
#include "head/top/top_view.h"

#define MODULE     "hnlaunch-top.so"
#define JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(5))

enum {
        /* A run sends a frame each second: after five missing frames the run does not answer. */
        ANSWER_MS = 5000,
        TABLE_FRAMES = 4, /* the table is printed at the latest with this line */
        PAPER_WIDTH = 200,
};

static int ask_top(const struct run *r, const char *what, struct error *err)
{
        return run_request(r->socket, json_pack("{s:s}", "do", what), err);
}

/* Tells the verdict of a run from the last line @j. */
static void tell_top_end(const struct run *r, const json_t *j, struct diags *d)
{
        const char *verdict = json_string_value(json_object_get(j, "verdict"));

        if (verdict)
                diag_tell(d, "run %s: %s", r->id, verdict);
}

/* Waits for the next line. NULL with @err: none came. */
static json_t *await_top_line(struct top_lines *l, int fd, struct error *err)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };
        json_t *j = top_lines_take(l);
        ssize_t n;
        int ready;

        while (!j) {
                ready = poll(&p, 1, ANSWER_MS);
                if (ready == 0) {
                        err_set(err, ETIME, "it does not answer");
                        return NULL;
                }
                n = ready < 0 ? -errno : top_lines_read(l, fd);
                j = top_lines_take(l);
                /* 0 is the end of the connection. Earlier lines have been taken. */
                if (!j && n <= 0 && n != -EINTR && n != -EAGAIN) {
                        err_set(err, ECONNRESET, "it ended without an answer");
                        return NULL;
                }
        }
        return j;
}

/* --- lines and tables ------------------------------------------------------------------------- */

/* Writes each line on arrival. */
static int print_top_lines(int fd, struct error *err)
{
        CLEANUP(top_lines_finish) struct top_lines l = { 0 };
        bool over = false;

        while (!over) {
                json_t *j = await_top_line(&l, fd, err);
                CLEANUP(free_textp) char *text = j ? json_dump_plain(j, JSON_FLAGS) : NULL;

                if (!j)
                        return -err->code;
                /* A line without hosts is the last line: the verdict. */
                over = !json_object_get(j, "hosts");
                json_decref(j);
                if (printf("%s\n", text) < 0 || fflush(stdout) != 0)
                        over = true; /* the reader has left */
        }
        return 0;
}

/* Whether each running host has told a processor time. */
static bool frame_is_complete(const struct top_frame *f)
{
        for (size_t i = 0; i < f->n_hosts; i++)
                if (!strcmp(f->hosts[i].state, "running") && f->hosts[i].cpu_percent < 0)
                        return false;
        return f->n_hosts > 0;
}

static void print_top_frame(const struct top_frame *f)
{
        bool tty = isatty(STDOUT_FILENO);
        size_t *order = xcalloc(f->n_hosts, sizeof(*order));
        struct buf b = BUF_INIT;

        top_view_order(f, TOP_BY_ODDITY, order);
        top_layout_table(f, order, tty ? columns_of_terminal(STDOUT_FILENO) : PAPER_WIDTH, &b);
        fwrite(buf_data(&b), 1, buf_len(&b), stdout);
        buf_finish(&b);
        free(order);
}

static int print_top_table(const struct run *r, int fd, struct diags *d, struct error *err)
{
        CLEANUP(top_lines_finish) struct top_lines l = { 0 };
        struct top_frame f;
        bool done = false;

        for (int i = 1; !done; i++) {
                json_t *j = await_top_line(&l, fd, err);

                if (!j)
                        return -err->code;
                if (!json_object_get(j, "hosts")) {
                        tell_top_end(r, j, d);
                        json_decref(j);
                        return 0;
                }
                /* The frame has taken @j. */
                if (!top_frame_read(&f, j))
                        continue;
                /* A processor time needs two samples of a host, so the first frames have none. */
                done = frame_is_complete(&f) || i >= TABLE_FRAMES;
                if (done)
                        print_top_frame(&f);
                top_frame_finish(&f);
        }
        return 0;
}

/* --- the screen ------------------------------------------------------------------------------- */

static int ask_top_why(void *ctx, struct error *err)
{
        return ask_top(ctx, "why", err);
}

static int order_top_stop(void *ctx, struct error *err)
{
        CLEANUP(fd_closep) int fd = ask_top(ctx, "stop", err);

        return MIN(fd, 0);
}

/* Runs `hnlaunch logs` on the terminal. Ctrl-C ends it, and nothing else: the terminal sends SIGINT
 * to both processes, and top ignores SIGINT meanwhile. */
static void show_top_logs(void *ctx, const char *ranks)
{
        const struct run *r = ctx;
        const char *argv[] = { "hnlaunch", "logs",    r->id, "--follow", "--tail",
                               "100",      "--ranks", ranks, NULL };
        static const int keys[] = { SIGINT, SIGQUIT };
        struct sigaction ignore = { .sa_handler = SIG_IGN }, before[ARRAY_SIZE(keys)];
        pid_t pid;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                sigaction(keys[i], &ignore, &before[i]);
        pid = fork_without_signals();
        if (pid == 0) {
                sigset_t none;

                for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                        signal(keys[i], SIG_DFL);
                /* fork_without_signals() leaves all signals blocked in the child. */
                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
                _exit(EX_NOT_FOUND);
        }
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                sigaction(keys[i], &ignore, NULL); /* drops a blocked signal */
                sigaction(keys[i], &before[i], NULL);
        }
}

/* Shows the run on the terminal with the function @show of the module. */
static enum top_screen_end show_top_screen(top_screen_fn *show, const struct run *r, int fd,
                                           json_t **ret_end, int *ret_signal)
{
        struct top_screen s = { .fd = fd,
                                .ask_why = ask_top_why,
                                .stop = order_top_stop,
                                .show_logs = show_top_logs,
                                .ctx = (void *)(uintptr_t)r };

        return show(&s, ret_end, ret_signal);
}

/* Whether ncurses can draw: keys come from a terminal, and TERM names a kind
 * with a movable cursor. */
static bool has_whole_terminal(void)
{
        const char *term = getenv("TERM");

        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
               strcmp(term, "dumb") != 0;
}

int run_top_show(const struct options *o, const struct run *r, struct diags *d, struct error *err)
{
        CLEANUP(fd_closep) int fd = ask_top(r, "top", err);
        top_screen_fn *show = NULL;
        json_t *end = NULL;
        int signo = 0;

        if (fd < 0)
                return fd;
        if (o->json)
                return print_top_lines(fd, err);
        if (!has_whole_terminal())
                return print_top_table(r, fd, d, err);
        /* dlsym() returns a pointer to an object; POSIX allows this form for a function. */
        *(void **)&show = install_path_load(MODULE, "the screen", "top_screen_show", err);
        if (!show) {
                diag_help(
                        diag_warn(d, HN_NO_SCREEN, "there is only a table: %s", err->text),
                        "it is built where ncursesw is: install libncurses-dev, build and install "
                        "hnlaunch again; --json has all figures");
                return print_top_table(r, fd, d, err);
        }
        switch (show_top_screen(show, r, fd, &end, &signo)) {
        case TOP_SCREEN_NO_CURSOR:
                return print_top_table(r, fd, d, err);
        case TOP_SCREEN_RUN_ENDED:
                if (!end)
                        return err_set(err, ECONNRESET, "it ended without an answer");
                tell_top_end(r, end, d);
                json_decref(end);
                return 0;
        case TOP_SCREEN_QUIT:
                break;
        }
        return signo;
}

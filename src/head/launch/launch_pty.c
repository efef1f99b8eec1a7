/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --pty: a rank has a terminal of its own on its node, and the terminal of hnlaunch is a window to
 * it
 *
 * While the rank lives every key goes to the rank, Ctrl-C, Ctrl-Z and Ctrl-\ included, and output
 * is shown unchanged. Before and after, and for the messages of hnlaunch, the terminal is in its
 * usual mode: only the input is raw.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/launch/launch_private.h"
#include "head/term/columns.h"

struct launch_pty {
        struct launch *launch;
        int rank;
        struct termios before;
        bool raw;         /* @before is to be set again */
        bool has_resized; /* @resized is an open handle */
        uv_signal_t resized;
};

/* --- the terminal ----------------------------------------------------------------------------- */

/* Makes the input raw: the terminal of the rank turns keys into signals and lines. Output stays
 * cooked, for messages of hnlaunch. */
static void give_keys_to_rank(struct launch_pty *p)
{
        struct termios raw;

        if (p->raw || tcgetattr(STDIN_FILENO, &p->before) < 0)
                return;
        raw = p->before;
        raw.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INLCR | IGNCR | INPCK | ISTRIP | IXON);
        raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN | ISIG);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        p->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void take_keys_back(struct launch_pty *p)
{
        if (p->raw)
                tcsetattr(STDIN_FILENO, TCSADRAIN, &p->before);
        p->raw = false;
}

static void on_pty_event(void *ctx, const struct event *e)
{
        struct launch_pty *p = ctx;

        if (e->kind == EVENT_RANK_STARTED && e->rank == p->rank)
                give_keys_to_rank(p);
        else if (e->kind == EVENT_RANK_EXITED && e->rank == p->rank)
                take_keys_back(p);
}

struct launch_terminal launch_pty_describe(const struct launch *l)
{
        struct launch_terminal t = { .rank = MSG_NO_RANK };
        const char *term = getenv("TERM");

        if (!l->streams.pty)
                return t;
        t = (struct launch_terminal){ .rank = (uint32_t)l->streams.pty->rank,
                                      .rows = (uint32_t)columns_rows_of_terminal(STDIN_FILENO),
                                      .columns = (uint32_t)columns_of_terminal(STDIN_FILENO) };
        snprintf(t.term, sizeof(t.term), "%s", term ? term : "");
        return t;
}

static void on_window_resized(uv_signal_t *h, int signo UNUSED)
{
        struct launch_pty *p = h->data;
        struct launch_terminal now = launch_pty_describe(p->launch);

        /* Only the size has changed. */
        *now.term = '\0';
        job_resize(p->launch->run->job, &now);
}

/* --- life cycle ------------------------------------------------------------------------------- */

int launch_pty_open(struct launch *l)
{
        struct launch_pty *p;

        if (l->o->pty_rank == PTY_NONE)
                return 0;
        if (!isatty(STDIN_FILENO)) {
                diag_help(diag_add(&l->diags, HN_NO_TERMINAL, EX_USAGE,
                                   "--pty needs a terminal: standard input is none"),
                          "leave it out, or start hnlaunch in a terminal (ssh -t, script)");
                return verdict_nothing_started(l, EX_USAGE);
        }
        p = xcalloc(1, sizeof(*p));
        p->launch = l;
        l->streams.pty = p;
        return 0;
}

int launch_pty_check_rank(struct launch *l)
{
        const struct launch_pty *p = l->streams.pty;

        if (!p || p->rank < l->plan.world_size)
                return 0;
        diag_help(diag_add(&l->diags, HN_NO_SUCH_RANK, EX_USAGE, "--pty %d: the ranks are 0 to %d",
                           p->rank, l->plan.world_size - 1),
                  "for example --pty=0");
        return verdict_nothing_started(l, EX_USAGE);
}

int launch_pty_choose_rank(struct launch *l)
{
        struct launch_pty *p = l->streams.pty;
        int rc;

        if (!p)
                return 0;
        p->rank = l->o->pty_rank;
        if (p->rank == PTY_FIRST)
                p->rank = launch_setup_first_rank(l->o);
        rc = launch_pty_check_rank(l);
        if (rc)
                return rc;
        events_listen(&l->events, on_pty_event, p);
        uv_signal_init(job_loop(l->run->job), &p->resized);
        p->has_resized = true;
        p->resized.data = p;
        uv_unref((uv_handle_t *)&p->resized);
        uv_signal_start(&p->resized, on_window_resized, SIGWINCH);
        return 0;
}

int launch_pty_rank(const struct launch *l)
{
        return l->streams.pty ? l->streams.pty->rank : -1;
}

void launch_pty_close(struct launch *l)
{
        struct launch_pty *p = l->streams.pty;

        if (!p)
                return;
        take_keys_back(p);
        /* The handle is part of @p, which is freed after the loop has closed it. */
        if (p->has_resized)
                uv_close((uv_handle_t *)&p->resized, NULL);
        p->has_resized = false;
}

void launch_pty_free(struct launch *l)
{
        free(l->streams.pty);
        l->streams.pty = NULL;
}

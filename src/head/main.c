/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch: starts one program on every slot of many nodes
 */
#include <locale.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "head/launch.h"

/* Wrong settings are what `config` is there to look at: the table comes with the errors. */
static bool shows_config(const struct run *r)
{
        const struct diag *d = diags_first_error(&r->diags);

        return r->o.command == COMMAND_CONFIG && (!d || d->exit == 78);
}

static int command(struct run *r, int argc, char **argv)
{
        if (options_load(&r->o, argc, argv, &r->diags) < 0) {
                if (shows_config(r))
                        options_print_config(&r->o);
                r->color = run_choose_color(&r->o);
                return run_nothing(r, 64);
        }
        switch (r->o.command) {
        case COMMAND_HELP:
                options_print_help(r->o.help_topic);
                return 0;
        case COMMAND_VERSION:
                options_print_version();
                return 0;
        case COMMAND_CONFIG:
                options_print_config(&r->o);
                run_say(r);
                return 0;
        default:
                return run_launch(r);
        }
}

int main(int argc, char **argv)
{
        struct run r = { .stdin_fd = -1, .manifest = MANIFEST_INIT };
        int rc, signo;

        rc = fd_open_standard();
        if (rc < 0) {
                fprintf(stderr, "hnlaunch: cannot open /dev/null: %s\n", strerror(-rc));
                return 125;
        }
        setlocale(LC_CTYPE, "");
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a log that may not grow is an error of write() */
        events_init(&r.events);
        if (sodium_init() < 0) {
                fputs("hnlaunch: cannot get random bytes from this system\n", stderr);
                return 125;
        }
        rc = command(&r, argc, argv);
        signo = r.job && job_outcome(r.job)->cause.kind == CAUSE_ORDER
                        ? job_outcome(r.job)->cause.signal
                        : 0;
        rc = run_close_stdout(&r, rc);
        run_finish(&r);
        if (signo) {
                /* Die of what we were told to die of, so that shells and make stop, too. */
                fflush(NULL);
                signal(signo, SIG_DFL);
                raise(signo);
        }
        return rc;
}

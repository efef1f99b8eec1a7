/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch: starts a program on every slot of many nodes
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "head/commands/run_commands.h"
#include "head/dial_in/dial_secret.h"
#include "head/launch.h"
#include "head/options/config.h"
#include "head/options/explain.h"

enum { HN_ABORTED = 908 };

/* Writes a part of the last message; async-signal-safe. */
static void put_last_words(const char *text)
{
        if (write(STDERR_FILENO, text, strlen(text)) < 0)
                errno = 0; /* stderr is closed: there is no other place */
}

/* libuv calls abort() when the kernel refuses what the event loop needs. Tells the error; 125,
 * because 134 is a rank that SIGABRT killed. */
static void on_abort(int signo UNUSED)
{
        const char *why = errno ? strerrordesc_np(errno) : NULL;

        why = why ? why : "an internal error";
        run_socket_abandon();
        dial_secret_remove();
        put_last_words("error[HN908]: hnlaunch cannot go on: ");
        put_last_words(why);
        put_last_words("\nhnlaunch: failed: hnlaunch cannot go on: ");
        put_last_words(why);
        put_last_words("  (exit 125)\n");
        _exit(125);
}

/* Has a command that prints JSON write to the file of --json. 0, or the exit code. */
static int open_json_output(struct launch *l)
{
        const char *path = l->o.json_file;
        int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
        struct error err;

        if (path && (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)) {
                err_set(&err, errno, "cannot write to %s: %s", path, strerror(errno));
                fd_close(fd);
                return verdict_nothing_because(l, 903, 73, &err);
        }
        fd_close(fd);
        return 0;
}

static int do_command(struct launch *l)
{
        int rc = open_json_output(l);

        if (rc)
                return rc;
        if (l->o.command == COMMAND_EXPLAIN) {
                explain_print(&l->o.argv, l->o.json);
                return 0;
        }
        if (l->o.command == COMMAND_CONFIG) {
                config_print(l->o.settings, l->o.json, stdout);
                verdict_say(l);
                return 0;
        }
        rc = run_commands_do(&l->o, &l->diags);

        l->streams.color = launch_setup_choose_color(&l->o);
        verdict_say(l);
        return rc;
}

static int dispatch_command(struct launch *l, int argc, char **argv)
{
        if (options_load(&l->o, argc, argv, &l->diags) < 0) {
                const struct diag *d = diags_first_error(&l->diags);

                /* `hnlaunch config` exists to examine settings: show all, even with bad values.
                 */
                if (l->o.command == COMMAND_CONFIG && (!d || d->exit == 78))
                        config_print(l->o.settings, l->o.json, stdout);
                l->streams.color = launch_setup_choose_color(&l->o);
                return verdict_nothing_started(l, 64);
        }
        switch (l->o.command) {
        case COMMAND_HELP:
                options_print_help(l->o.help_topic, stdout);
                return 0;
        case COMMAND_VERSION:
                options_print_version();
                return 0;
        case COMMAND_EXPLAIN:
        case COMMAND_CONFIG:
        case COMMAND_PS:
        case COMMAND_STOP:
        case COMMAND_SIGNAL:
        case COMMAND_WAIT:
        case COMMAND_ATTACH:
        case COMMAND_RERUN:
        case COMMAND_LOGS:
        case COMMAND_WHY:
        case COMMAND_REPORT:
        case COMMAND_TOP:
                return do_command(l);
        default:
                return launch_run(l);
        }
}

int main(int argc, char **argv)
{
        struct launch l = { .streams.stdin_fd = -1, .manifest = MANIFEST_INIT };
        int rc, signo;

        rc = fd_open_standard();
        if (rc < 0) {
                fprintf(stderr, "hnlaunch: cannot open /dev/null: %s\n", strerror(-rc));
                return 125;
        }
        setlocale(LC_CTYPE, "");
        signal(SIGABRT, on_abort);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* the write of a log beyond the size limit returns EFBIG */
        events_init(&l.events);
        rank_board_open(&l.listeners.ranks, &l.events, &l.plan);
        if (sodium_init() < 0) {
                fputs("hnlaunch: cannot get random bytes from this system\n", stderr);
                return 125;
        }
        if (argc < 2) {
                options_print_help(NULL, stderr);
                return 64;
        }
        rc = dispatch_command(&l, argc, argv);
        signo = l.job && job_outcome(l.job)->cause.kind == CAUSE_ORDER
                        ? job_outcome(l.job)->cause.signal
                        : 0;
        rc = verdict_close_stdout(&l, rc);
        launch_finish(&l);
        if (signo) {
                /* Re-raise the signal, so shells and make stop as well. */
                fflush(NULL);
                signal(signo, SIG_DFL);
                raise(signo);
        }
        return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch: starts a program on every slot of many nodes
 *
 * main() prepares what all commands need (standard descriptors, signals, random bytes), reads the
 * options, and goes to a launch or to another command. A launch that was ended by a signal returns
 * it: the process then ends by the same signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/macros.h"
#include "head/commands/run_commands.h"
#include "head/dial_in/dial_secret.h"
#include "head/launch/launch.h"
#include "head/options/config.h"
#include "head/options/explain.h"
#include "head/options/options.h"
#include "head/output/say.h"
#include "head/run/run_socket.h"

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

        _Static_assert(HN_ABORTED == 908, "the words below have the number");
        why = why ? why : "an internal error";
        run_socket_abandon();
        dial_secret_remove();
        put_last_words("error[HN908]: hnlaunch cannot go on: ");
        put_last_words(why);
        put_last_words("\nhnlaunch: failed: hnlaunch cannot go on: ");
        put_last_words(why);
        put_last_words("  (exit 125)\n");
        _exit(EX_FAILED);
}

/* Closes standard output after a command that launches nothing. Returns the exit code. */
static int finish_command(struct options *o, struct diags *d, int code)
{
        CLEANUP(free_textp) char *name = NULL;
        int error = say_close_stdout(&name);

        if (error && error != EPIPE && !code) {
                diags_finish(d); /* told before */
                diag_add(d, HN_STDOUT_UNWRITTEN, EX_CANTCREAT, "cannot write to %s: %s", name,
                         strerror(error));
                return launch_refuse(o, d, EX_CANTCREAT);
        }
        options_finish(o);
        diags_finish(d);
        return error && !code ? 128 + SIGPIPE : code;
}

/* Has a command that prints JSON write to the file of --json. 0, or the exit code, when all has
 * been ended. */
static int open_json_output(struct options *o, struct diags *d)
{
        const char *path = o->json_file;
        int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;

        if (path && (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)) {
                diag_add(d, HN_NO_LOG_FOLDER, EX_CANTCREAT, "cannot write to %s: %s", path,
                         strerror(errno));
                fd_close(fd);
                return launch_refuse(o, d, EX_CANTCREAT);
        }
        fd_close(fd);
        return 0;
}

static int do_command(struct options *o, struct diags *d)
{
        /* The --json of rerun is one of the run. */
        int rc = o->command == COMMAND_RERUN ? 0 : open_json_output(o, d);

        if (rc)
                return rc;
        if (o->command == COMMAND_EXPLAIN) {
                explain_print(&o->argv, o->json);
                return finish_command(o, d, 0);
        }
        if (o->command == COMMAND_CONFIG) {
                config_print(o->settings, o->json, stdout);
                say_diags(d, false);
        } else {
                rc = run_commands_do(o, d);
                say_diags(d, say_has_color(o));
        }
        return finish_command(o, d, rc);
}

/* Connects to the hosts as a launch does, and prints results. */
static int launch_and_list(struct options *o, struct diags *d, int *ret_signal)
{
        int rc = open_json_output(o, d);

        return rc ? rc : launch_run(o, d, ret_signal);
}

/* Each command frees options and messages itself, and returns the exit code. */
static int dispatch_command(struct options *o, struct diags *d, int *ret_signal)
{
        switch (o->command) {
        case COMMAND_RUN:
        case COMMAND_PLAN:
        case COMMAND_CHECK:
        case COMMAND_HOLD:
                return launch_run(o, d, ret_signal);
        case COMMAND_HOSTS:
                return o->probe ? launch_and_list(o, d, ret_signal) : do_command(o, d);
        case COMMAND_STAGE:
                return launch_and_list(o, d, ret_signal);
        case COMMAND_HELP:
                options_print_help(o->help_topic, stdout);
                return finish_command(o, d, 0);
        case COMMAND_VERSION:
                options_print_version();
                return finish_command(o, d, 0);
        default:
                return do_command(o, d);
        }
}

/* Tells errors of options and configuration. Returns the exit code. */
static int refuse_options(struct options *o, struct diags *d)
{
        const struct diag *first = diags_first_error(d);

        /* `hnlaunch config` exists to examine settings: show all, even with bad values. */
        if (o->command == COMMAND_CONFIG && (!first || first->exit == 78))
                config_print(o->settings, o->json, stdout);
        return launch_refuse(o, d, EX_USAGE);
}

int main(int argc, char **argv)
{
        struct options o;
        struct diags d = DIAGS_INIT;
        int rc, signo = 0;

        rc = fd_open_standard();
        if (rc < 0) {
                fprintf(stderr, "hnlaunch: cannot open /dev/null: %s\n", strerror(-rc));
                return EX_FAILED;
        }
        setlocale(LC_CTYPE, "");
        signal(SIGABRT, on_abort);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* the write of a log beyond the size limit returns EFBIG */
        if (sodium_init() < 0) {
                fputs("hnlaunch: cannot get random bytes from this system\n", stderr);
                return EX_FAILED;
        }
        if (argc < 2) {
                options_print_help(NULL, stderr);
                return EX_USAGE;
        }
        rc = options_load(&o, argc, argv, &d) < 0 ? refuse_options(&o, &d)
                                                  : dispatch_command(&o, &d, &signo);
        if (signo) {
                /* Re-raise the signal, so shells and make stop as well. */
                fflush(NULL);
                signal(signo, SIG_DFL);
                raise(signo);
        }
        return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch-agent: started by hnlaunch on every node; standard input and output are the head
 */
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/contain/guard.h"
#include "agent/container/container.h"
#include "agent/core/call_home.h"
#include "agent/rank/limits.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/macros.h"

enum { LOOP_FDS = 8 }; /* for libuv */

static const char about[] =
        "hnlaunch-agent is a part of hnlaunch, which starts it on every node and talks to it\n"
        "through its standard input and output. It is of no use by itself: run hnlaunch.\n";

static void on_signal(uv_signal_t *handle, int signo)
{
        agent_signalled(handle->data, signo);
}

/* Undoes settings of a login shell: descriptors not meant for workers, and ignored or blocked
 * signals, without which the end of a child would go unnoticed. */
static void reset_process(void)
{
        sigset_t none;

        syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

static int run_agent_loop(struct guard_notes *notes)
{
        static const int signals[] = { SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2 };
        uv_signal_t watch[ARRAY_SIZE(signals)];
        struct error err;
        struct agent *a;
        /* Static, as the loop may outlive this function: a thread that looks for the file of
         * --ready is not waited for, since its file system may not answer. */
        static uv_loop_t loop;
        int r;

        /* Ranks inherit the limits. */
        limits_raise();
        r = fd_check_room(LOOP_FDS);
        if (!r)
                r = uv_loop_init(&loop);
        if (r < 0) {
                fprintf(stderr, "hnlaunch-agent: cannot start the event loop: %s\n", strerror(-r));
                return EX_OSERR;
        }
        a = agent_create(&loop, STDIN_FILENO, STDOUT_FILENO, notes, &err);
        if (!a) {
                fprintf(stderr, "hnlaunch-agent: %s\n", err.text);
                uv_loop_close(&loop);
                return EX_OSERR;
        }
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                uv_signal_init(&loop, &watch[i]);
                watch[i].data = a;
                uv_signal_start(&watch[i], on_signal, signals[i]);
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                uv_close((uv_handle_t *)&watch[i], NULL);
        agent_destroy(a);
        uv_loop_close(&loop);
        return 0;
}

static int run_guarded_agent(void)
{
        reset_process();
        return guard_run(run_agent_loop);
}

/* With a container this process is replaced by the container's program, and the agent starts
 * inside. */
static int run_agent(void)
{
        return container_is_ordered() ? container_enter() : run_guarded_agent();
}

/* Goes on inside of a container. */
static int run_agent_inside(bool remove)
{
        int code = container_arrive(remove);

        return code ? code : run_guarded_agent();
}

int main(int argc, char **argv)
{
        struct stat st;

        if (fd_open_standard() < 0)
                return EX_OSERR;
        if (argc == 2 && !strcmp(argv[1], "-V")) {
                puts("hnlaunch-agent " HNLAUNCH_VERSION);
                return 0;
        }
        /* By its size the head's remote command tells a complete agent from a damaged one. */
        if (argc == 2 && !strcmp(argv[1], "-s")) {
                if (stat("/proc/self/exe", &st) < 0)
                        return EX_OSERR;
                printf("%jd\n", (intmax_t)st.st_size);
                return 0;
        }
        if (argc == 2 && !strcmp(argv[1], "--call"))
                return call_home(run_agent);
        if (argc > 1 && !strcmp(argv[1], "--inside"))
                return run_agent_inside(argc > 2);
        /* A person has called the program. */
        if (argc > 1 || isatty(STDIN_FILENO)) {
                fputs(about, stderr);
                return EX_USAGE;
        }
        return run_agent();
}

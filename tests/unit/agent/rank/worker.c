/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a rank while the agent does not know yet that its program runs. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent/rank/worker.h"
#include "lib/files.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

/* Returns the number in a file of the scratch folder; 0 = there is none yet. */
static pid_t read_pid(const char *name)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", scratch, name);
        FILE *f = fopen(path, "re");
        int pid = 0;

        if (f && fscanf(f, "%d\n", &pid) != 1)
                pid = 0;
        if (f)
                fclose(f);
        return pid;
}

/* Whether a child of this process has ended by SIGTERM. */
static bool has_obeyed(pid_t pid)
{
        int status;

        return waitpid(pid, &status, WNOHANG) == pid && WIFSIGNALED(status) &&
               WTERMSIG(status) == SIGTERM;
}

TEST(a_signal_reaches_the_children_of_a_program_that_is_not_known_to_run)
{
        CLEANUP(strv_finish) struct strv argv = STRV_INIT, env = STRV_INIT;
        struct launch_order order = { .stdin_rank = MSG_EVERY_RANK - 1,
                                      .terminal.rank = MSG_EVERY_RANK,
                                      .window = 4096 };
        struct contain contain = { 0 };
        struct uplink up = { 0 };
        uv_loop_t loop;
        struct worker_setup setup = { .loop = &loop,
                                      .up = &up,
                                      .order = &order,
                                      .argv = &argv,
                                      .env = &env,
                                      .cwd = scratch,
                                      .null = -1,
                                      .contain = &contain };
        struct worker *w;
        struct error err;
        pid_t child;

        /* The child of a program that has ended becomes one of this process. */
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        assert_int_equal(uv_loop_init(&loop), 0);
        setup.warm = warm_create(&loop, &up);
        strv_push(&argv, "/bin/sh");
        strv_push(&argv, "-c");
        strv_push(&argv, "sleep 600 & echo $! >child; wait");
        strv_push(&env, "PATH=/usr/bin:/bin");
        w = worker_start(&setup, &err);
        assert_non_null(w);
        wait_for(read_pid("child"));
        child = read_pid("child");
        assert_false(w->started);
        worker_signal(w, SIGTERM);
        wait_for(has_obeyed(w->pid));
        wait_for(has_obeyed(child));

        worker_destroy(w);
        warm_close(setup.warm);
        uv_run(&loop, UV_RUN_DEFAULT);
        warm_destroy(setup.warm);
        assert_int_equal(uv_loop_close(&loop), 0);
        buf_finish(&up.out);
}

UNIT_MAIN(make_scratch, remove_scratch)

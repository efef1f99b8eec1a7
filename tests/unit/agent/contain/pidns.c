/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/contain/pidns.h"
#include "agent/core/proc.h"
#include "base/fd.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

static int gate[2];
static bool gate_closed = true;

/* Runs in a new process before fork() returns there. */
static void wait_at_gate(void)
{
        char nothing;

        if (!gate_closed)
                return;
        fd_close(gate[1]);
        if (read(gate[0], &nothing, 1) < 0)
                _exit(1);
}

static bool has_zombie_only(pid_t of)
{
        struct pids pids = PIDS_INIT;
        struct proc_stat p;
        bool is;

        proc_children(of, &pids);
        is = pids.n == 1 && proc_read_stat(&p, pids.v[0]) && p.state == 'Z';
        pids_finish(&pids);
        return is;
}

static size_t count_children(pid_t of)
{
        struct pids pids = PIDS_INIT;
        size_t n;

        proc_children(of, &pids);
        n = pids.n;
        pids_finish(&pids);
        return n;
}

/* A loaded node runs the keeper late: ranks have started, and orphans of theirs have died. */
TEST(late_keeper_reaps_orphans_that_died_before)
{
        struct pidns p = { 0 };
        struct error err;
        pid_t parent;

        assert_int_equal(pipe(gate), 0);
        assert_int_equal(pthread_atfork(NULL, NULL, wait_at_gate), 0);
        if (pidns_enter(&p, &err) < 0) {
                print_message("skipped: %s\n", err.text);
                skip();
        }
        gate_closed = false;
        parent = fork();
        if (!parent)
                _exit(fork() < 0);
        assert_int_equal(waitpid(parent, NULL, 0), parent);
        wait_for(has_zombie_only(p.keeper));
        fd_close(gate[1]); /* lets the keeper go */
        wait_for_equal(count_children(p.keeper), 0);
}

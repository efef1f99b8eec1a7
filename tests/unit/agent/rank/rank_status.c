/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells of a rank's processes. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/rank/rank_status.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

TEST(a_name_may_contain_anything)
{
        struct proc_stat p;

        assert_true(proc_parse_stat(&p, "42 (a) R 1 (b)) T 7 41 40 34816 41 4194304 1 2 3 4 100 23 "
                                        "0 0 20 0 1 0 98765 1 2 3\n"));
        assert_int_equal(p.pid, 42);
        assert_int_equal(p.state, 'T');
        assert_int_equal(p.parent, 7);
        assert_int_equal(p.session, 40);
        assert_int_equal(p.cpu_ticks, 123);
        assert_int_equal(p.start_ticks, 98765);
        assert_false(proc_parse_stat(&p, "42 (a) R 1"));
        assert_false(proc_parse_stat(&p, ""));
}

/* A worker in a session of its own that runs @run after it has become one. */
static pid_t worker(void (*run)(void))
{
        int ready[2];
        char c;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                setsid();
                close(ready[0]);
                (void)!write(ready[1], "", 1);
                close(ready[1]);
                run();
                _exit(0);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &c, 1), 1);
        close(ready[0]);
        return pid;
}

static struct node_status_rank look_at(pid_t pid)
{
        struct node_status_rank k = { 0 };
        struct rank_status_scan s;

        rank_status_scan(&s);
        rank_status_look(&s, pid, &k);
        rank_status_scan_finish(&s);
        return k;
}

static void end(pid_t pid)
{
        kill(-pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void sleep_long(void)
{
        pause();
}

static void spin(void)
{
        for (;;)
                ;
}

/* Like a shell that starts python. */
static void parent_of_spinner(void)
{
        if (fork() == 0)
                spin();
        wait(NULL);
}

TEST(states_of_a_worker)
{
        pid_t pid = worker(sleep_long);

        wait_for_equal(look_at(pid).state, 'S');
        kill(pid, SIGSTOP);
        wait_for_equal(look_at(pid).state, 'T');
        end(pid);
        assert_int_equal(look_at(pid).state, 0);
        assert_int_equal(look_at(pid).pid, pid);
}

TEST(a_shell_is_what_it_runs)
{
        pid_t pid = worker(parent_of_spinner);
        struct node_status_rank k;

        wait_for_equal((k = look_at(pid)).state, 'R');
        assert_int_equal(k.pid, pid);
        wait_for((k = look_at(pid)).cpu_percent > 0);
        assert_true(k.started_ms < 60000);
        end(pid);
}

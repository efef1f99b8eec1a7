/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/contain/contain.h"
#include "agent/contain/pidns.h"
#include "agent/core/job_dir.h"
#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "base/strv.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

static bool listed(const struct pids *p, pid_t pid)
{
        for (size_t i = 0; i < p->n; i++)
                if (p->v[i] == pid)
                        return true;
        return false;
}

static bool is_child(struct pids *children, pid_t pid)
{
        pids_finish(children);
        proc_children(getpid(), children);
        return listed(children, pid);
}

static pid_t start(const char *script, const char *mark, int out)
{
        const char *argv[] = { "sh", "-c", script, NULL };
        const char *env[] = { "PATH=/usr/bin:/bin", mark, NULL };
        struct spawn s = { .argv = (char **)argv,
                           .env = (char **)env,
                           .fds = { SPAWN_NULL, out, SPAWN_INHERIT } };
        struct error err;
        pid_t pid;

        if (spawn_process(&pid, &s, NULL, &err) < 0)
                fail_msg("%s", err.text);
        return pid;
}

static pid_t read_pid(int fd)
{
        char text[32] = "";

        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        return (pid_t)atoi(text);
}

static void end(pid_t pid)
{
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(children_are_found_until_they_are_reaped)
{
        CLEANUP(pids_finish) struct pids pids = PIDS_INIT;
        pid_t pid;

        assert_false(proc_any_child());
        pid = start("exec sleep 60", "A=1", SPAWN_NULL);
        assert_true(proc_any_child());
        proc_children(getpid(), &pids);
        assert_int_equal(pids.n, 1);
        assert_int_equal(pids.v[0], pid);
        kill(pid, SIGKILL);
        assert_true(proc_any_child()); /* a zombie counts */
        waitpid(pid, NULL, 0);
        assert_false(proc_any_child());
}

TEST(who_flees_by_double_fork_and_setsid_becomes_a_child)
{
        struct pids pids = PIDS_INIT;
        int fds[2];
        pid_t pid, fled;

        assert_int_equal(pipe(fds), 0);
        pid = start("(setsid sh -c 'echo $$; exec sleep 60' &) ; exit 0", "A=1", fds[1]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        fled = read_pid(fds[0]);
        assert_true(proc_any_child());
        /* The shell in between may live a moment longer than its parent. */
        wait_for(is_child(&pids, fled));
        end(fled);
        while (waitpid(-1, NULL, 0) > 0)
                ;
        assert_false(proc_any_child());
        pids_finish(&pids);
        fd_close(fds[0]);
        fd_close(fds[1]);
}

/* The grandchild is none of our children while its parent lives: like a process that a service
 * started for the job. */
TEST(marked_strangers_are_found_by_the_whole_mark)
{
        /* Of this run: the same test may run elsewhere on the machine. */
        char *mark = xasprintf("/run/%d/store", (int)getpid()),
             *pair = xasprintf("HN_STORE=%s", mark);
        CLEANUP(free_textp)
        char *shorter = strndup(mark, strlen(mark) - 1), *longer = xasprintf("%s2", mark);
        struct pids pids = PIDS_INIT;
        int fds[2];
        pid_t pid, stranger;

        assert_int_equal(pipe(fds), 0);
        pid = start("sleep 60 & echo $!; wait", pair, fds[1]);
        stranger = read_pid(fds[0]);
        proc_marked(&pids, "HN_STORE", mark, 0);
        assert_int_equal(pids.n, 1);
        assert_int_equal(pids.v[0], stranger);
        pids_finish(&pids);
        proc_marked(&pids, "HN_STORE", shorter, 0);
        proc_marked(&pids, "HN_STORE", longer, 0);
        proc_marked(&pids, "N_STORE", mark, 0);
        proc_marked(&pids, "HN_STORE", mark, proc_newest());
        assert_int_equal(pids.n, 0);
        proc_marked(&pids, "HN_STORE", mark, stranger - 1);
        assert_int_equal(pids.n, 1);
        pids_finish(&pids);
        kill(stranger, SIGKILL);
        end(pid);
        while (waitpid(-1, NULL, 0) > 0)
                ;
        fd_close(fds[0]);
        fd_close(fds[1]);
        free(mark);
        free(pair);
}

/* For a moment of every exec() a process has no environment. */
TEST(marked_strangers_are_found_while_they_start_programs)
{
        char *mark = xasprintf("/run/%d/store", (int)getpid()),
             *pair = xasprintf("HN_STORE=%s", mark);
        struct pids pids = PIDS_INIT;
        int fds[2], found = 0;
        pid_t pid, stranger;

        assert_int_equal(pipe(fds), 0);
        pid = start("TEST=$PPID AGAIN='[ -d /proc/$TEST ] && exec sh -c \"$AGAIN\"'; export TEST "
                    "AGAIN; "
                    "sh -c \"$AGAIN\" & echo $!; wait",
                    pair, fds[1]);
        stranger = read_pid(fds[0]);
        for (int i = 0; i < 100; i++) {
                proc_marked(&pids, "HN_STORE", mark, stranger - 1);
                found += pids.n == 1;
                pids_finish(&pids);
        }
        kill(stranger, SIGKILL);
        end(pid);
        while (waitpid(-1, NULL, 0) > 0)
                ;
        assert_int_equal(found, 100);
        fd_close(fds[0]);
        fd_close(fds[1]);
        free(mark);
        free(pair);
}

TEST(the_jobs_folder_is_private_and_goes_with_its_files)
{
        struct job_dir d = { 0 };
        struct error err;
        struct stat st;
        char *file, *path;
        size_t removed;
        int fd, why;

        unsetenv("XDG_RUNTIME_DIR");
        assert_int_equal(job_dir_create(&d, &err), 0);
        path = xstrdup(d.path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        for (int i = 0; i < 3; i++) {
                file = xasprintf("%s/%s", d.path,
                                 (const char *[]){ "error-1", "error-2", "store" }[i]);
                fd = creat(file, 0600);
                assert_true(fd >= 0);
                fd_close(fd);
                free(file);
        }
        file = xasprintf("%s/mine", d.path);
        assert_int_equal(mkdir(file, 0700), 0);
        free(file);
        assert_int_equal(job_dir_clear(&d, &removed, &why), 0);
        assert_int_equal(removed, 1); /* error files do not count */
        file = xasprintf("%s/error-2", d.path);
        assert_int_equal(access(file, F_OK), -1);
        free(file);
        assert_int_equal(access(d.store, F_OK), 0);
        job_dir_remove(&d);
        assert_null(d.path);
        assert_int_equal(access(path, F_OK), -1);
        free(path);
}

TEST(a_runtime_folder_that_refuses_is_passed_over)
{
        struct job_dir d = { 0 };
        struct error err;

        setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
        assert_int_equal(job_dir_create(&d, &err), 0);
        assert_null(strstr(d.path, "/nowhere"));
        job_dir_remove(&d);
        unsetenv("XDG_RUNTIME_DIR");
}

enum { NO_NAMESPACE = 77 };

/* Runs in a process namespace with the /proc of the outer one. */
static bool has_translated_numbers(void)
{
        struct pids children = PIDS_INIT;
        const pid_t pid = fork();
        bool ok;

        if (!pid)
                pause();
        proc_children(proc_self(), &children);
        ok = proc_is_outer() && children.n == 1 && proc_local(children.v[0]) == pid &&
             proc_local(proc_self()) == getpid() && !proc_local(INT32_MAX) && !proc_is_gone(pid);
        pids_finish(&children);
        kill(pid, SIGKILL);
        return ok && waitpid(pid, NULL, 0) == pid;
}

static _Noreturn void enter_namespace(void)
{
        struct pidns p = { 0 };
        struct error err;
        int status;
        pid_t pid;

        if (pidns_enter(&p, &err) < 0)
                _exit(NO_NAMESPACE);
        pid = fork();
        if (!pid)
                _exit(!has_translated_numbers());
        if (waitpid(pid, &status, 0) != pid)
                _exit(1);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

TEST(numbers_are_translated_in_a_process_namespace)
{
        int status;
        pid_t pid = fork();

        if (!pid)
                enter_namespace();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_NAMESPACE)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(numbers_stay_without_a_process_namespace)
{
        const pid_t pid = start("exec sleep 60", "A=1", SPAWN_NULL);

        assert_false(proc_is_outer());
        assert_int_equal(proc_self(), getpid());
        assert_int_equal(proc_local(pid), pid);
        assert_false(proc_is_gone(pid));
        end(pid);
        assert_true(proc_is_gone(pid));
}

static int become_subreaper(void **state UNUSED)
{
        return contain_begin(NULL);
}

UNIT_MAIN(become_subreaper, NULL)

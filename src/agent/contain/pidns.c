/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/contain/pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/spawn.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

static int write_proc_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

        fd_close(fd);
        return r;
}

static int map_own_ids(uid_t uid, gid_t gid)
{
        char line[64];
        int r;

        snprintf(line, sizeof(line), "%u %u 1", (unsigned)uid, (unsigned)uid);
        r = write_proc_file("/proc/self/uid_map", line);
        /* An unprivileged process may map its group only after giving up setgroups(). */
        if (!r)
                r = write_proc_file("/proc/self/setgroups", "deny");
        snprintf(line, sizeof(line), "%u %u 1", (unsigned)gid, (unsigned)gid);
        return r ? r : write_proc_file("/proc/self/gid_map", line);
}

/* Kills all processes of the namespace but this one, which is the first. */
static void on_keeper_signal(int signo UNUSED)
{
        kill(-1, SIGKILL);
}

/* Runs until the agent ends, which closes the pipe in any case. Never returns. The first process of
 * a namespace gets only signals for which it has handlers. */
static void run_keeper(int alive)
{
        struct sigaction sa = { .sa_handler = on_keeper_signal, .sa_flags = SA_RESTART };
        sigset_t none;
        char nothing;

        prctl(PR_SET_NAME, "hnlaunch-keeper");
        dup2(alive, 0);
        /* Links of the agent must end with the agent. */
        syscall(SYS_close_range, 1U, ~0U, 0U);
        signal(SIGCHLD, SIG_IGN); /* orphans are reaped by the kernel */
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ; /* ... but those that died before */
        sigaction(SIGUSR1, &sa, NULL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        while (read(0, &nothing, 1) > 0)
                ;
        _exit(0);
}

/* Starts the first process of the namespace. The end of the agent closes the pipe, the keeper ends,
 * and the kernel kills all processes inside. 0, or -errno. */
static int start_keeper(struct pidns *p)
{
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        p->keeper = fork_without_signals();
        if (!p->keeper) {
                close(fds[1]);
                run_keeper(fds[0]);
        }
        fd_close(fds[0]);
        if (p->keeper > 0)
                return 0; /* our end of the pipe stays open as long as we live */
        fd_close(fds[1]);
        p->keeper = 0;
        return -errno;
}

int pidns_enter(struct pidns *p, struct error *err)
{
        uid_t uid = geteuid();
        gid_t gid = getegid();
        int r;

        if (p->keeper)
                return 0;
#ifdef __SANITIZE_ADDRESS__
        /* The leak check at exit runs in a helper process, which would be created inside the
         * namespace, could not see this process, and would wait forever. A check done now is not
         * repeated. */
        __lsan_do_leak_check();
#endif
        r = unshare(CLONE_NEWPID | (uid ? CLONE_NEWUSER : 0)) < 0 ? -errno : 0;
        if (!r && uid)
                r = map_own_ids(uid, gid);
        if (!r)
                r = start_keeper(p);
        return r < 0 ? err_set(err, -r, "no process namespace: %s", strerror(-r)) : 0;
}

int pidns_child(void)
{
        /* A slave gets the mounts of the node, and passes none to the node. */
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
                return -errno;
        return 0;
}

void pidns_kill(const struct pidns *p)
{
        kill(p->keeper, SIGUSR1);
}

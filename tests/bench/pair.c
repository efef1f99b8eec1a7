/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pair.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 300, SPARE_FDS = 64 };

static _Noreturn void die(const char *what)
{
        perror(what);
        exit(1);
}

int pair_accept(int listener)
{
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
                die("bench: accept");
        return fd;
}

void *pair_memory(size_t size)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                die("bench: memory");
        return p;
}

void pair_files(uint32_t n)
{
        struct rlimit files;

        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_max >= n + SPARE_FDS)
                return;
        fprintf(stderr, "bench: %u nodes need more descriptors than %ju\n", n,
                (uintmax_t)files.rlim_max);
        exit(1);
}

static int listen_at(const char *name, int backlog)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s", name);
        if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, backlog) < 0)
                die("bench: listen");
        return fd;
}

/* In the new process: it ends with the first one, and in any case. */
static pid_t fork_bounded(void)
{
        pid_t pid = fork();

        if (pid < 0)
                die("bench: fork");
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                alarm(SECONDS_MAX);
        }
        return pid;
}

void pair_run(const char *word, uint32_t n_nodes, bool (*first)(void *, int),
              bool (*second)(void *, const char *), void *ctx)
{
        char name[64];
        int listener, status, failed = 0;
        pid_t pids[2];

        snprintf(name, sizeof(name), "hnlaunch-bench-%d-%s", (int)getpid(), word);
        listener = listen_at(name, (int)n_nodes);
        pids[0] = fork_bounded();
        if (pids[0] == 0)
                _exit(first(ctx, listener) ? 0 : 1);
        pids[1] = fork_bounded();
        if (pids[1] == 0)
                _exit(second(ctx, name) ? 0 : 1);
        close(listener);
        for (int i = 0; i < 2; i++) {
                pid_t ended = wait(&status);

                if (status == 0)
                        continue;
                failed++;
                kill(ended == pids[0] ? pids[1] : pids[0], SIGKILL);
        }
        if (failed) {
                fprintf(stderr, "bench: %s did not come to an end\n", word);
                exit(1);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawn probe: the floor of a local launch
 *
 * usage: spawn_probe N PROGRAM [ARG...]
 *
 * Starts N processes with posix_spawn (vfork inside), each with a pipe for stdout and one for
 * stderr read to their end, and waits for all.
 */
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void die(const char *what)
{
        perror(what);
        exit(1);
}

static void start(char **argv, struct pollfd *ends)
{
        posix_spawn_file_actions_t actions;
        int fds[2][2], r;
        pid_t pid;

        posix_spawn_file_actions_init(&actions);
        for (int i = 0; i < 2; i++) {
                if (pipe2(fds[i], O_CLOEXEC) < 0)
                        die("pipe");
                posix_spawn_file_actions_adddup2(&actions, fds[i][1], i + 1);
        }
        r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
        if (r != 0) {
                fprintf(stderr, "%s: %s\n", argv[0], strerror(r));
                exit(127);
        }
        posix_spawn_file_actions_destroy(&actions);
        for (int i = 0; i < 2; i++) {
                close(fds[i][1]);
                ends[i] = (struct pollfd){ .fd = fds[i][0], .events = POLLIN };
        }
}

static void drain(struct pollfd *ends, size_t n)
{
        char bytes[65536];
        size_t left = n;

        while (left) {
                if (poll(ends, n, -1) < 0)
                        die("poll");
                for (size_t i = 0; i < n; i++) {
                        if (!ends[i].revents || read(ends[i].fd, bytes, sizeof(bytes)) > 0)
                                continue;
                        close(ends[i].fd);
                        ends[i].fd = -1;
                        left--;
                }
        }
}

int main(int argc, char **argv)
{
        size_t n = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
        struct pollfd *ends = calloc(2 * n + 1, sizeof(*ends));
        int status, failed = 0;

        if (!n || !ends) {
                fputs("usage: spawn_probe N PROGRAM [ARG...]\n", stderr);
                return 64;
        }
        for (size_t i = 0; i < n; i++)
                start(argv + 2, ends + 2 * i);
        drain(ends, 2 * n);
        while (wait(&status) > 0)
                failed |= status;
        free(ends);
        return failed != 0;
}

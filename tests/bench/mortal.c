/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mortal: a rank that says when it dies and when it was there, for tests/bench/failure
 *
 * usage: mortal DIR die         rank 1 of the first attempt kills itself when all are there; the
 * others wait mortal DIR wait        waits mortal DIR flood MB    writes lines of 64 bytes
 *
 * Times are CLOCK_REALTIME in microseconds, in DIR: here.A.R (rank R of attempt A was started),
 * died.A. The barrier of all ranks is made of these files, so that it is the same for every
 * launcher. Nobody waits longer than LIFE seconds.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIFE = 60, LOOK_US = 500, LINE = 64 };

static const char *folder;
static int rank, world, attempt;

static int number(const char *const *names, int otherwise)
{
        for (; *names; names++)
                if (getenv(*names))
                        return atoi(getenv(*names));
        return otherwise;
}

static void find_place(void)
{
        static const char *const ranks[] = { "RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", NULL };
        static const char *const worlds[] = { "WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE",
                                              NULL };
        static const char *const attempts[] = { "TORCHELASTIC_RESTART_COUNT", NULL };

        rank = number(ranks, 0);
        world = number(worlds, 1);
        attempt = number(attempts, 0);
}

static void note(const char *what)
{
        struct timespec t;
        char path[512], text[64];
        int fd, n;

        snprintf(path, sizeof(path), "%s/%s", folder, what);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        clock_gettime(CLOCK_REALTIME, &t);
        n = snprintf(text, sizeof(text), "%lld\n",
                     (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
        if (fd < 0 || write(fd, text, (size_t)n) != n)
                exit(3);
        close(fd);
}

static int all_here(void)
{
        char start[32];
        struct dirent *e;
        DIR *d = opendir(folder);
        int n = 0;

        snprintf(start, sizeof(start), "here.%d.", attempt);
        while (d && (e = readdir(d)))
                n += !strncmp(e->d_name, start, strlen(start));
        if (d)
                closedir(d);
        return n >= world;
}

static void flood(long mb)
{
        static char lines[1 << 16];

        memset(lines, 'x', sizeof(lines));
        for (size_t i = LINE - 1; i < sizeof(lines); i += LINE)
                lines[i] = '\n';
        for (long left = mb * 1000000; left > 0; left -= (long)sizeof(lines))
                if (write(1, lines, sizeof(lines)) != (ssize_t)sizeof(lines))
                        exit(3);
}

static void attend(int mortal)
{
        char what[64];

        snprintf(what, sizeof(what), "here.%d.%d", attempt, rank);
        note(what);
        for (long i = 0; i < LIFE * 1000000L / LOOK_US && !all_here(); i++)
                usleep(LOOK_US);
        if (mortal && attempt == 0 && rank == 1 % world) {
                usleep(300000); /* the launcher has seen all of the start by now */
                note("died.0");
                kill(getpid(), SIGKILL);
        }
        if (mortal && attempt > 0)
                return;
        sleep(LIFE);
}

int main(int argc, char **argv)
{
        if (argc < 3)
                return 64;
        folder = argv[1];
        find_place();
        if (!strcmp(argv[2], "flood") && argc > 3)
                flood(atol(argv[3]));
        else
                attend(!strcmp(argv[2], "die"));
        return 0;
}

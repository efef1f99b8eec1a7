/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Victim: a rank for tests of faults, with descendants that do all they can to outlive it
 *
 * usage: worker_victim DIR [deaf]
 *
 * DIR is where it meets the test; what is there is shown by empty files:
 *
 *   here.R      written by rank R once its descendants are there
 *   stopping.R  SIGTERM came to a deaf rank, which goes on
 *   quiet       while it exists no rank prints anything; then each prints "up R" once
 *   fail        rank 5 exits with 7
 *   done        a rank writes 200 kB to stdout and exits with 0
 *
 * Descendants ignore TERM, HUP and INT; one has a session of its own, one has been orphaned in a
 * third session as well. Nobody lives longer than LIFE seconds, whatever happens.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIFE = 100, LOOK_MS = 20, LINES = 2000 };

static const char *folder, *rank;
static volatile sig_atomic_t told;

static void path_of(char *to, size_t size, const char *name, const char *suffix)
{
        snprintf(to, size, "%s/%s%s%s", folder, name, *suffix ? "." : "", suffix);
}

static int there_is(const char *name)
{
        char path[512];

        path_of(path, sizeof(path), name, "");
        return access(path, F_OK) == 0;
}

static void show(const char *name)
{
        char path[512];
        int fd;

        path_of(path, sizeof(path), name, rank);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0)
                close(fd);
}

static void on_term(int signo)
{
        (void)signo;
        told = 1;
}

/* Holds no stream of the job: the pipes of a rank must not wait for it. */
static void outlive(void)
{
        int null = open("/dev/null", O_RDWR);

        for (int fd = 0; null >= 0 && fd < 3; fd++)
                dup2(null, fd);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        alarm(LIFE);
        for (;;)
                pause();
}

static void leave_descendants(void)
{
        if (fork() == 0) {
                setsid();
                if (fork() == 0) {
                        setsid();
                        outlive(); /* its parent is gone at once */
                }
                _exit(0);
        }
        if (fork() == 0) {
                setsid();
                outlive();
        }
}

static void finish(void)
{
        char line[101];

        memset(line, 'x', 99);
        line[99] = '\n';
        line[100] = '\0';
        for (int i = 0; i < LINES; i++)
                fputs(line, stdout);
        exit(fflush(stdout) == 0 ? 0 : 1);
}

static void look(void)
{
        static int has_shown, has_printed;

        if (told && !has_shown) {
                has_shown = 1;
                show("stopping");
        }
        if (!has_printed && !there_is("quiet")) {
                has_printed = 1;
                printf("up %s\n", rank);
                fflush(stdout);
        }
        if (!strcmp(rank, "5") && there_is("fail"))
                exit(7);
        if (there_is("done"))
                finish();
}

int main(int argc, char **argv)
{
        rank = getenv("HN_RANK");
        if (argc < 2 || !rank)
                return 64;
        folder = argv[1];
        if (argc > 2)
                signal(SIGTERM, on_term);
        leave_descendants();
        show("here");
        for (int i = 0; i < LIFE * 1000 / LOOK_MS; i++) {
                look();
                nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
        }
        return 99;
}

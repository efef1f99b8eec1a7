/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Census: what a worker, its agent and hnlaunch hold, to find what grows from round to round
 *
 *     census_open(&c, PID-FILE);                the file has the PID of hnlaunch
 *     census_take(&c, 0); ... census_take(&c, 1);
 *     census_settle(&c);                        at the end
 *     census_print(&c);                         lines "WHO WHAT FIRST LAST"
 *
 * Kept are the smallest numbers of each of two periods: of descriptors, threads, memory maps, KiB
 * of private memory (pages of files come and go), KiB that a worker has from malloc, and keys in
 * the store. What grows by one each round cannot have the same smallest number in both. A worker
 * that is looked at should have MALLOC_ARENA_MAX=1: each thread of glibc may begin an arena, which
 * then stays. Its private memory grows in steps all the same, because the heap gets holes.
 */
#pragma once

#include <dirent.h>
#include <malloc.h>
#include <string.h>

#include "../clients/claim.h"
#include "wait_for.h"

enum { CENSUS_PROCESSES = 3, CENSUS_PERIODS = 2, CENSUS_SETTLE_MS = 20000 };
enum census_figure { DESCRIPTORS, THREADS, MAPS, KIB, CENSUS_FIGURES };

struct census {
        long pids[CENSUS_PROCESSES]; /* worker, agent, head */
        long keys[CENSUS_PERIODS], heap[CENSUS_PERIODS], taken[CENSUS_PERIODS];
        long least[CENSUS_PERIODS][CENSUS_PROCESSES][CENSUS_FIGURES];
};

static inline long census_entries(long pid, const char *folder)
{
        char path[64];
        struct dirent *entry;
        long n = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%ld/%s", pid, folder);
        d = opendir(path);
        CLAIM(d);
        while ((entry = readdir(d)))
                n += entry->d_name[0] != '.';
        closedir(d);
        return n;
}

/* The lines of a file of a process; with @name the number that follows it. */
static inline long census_lines(long pid, const char *file, const char *name)
{
        char path[64], line[512];
        long n = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%ld/%s", pid, file);
        f = fopen(path, "re");
        CLAIM(f);
        while (fgets(line, sizeof(line), f))
                if (!name)
                        n++;
                else if (strncmp(line, name, strlen(name)) == 0)
                        n = strtol(line + strlen(name), NULL, 10);
        fclose(f);
        return n;
}

/* Returns 0 while the file has no whole line. */
static inline long census_pid(const char *path)
{
        char line[32] = "";
        FILE *f = fopen(path, "re");

        if (!f)
                return 0;
        if (!fgets(line, sizeof(line), f) || !strchr(line, '\n'))
                line[0] = 0;
        fclose(f);
        return strtol(line, NULL, 10);
}

/* Waits for the script, which writes the file when it knows the PID. The line makes hnlaunch start
 * the thread and open the file that it needs for output, which a warning of its own would do later.
 */
static inline void census_open(struct census *c, const char *pid_file)
{
        fputs("census begins\n", stderr);
        *c = (struct census){ .pids = { getpid(), getppid() } };
        wait_for((c->pids[2] = census_pid(pid_file)) != 0);
}

static inline void census_keep(long *least, long seen, int is_first)
{
        if (is_first || seen < *least)
                *least = seen;
}

static inline void census_take(struct census *c, int period)
{
        int is_first = c->taken[period]++ == 0;
        struct mallinfo2 heap = mallinfo2();
        size_t keys = 0;

        for (int p = 0; p < CENSUS_PROCESSES; p++) {
                long *least = c->least[period][p], pid = c->pids[p];

                census_keep(&least[DESCRIPTORS], census_entries(pid, "fd"), is_first);
                census_keep(&least[THREADS], census_entries(pid, "task"), is_first);
                census_keep(&least[MAPS], census_lines(pid, "maps", NULL), is_first);
                census_keep(&least[KIB], census_lines(pid, "status", "RssAnon:"), is_first);
        }
        CLAIM(hn_store_num_keys(hn_store_default(), &keys) == HN_OK);
        census_keep(&c->keys[period], (long)keys, is_first);
        census_keep(&c->heap[period], (long)((heap.uordblks + heap.hblkhd) / 1024), is_first);
}

/* Goes on with the last period until threads that end, and what they have open, are gone. */
static inline void census_settle(struct census *c)
{
        const long *first = c->least[0][0], *last = c->least[1][0];
        int64_t begin = wait_now_ms();

        while ((last[DESCRIPTORS] > first[DESCRIPTORS] || last[THREADS] > first[THREADS]) &&
               wait_now_ms() - begin < CENSUS_SETTLE_MS) {
                nanosleep(&(struct timespec){ .tv_nsec = WAIT_LOOK_MS * 1000000L }, NULL);
                census_take(c, 1);
        }
}

static inline void census_print(const struct census *c)
{
        static const char *const who[] = { "worker", "agent", "head" };
        static const char *const what[] = { "descriptors", "threads", "maps", "KiB" };

        for (int p = 0; p < CENSUS_PROCESSES; p++)
                for (int f = 0; f < CENSUS_FIGURES; f++)
                        printf("%s %s %ld %ld\n", who[p], what[f], c->least[0][p][f],
                               c->least[1][p][f]);
        printf("worker heap-KiB %ld %ld\n", c->heap[0], c->heap[1]);
        printf("store keys %ld %ld\n", c->keys[0], c->keys[1]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow: one rank needs longer than the others, and everybody learns who
 *
 *     hnlaunch --local 4 build/examples/slow 2         rank 2 is five times as slow
 *     hnlaunch --local 4 build/examples/slow 2 30      thirty steps; press Ctrl-\ meanwhile
 *
 * All ranks wait for the slowest in each step, so the time of a step does not tell who it is. What
 * a rank needed for its own work does: gathered after each step, it is a few bytes.
 */
#include <hnlaunch/hnlaunch.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TIMEOUT_MS = 60000, WORK_MS = 20, SLOWER = 5 };

static double now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Stands for a step of training. */
static double work(int ms)
{
        struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
        double begun = now_ms();

        nanosleep(&t, NULL);
        return now_ms() - begun;
}

static int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

/* Who took longest, by how much of what half of the ranks took. */
static int slowest(const double *ms, int n, double *times)
{
        double *sorted = malloc((size_t)n * sizeof(*sorted));
        int worst = 0;

        if (!sorted)
                return -1;
        for (int i = 0; i < n; i++) {
                sorted[i] = ms[i];
                if (ms[i] > ms[worst])
                        worst = i;
        }
        qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
        *times = ms[worst] / sorted[(n - 1) / 2];
        free(sorted);
        return worst;
}

static hn_status one_step(int step, int steps, int ms)
{
        double mine = work(ms), times = 0, *each = calloc((size_t)hn_world_size(), sizeof(*each));
        hn_status status = each ? HN_OK : hn_set_error(HN_ERR_NOMEM, "out of memory");
        int worst;

        if (status == HN_OK)
                status = hn_all_gather_bytes(NULL, &mine, sizeof(mine), each, TIMEOUT_MS);
        worst = status == HN_OK ? slowest(each, hn_world_size(), &times) : -1;
        if (hn_rank() == 0 && worst >= 0 && times > 2)
                printf("step %d: rank %d on %s takes %.1f times as long as the others\n", step,
                       worst, hn_hostname_of(worst), times);
        free(each);
        return status == HN_OK ? hn_progress(step, steps, NULL) : status;
}

int main(int argc, char **argv)
{
        int victim = argc > 1 ? atoi(argv[1]) : -1, steps = argc > 2 ? atoi(argv[2]) : 5;
        hn_status status = hn_init(NULL);

        for (int step = 1; step <= steps && status == HN_OK; step++)
                status = one_step(step, steps, hn_rank() == victim ? SLOWER * WORK_MS : WORK_MS);
        if (status != HN_OK)
                return fprintf(stderr, "slow: %s\n", hn_last_error()), 1;
        return hn_finalize();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks: a worker that prints its rank, the processors on which it may run, and OMP_NUM_THREADS
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16384 };

int main(void)
{
        static const char *const names[] = { "HN_RANK", "OMP_NUM_THREADS" };
        cpu_set_t *cpus = CPU_ALLOC(MOST);
        size_t size = CPU_ALLOC_SIZE(MOST);
        const char *values[2], *comma = "";

        for (int i = 0; i < 2; i++)
                values[i] = getenv(names[i]) ? getenv(names[i]) : "-";
        if (!cpus || sched_getaffinity(0, size, cpus) < 0)
                return 1;
        printf("%s:", values[0]);
        for (int cpu = 0; cpu < MOST; cpu++)
                if (CPU_ISSET_S((size_t)cpu, size, cpus)) {
                        printf("%s%d", comma, cpu);
                        comma = ",";
                }
        printf(":%s\n", values[1]);
        CPU_FREE(cpus);
        return 0;
}

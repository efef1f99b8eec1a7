/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_waiting RANK... [late|idle|busy]: these ranks never open the library, the others wait for
 * them in a barrier. late: they arrive after two seconds. idle: they end after two seconds, and no
 * rank waits. busy: the others wait only after four seconds.
 *
 * With MEET_IN=FOLDER the others start at the same moment, however long each needs to start, and
 * the two seconds begin then.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/wait_for.h"
#include "claim.h"

static const char *meet_in, *run, *me;

static void name_sign(char *to, size_t size, const char *rank)
{
        snprintf(to, size, "%s/%s.%s", meet_in, run, rank);
}

static void put_sign(void)
{
        char path[4096];
        FILE *f;

        name_sign(path, sizeof(path), me);
        f = fopen(path, "we");
        CLAIM(f && fclose(f) == 0);
}

static bool is_listed(const char *rank, int n, char **ranks)
{
        for (int i = 0; i < n; i++)
                if (!strcmp(ranks[i], rank))
                        return true;
        return false;
}

/* Until all ranks not listed have written their files. */
static void await_signs(int n, char **listed)
{
        char path[4096], rank[16];
        int world = atoi(getenv("HN_WORLD_SIZE"));

        for (int r = 0; r < world; r++) {
                snprintf(rank, sizeof(rank), "%d", r);
                name_sign(path, sizeof(path), rank);
                wait_for(is_listed(rank, n, listed) || access(path, F_OK) == 0);
        }
}

int main(int argc, char **argv)
{
        const char *how = argc > 1 ? argv[argc - 1] : "";
        bool idle = !strcmp(how, "idle"), late = !strcmp(how, "late"), busy = !strcmp(how, "busy");
        int n = argc > 1 ? argc - 1 : 0;
        bool listed;

        me = getenv("HN_RANK");
        run = getenv("HN_RUN_ID");
        meet_in = getenv("MEET_IN");
        puts("up");
        fflush(stdout);
        listed = me && is_listed(me, n, argv + 1);
        if (me && meet_in) {
                if (!listed)
                        put_sign();
                await_signs(n, argv + 1);
        }
        if (listed) {
                sleep(late || idle ? 2 : 1000);
                if (idle)
                        return 0;
        }
        CLAIM(hn_init(NULL) == HN_OK);
        if (idle || busy)
                sleep(busy ? 4 : 2);
        if (!idle)
                CLAIM(hn_barrier(NULL, HN_NO_TIMEOUT) == HN_OK);
        return hn_finalize();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang: one rank does not come to the barrier, to see how that is told
 *
 *     hnlaunch --local 4 --wait-warn 2s build/examples/hang 2          after 2 s hnlaunch tells
 *     hnlaunch --local 4 build/examples/hang 2                         press Ctrl-\ to ask
 *     hnlaunch --local 4 --start-timeout 5s build/examples/hang 2 join rank 2 does not even join
 *     hnlaunch --local 4 build/examples/hang 2 barrier 3               the barrier's own time limit
 */
#include <hnlaunch/hnlaunch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By signals only: hnlaunch ends the job, or somebody presses Ctrl-C. */
static void sleep_for_ever(void)
{
        for (;;)
                pause();
}

int main(int argc, char **argv)
{
        int victim = argc > 1 ? atoi(argv[1]) : 0, seconds = argc > 3 ? atoi(argv[3]) : 0;
        const char *where = argc > 2 ? argv[2] : "barrier", *rank = getenv("RANK");
        hn_status status;

        if (strcmp(where, "barrier") != 0 && strcmp(where, "join") != 0)
                return fprintf(stderr, "usage: hang [RANK [barrier|join [SECONDS]]]\n"), 64;
        if (strcmp(where, "join") == 0 && rank && atoi(rank) == victim)
                sleep_for_ever();
        if (hn_init(NULL) != HN_OK)
                return fprintf(stderr, "hang: %s\n", hn_last_error()), 1;
        if (strcmp(where, "barrier") == 0 && hn_rank() == victim)
                sleep_for_ever();
        status = hn_barrier(NULL, seconds ? seconds * 1000 : HN_NO_TIMEOUT);
        fprintf(stderr, "rank %d: %s: %s\n", hn_rank(), hn_status_name(status), hn_last_error());
        hn_finalize();
        return status != HN_OK;
}

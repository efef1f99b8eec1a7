/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash: one rank fails while the others wait for it, to see what hnlaunch and the others say
 *
 *     hnlaunch --local 4 build/examples/crash 2           rank 2 exits with 7
 *     hnlaunch --local 4 build/examples/crash 2 report    with a reason, for the last lines
 *     hnlaunch --local 4 build/examples/crash 2 abort     ends the job with hn_abort()
 *     hnlaunch --local 4 build/examples/crash 2 signal    dies of SIGSEGV
 *     hnlaunch --local 4 build/examples/crash 2 leave     exits with 0: no failure, but no barrier
 */
#include <hnlaunch/hnlaunch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 60000 };

static int fail_as(const char *how)
{
        fprintf(stderr, "crash: rank %d fails: %s\n", hn_rank(), how);
        if (strcmp(how, "report") == 0)
                hn_report_error("data", "shard 12 is empty");
        if (strcmp(how, "abort") == 0)
                hn_abort(9, "the loss is not a number");
        if (strcmp(how, "signal") == 0)
                raise(SIGSEGV);
        return strcmp(how, "leave") == 0 ? 0 : 7;
}

int main(int argc, char **argv)
{
        static const char *const ways[] = { "exit", "report", "abort", "signal", "leave" };
        int victim = argc > 1 ? atoi(argv[1]) : 0, known = argc < 3, ranks[8];
        const char *how = argc > 2 ? argv[2] : "exit";
        hn_status status;

        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
                known |= strcmp(how, ways[i]) == 0;
        if (!known)
                return fprintf(stderr, "usage: crash [RANK [exit|report|abort|signal|leave]]\n"),
                       64;
        if (hn_init(NULL) != HN_OK)
                return fprintf(stderr, "crash: %s\n", hn_last_error()), 1;
        if (hn_rank() == victim)
                return fail_as(how);

        /* The wait ends at once, not after a minute. */
        status = hn_barrier(NULL, TIMEOUT_MS);
        printf("rank %d: %s: %s\n", hn_rank(), hn_status_name(status), hn_last_error());
        if (hn_last_error_ranks(ranks, 8) > 0)
                printf("rank %d: it was rank %d on %s\n", hn_rank(), ranks[0],
                       hn_hostname_of(ranks[0]));
        fflush(stdout);
        hn_finalize();
        return status != HN_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing HOW RANK STEP MILLISECONDS: all ranks take steps of so many milliseconds, and meet in a
 * barrier after each; at STEP this rank does what HOW says.
 *
 *   crash: kills itself with SIGSEGV
 *   error: writes to stderr and exits with 7
 *   exit: exits with 0
 *   sleep, stop: sleeps for ever, stops itself: another rank waits for 3 s, and exits with 9
 *   slow: takes half as long again for each step
 *   end: all ranks end with 0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "claim.h"

static void work_for(double ms)
{
        struct timespec t = { (time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000L };

        nanosleep(&t, NULL);
}

static void fail_as(const char *how)
{
        if (!strcmp(how, "crash")) {
                signal(SIGSEGV, SIG_DFL);
                raise(SIGSEGV);
        } else if (!strcmp(how, "error")) {
                fprintf(stderr, "Traceback: the shard is empty\n");
                _exit(7);
        } else if (!strcmp(how, "exit")) {
                _exit(0);
        } else if (!strcmp(how, "stop")) {
                raise(SIGSTOP);
        }
        while (!strcmp(how, "sleep"))
                pause();
}

int main(int argc, char **argv)
{
        const char *how = argc == 5 ? argv[1] : NULL;
        int64_t patience_ms = PATIENCE_MS;
        long last;
        double ms;
        int rank;

        CLAIM(how);
        rank = atoi(argv[2]);
        last = atol(argv[3]);
        ms = atof(argv[4]);
        CLAIM(hn_init(NULL) == HN_OK);
        if (!strcmp(how, "slow") && rank == hn_rank())
                ms *= 1.5;
        if (!strcmp(how, "sleep") || !strcmp(how, "stop"))
                patience_ms = 3000;
        printf("started\n");
        fflush(stdout);
        for (long i = 0; i <= last; i++) {
                work_for(ms);
                if (i == last && rank == hn_rank())
                        fail_as(how);
                hn_progress(i, last, NULL);
                if (hn_barrier(NULL, patience_ms) != HN_OK) {
                        fprintf(stderr, "rank %d: %s\n", hn_rank(), hn_last_error());
                        _exit(9);
                }
        }
        CLAIM(hn_finalize() == HN_OK);
        return 0;
}

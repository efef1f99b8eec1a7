/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World: ranks as child processes around a real rendezvous and real endpoints, without a launcher
 *
 * world_run() forks the ranks, which are spread evenly over the nodes; each node has an endpoint in
 * a folder of its own. A rank that ends with 0 has exited, any other end is a failure, and the
 * rendezvous is told as the head would tell it.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <stdbool.h>
#include <stdio.h>

struct world_result {
        int status[64]; /* exit code of each rank, 128 + n for signal n */
        bool joined[64];
        int n_reports, abort_code;
        char report[256], abort_text[256]; /* the last ones */
        long progress;
};

/* Runs @rank_main in every rank; its result is the rank's exit code. Returns 0, or -1 when the
 * world could not be made. The children must exec or use libhnlaunch only. */
int world_run(int n, int nodes, int (*rank_main)(void), struct world_result *ret);

/* In @rank_main: ends the rank with 1 unless the claim holds. */
#define CLAIM(what)                                                                                \
        do {                                                                                       \
                if (!(what)) {                                                                     \
                        fprintf(stderr, "rank %d line %d: %s (%s)\n", hn_rank(), __LINE__, #what,  \
                                hn_last_error());                                                  \
                        return 1;                                                                  \
                }                                                                                  \
        } while (0)

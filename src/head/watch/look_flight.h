/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look_flight: dumps of PyTorch's flight recorder of living ranks, during a look
 *
 * Dumps go to the folder flight-recorder-why-N in the records of the run, as received: a dump is a
 * pickle, which hnlaunch never reads. Without records no dumps are ordered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/output/dump_files.h"
#include "head/watch/run_view.h"
#include "head/why/why.h"
#include "wire/status_msg.h"

/* Ranks without a dump for the same reason. */
struct flight_problem {
        char text[120];
        struct intlist ranks;
};

struct look_flight {
        const struct run_view *r;
        uint32_t number; /* of the orders; 0 = none was given */
        int64_t until;   /* clock_ms() */
        bool *asked;     /* by node: more is to come */
        size_t n_asked;
        struct dump_files *dumps;
        struct flight_problem *problems;
        size_t n_problems;
};

/* Begins a look that ends at @until. */
void look_flight_begin(struct look_flight *f, const struct run_view *r, uint32_t number,
                       int64_t until);
/* Takes a part. -EPROTO with @err: out of turn. */
int look_flight_take(struct look_flight *f, int node, const struct dump *m, struct error *err);
/* Adds the received dumps to the notes. Returns the folder, lent; NULL = no dump was received. */
const char *look_flight_use(struct look_flight *f, struct why_finding *finding);
void look_flight_finish(struct look_flight *f); /* also after all zeros */

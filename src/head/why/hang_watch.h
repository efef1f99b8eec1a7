/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hang watch: the time without a sign of life, and when a look is due
 *
 * Signs of life are output, steps, ranks that join or end, and requests to the store answered
 * because of another rank. Without a sign a look is due after a time, and again after twice the
 * time: a look costs, and ranks may compute for long in silence. A look that a user asks for may
 * find a hang as well. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hang_watch {
        int64_t after_ms; /* 0 = never */
        int64_t gap_ms;   /* of silence until the next look */
        int64_t alive_ms; /* clock of the last sign of life, as of the last hang_watch_due() */
        uint64_t met;     /* store_met() then */
        bool alive;       /* there was a sign since */
        bool dumping;     /* ranks were ordered to dump, and may write of it */
        bool looking;     /* a look was due, or asked for, since the last sign */
        bool found;       /* a look has found a hang since the last sign */
        bool told;        /* a hang was told since the last sign */
};

void hang_watch_begin(struct hang_watch *w, int64_t after_ms, int64_t now_ms);
void hang_watch_alive(struct hang_watch *w);
/* Output of a rank: a sign of life, unless the ranks are dumping. */
void hang_watch_output(struct hang_watch *w);
/* Called every so often: whether a look is due. @met never falls. */
bool hang_watch_due(struct hang_watch *w, int64_t now_ms, uint64_t met);
/* Whether there was no sign of life for the time after which a look is due; as of the last
 * hang_watch_due(). */
bool hang_watch_is_silent(const struct hang_watch *w, int64_t now_ms);
/* A look that a user has asked for begins. */
void hang_watch_ask(struct hang_watch *w, int64_t now_ms, uint64_t met);
/* Records that a look has found a hang. @tell: one that was due, which tells a hang once. False: a
 * sign of life came meanwhile, or the hang was told already. */
bool hang_watch_found(struct hang_watch *w, uint64_t met, bool tell);
/* Whether the last hang that was found goes on. */
bool hang_watch_stands(const struct hang_watch *w, uint64_t met);

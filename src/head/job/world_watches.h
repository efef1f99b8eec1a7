/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World_watches: the hang watches (head/why/hang_watch.h) of all worlds of an attempt
 *
 * Ranks wait for ranks of their world only, so a world that works is no sign of life of another. A
 * world idles if its roles are no roles of --main, or without --main are asked at a port (--ready),
 * or if it has one rank: its silence alone is no reason for a look, as a server waits for requests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intlist.h"
#include "head/why/hang_watch.h"
#include "head/why/why.h"

struct attempt;
struct options;
struct rank_board;
struct world_hang;

/* Zeroed = no attempt. */
struct world_watches {
        const struct attempt *attempt;
        const struct rank_board *ranks;
        struct world_hang *v; /* by world */
        size_t n;
        int hung; /* the world of the hang that was found last; -1 = none */
};

/* The ranks of the attempt were started. All is borrowed. */
void world_watches_begin(struct world_watches *w, const struct attempt *a, const struct options *o,
                         const struct rank_board *ranks);
void world_watches_finish(struct world_watches *w);

/* Follow a sign of life of a rank, and its output, which is one unless ranks were ordered to dump.
 */
void world_watches_alive(struct world_watches *w, int rank);
void world_watches_output(struct world_watches *w, int rank);
void world_watches_dumping(struct world_watches *w, bool on);

/* The functions of hang_watch.h for all worlds, while ranks run. */
bool world_watches_due(struct world_watches *w);
void world_watches_ask(struct world_watches *w);
/* @worlds are those that hang. */
bool world_watches_found(struct world_watches *w, const struct intlist *worlds, bool tell);
bool world_watches_stand(const struct world_watches *w);
/* Returns the time without a sign of life of the world that hangs; world_watches_stand(). */
int64_t world_watches_silent_ms(const struct world_watches *w);
/* Returns how a look takes the ranks of a world. @due: it was begun because it was due; a look that
 * a user has asked for leaves no world out. */
enum why_share world_watches_share(const struct world_watches *w, int world, bool due);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer judge: which nodes do not reach each other (`hnlaunch check`, net.peers)
 *
 * A node is named alone that has more broken connections than each of its peers there. Both ends
 * are named where they have as many, as of a single broken connection. Pure.
 */
#pragma once

#include "head/check/check_judge.h"
#include "head/check/pair_rounds.h"

/* To leave out as few nodes as possible: of two ends that are alike the later node is to blame. */
struct peer_blame {
        const bool *first; /* by node: to blame where the other end is not; NULL = none */
};

/* Adds the line net.peers. Numbers of nodes in @pairs count in @r. @refusals: why a node does not
 * listen, by node; NULL = the node listens. @how: NULL = both ends that are alike are to blame. */
void peer_judge(struct check_report *r, const struct check_pair *pairs, size_t n,
                const char *const *refusals, const struct peer_blame *how);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer judge: finds nodes that do not reach each other (`hnlaunch check`, net.peers)
 *
 * The check blames a node with more broken connections than each of the node's peers. With equal
 * numbers, as for a single broken connection, the check blames both ends. Pure.
 */
#pragma once

#include "head/check/check_judge.h"
#include "head/check/pair_rounds.h"

/* To leave out as few nodes as possible: of two ends to blame only the later node is blamed. */
struct peer_blame {
        const bool *first; /* by node: blamed if the other end is not in @first; NULL = none */
};

/* Adds the line net.peers. Numbers of nodes in @pairs count in @r. @refusals: why a node does not
 * listen, by node; NULL = the node listens. @how: NULL = both ends are blamed on a tie. */
void peer_judge(struct check_report *r, const struct check_pair *pairs, size_t n,
                const char *const *refusals, const struct peer_blame *how);

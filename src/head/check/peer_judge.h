/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer judge: which nodes do not reach each other (`hnlaunch check`, net.peers)
 *
 * A node is named alone if no peer reaches the node, or the node reaches no peer. Else both ends of
 * the connection are. Pure.
 */
#pragma once

#include "head/check/check_judge.h"
#include "head/check/pair_rounds.h"

/* Adds the line net.peers. Numbers of nodes in @pairs count in @r. @refusals: why a node does not
 * listen, by node; NULL = the node listens. */
void peer_judge(struct check_report *r, const struct check_pair *pairs, size_t n,
                const char *const *refusals);

/* Returns an error of connecting in words: "refused". */
const char *peer_error_text(uint32_t error);

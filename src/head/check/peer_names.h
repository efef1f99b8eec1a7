/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer names: whether the nodes know each other by name, for `hnlaunch check`
 *
 * Programs exchange names (MPI, Gloo, Dask): each node looks up the names of the next node of a
 * ring and of log2 N others. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "head/hosts/hosts.h"
#include "wire/check_msg.h"

struct hello;

/* Chooses the names for each of the @n nodes, and returns the names by host, malloc'ed. An address
 * in place of a name, and this machine, are not looked up. */
struct check_names *peer_names_choose(const struct hosts *hosts, const size_t *nodes, size_t n,
                                      uint64_t seed);
void peer_names_free(struct check_names *names, size_t n_hosts);

/* Replaces the answers, "name.N", of the nodes in @answered by a fact "name.peers". @hellos: NULL =
 * the node is lost. All by host. */
void peer_names_settle(struct checked *facts, const bool *answered,
                       const struct hello *const *hellos, const struct hosts *hosts);

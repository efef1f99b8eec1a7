/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label: the prefix of each line of a rank: --label, filled in
 *
 * The fields are the names of --subst (wire/env/subst.h), {stream}, and {local} for {local_rank}.
 * All labels of a run have the same width, so that columns line up: the last bar moves to the
 * right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intlist.h"
#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "wire/msg.h"

/* The addresses and ports of an attempt. */
struct label_network {
        char master_addr[64];
        uint32_t *master_ports; /* by node, malloc'ed */
        struct launch_first_node first;
};

struct label;

/* How a label looks. Standard error differs from standard output on a terminal only. */
enum label_look {
        LABEL_PLAIN,
        LABEL_MARKED,  /* a terminal without colours: ! in place of the bar before standard error */
        LABEL_PAINTED, /* dim, each host in a colour of its own, a red bar before standard error */
};

/* Returns the template of --label auto, lent; NULL = no prefix. */
const char *label_default(const struct plan *plan);
/* Whether the template has a field of struct label_network. */
bool label_needs_network(const char *label);
/* Borrows the arguments for the life of the label, and takes over the content of @net, which may be
 * zeroed unless label_needs_network(). Computes the width without making the labels, of which there
 * may be very many. */
struct label *label_create(const char *label, const struct plan *plan, const struct hosts *hosts,
                           struct label_network net);
void label_destroy(struct label *p);
/* Finds the first {word} at or behind *at with an unknown name, sets *at to it and returns the
 * length; 0 = none. */
size_t label_bad_field(const char **at);
/* Returns the label of a rank, malloc'ed; @stream is MSG_STDOUT or MSG_STDERR. */
char *label_make(const struct label *p, int rank, uint8_t stream, enum label_look look);
/* Returns the label of a line of several ranks, as wide as other labels; malloc'ed. */
char *label_make_folded(const struct label *p, const struct intlist *ranks, uint8_t stream,
                        enum label_look look);

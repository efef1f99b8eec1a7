/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label: the prefix of each line of a rank: --label, filled in
 *
 * All labels of a run have the same width, so that columns line up: the last bar moves to the
 * right.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "head/hosts/hosts.h"
#include "head/model/plan.h"

struct label {
        const char *label; /* template with the fields of label.c; NULL = none */
        const struct plan *plan;
        const struct hosts *hosts;
        size_t width;
};

/* Borrows all arguments for the life of @p. Computes the width without making the labels, of which
 * there may be very many. */
void label_init(struct label *p, const char *label, const struct plan *plan,
                const struct hosts *hosts);
/* Finds the first {word} at or behind *at with an unknown name, sets *at to it and returns the
 * length; 0 = none. */
size_t label_bad_field(const char **at);
/* Returns the label of a rank, malloc'ed; @stream is MSG_STDOUT or MSG_STDERR. */
char *label_make(const struct label *p, int rank, uint8_t stream);

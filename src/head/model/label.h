/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefix: what stands before each line of a rank: --label, filled in
 *
 * All prefixes of a run have one width, so that columns line up: the last bar moves to the right.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "head/hosts/hosts.h"
#include "head/model/plan.h"

struct label {
        const char *label; /* template: {host} {rank} {local} {stream}; NULL = no prefix */
        const struct plan *plan;
        const struct hosts *hosts;
        size_t width;
};

/* All of it is borrowed for the life of @p. Finds the width without making any prefix: there may be
 * very many. */
void label_init(struct label *p, const char *label, const struct plan *plan,
                const struct hosts *hosts);
/* The length of the first {word} in *@at or behind it that is no field, and *@at there; or 0. */
size_t label_bad_field(const char **at);
/* malloc'ed; @stream is MSG_STDOUT or MSG_STDERR. */
char *label_make(const struct label *p, int rank, uint8_t stream);

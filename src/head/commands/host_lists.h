/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host lists: the lists of hosts on the line of `hnlaunch hosts`
 *
 * A list is a hostfile (-H, or @FILE as a word), or as for -w (also as a word). In the order -H,
 * -w, words; each is taken with the hosts so far by --union, --minus or --common. Hosts of the
 * configuration count only when the line names none.
 */
#pragma once

#include <stdbool.h>

#include "head/hosts/hosts.h"
#include "head/options/options.h"
#include "head/term/diag.h"

/* Whether there is a list; else the hosts are those of the allocation. */
bool host_lists_any(const struct options *o);
/* Fills the empty @h. 0, or the exit code with errors in @d. */
int host_lists_load(struct hosts *h, const struct options *o, struct diags *d);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why tell: the answer of a run to `why`, as a message for people
 *
 * The answer may come from another version of hnlaunch: missing members are left out. Pure but for
 * the layout of the rows.
 */
#pragma once

#include <jansson.h>

#include "head/term/diag.h"

/* Adds the finding as a note, with a row for each group of ranks, at most @width wide (0 = of any
 * width), the missing stacks, and help. */
struct diag *why_tell(const json_t *answer, size_t width, struct diags *d);
/* The same without the finding. */
struct diag *why_tell_rows(const json_t *answer, size_t width, struct diags *d);
/* The same as a warning (HN811), told unasked: no rank has done anything for @ms. */
struct diag *why_warn(const json_t *answer, int64_t ms, size_t width, struct diags *d);

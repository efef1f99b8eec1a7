/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why ras: NCCL's RAS as evidence beside the others
 *
 * RAS counts the launched operations of each rank in a communicator. Alone, RAS decides nothing:
 * RAS has seen no difference in jobs with a hang (NCCL issue 1730), and sees differences in running
 * jobs. A lasting difference is evidence if another source finds the same rank stuck; otherwise the
 * difference is a note. Pure.
 */
#pragma once

#include <stddef.h>

#include "head/why/ras_text.h"
#include "head/why/why.h"

/* Joins the lasting differences of two answers with a finding of why_find(). */
void why_use_ras(const struct why_rank *ranks, size_t n, const struct ras_answer *a,
                 struct why_finding *f);

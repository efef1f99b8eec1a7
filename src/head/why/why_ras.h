/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why ras: NCCL's RAS as evidence beside the others
 *
 * RAS counts the operations that each rank has launched in a communicator. It alone decides
 * nothing: it has seen no difference in jobs that hung (NCCL issue 1730), and sees some in jobs
 * that run. A difference that lasts is evidence where another source says of the same rank that it
 * does not go on; else it is a note. Pure.
 */
#pragma once

#include <stddef.h>

#include "head/why/ras_text.h"
#include "head/why/why.h"

/* Joins what lasts in two answers with a finding of why_find(). */
void why_use_ras(const struct why_rank *ranks, size_t n, const struct ras_answer *a,
                 struct why_finding *f);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hang: hangs that looks have found, unasked (--hang-after, --timeout) or asked for
 */
#pragma once

#include <jansson.h>

#include "head/watch/run_view.h"

struct why_finding;

/* A look begun by --hang-after is over: reports a hang, keeps the stacks, and does as --on-hang
 * says. */
void hang_found(const struct run_view *r, const struct why_finding *f, const json_t *answer);
/* A look that a user has asked for is over: keeps what it has found for the end of the run. */
void hang_asked(const struct run_view *r, const struct why_finding *f);
/* The last look before the ranks are stopped is over: keeps the stacks, and reports a hang, or
 * where the ranks are. */
void hang_last(const struct run_view *r, const struct why_finding *f, const json_t *answer);

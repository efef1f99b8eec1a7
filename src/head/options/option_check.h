/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option_check: options must fit together once every option has a value
 */
#pragma once

#include "head/options/options.h"
#include "head/term/diag.h"

/* Checks for hosts, each hostfile once, a program, --local beside neither -H nor -w, and options of
 * plan with plan only, nothing beside --per-node that contradicts it (HN218). 0, or -EINVAL with
 * errors in @d (exit 64). */
int option_check(const struct options *o, struct diags *d);

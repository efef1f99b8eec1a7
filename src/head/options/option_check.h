/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option_check: what must fit together once every option has its value
 */
#pragma once

#include "head/options/options.h"
#include "head/term/diag.h"

/* Hosts, each file of them once, a program, --local beside neither -H nor -w, options of plan with
 * plan only. 0, or -EINVAL with errors in @d (exit 64). */
int option_check(const struct options *o, struct diags *d);

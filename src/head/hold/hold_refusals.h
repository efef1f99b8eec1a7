/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold refusals: why nodes of a hold have no prepared interpreters (--warm)
 */
#pragma once

#include "head/hold/hold.h"

/* Warns of each reason once, with the nodes (HN641). @refusals: by host, NULL = none; freed, and
 * set to NULL. */
void hold_warn_refusals(const struct hold_config *c, char **refusals);

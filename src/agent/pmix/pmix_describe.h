/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_describe: the job in the words of PMIx
 *
 * PMIx knows nodes by name, and the ranks of each from a map in text. Names of nodes are numbers
 * here ("node0"): the ranks of Open MPI find each other by addresses, never by these names.
 */
#pragma once

#include <stdint.h>

#include "agent/pmix/pmix_service.h"
#include "base/buf.h"

/* Appends JOB (wire/helper/pmix_msg.h) to @out. @node_of_rank: for all ranks of the order in @s,
 * each below its number of nodes. @folder: private and empty. */
void pmix_describe(struct buf *out, const struct pmix_setup *s, const uint32_t *node_of_rank,
                   const char *folder);

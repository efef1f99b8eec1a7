/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ras_client: asks NCCL's RAS what it knows of the communicators of the job
 *
 * Each process with NCCL serves RAS at the address in NCCL_RAS_ADDR, which all of a node share; any
 * of them answers for the whole job. Sources: NCCL's src/ras/client.cc and client_support.cc. Any
 * process may listen there: its answer is bounded in time and size, and the head judges it.
 */
#pragma once

#include <stddef.h>

#include "agent/inspect/inspector.h"

/* Writes one or two RAS messages to @to, see struct ras_reply. Blocks for up to 12 s. */
void ras_client_run(const struct inspect_order *o, const struct inspector_rank *ranks, size_t n,
                    int to);

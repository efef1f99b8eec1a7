/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ras_client: asks NCCL's RAS about the communicators of the job
 *
 * Each process with NCCL serves RAS at the address in NCCL_RAS_ADDR, shared by a node; any process
 * answers for the whole job. Sources: NCCL's src/ras/client.cc and client_support.cc. Any
 * program may listen there: time and size of an answer are bounded, and the head judges the
 * content.
 */
#pragma once

#include <stddef.h>

#include "agent/inspect/inspector.h"

/* Writes one or two RAS messages to @to, see struct ras_reply. Blocks for up to 12 s. */
void ras_client_run(const struct inspect_order *o, const struct inspector_rank *ranks, size_t n,
                    int to);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other_store: processes below the ranks that look for another store than that of the job
 *
 * A program that starts ranks of its own gives them a MASTER_PORT of its own. They inherit
 * TORCHELASTIC_USE_AGENT_STORE, so PyTorch waits there for a store that does not exist.
 */
#pragma once

#include <stdint.h>

#include "wire/status_msg.h"

/* Fills @to with a process of the job that has another MASTER_PORT than @port in its initial
 * environment; pid stays 0 when there is none. @mark is the value of HN_STORE in the job's
 * processes. Reads the environment of all processes of the user: only on request. */
void other_store_find(struct node_status_other *to, const char *mark, uint32_t port);

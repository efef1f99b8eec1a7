/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank_list: ranks for a message to people: "ranks 2,3 (node002), 8-15 (node004)"
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes at most @size bytes with NUL. @ranks ascend; a long list is cut and ends with "and N
 * more". @host_of lends the name of a rank's host. */
void rank_list_describe(char *to, size_t size, const uint32_t *ranks, uint32_t n,
                        const char *(*host_of)(void *ctx, int rank), void *ctx);

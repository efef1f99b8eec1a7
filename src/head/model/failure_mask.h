/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failure_mask: the text of a failure without parts that differ each time
 *
 * Pure. Two attempts with the same failure seldom print the same bytes: ports, addresses, times,
 * process numbers, names of hosts and temporary files differ.
 */
#pragma once

#include <stddef.h>

/* Writes @text to @to, cut to @size bytes with the NUL: numbers, addresses and identifiers in hex
 * become "#", the digits in a name too (gpu017 is gpu#), and paths become "PATH". */
void failure_mask(const char *text, char *to, size_t size);

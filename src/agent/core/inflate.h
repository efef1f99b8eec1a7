/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inflate: bytes that were packed by deflate (RFC 1951, without a header)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fills @to with exactly @len bytes, from the @n bytes of @data. No checksum is compared. False:
 * damaged, or of another length. Loop's thread, or a process of its own. */
bool inflate_bytes(void *to, size_t len, const void *data, size_t n);

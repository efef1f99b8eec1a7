/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Http_status: the status of an answer of HTTP/1, from its first bytes
 *
 * Pure.
 */
#pragma once

#include <stddef.h>

enum { HTTP_STATUS_BYTES = 13 }; /* "HTTP/1.1 200 ": no answer needs more */

/* Returns the status, 100 to 999; 0: more bytes are needed; -1: this is no answer of HTTP/1. */
int http_status_read(const char *answer, size_t len);

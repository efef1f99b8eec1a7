/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key line: the words of a line with a public key, as in known_hosts and RevokedHostKeys
 */
#pragma once

#include <stddef.h>

/* Returns the next word of a line, ended with a NUL in place; NULL: there is none. */
char *key_line_word(char **line);

/* Decodes the base64 of a public key into a malloc'ed blob. NULL: malformed, longer than any key,
 * or, unless @type is NULL, no key that begins with @type. */
unsigned char *key_line_blob(const char *base64, const char *type, size_t *ret_len);

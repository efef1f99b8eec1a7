/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Json text: any text, list of texts, or list of numbers as JSON
 *
 * The functions that make JSON return a new reference. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/strv.h"

/* jansson takes UTF-8 only: in any other text each byte above 0x7f becomes U+FFFD. NULL is null. */
json_t *json_text(const char *text);
json_t *json_texts(const struct strv *texts);
json_t *json_numbers(const int *v, size_t n);

/* Returns a member of an object as text, "" if there is none; lent. */
const char *json_member(const json_t *j, const char *name);

/* Returns the text of @j, malloc'ed, with json_dumps() @flags. Characters that printable.h escapes
 * are written as \uXXXX: the same value for a program, and harmless for a terminal. */
char *json_dump_plain(const json_t *j, size_t flags);
/* Writes the same, indented, and a newline. False with errno: it could not be written. */
bool json_write_plain(const json_t *j, FILE *to);

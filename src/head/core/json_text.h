/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Json text: any text, list of texts, or list of numbers as JSON
 *
 * Each function returns a new reference. Pure.
 */
#pragma once

#include <jansson.h>

#include "base/strv.h"

/* jansson takes UTF-8 only: in any other text each byte above 0x7f becomes U+FFFD. NULL is null. */
json_t *json_text(const char *text);
json_t *json_texts(const struct strv *texts);
json_t *json_numbers(const int *v, size_t n);

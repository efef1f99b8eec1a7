/* SPDX-License-Identifier: Apache-2.0 */
/* Json_text: any text as a JSON string */
#pragma once

#include <jansson.h>

/* jansson takes UTF-8 only; other bytes become question marks. NULL is null. */
json_t *json_text(const char *text);

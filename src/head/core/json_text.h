/* SPDX-License-Identifier: Apache-2.0 */
/* Json_text: any text as a JSON string */
#pragma once

#include <jansson.h>

/* Returns @text as a JSON string, NULL as null. jansson takes UTF-8 only: in any other text, all
 * bytes above ASCII become question marks. */
json_t *json_text(const char *text);

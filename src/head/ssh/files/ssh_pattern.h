/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh pattern: names with * and ?, and lists of them, as ssh_config and known_hosts have them
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Tells whether the pattern matches the whole text. */
bool ssh_pattern_matches(const char *pattern, size_t pattern_len, const char *text, size_t len);

/* The same for a list separated by commas, where a pattern with ! in front excludes. */
bool ssh_pattern_list_matches(const char *list, const char *text);
bool ssh_name_list_matches(const char *list, const char *name); /* in any case */

void ssh_name_lower(char *name); /* turns ASCII capitals into small letters */

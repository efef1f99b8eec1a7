/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explain: error numbers and exit codes, as `hnlaunch explain` prints them
 *
 * HN502, hn502 and 502 are an error number; a bare number up to 255 is an exit code; `restart` is
 * the table of head/model/restart_rule.h.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "head/term/diag.h"

/* Returns 0 when every word has an explanation, else -EINVAL with errors in @d (exit 64). */
int explain_check(const struct strv *words, struct diags *d);

/* Prints the explanation of each word, of none a list of all numbers; with @json as an object. The
 * words have passed explain_check(). */
void explain_print(const struct strv *words, bool json);

/* Prints @text as columns_fold(), and a newline; the caller has filled @indent columns of the first
 * line. */
void explain_put_wrapped(size_t columns, size_t indent, const char *text);
/* The same with @at columns filled in the first line. */
void explain_put_folded(size_t columns, size_t at, size_t indent, const char *text);

/* Prints the code and meaning of each exit code, a line or more for each. */
void explain_print_exits(void);

/* Prints a line for each number, for programs: "error" or "exit", number, meaning, cause, remedy
 * and (of errors) the title of the group, separated by tabs. */
void explain_print_table(void);

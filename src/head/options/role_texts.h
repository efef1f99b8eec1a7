/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role_texts: the texts of a job of roles that may refer to roles (head/model/role_book.h)
 *
 * Arguments, values of -x NAME=VALUE, and --label. Not the program, and no value that comes from an
 * environment or a file.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "head/model/role_book.h"

struct diags;
struct options;

/* Creates the book of the roles of @o. NULL = the job has no roles. */
struct role_book *role_texts_book(const struct options *o);
/* Reads all texts. 0, or -EINVAL with their errors in @d. */
int role_texts_scan(struct role_book *b, const struct options *o, struct diags *d);
/* Appends the program of a role and its arguments to @argv, with references replaced. {port:NAME}
 * is left to the agent, unless @planned: no agent will. A text with an error, one of @d, stays as
 * it is. */
void role_texts_fill_words(const struct role_book *b, const struct options *o, int role,
                           bool planned, struct strv *argv, struct diags *d);
/* The same for the values of -x in @env, the variables of a role, or with -1 of the job. */
void role_texts_fill_env(const struct role_book *b, const struct options *o, int role, bool planned,
                         struct strv *env, struct diags *d);
/* Returns the text of --label, malloc'ed; NULL = none was given. */
char *role_texts_make_label(const struct role_book *b, const struct options *o, struct diags *d);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role_options: the options of a role as values, and how roles of a line fit together
 *
 * In a line with --role each program is a role: struct program_options.role. Options in front of
 * the first --role are those of the job, and what a role does not say holds as there.
 */
#pragma once

#include <stddef.h>

#include "head/model/plan_roles.h"
#include "head/options/option_parse.h"

OPTION_PARSER(value_role_name);  /* char *: a letter, then letters, digits, - and _ */
OPTION_PARSER(value_role_nodes); /* struct role_nodes: N, N%, rest, or a host list */
OPTION_PARSER(value_role_names); /* struct strv: ROLE[,ROLE...], replacing the list */
OPTION_PARSER(value_role_on);    /* struct role_place: ROLE, ROLE:INDEX, ROLE:last */

/* Completes the roles of @o with what holds for the job. 0, or -EINVAL with errors in @d (exit 64):
 * two roles of one name (HN727), --on of a role that does not exist (HN726) or in a circle (HN728),
 * options that exclude each other, two roles that take the rest of the nodes (HN729). */
int role_options_settle(struct options *o, struct diags *d);
/* Returns the number of the role called @name, or how many there are. */
size_t role_options_find(const struct options *o, const char *name);
/* Adds the error that no role has the @name that @option, of the role @of (NULL = of the job),
 * gives (HN726). Returns -EINVAL. */
int role_options_refuse_name(const struct options *o, const char *option, const char *name,
                             const char *of, struct diags *d);
/* Frees what the parsers have stored. */
void role_options_finish(struct plan_role *role);

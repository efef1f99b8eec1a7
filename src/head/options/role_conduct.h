/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role_conduct: the order of the roles of a line (--after, --main), as numbers
 *
 * Ranks of one world start together: each role there waits for all that one of the roles waits for.
 */
#pragma once

#include "base/intlist.h"

struct diags;
struct options;

/* Appends the numbers of the roles that role @i waits for, each once. The names must be valid. */
void role_conduct_list_after(const struct options *o, size_t i, struct intlist *to);

/* Checks the order of the roles of @o. 0, or -EINVAL with errors in @d (exit 64): a name without a
 * role (HN726), roles that wait for each other (HN728), options that exclude each other (HN729). */
int role_conduct_check(const struct options *o, struct diags *d);
/* The same for a line without roles: --main or --linger mean nothing there (HN729). */
void role_conduct_refuse(const struct options *o, struct diags *d);

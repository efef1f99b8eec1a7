/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan roles view: the roles of a plan, as a table and as JSON
 */
#pragma once

#include <jansson.h>

#include "head/report/plan_view.h"

/* Returns a row for each world of each role: its hosts, ranks of the job, and GPUs of a node;
 * malloc'ed. */
char *plan_view_role_table(const struct plan_view *v);
/* Returns an array of {name, argv, on, per_node, nodes, ranks, worlds, address, ports}. */
json_t *plan_view_roles_json(const struct plan_view *v);

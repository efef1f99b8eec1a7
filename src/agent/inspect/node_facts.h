/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_facts: what a node tells of a failure, for the decision whether its host is to blame
 *
 * Runs in the inspector: a file system may hang.
 */
#pragma once

#include "wire/status_msg.h"

/* Fills type and id of the file system of @path. A file that is not there may have been removed:
 * the folder counts. Without the folder nothing is known, because the path is of another view of
 * the files, as in a container. */
void node_facts_read_path(struct node_facts *m, const char *path);
/* Writes a FACTS to @to. */
void node_facts_run(const struct inspect_order *o, int to);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_facts: what a node tells of a failure, for the decision whether its host is to blame
 *
 * Runs in the inspector: a file system may hang.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/status_msg.h"

/* Writes a FACTS to @to. */
void node_facts_run(const struct inspect_order *o, int to);

/* --- its parts -------------------------------------------------------------------------------- */

/* Fills type and id of the file system of @path. A file that is not there may have been removed:
 * the folder counts. Without the folder nothing is known, because the path is of another view of
 * the files, as in a container. */
void node_facts_read_path(struct node_facts *m, const char *path);

/* A GPU that the kernel log calls broken. */
struct xid {
        unsigned number;
        const char *words; /* "fallen off the bus" */
        char address[16];  /* on the PCI bus: "0000:18:00" */
};

/* Reads a line of the kernel log: a record of /dev/kmsg ("3,812,5678901,-;NVRM: Xid (PCI:..."), or
 * a line of a file ("Nov  1 12:00:00 n1 kernel: [    5.678901] NVRM: Xid (PCI:..."). False: it does
 * not tell of a broken GPU, is not the kernel's, or older than @since_us. */
bool node_facts_read_line(struct xid *ret, const char *line, uint64_t since_us);

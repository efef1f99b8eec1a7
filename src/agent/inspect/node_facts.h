/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_facts: what a node tells of a failure, for the decision whether its host is to blame
 *
 * Runs in the inspector: a file system may hang.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/inspect/inspector.h"
#include "wire/helper/gpu_record.h"
#include "wire/status_msg.h"

/* Writes a FACTS to @to. @ended are processes of the last attempt, @first figures of GPUs from its
 * beginning (NULL = not known). */
void node_facts_run(const struct inspect_order *o, const struct inspector_rank *ended, size_t n,
                    const struct gpu_record *first, int to);

/* Asks the driver which processes hold memory of GPUs, for some seconds at most. False: there is no
 * driver, or it does not answer in time. */
bool node_facts_ask_holders(struct gpu_holders *ret);
/* Whether the driver's process numbers are those of this process: it runs in the machine's first
 * namespace of processes. */
bool node_facts_in_first_pids(void);

struct xid;

/* Finds the newest message of a broken GPU in the kernel's log, at most @age_us old. 1; 0: there is
 * none; -EACCES: this user may not read the log. */
int node_facts_find_xid(struct xid *ret, uint64_t age_us);

/* --- its parts -------------------------------------------------------------------------------- */

/* Returns the id of a file system for comparisons between nodes: f_fsid of a network's, mixed with
 * that of the @machine for a local type; 0 = not known, also without a @machine. */
uint64_t node_facts_mix_id(uint64_t type, uint64_t id, const char *machine);
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

/* Sets .held to the memory of the first process in @h that is one of the @n @ended and lives no
 * longer. A number that a living process has by now is not of the attempt. */
void node_facts_read_holders(struct node_facts *m, const struct gpu_holders *h,
                             const struct inspector_rank *ended, size_t n);

/* Sets .gpu if a GPU of the order has had uncorrected ECC errors since @first. */
void node_facts_compare_ecc(struct node_facts *m, const struct inspect_order *o,
                            const struct gpu_record *first, const struct gpu_holders *now);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology: the processors of NUMA nodes, cores and sockets, and the node of a PCI device
 *
 * Read from sysfs, in steps, because a machine has hundreds of files about processors: the nodes
 * always, cores and sockets where a caller needs them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/cpu_mask.h"

enum { NUMA_UNKNOWN = -1 };

/* A NUMA node that has processors. Nodes of memory only, as in Grace, do not count, nor does one
 * with processors of an earlier node, as some firmware tells. */
struct topology_node {
        int32_t id;
        struct cpu_mask cpus; /* online, and allowed to the agent; may be empty */
};

struct cpu_topology {
        const char *root;        /* lent: /sys */
        struct cpu_mask allowed; /* to the agent */
        struct topology_node *nodes;
        size_t n_nodes; /* 0 = the kernel does not tell */
        /* By processor: the first allowed processor of its core, and of its socket. NULL = not
         * read. */
        uint16_t *core, *socket;
};

/* Reads the nodes below @root, a borrowed string. Files that cannot be read are skipped. */
void cpu_topology_read(struct cpu_topology *t, const char *root, const struct cpu_mask *allowed);
/* Read the groups of allowed processors, once. A processor without a file is a core by itself, and
 * of one socket with the others. */
void cpu_topology_read_cores(struct cpu_topology *t);
void cpu_topology_read_sockets(struct cpu_topology *t);
void cpu_topology_finish(struct cpu_topology *t);

/* Returns the node of a PCI device such as 0000:1b:00.0, as cpu_topology_find_near(). */
int32_t cpu_topology_find_device(const struct cpu_topology *t, const char *address);
/* Returns node @id, or instead of a node without processors the nearest, if a single node is
 * nearest; NUMA_UNKNOWN. */
int32_t cpu_topology_find_near(const struct cpu_topology *t, int32_t id);
/* NULL: @id has no processors. */
const struct topology_node *cpu_topology_find_node(const struct cpu_topology *t, int32_t id);
/* Counts the cores of @cpus, or the processors while cores are not read. */
uint32_t cpu_topology_count_cores(const struct cpu_topology *t, const struct cpu_mask *cpus);

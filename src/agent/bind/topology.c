/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below devices/system: node/online and node/nodeN/cpulist tell the processors of nodes (some
 * kernels have an empty node/has_cpu), cpu/cpuN/topology/thread_siblings_list and
 * core_siblings_list the members of a core and a socket, and node/nodeN/distance the distances to
 * all nodes that are online, in their order. Of each core and socket the file of one processor is
 * read. bus/pci/devices/ADDRESS/numa_node has the node of a device, -1 where the firmware does not
 * tell.
 */
#include "agent/bind/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"

enum {
        SYSFS_FILE_MAX = 64 << 10,
        MAX_NODES = 1024, /* of the kernel */
};

/* Reads a file below the root; NULL = it cannot be read. */
static char *read_sysfs(const struct cpu_topology *t, const char *folder, int32_t number,
                        const char *name)
{
        char path[512], *text;
        int n;

        /* The folder has no number: node/online. */
        if (number < 0)
                n = snprintf(path, sizeof(path), "%s/%s/%s", t->root, folder, name);
        else
                n = snprintf(path, sizeof(path), "%s/%s%d/%s", t->root, folder, (int)number, name);
        if (n < 0 || (size_t)n >= sizeof(path) ||
            fd_read_file(path, SYSFS_FILE_MAX, &text, NULL) < 0)
                return NULL;
        return text;
}

/* False: the file cannot be read, or is no list. */
static bool read_sysfs_list(const struct cpu_topology *t, const char *folder, int32_t number,
                            const char *name, struct cpu_mask *ret)
{
        CLEANUP(free_textp) char *text = read_sysfs(t, folder, number, name);

        return text && cpu_mask_parse(ret, text, strlen(text)) == 0;
}

void cpu_topology_read(struct cpu_topology *t, const char *root, const struct cpu_mask *allowed)
{
        struct cpu_mask ids, seen = { { 0 } };

        *t = (struct cpu_topology){ .root = root, .allowed = *allowed };
        if (!read_sysfs_list(t, "devices/system/node", -1, "online", &ids))
                return;
        for (uint32_t id = cpu_mask_next(&ids, 0); id < MAX_NODES;
             id = cpu_mask_next(&ids, id + 1)) {
                struct topology_node *node;
                struct cpu_mask known = seen;

                t->nodes = xrealloc(t->nodes, t->n_nodes + 1, sizeof(*t->nodes));
                /* The new element counts only when @n_nodes grows below; a node that is skipped
                 * leaves it for the next one. */
                node = &t->nodes[t->n_nodes];
                node->id = (int32_t)id;
                if (!read_sysfs_list(t, "devices/system/node/node", node->id, "cpulist",
                                     &node->cpus))
                        continue;
                cpu_mask_and(&known, &node->cpus);
                if (cpu_mask_is_empty(&node->cpus) || !cpu_mask_is_empty(&known))
                        continue;
                cpu_mask_or(&seen, &node->cpus);
                cpu_mask_and(&node->cpus, allowed);
                t->n_nodes++;
        }
}

/* Returns for each processor the first one of its group, from the file @name of a member.
 */
static uint16_t *read_cpu_groups(const struct cpu_topology *t, const char *name, bool alone)
{
        uint16_t *group = xcalloc(CPU_MASK_BITS, sizeof(*group));
        uint32_t first = cpu_mask_next(&t->allowed, 0);
        struct cpu_mask members;

        /* CPU_NONE marks a processor without a group yet. @alone: a processor without a file is a
         * group of its own, else a member of the first group. */
        memset(group, 0xff, CPU_MASK_BITS * sizeof(*group));
        for (uint32_t cpu = first; cpu != CPU_NONE; cpu = cpu_mask_next(&t->allowed, cpu + 1)) {
                if (group[cpu] != CPU_NONE)
                        continue;
                if (!read_sysfs_list(t, "devices/system/cpu/cpu", (int32_t)cpu, name, &members)) {
                        group[cpu] = (uint16_t)(alone ? cpu : first);
                        continue;
                }
                /* A list without its own processor would leave the processor without a group. */
                cpu_mask_add(&members, cpu);
                cpu_mask_and(&members, &t->allowed);
                for (uint32_t m = cpu; m != CPU_NONE; m = cpu_mask_next(&members, m + 1))
                        group[m] = (uint16_t)cpu;
        }
        return group;
}

void cpu_topology_read_cores(struct cpu_topology *t)
{
        if (!t->core)
                t->core = read_cpu_groups(t, "topology/thread_siblings_list", true);
}

void cpu_topology_read_sockets(struct cpu_topology *t)
{
        if (!t->socket)
                t->socket = read_cpu_groups(t, "topology/core_siblings_list", false);
}

void cpu_topology_finish(struct cpu_topology *t)
{
        free(t->nodes);
        free(t->core);
        free(t->socket);
        *t = (struct cpu_topology){ .root = NULL };
}

const struct topology_node *cpu_topology_find_node(const struct cpu_topology *t, int32_t id)
{
        for (size_t i = 0; i < t->n_nodes; i++)
                if (t->nodes[i].id == id)
                        return &t->nodes[i];
        return NULL;
}

/* Finds the node with processors that is nearest to @id; NUMA_UNKNOWN when two are. */
static int32_t find_nearest_node(const struct cpu_topology *t, int32_t id)
{
        CLEANUP(free_textp)
        char *distances = read_sysfs(t, "devices/system/node/node", id, "distance");
        char *p = distances, *end;
        long nearest = 0, distance;
        int32_t found = NUMA_UNKNOWN;
        struct cpu_mask online;

        if (!p || !read_sysfs_list(t, "devices/system/node", -1, "online", &online))
                return NUMA_UNKNOWN;
        /* Distances are at least 10, so 0 means that no node has been found yet. */
        for (uint32_t to = cpu_mask_next(&online, 0); to != CPU_NONE;
             to = cpu_mask_next(&online, to + 1), p = end) {
                distance = strtol(p, &end, 10);
                if (end == p)
                        break;
                if (!cpu_topology_find_node(t, (int32_t)to) || (nearest && distance > nearest))
                        continue;
                found = nearest == distance ? NUMA_UNKNOWN : (int32_t)to;
                nearest = distance;
        }
        return found;
}

int32_t cpu_topology_find_near(const struct cpu_topology *t, int32_t id)
{
        return cpu_topology_find_node(t, id) ? id : find_nearest_node(t, id);
}

int32_t cpu_topology_find_device(const struct cpu_topology *t, const char *address)
{
        CLEANUP(free_textp) char *name = xasprintf("%s/numa_node", address);
        CLEANUP(free_textp) char *text = NULL;
        char *end;
        long id;

        /* The address becomes part of a path, and must not lead out of the folder. */
        if (!*address || strchr(address, '/'))
                return NUMA_UNKNOWN;
        text = read_sysfs(t, "bus/pci/devices", -1, name);
        id = text ? strtol(text, &end, 10) : -1;
        if (id < 0 || id >= MAX_NODES || end == text)
                return NUMA_UNKNOWN;
        return cpu_topology_find_near(t, (int32_t)id);
}

uint32_t cpu_topology_count_cores(const struct cpu_topology *t, const struct cpu_mask *cpus)
{
        struct cpu_mask firsts = { { 0 } };

        if (!t->core)
                return cpu_mask_count(cpus);
        for (uint32_t cpu = cpu_mask_next(cpus, 0); cpu != CPU_NONE;
             cpu = cpu_mask_next(cpus, cpu + 1))
                cpu_mask_add(&firsts, t->core[cpu]);
        return cpu_mask_count(&firsts);
}

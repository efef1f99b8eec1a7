/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent reads from a tree of sysfs, and how it binds ranks there
 *
 *   bind_probe SYS ALLOWED                             nodes, sockets and cores
 *   bind_probe SYS ALLOWED POLICY THREADS ADDRESSES... a line for each rank
 *
 * ALLOWED is a list of processors, or "all"; ADDRESSES are PCI addresses with commas, - = no GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bind/binding.h"
#include "base/memory.h"

enum { MAX_PROBE_GPUS = 64 };

static void print_part(const char *word, const struct cpu_mask *cpus)
{
        CLEANUP(free_textp) char *list = cpu_mask_format(cpus);

        printf("%s: %s\n", word, list);
}

/* Prints the processors of each group. */
static void print_groups(const struct cpu_topology *t, const char *word, const uint16_t *group)
{
        for (uint32_t first = 0; first < CPU_MASK_BITS; first++) {
                struct cpu_mask cpus = { { 0 } };

                for (uint32_t cpu = first; cpu != CPU_NONE && group[first] == first;
                     cpu = cpu_mask_next(&t->allowed, cpu + 1))
                        if (group[cpu] == first)
                                cpu_mask_add(&cpus, cpu);
                if (!cpu_mask_is_empty(&cpus))
                        print_part(word, &cpus);
        }
}

static int print_topology(struct cpu_topology *t)
{
        char word[32];

        cpu_topology_read_cores(t);
        cpu_topology_read_sockets(t);
        print_groups(t, "core", t->core);
        for (size_t i = 0; i < t->n_nodes; i++) {
                snprintf(word, sizeof(word), "node %d", (int)t->nodes[i].id);
                print_part(word, &t->nodes[i].cpus);
        }
        print_groups(t, "socket", t->socket);
        cpu_topology_finish(t);
        return 0;
}

static int print_bindings(struct cpu_topology *t, const char *policy, uint32_t threads, char **gpus,
                          uint32_t n)
{
        struct binding_rank *ranks = xcalloc(n, sizeof(*ranks));
        struct binding *all = xcalloc(n, sizeof(*all));
        struct cpu_mask taken = { { 0 } };
        struct bind_policy p;
        struct error err;

        if (bind_policy_parse(&p, policy, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        for (uint32_t i = 0; i < n; i++) {
                int32_t *nodes = xcalloc(MAX_PROBE_GPUS, sizeof(*nodes));
                char *rest = strcmp(gpus[i], "-") != 0 ? gpus[i] : NULL, *word;

                ranks[i] = (struct binding_rank){ .gpu_nodes = nodes, .threads = threads };
                while ((word = strsep(&rest, ",")) && ranks[i].n_gpus < MAX_PROBE_GPUS)
                        nodes[ranks[i].n_gpus++] = cpu_topology_find_device(t, word);
        }
        cpu_topology_read_cores(t);
        cpu_topology_read_sockets(t);
        binding_make(all, ranks, n, t, &p, &taken);
        for (uint32_t i = 0; i < n; i++) {
                CLEANUP(free_textp) char *list = cpu_mask_format(&all[i].cpus);

                printf("%s node=%d threads=%u%s%s\n", *list ? list : "-", (int)all[i].node,
                       all[i].threads, all[i].why ? " " : "", all[i].why ? all[i].why : "");
                free((void *)ranks[i].gpu_nodes);
        }
        bind_policy_finish(&p);
        cpu_topology_finish(t);
        free(ranks);
        free(all);
        return 0;
}

int main(int argc, char **argv)
{
        struct cpu_mask allowed;
        CLEANUP(free_textp) char *path = NULL;
        struct cpu_topology t;

        if (argc != 3 && argc < 6)
                return 2;
        if (cpu_mask_parse(&allowed, argv[2], strlen(argv[2])) < 0)
                return 2;
        cpu_topology_read(&t, argv[1], &allowed);
        if (argc == 3)
                return print_topology(&t);
        return print_bindings(&t, argv[3], (uint32_t)atoi(argv[4]), argv + 5, (uint32_t)argc - 5);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/place_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/inspect/node_facts.h"
#include "base/macros.h"

/* A cluster of zeros is a fabric within one node, for example of an HGX board. */
bool place_check_has_domain(const struct gpu_fabric *f)
{
        static const uint8_t none[sizeof(f->cluster)];

        return f->state == GPU_FABRIC_COMPLETED && !f->status &&
               memcmp(f->cluster, none, sizeof(none)) != 0;
}

/* GPUs without a domain are passed over. A node with two domains has no single place. */
void place_check_domain(struct checked *m, const struct gpu_holders *h)
{
        const struct gpu_fabric *first = NULL;
        char text[64];
        size_t len = 0;

        for (size_t i = 0; i < GPU_RECORD_GPUS; i++) {
                const struct gpu_fabric *f = &h->fabric[i];

                if (!place_check_has_domain(f))
                        continue;
                if (first && (memcmp(f->cluster, first->cluster, sizeof(f->cluster)) != 0 ||
                              f->clique != first->clique)) {
                        checked_add(m, "gpu.domain", "", "its GPUs are in several NVLink domains");
                        return;
                }
                first = f;
        }
        for (size_t i = 0; first && i < sizeof(first->cluster); i++)
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%02x", first->cluster[i]);
        if (first)
                snprintf(text + len, sizeof(text) - len, ".%u", first->clique);
        checked_add(m, "gpu.domain", first ? text : "none", "");
}

/* The pattern has a word for each level, so the pattern's dots count the switches. Without a
 * pattern the parts of the address cannot be told apart. */
void place_check_switches(struct checked *m, const char *addr, const char *pattern)
{
        char path[CHECK_VALUE] = "";
        size_t len = 0, levels = 0;

        for (const char *c = pattern; c && *c; c++)
                levels += *c == '.';
        /* The last part is the node. A node's name may have dots. */
        for (; addr && levels && len < sizeof(path) - 1; addr++) {
                if (!*addr || (*addr == '.' && !--levels))
                        break;
                path[len++] = *addr == '.' ? '/' : *addr;
        }
        checked_add(m, "switch.path", len ? path : "none", "");
}

/* The device file of the driver is looked for first: the helper process would cost time on each
 * node without GPUs. */
void place_check(struct checked *m)
{
        struct gpu_holders h;

        if (access("/dev/nvidiactl", F_OK) < 0)
                checked_add(m, "gpu.domain", "none", "");
        else if (node_facts_ask_holders(&h))
                place_check_domain(m, &h);
        else
                checked_add(m, "gpu.domain", "", "the driver does not answer");
        place_check_switches(m, getenv("SLURM_TOPOLOGY_ADDR"),
                             getenv("SLURM_TOPOLOGY_ADDR_PATTERN"));
}

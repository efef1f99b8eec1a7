/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/gpu_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/proc.h"
#include "agent/inspect/node_facts.h"
#include "base/fd.h"
#include "base/memory.h"

enum { VERSION_FILE_MAX = 64 << 10 };

static const char no_driver[] = "no NVIDIA driver";

/* Returns the driver's version, malloc'ed; NULL = there is no driver. */
static char *read_driver_version(const char *root)
{
        CLEANUP(free_textp) char *module = xasprintf("%s/sys/module/nvidia/version", root);
        CLEANUP(free_textp) char *proc = xasprintf("%s/proc/driver/nvidia/version", root);
        char *text = NULL;
        const char *at;

        if (fd_read_file(module, VERSION_FILE_MAX, &text, NULL) == 0) {
                text[strcspn(text, "\n")] = '\0';
                return text;
        }
        if (fd_read_file(proc, VERSION_FILE_MAX, &text, NULL) < 0)
                return NULL;
        /* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build" */
        text[strcspn(text, "\n")] = '\0';
        for (at = text; (at = strstr(at, "  ")); at++) {
                unsigned major, minor;

                at += strspn(at, " ");
                if (sscanf(at, "%u.%u", &major, &minor) == 2) {
                        char *version = xasprintf("%.*s", (int)strcspn(at, " "), at);

                        free(text);
                        return version;
                }
        }
        free(text);
        return NULL;
}

static void add_gpu_processes(struct checked *m, const struct gpu_holders *h, bool named)
{
        char text[CHECK_VALUE] = "", name[64] = "", mib[32];
        const struct gpu_holder *v = &h->v[0];

        if (!h->n) {
                checked_add(m, "gpu.processes", "0", "");
                return;
        }
        /* The process that has the most memory stands for all. */
        for (uint32_t i = 1; i < h->n; i++)
                if (h->v[i].memory_mib != GPU_RECORD_UNKNOWN &&
                    (v->memory_mib == GPU_RECORD_UNKNOWN || h->v[i].memory_mib > v->memory_mib))
                        v = &h->v[i];
        if (named)
                proc_program((pid_t)v->pid, name, sizeof(name));
        snprintf(mib, sizeof(mib), "some memory");
        if (v->memory_mib != GPU_RECORD_UNKNOWN)
                snprintf(mib, sizeof(mib), "%u MiB", v->memory_mib);
        snprintf(text, sizeof(text), "%u (pid %u%s%s: %s of GPU %u)", h->n, v->pid,
                 *name ? " " : "", name, mib, v->gpu);
        checked_add(m, "gpu.processes", text, "");
}

static void add_gpu_ecc(struct checked *m, const struct gpu_holders *h)
{
        char text[CHECK_VALUE];
        uint64_t all = 0;
        uint32_t worst = 0;
        bool known = false;

        for (uint32_t i = 0; i < GPU_RECORD_GPUS; i++) {
                if (h->ecc[i] == GPU_RECORD_UNKNOWN)
                        continue;
                known = true;
                all += h->ecc[i];
                if (h->ecc[i] > h->ecc[worst] || h->ecc[worst] == GPU_RECORD_UNKNOWN)
                        worst = i;
        }
        if (!known) {
                checked_add(m, "gpu.ecc", "", "the driver counts no ECC errors");
                return;
        }
        snprintf(text, sizeof(text), all ? "%llu (%u of GPU %u)" : "%llu", (unsigned long long)all,
                 h->ecc[worst], worst);
        checked_add(m, "gpu.ecc", text, "");
}

void gpu_check_holders(struct checked *m, const struct gpu_holders *h, bool named)
{
        add_gpu_processes(m, h, named);
        add_gpu_ecc(m, h);
}

void gpu_check(struct checked *m, const char *root)
{
        CLEANUP(free_textp) char *version = read_driver_version(root);
        const char *why = version ? "the driver does not answer" : no_driver;
        struct gpu_holders h;

        checked_add(m, "gpu.driver", version ? version : "none", "");
        if (node_facts_ask_holders(&h)) {
                gpu_check_holders(m, &h, node_facts_in_first_pids());
                return;
        }
        checked_add(m, "gpu.processes", "", why);
        checked_add(m, "gpu.ecc", "", why);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper hnlaunch-nvml queries the driver once, and each fact stands for all GPUs of the node,
 * naming the worst GPU. Xids come from the kernel's log, if the user may read the log.
 */
#include "agent/check/gpu_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/check/place_check.h"
#include "agent/core/proc.h"
#include "agent/inspect/node_facts.h"
#include "base/fd.h"
#include "base/memory.h"

enum { VERSION_FILE_MAX = 64 << 10 };

/* Older messages may report trouble ended by a restart of the driver. */
#define XID_AGE_US (24 * 3600 * 1000000ULL)

/* The connection of a GPU to others by NVLink; a larger value is worse. */
enum {
        FABRIC_NONE, /* the GPU is made without */
        FABRIC_READY,
        FABRIC_NOT_STARTED,
        FABRIC_IN_PROGRESS,
        FABRIC_ERROR,
        FABRIC_DEGRADED, /* less bandwidth */
        FABRIC_BAD_ROUTE,
        FABRIC_MISFIT, /* wrong configuration */
        FABRIC_STATES,
};

static const char no_driver[] = "no NVIDIA driver",
                  no_domain[] = "the GPUs are of no NVLink domain of several nodes";

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

/* @named: the numbers are of this process namespace, and /proc has the programs. */
static void add_gpu_processes(struct checked *m, const struct gpu_holders *h, bool named)
{
        char text[CHECK_VALUE] = "", name[64] = "", mib[32];
        const struct gpu_holder *v = &h->v[0];

        if (!h->n) {
                checked_add(m, "gpu.processes", "0", "");
                return;
        }
        /* The process with the most memory stands for all. */
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

/* Adds the sum of uncorrected errors, and the GPU with the most. GPUs without ECC are passed
 * over. */
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

/* Adds the worst state of all GPUs: the largest. States up to @good are no trouble. */
static void add_gpu_state(struct checked *m, const char *name, const uint8_t *states,
                          const char *const *words, uint8_t good, const char *unknown)
{
        char text[CHECK_VALUE];
        uint32_t worst = GPU_RECORD_GPUS;

        for (uint32_t i = 0; i < GPU_RECORD_GPUS; i++)
                if (states[i] != GPU_HEALTH_UNKNOWN &&
                    (worst == GPU_RECORD_GPUS || states[i] > states[worst]))
                        worst = i;
        if (worst == GPU_RECORD_GPUS) {
                checked_add(m, name, "", unknown);
                return;
        }
        snprintf(text, sizeof(text), states[worst] > good ? "%s (GPU %u)" : "%s",
                 words[states[worst]], worst);
        checked_add(m, name, text, "");
}

/* Judges the state and NVML's health mask: fields of two bits (0 not known, 1 yes, 2 no), and a
 * field of four bits for the configuration (0 not known, 1 none wrong, others name the fault). */
static uint8_t grade_fabric(const struct gpu_fabric *f)
{
        enum { DEGRADED_SHIFT = 0, BAD_ROUTE_SHIFT = 4, MISFIT_SHIFT = 8 };
        uint32_t health = f->health == GPU_RECORD_UNKNOWN ? 0 : f->health;

        /* Any other state is COMPLETED: then the status and the health mask decide. */
        switch (f->state) {
        case GPU_FABRIC_NONE:
                return FABRIC_NONE;
        case GPU_FABRIC_NOT_STARTED:
                return FABRIC_NOT_STARTED;
        case GPU_FABRIC_IN_PROGRESS:
                return FABRIC_IN_PROGRESS;
        case GPU_RECORD_UNKNOWN:
                return GPU_HEALTH_UNKNOWN;
        }
        if (f->status)
                return FABRIC_ERROR;
        if ((health >> MISFIT_SHIFT & 15) > 1)
                return FABRIC_MISFIT;
        if ((health >> BAD_ROUTE_SHIFT & 3) == 1)
                return FABRIC_BAD_ROUTE;
        return (health >> DEGRADED_SHIFT & 3) == 1 ? FABRIC_DEGRADED : FABRIC_READY;
}

/* GPUs missing in the driver's list have the value "unknown" in both arrays. */
static void add_gpu_health(struct checked *m, const struct gpu_holders *h)
{
        static const char *const words[FABRIC_STATES] = {
                [FABRIC_NONE] = "none",
                [FABRIC_READY] = "ready",
                [FABRIC_NOT_STARTED] = "not started",
                [FABRIC_IN_PROGRESS] = "in progress",
                [FABRIC_ERROR] = "error",
                [FABRIC_DEGRADED] = "less bandwidth",
                [FABRIC_BAD_ROUTE] = "unhealthy route",
                [FABRIC_MISFIT] = "wrong configuration",
        };
        static const char *const remap[GPU_REMAP_STATES] = { "none", "pending", "failed" };
        uint8_t fabric[GPU_RECORD_GPUS];

        for (uint32_t i = 0; i < GPU_RECORD_GPUS; i++)
                fabric[i] = grade_fabric(&h->fabric[i]);
        add_gpu_state(m, "gpu.remap", h->remap, remap, GPU_REMAP_NONE,
                      "the driver remaps no rows of these GPUs");
        add_gpu_state(m, "gpu.fabric", fabric, words, FABRIC_READY,
                      "the driver does not tell the state of the fabric");
}

/* Looks for the daemon among the processes visible to this user. */
struct imex_search {
        const char *root;
        bool sees_others, found;
};

static void match_imex(struct imex_search *s, const char *pid)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/proc/%s/comm", s->root, pid);
        CLEANUP(free_textp) char *name = NULL;

        if (fd_read_file(path, VERSION_FILE_MAX, &name, NULL) < 0)
                return;
        /* The first process belongs to root, and is hidden where /proc shows only the user's
         * processes. */
        s->sees_others |= !strcmp(pid, "1");
        s->found |= !strcmp(name, "nvidia-imex\n");
}

/* Adds whether nvidia-imex runs. From within a container the process is not seen. */
static void add_imex_daemon(struct checked *m, bool named, const char *root)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/proc", root);
        struct imex_search s = { .root = root };
        DIR *folder = named ? opendir(path) : NULL;
        struct dirent *entry;

        while (folder && (entry = readdir(folder)))
                if (*entry->d_name >= '1' && *entry->d_name <= '9')
                        match_imex(&s, entry->d_name);
        if (folder)
                closedir(folder);
        if (s.found)
                checked_add(m, "gpu.imex.daemon", "running", "");
        else
                checked_add(m, "gpu.imex.daemon", s.sees_others ? "none" : "",
                            s.sees_others ? "" : "processes of root are not seen from here");
}

/* Adds the channels by which programs share memory of GPUs with other nodes of an NVLink domain. */
static void add_imex(struct checked *m, const struct gpu_holders *h, bool named, const char *root)
{
        CLEANUP(free_textp)
        char *path = xasprintf("%s/dev/nvidia-caps-imex-channels", root);
        char first[CHECK_NAME] = "none";
        bool is_domain = false;
        struct dirent *entry;
        DIR *folder;

        for (uint32_t i = 0; i < GPU_RECORD_GPUS; i++)
                is_domain |= place_check_has_domain(&h->fabric[i]);
        if (!is_domain) {
                checked_add(m, "gpu.imex", "", no_domain);
                checked_add(m, "gpu.imex.daemon", "", no_domain);
                return;
        }
        /* The first channel by number to which the user has access: strverscmp() puts channel2
         * before channel10. A node without the folder has no channel. */
        folder = opendir(path);
        while (folder && (entry = readdir(folder)))
                if (!strncmp(entry->d_name, "channel", 7) &&
                    faccessat(dirfd(folder), entry->d_name, R_OK | W_OK, 0) == 0 &&
                    (!strcmp(first, "none") || strverscmp(entry->d_name, first) < 0))
                        snprintf(first, sizeof(first), "%.20s", entry->d_name);
        if (folder)
                closedir(folder);
        checked_add(m, "gpu.imex", first, "");
        add_imex_daemon(m, named, root);
}

/* Only the last Xid of the kernel's log counts. The user may have no access to the log
 * (dmesg_restrict). */
static void add_xid(struct checked *m)
{
        char text[CHECK_VALUE];
        struct xid xid;
        int r = node_facts_find_xid(&xid, XID_AGE_US);

        snprintf(text, sizeof(text), "none");
        if (r > 0)
                snprintf(text, sizeof(text), "%u (%s) of GPU %s", xid.number, xid.words,
                         xid.address);
        checked_add(m, "gpu.xid", r < 0 ? "" : text,
                    r < 0 ? "this user may not read the kernel's log" : "");
}

void gpu_check_holders(struct checked *m, const struct gpu_holders *h, bool named, const char *root)
{
        add_gpu_processes(m, h, named);
        add_gpu_ecc(m, h);
        add_gpu_health(m, h);
        add_imex(m, h, named, root);
}

/* Without an answer of the driver the facts of the version and of the kernel's log remain. */
void gpu_check(struct checked *m, const char *root)
{
        CLEANUP(free_textp) char *version = read_driver_version(root);
        const char *why = version ? "the driver does not answer" : no_driver;
        struct gpu_holders h;

        static const char *const asked[] = { "gpu.processes", "gpu.ecc",  "gpu.remap",
                                             "gpu.fabric",    "gpu.imex", "gpu.imex.daemon" };

        checked_add(m, "gpu.driver", version ? version : "none", "");
        if (version)
                add_xid(m);
        else
                checked_add(m, "gpu.xid", "", no_driver);
        if (node_facts_ask_holders(&h)) {
                gpu_check_holders(m, &h, node_facts_in_first_pids(), root);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
                checked_add(m, asked[i], "", why);
}

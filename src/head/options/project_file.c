/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project_file_objects() applies the rule of the key's row; every rule is a predicate on the text
 * of the value, except PROJECT_HOSTFILES: hosts are known later, and config_check_hosts() checks
 * them then. Paths are checked twice, as text (no step upward) and through the
 * links that exist (leads_below), because a repository can hold a link to any place.
 */
#include "head/options/project_file.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/printable.h"

const char *const project_variables[] = {
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "MKL_NUM_THREADS",
        "NCCL_ALGO",
        "NCCL_BUFFSIZE",
        "NCCL_CROSS_NIC",
        "NCCL_DEBUG",
        "NCCL_DEBUG_SUBSYS",
        "NCCL_IB_DISABLE",
        "NCCL_IB_GID_INDEX",
        "NCCL_IB_HCA",
        "NCCL_IB_TC",
        "NCCL_IB_TIMEOUT",
        "NCCL_MAX_NCHANNELS",
        "NCCL_MIN_NCHANNELS",
        "NCCL_P2P_DISABLE",
        "NCCL_P2P_LEVEL",
        "NCCL_PROTO",
        "NCCL_SHM_DISABLE",
        "NCCL_SOCKET_FAMILY",
        "NCCL_SOCKET_IFNAME",
        "OMP_NUM_THREADS",
        "OMP_PLACES",
        "OMP_PROC_BIND",
        "TORCH_CPP_LOG_LEVEL",
        "TORCH_DISTRIBUTED_DEBUG",
        NULL,
};

const char *project_rule_name(enum project_rule rule)
{
        static const char *const names[PROJECT_RULES] = {
                [PROJECT_UNDECIDED] = "nothing",
                [PROJECT_REFUSED] = "nothing",
                [PROJECT_FREE] = "any value",
                [PROJECT_NAMES] = "names of variables without values",
                [PROJECT_HOSTS] = "hosts without users",
                [PROJECT_HOSTFILES] = "hostfiles without user, port and addr",
                [PROJECT_BELOW] = "a folder below its own",
        };

        return names[rule];
}

/* ---- the rules ---- */

/* Refuses NAME=VALUE (env.set without its list), ALL and * (they would overrule the user's NONE).
 */
static bool names_variables(const char *value)
{
        char *list = xstrdup(value), *save = NULL;
        bool good = !strchr(value, '=');

        for (char *one = strtok_r(list, ", \t", &save); one; one = strtok_r(NULL, ", \t", &save))
                good &= !strchr("*?[", *one) && strcasecmp(one, "all");
        free(list);
        return good;
}

/* Tells whether a path is relative and has no step upward. */
static bool only_descends(const char *path)
{
        const char *c = path;

        if (*path == '/' || *path == '~')
                return false;
        while (c) {
                if (!strncmp(c, "..", 2) && (!c[2] || c[2] == '/'))
                        return false;
                c = strchr(c, '/');
                c = c ? c + 1 : NULL;
        }
        return true;
}

/* Tells whether the existing part of @path lies below @folder, links followed. */
static bool leads_below(const char *folder, const char *path)
{
        char *whole = xasprintf("%s/%s", folder, path), root[PATH_MAX], real[PATH_MAX];
        bool below = realpath(folder, root);
        size_t len = below ? strlen(root) : 0;

        while (below && strlen(whole) > strlen(folder) && !realpath(whole, real))
                *strrchr(whole, '/') = '\0';
        if (below && strlen(whole) > strlen(folder))
                below = !strncmp(real, root, len) && (!real[len] || real[len] == '/');
        free(whole);
        return below;
}

/* Tells whether a value is printable; tabs may separate the words of lists. */
static bool is_plain_value(const char *value)
{
        CLEANUP(free_textp) char *text = xstrdup(value), *shown = NULL;

        for (char *c = text; (c = strchr(c, '\t'));)
                *c = ' ';
        shown = printable_text(text, SIZE_MAX);
        return strcmp(shown, text) == 0;
}

const char *project_file_objects(const struct option_def *def, const char *key, const char *value,
                                 const char *folder)
{
        bool good = false;

        if (!is_plain_value(value))
                return "text without control characters";
        if (!strncmp(key, "env.set.", 8)) {
                for (size_t i = 0; project_variables[i]; i++)
                        if (!strcmp(project_variables[i], key + 8))
                                return NULL;
                return "the variables in hnlaunch(1)";
        }
        switch (def->project) {
        case PROJECT_FREE:
        case PROJECT_HOSTFILES: /* checked after reading */
                good = true;
                break;
        case PROJECT_NAMES:
                good = names_variables(value);
                break;
        case PROJECT_HOSTS:
                good = !strchr(value, '@');
                break;
        case PROJECT_BELOW:
                good = only_descends(value) && leads_below(folder, value);
                break;
        case PROJECT_UNDECIDED:
        case PROJECT_REFUSED:
        case PROJECT_RULES:
                break;
        }
        return good ? NULL : project_rule_name(def->project);
}

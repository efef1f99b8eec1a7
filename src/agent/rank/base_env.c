/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a rank begins with the login environment of the node. Variables about the
 * login session or about a launcher around the agent would be untrue in a rank, and are left out by
 * name or prefix.
 */
#include "agent/rank/base_env.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/env_names.h"

/* Of this node's login: true for the agent, a lie for a worker. A trailing * is a prefix. */
static const char *const session[] = {
        "SSH_*",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "DISPLAY",
        "XAUTHORITY",
        "WAYLAND_DISPLAY",
        "XDG_SESSION_*",
        "XDG_SEAT*",
        "XDG_VTNR",
        "DBUS_*",
        "TMUX*",
        "STY",
        "WINDOWID",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "NOTIFY_SOCKET",
        "LISTEN_FDS",
        "LISTEN_PID",
        "MOTD_SHOWN",
        /* of a launcher around this one */
        "SLURM_*",
        "SLURMD_*",
        "PMI_*",
        "PMIX_*",
        "I_MPI_PMI_LIBRARY", /* of Slurm: it speaks to Slurm only */
        "OMPI_*",
        "HYDRA_*",
        "MPI_LOCAL*",
        "MV2_COMM_WORLD_*",
        "MVP_COMM_WORLD_*",
        "JSM_*",
        "PALS_*",
        "ALPS_APP_*",
        "FLUX_TASK_*",
        "FLUX_JOB_ID",
        "FLUX_PMI_LIBRARY_PATH",
        "TORCHELASTIC_*",
        "HN_*",
        "HNLAUNCH_*",
};

/* Whether a name of @len bytes fits a pattern: the name itself, or a beginning and a star. */
static bool matches_pattern(const char *name, size_t len, const char *pattern)
{
        size_t n;

        if (*pattern != *name && *pattern != '*')
                return false;
        n = strlen(pattern);
        if (n && pattern[n - 1] == '*')
                return len >= n - 1 && !strncmp(name, pattern, n - 1);
        return len == n && !strncmp(name, pattern, n);
}

static bool is_variable_dropped(const char *name, size_t len, const struct launch_order *l)
{
        for (size_t i = 0; i < ARRAY_SIZE(session); i++)
                if (matches_pattern(name, len, session[i]))
                        return true;
        for (size_t i = 0; i < l->unset.n; i++)
                if (matches_pattern(name, len, l->unset.v[i]))
                        return true;
        return false;
}

void base_env_build(struct strv *env, char *const *login, const struct launch_order *l)
{
        const char *equals;

        for (; *login; login++) {
                equals = strchr(*login, '=');
                if (equals && equals > *login &&
                    !is_variable_dropped(*login, (size_t)(equals - *login), l))
                        strv_push(env, *login);
        }
        /* Last: a variable of the order replaces that of the login, also one of a dropped name. */
        strv_env_merge(env, &l->env);
}

void base_env_use_venv(struct strv *env)
{
        CLEANUP(free_textp) char *venv = NULL;
        const char *path = strv_env_get(env, "PATH");

        if (!strv_env_get(env, HN_VENV))
                return;
        venv = xstrdup(strv_env_get(env, HN_VENV)); /* the entry may move */
        strv_env_set(env, "VIRTUAL_ENV", venv);
        strv_env_setf(env, "PATH", "%s/bin:%s", venv,
                      path && *path ? path : "/usr/local/bin:/usr/bin:/bin");
        strv_env_unset(env, "PYTHONHOME");
}

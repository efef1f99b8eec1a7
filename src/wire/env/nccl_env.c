/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_variables() has all names with the releases that read them. All ranks of a node start from
 * one environment with both names; nccl_env_fit() removes the older names in the child, when the
 * release of PyTorch is known.
 */
#include "wire/env/nccl_env.h"

#include <string.h>

#include "wire/env/worker_env.h"

/* A value that the user gave under one name must not be replaced through the other. */
static bool is_users_choice(const struct strv *env, const struct launch_order *l, const char *name)
{
        return name && (strv_env_get(env, name) || worker_env_is_unset(l, name));
}

/* A variable, or both names of one. */
struct nccl_variable {
        const char *name, *old; /* @old: what older releases read; NULL = the same */
        const char *value, *old_value;
        unsigned from, until; /* releases that read @old, as TORCH_VERSION(); @until is the first
                                 that does not */
};

enum { N_VARIABLES = 5 };

/* The older names are the entries' numbers in what nccl_env_build_all() returns. */
static void list_variables(struct nccl_variable to[N_VARIABLES], const struct nccl_values *v)
{
        enum {
                RENAMED = TORCH_VERSION(2, 2), /* NCCL_ -> TORCH_NCCL_ */
                GENERAL = TORCH_VERSION(2, 8), /* TORCH_NCCL_ -> TORCH_FR_ */
        };
        const struct nccl_variable all[N_VARIABLES] = {
                { "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000", "2000", RENAMED,
                  GENERAL },
                { "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", v->dumps, v->dumps,
                  RENAMED, GENERAL },
                { "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", NULL, v->pipes, NULL, 0, 0 },
                /* The default since 2.8. */
                { NULL, "TORCH_NCCL_DUMP_ON_TIMEOUT", NULL, "1", RENAMED, GENERAL },
                /* 3 is not known to all that read the old name. */
                { "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING", "3", "1", 1,
                  RENAMED },
        };

        memcpy(to, all, sizeof(all));
}

/* Returns the older names that were set, a bit each. */
static unsigned add_variables(struct strv *env, const struct launch_order *l,
                              const struct nccl_values *v, bool older)
{
        struct nccl_variable all[N_VARIABLES];
        const char *ras = strv_env_get(env, "NCCL_RAS_ENABLE");
        unsigned set = 0;

        list_variables(all, v);
        if (v->ras_addr && (!ras || strcmp(ras, "0") != 0) &&
            !is_users_choice(env, l, "NCCL_RAS_ADDR"))
                strv_env_add(env, "NCCL_RAS_ADDR", v->ras_addr);
        for (unsigned i = 0; i < N_VARIABLES; i++) {
                const struct nccl_variable *p = &all[i];

                if (is_users_choice(env, l, p->name) || is_users_choice(env, l, p->old))
                        continue;
                if (p->name && p->value)
                        strv_env_add(env, p->name, p->value);
                if (older && p->old && p->old_value) {
                        strv_env_add(env, p->old, p->old_value);
                        set |= 1u << i;
                }
        }
        return set;
}

void nccl_env_build(struct strv *env, const struct launch_order *l, const struct nccl_values *v)
{
        add_variables(env, l, v, false);
}

unsigned nccl_env_build_all(struct strv *env, const struct launch_order *l,
                            const struct nccl_values *v)
{
        return add_variables(env, l, v, true);
}

void nccl_env_fit(char **env, unsigned set, unsigned torch)
{
        struct nccl_variable all[N_VARIABLES];
        char **to = env;

        list_variables(all, &(struct nccl_values){ 0 }); /* the values do not matter for names */
        for (; *env; env++) {
                bool fits = true;

                for (unsigned i = 0; i < N_VARIABLES; i++) {
                        /* 0 = the name was not set here. */
                        size_t n = set & 1u << i ? strlen(all[i].old) : 0;

                        if (n && !strncmp(*env, all[i].old, n) && (*env)[n] == '=')
                                fits = torch >= all[i].from && torch < all[i].until;
                }
                if (fits)
                        *to++ = *env;
        }
        *to = NULL;
}

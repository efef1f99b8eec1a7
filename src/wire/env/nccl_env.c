/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/env/nccl_env.h"

#include <string.h>

#include "wire/env/worker_env.h"

/* @second: another name of the same setting, NULL = none. A value that the user gave under one name
 * must not be replaced through the other. */
static bool is_users_choice(const struct strv *env, const struct launch_order *l, const char *first,
                            const char *second)
{
        return strv_env_get(env, first) || worker_env_is_unset(l, first) ||
               (second && (strv_env_get(env, second) || worker_env_is_unset(l, second)));
}

static void set_both_names(struct strv *own, const struct strv *env, const struct launch_order *l,
                           const char *first, const char *second, const char *value)
{
        if (!value || is_users_choice(env, l, first, second))
                return;
        strv_env_set(own, first, value);
        if (second)
                strv_env_set(own, second, value);
}

void nccl_env_build(struct strv *env, const struct launch_order *l, const struct nccl_values *v)
{
        const struct {
                const char *name, *other, *value;
        } table[] = {
                { "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000" },
                { "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", v->dumps },
                { "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", NULL, v->pipes },
                { "TORCH_NCCL_DUMP_ON_TIMEOUT", NULL, "1" },
        };
        const char *ras = strv_env_get(env, "NCCL_RAS_ENABLE");
        struct strv own = STRV_INIT;

        if (!ras || strcmp(ras, "0") != 0)
                set_both_names(&own, env, l, "NCCL_RAS_ADDR", NULL, v->ras_addr);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                set_both_names(&own, env, l, table[i].name, table[i].other, table[i].value);
        /* The old name is read where there is no recorder, and 3 is not known to all of those. */
        if (!is_users_choice(env, l, "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                             "NCCL_ASYNC_ERROR_HANDLING"))
                strv_env_set(&own, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "3");
        set_both_names(&own, env, l, "NCCL_ASYNC_ERROR_HANDLING", NULL, "1");
        strv_env_merge(env, &own);
        strv_finish(&own);
}

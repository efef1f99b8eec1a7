/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the table, the JSON and the environments of ranks have in common. plan_view_make() collects
 * the exported variables as a launch would; the errors of this step are dropped, because a launch
 * or the check of options has reported them already.
 */
#include "head/report/plan_view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/model/tree.h"
#include "head/options/config.h"
#include "head/options/export_env.h"
#include "head/options/program_options.h"
#include "wire/env/gpu_list.h"

struct plan_view plan_view_make(const struct plan *p, const struct hosts *hosts,
                                const struct options *o, const struct plan_inventory *inventory)
{
        static const struct strv none = STRV_INIT;
        struct plan_view v = {
                .p = p, .hosts = hosts, .o = o, .ports = &none, .inventory = inventory
        };
        struct diags d = DIAGS_INIT;

        if (o->tree)
                v.parents = tree_of_hosts(hosts, (size_t)o->tree);
        export_env_collect(o, environ, &v.env, &v.unset, &d);
        diags_finish(&d);
        return v;
}

void plan_view_finish(struct plan_view *v)
{
        free(v->parents);
        strv_finish(&v->env);
        strv_finish(&v->unset);
}

const struct host *plan_view_host(const struct plan_view *v, int node)
{
        return &v->hosts->v[v->p->nodes[node].host];
}

const char *plan_view_parent(const struct plan_view *v, const struct plan_node *n)
{
        /* Without --tree every node hangs on the head. */
        int parent = v->parents ? v->parents[n->host] : TREE_HEAD;

        return parent == TREE_HEAD ? NULL : v->hosts->v[parent].name;
}

char *plan_view_pair(const char *pair)
{
        if (!config_is_secret(pair))
                return xstrdup(pair);
        return xasprintf("%.*s=(not shown)", (int)strcspn(pair, "="), pair);
}

/* Parts of GPUs (MIG) have no numbers: the words of CUDA_VISIBLE_DEVICES here name them, when this
 * machine knows the list; else their place in the list of the node. */
char *plan_view_fold_gpus(const struct plan_view *v, const struct intlist *gpus)
{
        struct buf out = BUF_INIT;

        if (!gpus->n || gpus->v[0] < GPU_BY_PLACE)
                return intlist_fold(gpus);
        for (size_t i = 0; i < gpus->n; i++) {
                CLEANUP(free_textp)
                char *word = gpu_list_word(&v->env, (uint32_t)gpus->v[i]);

                if (*word)
                        buf_printf(&out, "%s%s", i ? "," : "", word);
                else
                        buf_printf(&out, "%spart %d", i ? "," : "", gpus->v[i] - GPU_BY_PLACE);
        }
        return buf_steal(&out);
}

/* Whether the user has set an option at any level above the presets. */
static bool is_option_given(const struct options *o, const char *option)
{
        return settings_level(o->settings, option_by_name(option)) > LEVEL_PRESET;
}

bool plan_view_gpus_matter(const struct plan_view *v)
{
        bool any = false;

        for (size_t i = 0; i < v->hosts->n; i++)
                any |= v->hosts->v[i].has_gpus || (v->inventory && v->inventory[i].gpus);
        for (size_t i = 0; i < options_count_roles(v->o); i++)
                any |= program_options_has(options_program(v->o, i), "gpus-per-rank");
        return any || strv_env_get(&v->env, "CUDA_VISIBLE_DEVICES") ||
               v->o->plan.ppn == PLAN_PPN_GPU || is_option_given(v->o, "gpus-per-rank") ||
               is_option_given(v->o, "gpu-visibility") || is_option_given(v->o, "include");
}

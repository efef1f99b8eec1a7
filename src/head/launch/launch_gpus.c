/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_VISIBLE_DEVICES of -x, --env-file or --export is an inventory: the planner counts the listed
 * GPUs among all GPUs of a node, which HELLO has, including GPUs hidden by the node's own variable.
 * Without --probe the words of the list are counted. The lists of ROCm count where the node has
 * GPUs of AMD. Other lists are compared with the number of ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "head/launch/launch_private.h"
#include "head/options/export_env.h"
#include "head/term/diag.h"
#include "wire/env/gpu_list.h"
#include "wire/env/worker_env.h"

static const char cuda_list[] = "CUDA_VISIBLE_DEVICES";

/* The variables for the ranks, from this shell and the options. */
struct rank_variables {
        struct strv env, unset;
};

/* Copies the variables of the ranks; rank_variables_finish() frees. */
static void collect_variables(const struct launch *l, struct rank_variables *to)
{
        struct diags unused = DIAGS_INIT;

        *to = (struct rank_variables){ STRV_INIT, STRV_INIT };
        if (l->o->command != COMMAND_PLAN) {
                strv_copy(&to->env, &l->env);
                strv_copy(&to->unset, &l->unset);
        } else {
                export_env_collect(l->o, environ, &to->env, &to->unset, &unused);
        }
        diags_finish(&unused);
}

static void rank_variables_finish(struct rank_variables *v)
{
        strv_finish(&v->env);
        strv_finish(&v->unset);
}

/* Replaces the GPUs of an inventory. @chosen: CUDA_VISIBLE_DEVICES names the GPUs. */
static void set_gpu_list(struct plan_inventory *inv, const struct gpu_list *gpus, bool chosen)
{
        int *index = xcalloc(gpus->n, sizeof(*index));

        for (uint32_t i = 0; i < gpus->n; i++)
                index[i] = (int)gpus->v[i].index;
        free((void *)(uintptr_t)inv->gpu_index);
        inv->gpu_index = index;
        inv->gpus = (int)gpus->n;
        inv->chosen = chosen;
}

static int compare_index(const void *a, const void *b)
{
        const struct msg_gpu *x = a, *y = b;

        return x->index < y->index ? -1 : x->index > y->index;
}

/* Lists all GPUs of a node by number, without the parts of GPUs that a list there names. */
static void list_all(struct gpu_list *to, const struct hello *h)
{
        for (uint32_t i = 0; i < h->n_gpus; i++)
                /* Parts of GPUs (MIG) have no number. */
                if (h->gpus[i].index < GPU_BY_PLACE)
                        gpu_list_push(to, &h->gpus[i]);
        for (uint32_t i = 0; i < h->n_hidden; i++)
                gpu_list_push(to, &h->hidden[i]);
        if (to->n)
                qsort(to->v, to->n, sizeof(*to->v), compare_index);
}

/* Counts the devices of a list: words, and ranges like 0-3. A negative number ends the list. */
static long count_devices(const char *list)
{
        CLEANUP(free_textp) char *words = xstrdup(list);
        char *rest = words, *word, *end;
        long n = 0, first, last;

        while ((word = strsep(&rest, ","))) {
                word += strspn(word, " \t");
                if (!*word || *word == '-')
                        break;
                first = strtol(word, &end, 10);
                last = end > word && *end == '-' ? strtol(end + 1, NULL, 10) : first;
                /* Words that are no range, as UUIDs, are one device each. */
                n += last > first && last - first < PLAN_MAX_RANKS ? last - first + 1 : 1;
        }
        return n;
}

/* Leaves as many GPUs of AMD as the shortest list of ROCm names: HIP numbers these from 0 on. */
static void keep_named(struct gpu_list *all, const struct rank_variables *v)
{
        static const char *const names[] = { "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                             "GPU_DEVICE_ORDINAL" };

        for (size_t i = 0; i < ARRAY_SIZE(names) && all->n; i++) {
                const char *list = strv_env_get(&v->env, names[i]);

                if (list && !strncmp(all->v[0].name, "AMD ", 4))
                        all->n = MIN(all->n, (uint32_t)count_devices(list));
        }
}

/* Sets the GPUs of a node: those of the list for the ranks; else of the list in the environment of
 * the agent, unless --unset names the variable; else all. */
static void choose_gpus(struct plan_inventory *inv, const struct hello *h,
                        const struct rank_variables *v)
{
        const struct launch_order order = { .unset = v->unset };
        const char *visible = strv_env_get(&v->env, cuda_list);
        struct gpu_list all = { 0 }, shown = { 0 };

        list_all(&all, h);
        keep_named(&all, v);
        if (visible) {
                gpu_list_choose(&shown, &all, visible);
                set_gpu_list(inv, &shown, all.n > 0);
        } else if (h->gpus_chosen && !worker_env_is_unset(&order, cuda_list)) {
                set_gpu_list(inv, &(struct gpu_list){ h->gpus, h->n_gpus }, h->n_gpus > 0);
        } else {
                set_gpu_list(inv, &all, false);
        }
        free(all.v);
        free(shown.v);
}

void launch_gpus_choose(struct launch *l)
{
        struct rank_variables v;

        collect_variables(l, &v);
        for (size_t i = 0; i < l->hosts.n; i++)
                if (l->inventory[i].known)
                        choose_gpus(&l->inventory[i], &job_node(l->run->job, i)->hello, &v);
        rank_variables_finish(&v);
}

struct plan_inventory *launch_gpus_guess(const struct launch *l)
{
        struct plan_inventory *inv = NULL;
        struct gpu_list shown = { 0 };
        struct rank_variables v;
        const char *visible;

        collect_variables(l, &v);
        visible = strv_env_get(&v.env, cuda_list);
        if (visible) {
                gpu_list_choose(&shown, NULL, visible);
                /* .known stays false: slots come from the hostfile. */
                inv = xcalloc(l->hosts.n, sizeof(*inv));
                for (size_t i = 0; shown.n && i < l->hosts.n; i++)
                        set_gpu_list(&inv[i], &shown, true);
        }
        free(shown.v);
        rank_variables_finish(&v);
        return inv;
}

void launch_gpus_free(struct plan_inventory *inv, size_t n)
{
        for (size_t i = 0; inv && i < n; i++)
                free((void *)(uintptr_t)inv[i].gpu_index);
        free(inv);
}

/* --- more ranks than devices ------------------------------------------------------------------ */

/* Warns of the node with the most ranks above @devices; others are like it. */
static void check_list(struct launch *l, const char *name, long devices)
{
        const struct plan_node *most = NULL;
        struct diag *d;

        for (size_t i = 0; i < l->plan.n_nodes; i++)
                if (l->plan.nodes[i].n_ranks > devices &&
                    (!most || l->plan.nodes[i].n_ranks > most->n_ranks))
                        most = &l->plan.nodes[i];
        if (!most)
                return;
        d = diag_warn(&l->diags, HN_FEW_DEVICES, "%s names %ld device%s, but %s has %d ranks", name,
                      devices, devices == 1 ? "" : "s", l->hosts.v[most->host].name, most->n_ranks);
        diag_help(d, "start %ld rank%s a node, or name more devices", MAX(devices, 1L),
                  devices > 1 ? "s" : "");
}

void launch_gpus_check(struct launch *l)
{
        static const char *const names[] = { "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                             "ZE_AFFINITY_MASK", "ASCEND_RT_VISIBLE_DEVICES",
                                             "ASCEND_VISIBLE_DEVICES" };
        struct rank_variables v;
        size_t before = l->diags.n;
        const char *list;

        /* A rank for each node has all devices; other ranks may use none. */
        if (l->o->plan.per_node || !l->o->plan.gpus_per_rank || (l->end.told & TOLD_DEVICES))
                return;
        collect_variables(l, &v);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if ((list = strv_env_get(&v.env, names[i])) && *list)
                        check_list(l, names[i], count_devices(list));
        list = strv_env_get(&v.env, cuda_list);
        if (list && *list && l->inventory && l->o->local && !l->o->gpu_visibility_own &&
            l->inventory[0].chosen)
                check_list(l, cuda_list, l->inventory[0].gpus);
        if (l->diags.n > before)
                l->end.told |= TOLD_DEVICES;
        rank_variables_finish(&v);
}

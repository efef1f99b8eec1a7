/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries read some variables while loading, so the preparation sets the values that the agent
 * would set for ranks. The values are computed for an invented order of as many ranks, with a GPU
 * for each rank where the node has so many.
 */
#include "agent/attempt/warm_env.h"

#include <stdlib.h>

#include "agent/rank/base_env.h"
#include "base/memory.h"
#include "wire/env/worker_env.h"

extern char **environ;

/* Adds the variables of all ranks that are read when a program is loaded, with the values of
 * start_rank(). */
static void add_loaded_variables(struct strv *env, const struct launch_order *l,
                                 struct binding_node *node, unsigned cores)
{
        static const char *const names[] = { "OMP_NUM_THREADS", "PYTHONUNBUFFERED",
                                             "PYTHONFAULTHANDLER" };
        CLEANUP(strv_finish) struct strv full = STRV_INIT;
        struct bind_query bind = order_binding_ask(l, env);
        struct order_binding *bindings = order_binding_create(&bind, node, false);
        struct bind_note *unused;
        const struct binding *b = order_binding_get(bindings, 0, &unused);

        if (b && !strv_env_get(env, "OMP_NUM_THREADS"))
                strv_env_set_number(env, "OMP_NUM_THREADS", b->threads);
        order_binding_destroy(bindings);
        free(bind.ranks);
        free(bind.others);
        strv_copy(&full, env);
        worker_env_build(&full, l, l->ranks, NULL, NULL, cores);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const char *value = strv_env_get(&full, names[i]);

                if (value && !strv_env_get(env, names[i]))
                        strv_env_set(env, names[i], value);
        }
}

void warm_env_build(struct strv *env, const struct warm_order *m, struct binding_node *node,
                    unsigned cores, bool has_gpus)
{
        char none[] = "";
        struct launch_program program = { .argv = STRV_INIT, .cwd = none, .role = none };
        /* All texts are borrowed: the order is not finished. */
        struct launch_order l = { .world_size = m->slots,
                                  .num_nodes = 1,
                                  .bind = m->bind,
                                  .env = m->env,
                                  .unset = m->unset,
                                  .mpi = { .kind = MPI_NONE },
                                  .programs = &program,
                                  .n_programs = 1,
                                  .cwd = m->cwd,
                                  .ranks = xcalloc(m->slots, sizeof(*l.ranks)),
                                  .n_ranks = m->slots };

        for (uint32_t i = 0; i < m->slots; i++) {
                l.ranks[i] = (struct launch_rank){ .rank = i, .local_rank = i };
                if (has_gpus && m->slots <= node->gpus.n) {
                        l.ranks[i].gpus = &l.ranks[i].rank;
                        l.ranks[i].n_gpus = 1;
                }
        }
        base_env_build(env, environ, &l);
        base_env_use_venv(env);
        add_loaded_variables(env, &l, node, cores);
        free(l.ranks);
}

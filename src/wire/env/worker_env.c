/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_env_build() collects the variables in a separate list, which is merged into the
 * environment at the end. The order of the calls is the order of precedence: a set_default() sees
 * earlier variables and the variables of the user. compat_env_set() comes last and may replace
 * names of the families before.
 */
#include "wire/env/worker_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "wire/env/compat_env.h"
#include "wire/env/gpu_list.h"
#include "wire/env_names.h"

/* An environment to be built. The few variables of the rank are set in a list of their own and
 * merged at the end, because the rest may have tens of thousands. */
struct rank_env {
        const struct strv *rest;
        struct strv own;
};

static bool has_variable(const struct rank_env *env, const char *name)
{
        return strv_env_get(&env->own, name) || strv_env_get(env->rest, name);
}

/* Sets a variable unless the user or an earlier call has set the name. */
static void set_default(struct rank_env *env, const char *name, const char *value)
{
        if (!has_variable(env, name))
                strv_env_set(&env->own, name, value);
}

bool worker_env_is_unset(const struct launch_order *l, const char *name)
{
        for (size_t i = 0; i < l->unset.n; i++) {
                const char *pattern = l->unset.v[i];
                size_t n = strcspn(pattern, "*");

                /* A star: any rest fits. */
                if (!strncmp(name, pattern, n) && (pattern[n] || !name[n]))
                        return true;
        }
        return false;
}

struct number_variable {
        const char *name;
        uint32_t value;
};

static void set_variables(struct strv *env, const struct number_variable *v, size_t n)
{
        for (size_t i = 0; i < n; i++)
                strv_env_set_number(env, v[i].name, v[i].value);
}

static void set_numbers(struct strv *env, const struct launch_order *l, const struct launch_rank *r)
{
        const struct number_variable table[] = {
                { HN_RANK, r->rank },
                { HN_WORLD_SIZE, l->world_size },
                { HN_LOCAL_RANK, r->local_rank },
                { HN_LOCAL_WORLD_SIZE, l->n_ranks },
                { HN_NODE_RANK, l->node_rank },
                { HN_NUM_NODES, l->num_nodes },
                { HN_RESTART, l->restart },
                { "NODE_RANK", l->node_rank },
        };

        set_variables(env, table, ARRAY_SIZE(table));
        /* A program without a role gets no variables of roles. */
        if (r->program >= l->n_programs || !*l->programs[r->program].role)
                return;
        strv_env_set(env, HN_ROLE, l->programs[r->program].role);
        strv_env_set_number(env, HN_ROLE_INDEX, l->world.index);
        strv_env_set_number(env, HN_JOB_RANK, l->world.first + r->rank);
}

static void set_torchrun_numbers(struct strv *env, const struct launch_order *l,
                                 const struct launch_rank *r)
{
        const struct number_variable table[] = {
                { "RANK", r->rank },
                { "WORLD_SIZE", l->world_size },
                { "LOCAL_RANK", r->local_rank },
                { "LOCAL_WORLD_SIZE", l->n_ranks },
                { "GROUP_RANK", l->node_rank },
                { "GROUP_WORLD_SIZE", l->num_nodes },
                { "ROLE_RANK", r->rank },
                { "ROLE_WORLD_SIZE", l->world_size },
                { "TORCHELASTIC_RESTART_COUNT", l->restart },
                { "TORCHELASTIC_MAX_RESTARTS", l->max_restarts },
                { "CROSS_RANK", l->node_rank },
                { "CROSS_SIZE", l->num_nodes },
                { "LOCAL_SIZE", l->n_ranks },
        };

        set_variables(env, table, ARRAY_SIZE(table));
        strv_env_set(env, "TORCHELASTIC_RUN_ID", l->run_id);
        /* As under torchrun without --role; the numbers of the role are those of the job. */
        strv_env_set(env, "ROLE_NAME", "default");
        /* False: the process of rank 0 serves PyTorch's store itself. */
        strv_env_set(env, "TORCHELASTIC_USE_AGENT_STORE", l->agent_store ? "True" : "False");
}

/* A process that starts ranks must not count as a rank, also if the shell of the user or the login
 * had such variables. */
static void drop_rank_variables(struct strv *env)
{
        static const char *const names[] = {
                "RANK",          "WORLD_SIZE",       "LOCAL_RANK",
                "LOCAL_SIZE",    "LOCAL_WORLD_SIZE", "CROSS_RANK",
                "CROSS_SIZE",    "GROUP_RANK",       "GROUP_WORLD_SIZE",
                "ROLE_RANK",     "ROLE_WORLD_SIZE",  "ROLE_NAME",
                "TORCHELASTIC_*"
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                strv_env_unset(env, names[i]);
}

static void set_job(struct strv *env, const struct launch_order *l, const char *store_path,
                    const char *error_file)
{
        strv_env_set(env, HN_RUN_ID, l->run_id);
        strv_env_set(env, "MASTER_ADDR", l->master_addr);
        strv_env_set_number(env, "MASTER_PORT", l->master_port);
        if (store_path)
                strv_env_set(env, HN_STORE, store_path);
        if (error_file && !l->per_node)
                strv_env_set(env, "TORCHELASTIC_ERROR_FILE", error_file);
}

static void set_ports(struct strv *env, const struct launch_port *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                CLEANUP(free_textp) char *name = port_name_variable(ports[i].name);

                strv_env_set_number(env, name, ports[i].number);
        }
}

static void set_addresses(struct strv *env, const struct launch_order *l,
                          const struct launch_rank *r)
{
        const struct launch_first_node *first = &l->first_node;
        const struct launch_rank_ports *own = launch_order_rank_ports(l, r);

        if (*first->addr)
                strv_env_set(env, HN_MASTER_ADDR, first->addr);
        set_ports(env, first->ports, first->n_ports);
        if (own) /* after the ports of rank 0's node: the rank's own come first */
                set_ports(env, own->v, own->n);
}

/* Of PMI; the agent adds PMI_FD, the rank's end of its connection, or PMI_PORT. */
static void set_pmi(struct rank_env *e, const struct launch_order *l, const struct launch_rank *r)
{
        char name[WORLD_NAME_MAX];

        if (l->mpi.kind == MPI_NONE || l->mpi.kind == MPI_PMIX)
                return;
        launch_order_world_name(l, name);
        strv_env_set_number(&e->own, "PMI_RANK", r->rank);
        strv_env_set_number(&e->own, "PMI_SIZE", l->world_size);
        strv_env_set_number(&e->own, "MPI_LOCALRANKID", r->local_rank);
        strv_env_set_number(&e->own, "MPI_LOCALNRANKS", l->n_ranks);
        if (l->mpi.kind == MPI_PMI2)
                strv_env_set(&e->own, "PMI_JOBID", name);
        if (l->mpi.kind == MPI_PMI_PORT)
                strv_env_set_number(&e->own, "PMI_ID", r->rank);
}

/* Of Open MPI. Version 4 asks for a PMIx server only under jsrun, so a variable of jsrun is set;
 * version 5 ignores the variable. */
static void set_open_mpi(struct rank_env *e, const struct launch_order *l,
                         const struct launch_rank *r)
{
        if (l->mpi.kind != MPI_PMIX)
                return;
        strv_env_set(&e->own, "JSM_JSRUN_PORT", "1"); /* only the presence counts */
        strv_env_set_number(&e->own, "OMPI_COMM_WORLD_RANK", r->rank);
        strv_env_set_number(&e->own, "OMPI_COMM_WORLD_SIZE", l->world_size);
        strv_env_set_number(&e->own, "OMPI_COMM_WORLD_LOCAL_RANK", r->local_rank);
        strv_env_set_number(&e->own, "OMPI_COMM_WORLD_LOCAL_SIZE", l->n_ranks);
        strv_env_set_number(&e->own, "OMPI_COMM_WORLD_NODE_RANK", r->local_rank);
}

/* Ranks may share a device; CUDA would see no device at all behind a repeated index. */
static void append_gpus(struct buf *list, struct strv *seen, const struct rank_env *env,
                        const struct launch_rank *r)
{
        for (uint32_t i = 0; i < r->n_gpus; i++) {
                CLEANUP(free_textp) char *text = gpu_list_word(env->rest, r->gpus[i]);

                if (strv_has(seen, text))
                        continue;
                buf_printf(list, seen->n ? ",%s" : "%s", text);
                strv_push(seen, text);
        }
}

/* Whether the rank is a role without GPUs beside roles that have some. The variable of -x of the
 * role counts. */
static bool sees_no_gpus(const struct launch_order *l, const struct launch_rank *r)
{
        const struct launch_program *p =
                r->program < l->n_programs ? &l->programs[r->program] : NULL;

        return p && *p->role && l->set_visible && !r->n_gpus &&
               !strv_env_get(&p->env, "CUDA_VISIBLE_DEVICES");
}

static void set_gpus(struct rank_env *env, const struct launch_order *l,
                     const struct launch_rank *r)
{
        CLEANUP(strv_finish) struct strv seen = STRV_INIT;
        CLEANUP(buf_finish) struct buf list = BUF_INIT;

        if (sees_no_gpus(l, r))
                strv_env_set(&env->own, "CUDA_VISIBLE_DEVICES", "");
        else if (l->gpu_visibility_own)
                append_gpus(&list, &seen, env, r);
        else if (l->set_visible)
                for (uint32_t i = 0; i < l->n_ranks; i++)
                        append_gpus(&list, &seen, env, &l->ranks[i]);
        if (!seen.n || buf_append(&list, "", 1) < 0) /* the NUL */
                return;
        strv_env_set(&env->own, "CUDA_VISIBLE_DEVICES", (const char *)buf_data(&list));
        set_default(env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
}

/* A rank's stdout is a pipe: Python would hold lines back until its buffer is full. And a crash is
 * to tell its place. */
static void set_python(struct rank_env *env, const struct launch_order *l)
{
        static const char *const names[] = { "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!worker_env_is_unset(l, names[i]))
                        set_default(env, names[i], "1");
}

void worker_env_build(struct strv *env, const struct launch_order *l, const struct launch_rank *r,
                      const char *store_path, const char *error_file, unsigned cores)
{
        /* 0 with more ranks than cores, corrected below. */
        unsigned threads = l->n_ranks ? cores / l->n_ranks : cores;
        struct rank_env e = { .rest = env, .own = STRV_INIT };

        if (l->per_node)
                drop_rank_variables(env);
        else
                set_torchrun_numbers(&e.own, l, r);
        set_numbers(&e.own, l, r);
        set_job(&e.own, l, store_path, error_file);
        set_addresses(&e.own, l, r);
        /* By default Gloo listens where the host's own name points, often 127.0.1.1, and NCCL on
         * the first interface. On one node NCCL needs no network. */
        if (*l->iface)
                set_default(&e, "GLOO_SOCKET_IFNAME", l->iface);
        if (*l->iface && l->num_nodes > 1 && !has_variable(&e, "NCCL_SOCKET_IFNAME"))
                strv_env_setf(&e.own, "NCCL_SOCKET_IFNAME", "=%s", l->iface); /* exactly this one */
        set_gpus(&e, l, r);
        set_pmi(&e, l, r);
        set_open_mpi(&e, l, r);
        set_python(&e, l);
        if (!l->per_node && !has_variable(&e, "OMP_NUM_THREADS"))
                strv_env_set_number(&e.own, "OMP_NUM_THREADS", MAX(threads, 1U));
        compat_env_set(&e.own, env, l, r, cores);
        strv_env_move(env, &e.own);
}

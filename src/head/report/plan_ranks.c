/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a rank is made by the agent's own function, worker_env_build(), from the
 * LAUNCH that the node would get (fill_launch()), with placeholders in brackets for values known
 * only to the nodes. Variables come in the order in which a launch sets them: exported variables,
 * those of the role, those of the agent; explain_...() then replace what the agent would have
 * computed from the machine or from a live socket.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "head/core/shell_words.h"
#include "head/model/compat_nodes.h"
#include "head/options/export_env.h"
#include "head/options/program_options.h"
#include "head/options/role_texts.h"
#include "head/report/plan_print.h"
#include "head/report/plan_view.h"
#include "wire/env/compat_env.h"
#include "wire/env/nccl_env.h"
#include "wire/env/subst.h"
#include "wire/env/worker_env.h"
#include "wire/env_names.h"

#define LATER "(later)" /* an interface known to the nodes only */

/* Fills in both addresses of rank 0's node: HN_MASTER_ADDR, on the network of the ranks, and
 * MASTER_ADDR, which --store-listen loopback makes local. Without addr= in the hostfile only a
 * probe of the network would know the address. */
static void fill_master_addr(const struct plan_view *v, const struct plan_world *w,
                             struct launch_order *l)
{
        const struct host *first = plan_view_host(v, v->p->ranks[w->first].node);
        char *addr = l->first_node.addr;
        size_t size = sizeof(l->first_node.addr);

        if (w->num_nodes == 1)
                snprintf(addr, size, "127.0.0.1");
        else if (first->addr)
                snprintf(addr, size, "%s", first->addr);
        else
                snprintf(addr, size, "(address of %.40s)", first->name);
        snprintf(l->master_addr, sizeof(l->master_addr), "%s",
                 v->o->store_listen == STORE_LISTEN_LOOPBACK ? "127.0.0.1" : addr);
}

/* The numbers of ports are not known before a launch: 0. With roles the words of each program come
 * from the role book, which replaces references. */
static void fill_arguments(const struct plan_view *v, struct launch_order *l)
{
        struct launch_first_node *first = &l->first_node;

        l->n_programs = (uint32_t)(1 + v->o->n_more);
        l->programs = xcalloc(l->n_programs, sizeof(*l->programs));
        for (uint32_t i = 0; i < l->n_programs; i++) {
                options_fill_program(v->o, i, &l->programs[i]);
                if (!v->book)
                        continue;
                strv_finish(&l->programs[i].argv);
                role_texts_fill_words(v->book, v->o, (int)i, true, &l->programs[i].argv, NULL);
        }
        first->n_ports = (uint32_t)v->ports->n;
        first->ports = xcalloc(v->ports->n, sizeof(*first->ports));
        for (size_t i = 0; i < v->ports->n; i++)
                snprintf(first->ports[i].name, sizeof(first->ports[i].name), "%s", v->ports->v[i]);
}

/* Fills in the LAUNCH for the world and node of this rank, as far as worker_env_build() reads it.
 */
static void fill_launch(const struct plan_view *v, const struct plan_rank *rank,
                        struct launch_order *l)
{
        const struct plan_node *n = &v->p->nodes[rank->node];
        const struct plan_world *w = &v->p->worlds[rank->world];

        *l = (struct launch_order){ .world_size = (uint32_t)w->size,
                                    .num_nodes = (uint32_t)w->num_nodes,
                                    .node_rank = (uint32_t)rank->node_rank,
                                    .gpu_visibility_own = v->o->gpu_visibility_own,
                                    .set_visible = plan_sets_visible(v->p, (size_t)rank->node,
                                                                     (uint32_t)rank->world),
                                    .mpi.kind = (uint8_t)options_mpi(v->o, (size_t)rank->program) };
        l->per_node = options_is_per_node(v->o, (size_t)rank->program);
        l->world = (struct launch_world){ .number = (uint32_t)rank->world,
                                          .first = (uint32_t)w->first,
                                          .index = plan_count_replicas(v->p, (size_t)rank->world) };
        /* A role of one process on each node serves its own store: its ranks are started by the
         * process. */
        l->agent_store = v->o->store_listen != STORE_LISTEN_NONE && !(v->o->first && l->per_node);
        if (v->o->first && l->per_node)
                l->mpi.kind = MPI_NONE;
        if (l->agent_store || l->per_node)
                snprintf(l->iface, sizeof(l->iface), "%s", w->num_nodes == 1 ? "lo" : LATER);
        compat_nodes_fill(&l->compat, v->o->compat, v->p, w, v->hosts);
        snprintf(l->run_id, sizeof(l->run_id), "(name of the run)");
        snprintf(l->host, sizeof(l->host), "%s", v->hosts->v[n->host].name);
        fill_arguments(v, l);
        fill_master_addr(v, w, l);
        l->ranks = xcalloc(n->ranks.n, sizeof(*l->ranks));
        for (size_t i = 0; i < n->ranks.n; i++) {
                const struct plan_rank *r = &v->p->ranks[n->ranks.v[i]];
                struct launch_rank *to = &l->ranks[l->n_ranks];

                /* A node gets a LAUNCH for each world. */
                if (r->world != rank->world)
                        continue;
                *to = (struct launch_rank){ .rank = (uint32_t)(r->rank - w->first),
                                            .local_rank = (uint32_t)r->local_rank,
                                            .program = (uint32_t)r->program,
                                            .n_gpus = (uint32_t)r->gpus.n };
                to->gpus = xcalloc(r->gpus.n, sizeof(uint32_t));
                for (size_t g = 0; g < r->gpus.n; g++)
                        to->gpus[g] = (uint32_t)r->gpus.v[g];
                l->n_ranks++;
        }
}

/* Replaces the placeholder for the interface, unless the user has set the variable to another
 * value. */
static void explain_iface(struct strv *env, const char *name, const char *placeholder)
{
        const char *value = strv_env_get(env, name);

        if (value && !strcmp(value, placeholder))
                strv_env_set(env, name, "(interface towards rank 0's node)");
}

/* Explains the variables of --compat slurm that are known at the start only. */
static void explain_compat(const struct plan_view *v, const struct host *host, size_t n_ranks,
                           struct strv *env)
{
        if (strv_env_get(env, HN_PORT_PREFIX "JAX"))
                strv_env_set(env, HN_PORT_PREFIX "JAX", "(free port there)");
        if (v->o->compat != COMPAT_SLURM)
                return;
        strv_env_set(env, "SLURM_JOB_ID", "(number of the run)");
        strv_env_set(env, "SLURM_JOBID", "(number of the run)");
        strv_env_setf(env, "SLURM_CPUS_ON_NODE", "(cores of %s)", host->name);
        strv_env_setf(env, "SLURM_CPUS_PER_TASK", "(cores of %s / %zu)", host->name, n_ranks);
}

/* Sets HN_WORLD_ROLES, which only jobs with roles have. */
static void set_world_roles(const struct plan *p, size_t world, struct strv *env)
{
        CLEANUP(free_textp) char *roles = plan_list_world_roles(p, world);

        if (roles)
                strv_env_set(env, HN_WORLD_ROLES, roles);
}

/* Ports are reserved by the node at the launch: a text stands for each number. */
static void explain_ports(const struct strv *names, struct strv *env)
{
        for (size_t i = 0; i < names->n; i++) {
                CLEANUP(free_textp) char *name = port_name_variable(names->v[i]);

                strv_env_set(env, name, "(free port there)");
        }
}

void plan_view_rank_env(const struct plan_view *v, int rank, struct strv *env)
{
        const struct plan_rank *r = &v->p->ranks[rank];
        const struct program_options *own = options_program(v->o, (size_t)r->program);
        bool own_threads;
        struct diags unused = DIAGS_INIT; /* was told by launch_programs_prepare() */
        struct launch_order l;

        if (own)
                export_env_add(v->o, &own->exports, environ, env, &unused);
        diags_finish(&unused);
        if (v->book) {
                role_texts_fill_env(v->book, v->o, -1, true, env, NULL);
                role_texts_fill_env(v->book, v->o, r->program, true, env, NULL);
                strv_env_set(env, HN_ROLES, "(addresses and ports of all roles)");
                explain_ports(role_book_ports(v->book, r->program), env);
        }
        own_threads = strv_env_get(env, "OMP_NUM_THREADS");
        fill_launch(v, r, &l);
        strv_copy(&l.unset, &v->o->unset);
        worker_env_build(env, &l, &l.ranks[r->local_rank], "(socket of the node's agent)",
                         "(file of the node's agent)", 0);
        nccl_env_build(env, &l,
                       &(struct nccl_values){ "127.0.0.1:(free port there)",
                                              "(folder of the node's agent)/" NCCL_DUMP_NAME,
                                              "(file of the node's agent)" });
        /* From here on texts replace values that only a running agent has. */
        set_world_roles(v->p, (size_t)r->world, env);
        strv_env_set(env, "MASTER_PORT", "(free port there)");
        if (l.mpi.kind == MPI_PMIX)
                /* libpmix on the node sets a dozen variables, which vary with its release. */
                strv_env_set(env, "PMIX_*", "(of the node's libpmix)");
        else if (l.mpi.kind == MPI_PMI_PORT)
                strv_env_set(env, "PMI_PORT", "127.0.0.1:(free port there)");
        else if (l.mpi.kind != MPI_NONE)
                strv_env_set(env, "PMI_FD", "(descriptor of the node's agent)");
        if (l.mpi.kind != MPI_NONE && l.mpi.kind != MPI_PMIX && l.num_nodes > 1 &&
            !strv_env_get(env, "PMI_HOSTNAME"))
                strv_env_set(env, "PMI_HOSTNAME", "(address of the node towards rank 0's node)");
        explain_ports(v->ports, env);
        explain_iface(env, "GLOO_SOCKET_IFNAME", LATER);
        explain_iface(env, "NCCL_SOCKET_IFNAME", "=" LATER);
        if (!own_threads && !l.per_node)
                strv_env_setf(env, "OMP_NUM_THREADS", "(cores of %s / %zu)",
                              plan_view_host(v, r->node)->name, (size_t)l.n_ranks);
        explain_compat(v, plan_view_host(v, r->node), l.n_ranks, env);
        launch_order_finish(&l);
}

/* Prints the arguments of @rank when they differ from rank to rank: with place-holders, an option
 * for the local rank, --wrap, several programs, or roles. */
static void print_arguments(FILE *to, const struct plan_view *v, int rank)
{
        const struct plan_rank *r = &v->p->ranks[rank];
        CLEANUP(strv_finish) struct strv argv = STRV_INIT;
        CLEANUP(free_textp) char *text = NULL;
        struct launch_order l;

        if (!v->o->argv.n || (!v->o->subst && !v->o->local_rank_arg && !v->o->wrap.n &&
                              !v->o->n_more && !v->o->first))
                return;
        fill_launch(v, r, &l);
        subst_arguments(&argv, &l, &l.ranks[r->local_rank]);
        launch_order_finish(&l);
        text = shell_words_join(&argv);
        fprintf(to, "# program %s\n", text);
}

/* Orders pairs for qsort(): output that can be compared between two runs. */
static int compare_texts(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void plan_print_ranks(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o, const struct role_book *book,
                      const struct strv *ports)
{
        CLEANUP(plan_view_finish) struct plan_view v = plan_view_make(p, hosts, o, NULL);

        v.ports = ports;
        v.book = book;
        for (size_t i = 0; i < o->ranks.n; i++) {
                CLEANUP(strv_finish) struct strv env = STRV_INIT;
                int rank = o->ranks.v[i];
                const struct plan_rank *r = &p->ranks[rank];

                strv_copy(&env, &v.env);
                plan_view_rank_env(&v, rank, &env);
                qsort(env.v, env.n, sizeof(*env.v), compare_texts);
                fprintf(to, "# rank %d on %s", rank, plan_view_host(&v, r->node)->name);
                if (o->first)
                        fprintf(to, ", role %s, rank %d of its world",
                                options_role(o, (size_t)r->program)->name,
                                rank - p->worlds[r->world].first);
                fputc('\n', to);
                print_arguments(to, &v, rank);
                for (size_t k = 0; k < env.n; k++) {
                        CLEANUP(free_textp) char *pair = plan_view_pair(env.v[k]);

                        fprintf(to, "%s\n", pair);
                }
        }
}

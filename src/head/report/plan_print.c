/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All three forms print the same struct plan_view. The environment of a rank is made by the agent's
 * own function, worker_env_build(), from the LAUNCH that the node would get, with placeholders in
 * brackets for values known only to the nodes. The table hides columns without content.
 */
#include "head/report/plan_print.h"

#include <jansson.h>
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/model/compat_nodes.h"
#include "head/model/tree.h"
#include "head/options/config.h"
#include "head/options/export_env.h"
#include "wire/env/compat_env.h"
#include "wire/env/nccl_env.h"
#include "wire/env/subst.h"
#include "wire/env/worker_env.h"
#include "wire/env_names.h"

struct plan_view {
        const struct plan *p;
        const struct hosts *hosts;
        const struct options *o;
        const struct strv *ports;               /* names of the ports that the ranks need */
        const struct plan_inventory *inventory; /* by host; NULL = the nodes were not asked */
        int *parents;                           /* by host; NULL without --tree */
        struct strv env, unset;                 /* exported variables, and those to be unset */
};

static struct plan_view make_plan_view(const struct plan *p, const struct hosts *hosts,
                                       const struct options *o,
                                       const struct plan_inventory *inventory)
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

static void plan_view_finish(struct plan_view *v)
{
        free(v->parents);
        strv_finish(&v->env);
        strv_finish(&v->unset);
}

/* ---- texts ---- */

/* Joins the words with blanks, quoted for a shell where needed. malloc'ed. */
static char *join_words(const struct strv *words)
{
        struct buf b = BUF_INIT;

        for (size_t i = 0; i < words->n; i++) {
                const char *w = words->v[i];
                bool plain = *w && !strpbrk(w, " \t\n'\"\\$`*?[]{}()<>|&;#~!");

                buf_appends(&b, i ? " " : "");
                if (!plain)
                        buf_appends(&b, "'");
                for (const char *c = w; *c; c++)
                        if (*c == '\'')
                                buf_appends(&b, "'\\''");
                        else
                                buf_append(&b, c, 1);
                if (!plain)
                        buf_appends(&b, "'");
        }
        return buf_len(&b) ? buf_steal(&b) : xstrdup("");
}

static char *working_directory(const struct options *o)
{
        CLEANUP(free_textp) char *here = getcwd(NULL, 0);

        if (!o->chdir)
                return xstrdup(here ? here : "/");
        return *o->chdir == '/' ? xstrdup(o->chdir)
                                : xasprintf("%s/%s", here ? here : "", o->chdir);
}

/* A pair for display: the value of a secret is not shown. malloc'ed. */
static char *shown_pair(const char *pair)
{
        if (!config_is_secret(pair))
                return xstrdup(pair);
        return xasprintf("%.*s=(not shown)", (int)strcspn(pair, "="), pair);
}

/* ---- a rank's environment ---- */

#define LATER "(later)" /* an interface known to the nodes only */

static const struct host *plan_host(const struct plan_view *v, int node)
{
        return &v->hosts->v[v->p->nodes[node].host];
}

static void fill_master_addr(const struct plan_view *v, struct launch_order *l)
{
        const struct host *first = plan_host(v, v->p->ranks[0].node);
        char *addr = l->first_node.addr;
        size_t size = sizeof(l->first_node.addr);

        if (v->p->num_nodes == 1)
                snprintf(addr, size, "127.0.0.1");
        else if (first->addr)
                snprintf(addr, size, "%s", first->addr);
        else
                snprintf(addr, size, "(address of %.40s)", first->name);
        snprintf(l->master_addr, sizeof(l->master_addr), "%s",
                 v->o->store_listen == STORE_LISTEN_LOOPBACK ? "127.0.0.1" : addr);
}

/* The numbers of ports are not known before a launch: 0. */
static void fill_arguments(const struct plan_view *v, struct launch_order *l)
{
        struct launch_first_node *first = &l->first_node;

        strv_copy(&l->argv, &v->o->argv);
        l->arguments.subst = v->o->subst;
        if (v->o->local_rank_arg)
                snprintf(l->arguments.local_rank, sizeof(l->arguments.local_rank), "%s",
                         v->o->local_rank_arg);
        first->n_ports = (uint32_t)v->ports->n;
        first->ports = xcalloc(v->ports->n, sizeof(*first->ports));
        for (size_t i = 0; i < v->ports->n; i++)
                snprintf(first->ports[i].name, sizeof(first->ports[i].name), "%s", v->ports->v[i]);
}

/* Returns the parent in the tree, NULL = the head connects directly. */
static const char *parent_name(const struct plan_view *v, const struct plan_node *n)
{
        int parent = v->parents ? v->parents[n->host] : TREE_HEAD;

        return parent == TREE_HEAD ? NULL : v->hosts->v[parent].name;
}

/* Fills in the LAUNCH for this node, as far as worker_env_build() reads it. */
static void fill_launch(const struct plan_view *v, const struct plan_node *n,
                        struct launch_order *l)
{
        *l = (struct launch_order){ .world_size = (uint32_t)v->p->world_size,
                                    .num_nodes = (uint32_t)v->p->num_nodes,
                                    .node_rank = (uint32_t)n->node_rank,
                                    .gpu_visibility_own = v->o->gpu_visibility_own,
                                    .set_visible = n->gpus_are_subset,
                                    .mpi.kind = (uint8_t)v->o->mpi,
                                    .n_ranks = (uint32_t)n->ranks.n };
        l->agent_store = v->o->store_listen != STORE_LISTEN_NONE;
        l->per_node = v->o->plan.per_node;
        if (l->agent_store || l->per_node)
                snprintf(l->iface, sizeof(l->iface), "%s", v->p->num_nodes == 1 ? "lo" : LATER);
        compat_nodes_fill(&l->compat, v->o->compat, v->p, v->hosts);
        snprintf(l->run_id, sizeof(l->run_id), "(name of the run)");
        snprintf(l->host, sizeof(l->host), "%s", v->hosts->v[n->host].name);
        fill_arguments(v, l);
        fill_master_addr(v, l);
        l->ranks = xcalloc(n->ranks.n, sizeof(*l->ranks));
        for (size_t i = 0; i < n->ranks.n; i++) {
                const struct plan_rank *r = &v->p->ranks[n->ranks.v[i]];

                l->ranks[i] = (struct launch_rank){ .rank = (uint32_t)r->rank,
                                                    .local_rank = (uint32_t)r->local_rank,
                                                    .n_gpus = (uint32_t)r->gpus.n };
                l->ranks[i].gpus = xcalloc(r->gpus.n, sizeof(uint32_t));
                for (size_t g = 0; g < r->gpus.n; g++)
                        l->ranks[i].gpus[g] = (uint32_t)r->gpus.v[g];
        }
}

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

/* Sets in @env the variables that the agent will set for @rank. */
static void rank_environment(const struct plan_view *v, int rank, struct strv *env)
{
        const struct plan_rank *r = &v->p->ranks[rank];
        const struct plan_node *n = &v->p->nodes[r->node];
        bool own_threads = strv_env_get(env, "OMP_NUM_THREADS");
        struct launch_order l;

        fill_launch(v, n, &l);
        strv_copy(&l.unset, &v->o->unset);
        worker_env_build(env, &l, &l.ranks[r->local_rank], "(socket of the node's agent)",
                         "(file of the node's agent)", 0);
        nccl_env_build(env, &l,
                       &(struct nccl_values){ "127.0.0.1:(free port there)",
                                              "(folder of the node's agent)/" NCCL_DUMP_NAME,
                                              "(file of the node's agent)" });
        strv_env_set(env, "MASTER_PORT", "(free port there)");
        if (l.mpi.kind == MPI_PMIX)
                strv_env_set(env, "PMIX_*", "(of the node's libpmix)");
        else if (l.mpi.kind != MPI_NONE)
                strv_env_set(env, "PMI_FD", "(descriptor of the node's agent)");
        for (size_t i = 0; i < v->ports->n; i++) {
                CLEANUP(free_textp) char *name = port_name_variable(v->ports->v[i]);

                strv_env_set(env, name, "(free port there)");
        }
        explain_iface(env, "GLOO_SOCKET_IFNAME", LATER);
        explain_iface(env, "NCCL_SOCKET_IFNAME", "=" LATER);
        if (!own_threads && !l.per_node)
                strv_env_setf(env, "OMP_NUM_THREADS", "(cores of %s / %zu)",
                              plan_host(v, r->node)->name, n->ranks.n);
        explain_compat(v, plan_host(v, r->node), n->ranks.n, env);
        launch_order_finish(&l);
}

/* Prints the arguments of @rank when they differ from rank to rank. */
static void print_arguments(FILE *to, const struct plan_view *v, int rank)
{
        const struct plan_rank *r = &v->p->ranks[rank];
        CLEANUP(strv_finish) struct strv argv = STRV_INIT;
        CLEANUP(free_textp) char *text = NULL;
        struct launch_order l;

        if (!v->o->argv.n || (!v->o->subst && !v->o->local_rank_arg))
                return;
        fill_launch(v, &v->p->nodes[r->node], &l);
        subst_arguments(&argv, &l, &l.ranks[r->local_rank]);
        launch_order_finish(&l);
        text = join_words(&argv);
        fprintf(to, "# program %s\n", text);
}

/* ---- the table ---- */

enum column {
        COL_NODE,
        COL_HOST,
        COL_ADDRESS,
        COL_VIA,
        COL_RANKS,
        COL_SLOTS,
        COL_GPUS,
        COL_CORES,
        COL_MEMORY,
        COL_ARCH,
        COL_FROM,
        COLUMNS
};

static struct libscols_table *new_plan_table(FILE *to, const bool *hidden)
{
        static const struct {
                const char *name;
                int flags;
        } columns[COLUMNS] = { { "NODE", SCOLS_FL_RIGHT },
                               { "HOST", 0 },
                               { "ADDRESS", 0 },
                               { "VIA", 0 },
                               { "RANKS", SCOLS_FL_RIGHT },
                               { "SLOTS", SCOLS_FL_RIGHT },
                               { "GPUS", 0 },
                               { "CORES", SCOLS_FL_RIGHT },
                               { "MEMORY", SCOLS_FL_RIGHT },
                               { "ARCH", 0 },
                               { "FROM", 0 } };
        struct libscols_table *t = scols_new_table();

        if (!t)
                return NULL;
        for (int i = 0; i < COLUMNS; i++)
                scols_table_new_column(t, columns[i].name, 0.1,
                                       columns[i].flags | (hidden[i] ? SCOLS_FL_HIDDEN : 0));
        scols_table_set_stream(t, to);
        scols_table_enable_nowrap(t, 1);
        scols_table_set_column_separator(t, "  ");
        return t;
}

static void set_cell(struct libscols_line *line, enum column column, char *text)
{
        if (scols_line_refer_data(line, column, text) != 0)
                free(text);
}

static void add_plan_node(struct libscols_table *t, const struct plan_view *v,
                          const struct plan_node *n)
{
        const struct host *h = &v->hosts->v[n->host];
        const struct plan_inventory *inv = v->inventory ? &v->inventory[n->host] : NULL;
        const char *via = parent_name(v, n);
        struct libscols_line *line = scols_table_new_line(t, NULL);
        bool used = n->node_rank >= 0;
        char memory[32];

        if (!line)
                return;
        set_cell(line, COL_NODE, used ? xasprintf("%d", n->node_rank) : xstrdup("-"));
        set_cell(line, COL_HOST,
                 xasprintf("%s%s%s", h->user ? h->user : "", h->user ? "@" : "", h->name));
        set_cell(line, COL_ADDRESS, xstrdup(h->addr ? h->addr : ""));
        set_cell(line, COL_VIA, xstrdup(via ? via : ""));
        set_cell(line, COL_RANKS, used ? intlist_fold(&n->ranks) : xstrdup("unused"));
        set_cell(line, COL_SLOTS, xasprintf("%d/%d", n->n_ranks, n->slots));
        set_cell(line, COL_GPUS, intlist_fold(&n->gpus));
        if (inv) {
                format_size(memory, sizeof(memory), inv->memory);
                set_cell(line, COL_CORES, xasprintf("%d", inv->cores));
                set_cell(line, COL_MEMORY, xstrdup(memory));
                set_cell(line, COL_ARCH, xstrdup(inv->arch));
        }
        if (!h->file || *h->file == '-') /* an option has no lines */
                set_cell(line, COL_FROM, xstrdup(h->file ? h->file : ""));
        else
                set_cell(line, COL_FROM, xasprintf("%s:%d", h->file, h->line));
}

static bool is_option_given(const struct options *o, const char *option)
{
        return settings_level(o->settings, option_by_name(option)) > LEVEL_PRESET;
}

/* Whether to show devices: when nodes have some, or an option or the hostfile names some. */
static bool gpus_matter(const struct plan_view *v)
{
        bool any = false;

        for (size_t i = 0; i < v->hosts->n; i++)
                any |= v->hosts->v[i].has_gpus || (v->inventory && v->inventory[i].gpus);
        return any || v->o->plan.ppn == PLAN_PPN_GPU || is_option_given(v->o, "gpus-per-rank") ||
               is_option_given(v->o, "gpu-visibility") || is_option_given(v->o, "include");
}

static void print_nodes(FILE *to, const struct plan_view *v)
{
        bool hidden[COLUMNS] = { [COL_ADDRESS] = true,         [COL_VIA] = !v->parents,
                                 [COL_GPUS] = !gpus_matter(v), [COL_CORES] = !v->inventory,
                                 [COL_MEMORY] = !v->inventory, [COL_ARCH] = !v->inventory };
        struct libscols_table *t;

        for (size_t i = 0; i < v->hosts->n; i++)
                hidden[COL_ADDRESS] &= !v->hosts->v[i].addr;
        t = new_plan_table(to, hidden);
        if (!t)
                return;
        for (size_t i = 0; i < v->p->n_nodes; i++)
                add_plan_node(t, v, &v->p->nodes[i]);
        scols_print_table(t);
        scols_unref_table(t);
}

static void print_exports(FILE *to, const struct plan_view *v)
{
        fprintf(to, "export    %zu variable%s", v->env.n, v->env.n == 1 ? "" : "s");
        for (size_t i = 0; i < v->o->exports.n; i++) {
                CLEANUP(free_textp) char *pair = shown_pair(v->o->exports.v[i]);

                fprintf(to, "  %s", strchr(v->o->exports.v[i], '=') ? pair : v->o->exports.v[i]);
        }
        for (size_t i = 0; i < v->unset.n; i++)
                fprintf(to, "  without %s", v->unset.v[i]);
        fputc('\n', to);
        for (size_t i = 0; v->o->verbose && i < v->env.n; i++)
                fprintf(to, "          %.*s\n", (int)strcspn(v->env.v[i], "="), v->env.v[i]);
}

/* Prints a rank whose numbers differ: the last rank of the second node. */
static void print_one_rank(FILE *to, const struct plan_view *v)
{
        static const char *const names[] = {
                HN_RANK,      HN_LOCAL_RANK, HN_NODE_RANK,          "RANK",
                "LOCAL_RANK", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES"
        };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        int rank = v->p->world_size - 1;
        const char *value;

        for (const struct plan_node *n = v->p->nodes; n < v->p->nodes + v->p->n_nodes; n++)
                if (n->node_rank == 1)
                        rank = n->ranks.v[n->ranks.n - 1];
        rank_environment(v, rank, &env);
        fprintf(to, "rank %-4d", rank);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                value = strv_env_get(&env, names[i]);
                if (value)
                        fprintf(to, " %s=%s", names[i], value);
        }
        fputc('\n', to);
}

static void print_plan_parts(FILE *to, const struct plan *p, const struct hosts *hosts,
                             const struct options *o, const struct manifest *manifest,
                             const struct plan_inventory *inventory)
{
        CLEANUP(plan_view_finish) struct plan_view v = make_plan_view(p, hosts, o, inventory);
        CLEANUP(free_textp) char *cwd = working_directory(o);
        CLEANUP(free_textp) char *program = join_words(&o->argv);
        CLEANUP(free_textp) char *pushed = join_words(&o->push);
        char size[32];

        fprintf(to, "%d rank%s on %d of %zu node%s%s\n\n", p->world_size,
                p->world_size == 1 ? "" : "s", p->num_nodes, p->n_nodes, p->n_nodes == 1 ? "" : "s",
                inventory ? "" : "  (nodes not contacted; add --probe to ask them)");
        print_nodes(to, &v);
        fputc('\n', to);
        if (o->argv.n)
                fprintf(to, "program   %s  in  %s\n", program, cwd);
        if (o->plan.per_node)
                fprintf(to, "per node  one process, which gets all GPUs and starts the ranks\n");
        if (o->push.n) {
                format_size(size, sizeof(size), manifest->bytes);
                fprintf(to, "push      %s  (%u file%s, %s%s)\n", pushed, manifest->files,
                        manifest->files == 1 ? "" : "s", size, o->keep ? ", kept" : "");
        }
        if (o->iface)
                fprintf(to, "network   %s\n", o->iface);
        print_exports(to, &v);
        if (p->world_size)
                print_one_rank(to, &v);
}

void plan_print_table(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o, const struct manifest *manifest,
                      const struct plan_inventory *inventory)
{
        char *text = NULL;
        size_t len = 0;
        FILE *f = open_memstream(&text, &len);

        if (!f)
                return;
        print_plan_parts(f, p, hosts, o, manifest, inventory);
        fclose(f);
        printable_write(to, text, len); /* names of nodes, files and machines */
        free(text);
}

/* ---- JSON ---- */

static void set_json_text(json_t *j, const char *key, const char *text)
{
        json_object_set_new(j, key, json_text(text));
}

static json_t *json_node(const struct plan_view *v, const struct plan_node *n)
{
        const struct host *h = &v->hosts->v[n->host];
        const char *user = h->user ? h->user : v->o->user;
        int port = h->port ? h->port : v->o->port;
        json_t *j = json_object(), *ranks = json_array();

        json_object_set_new(j, "node",
                            n->node_rank >= 0 ? json_integer(n->node_rank) : json_null());
        set_json_text(j, "host", h->name);
        set_json_text(j, "user", user);
        json_object_set_new(j, "port", port ? json_integer(port) : json_null());
        set_json_text(j, "addr", h->addr);
        set_json_text(j, "via", parent_name(v, n));
        json_object_set_new(j, "slots", json_integer(n->slots));
        for (size_t i = 0; i < n->ranks.n; i++) {
                const struct plan_rank *r = &v->p->ranks[n->ranks.v[i]];
                json_t *gpus = json_numbers(r->gpus.v, r->gpus.n);

                json_array_append_new(ranks, json_pack("{s:i, s:i, s:o}", "rank", r->rank,
                                                       "local_rank", r->local_rank, "gpus", gpus));
        }
        json_object_set_new(j, "ranks", ranks);
        json_object_set_new(j, "gpus", json_numbers(n->gpus.v, n->gpus.n));
        if (v->inventory) {
                const struct plan_inventory *inv = &v->inventory[n->host];

                json_object_set_new(j, "cores", json_integer(inv->cores));
                json_object_set_new(j, "memory", json_integer((json_int_t)inv->memory));
                set_json_text(j, "arch", inv->arch);
        }
        set_json_text(j, "file", h->file);
        json_object_set_new(j, "line", json_integer(h->line));
        return j;
}

void plan_print_json(FILE *to, const struct plan *p, const struct hosts *hosts,
                     const struct options *o, const struct manifest *manifest,
                     const struct plan_inventory *inventory)
{
        CLEANUP(plan_view_finish) struct plan_view v = make_plan_view(p, hosts, o, inventory);
        CLEANUP(free_textp) char *cwd = working_directory(o);
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        json_t *j = json_object(), *nodes = json_array();

        json_object_set_new(j, "v", json_integer(1));
        json_object_set_new(j, "world_size", json_integer(p->world_size));
        json_object_set_new(j, "num_nodes", json_integer(p->num_nodes));
        json_object_set_new(j, "per_node", json_boolean(o->plan.per_node));
        json_object_set_new(j, "probed", json_boolean(inventory != NULL));
        for (size_t i = 0; i < p->n_nodes; i++)
                json_array_append_new(nodes, json_node(&v, &p->nodes[i]));
        json_object_set_new(j, "nodes", nodes);
        json_object_set_new(j, "argv", json_texts(&o->argv));
        set_json_text(j, "cwd", cwd);
        if (o->push.n)
                json_object_set_new(j, "push",
                                    json_pack("{s:o, s:i, s:I, s:b}", "from", json_texts(&o->push),
                                              "files", (int)manifest->files, "bytes",
                                              (json_int_t)manifest->bytes, "keep", o->keep));
        for (size_t i = 0; i < v.env.n; i++)
                strv_push_mem(&names, v.env.v[i], strcspn(v.env.v[i], "="));
        json_object_set_new(j, "exports", json_texts(&names));
        json_write_plain(j, to);
        json_decref(j);
}

/* ---- ranks ---- */

static int compare_texts(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void plan_print_ranks(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o, const struct strv *ports)
{
        CLEANUP(plan_view_finish) struct plan_view v = make_plan_view(p, hosts, o, NULL);

        v.ports = ports;
        for (size_t i = 0; i < o->ranks.n; i++) {
                CLEANUP(strv_finish) struct strv env = STRV_INIT;
                int rank = o->ranks.v[i];

                strv_copy(&env, &v.env);
                rank_environment(&v, rank, &env);
                qsort(env.v, env.n, sizeof(*env.v), compare_texts);
                fprintf(to, "# rank %d on %s\n", rank, plan_host(&v, p->ranks[rank].node)->name);
                print_arguments(to, &v, rank);
                for (size_t k = 0; k < env.n; k++) {
                        CLEANUP(free_textp) char *pair = shown_pair(env.v[k]);

                        fprintf(to, "%s\n", pair);
                }
        }
}

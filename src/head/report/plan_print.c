/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan as a table and as JSON, both from a struct plan_view; plan_ranks.c has the environments
 * of ranks. The table hides columns without content.
 */
#include "head/report/plan_print.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/core/shell_words.h"
#include "head/hosts/host_order.h"
#include "head/hosts/hosts.h"
#include "head/nodes/program_link.h"
#include "head/options/program_options.h"
#include "head/output/text_table.h"
#include "head/report/plan_roles_view.h"
#include "head/report/plan_view.h"
#include "head/term/columns.h"
#include "wire/env_names.h"

/* ---- the table ---- */

/* From left to right. */
enum column {
        COL_NODE,
        COL_HOST,
        COL_ADDRESS,
        COL_VIA,
        COL_DOMAIN,
        COL_RANKS,
        COL_SLOTS,
        COL_GPUS,
        COL_CORES,
        COL_MEMORY,
        COL_ARCH,
        COL_FROM,
        COLUMNS
};

static const struct text_column plan_columns[COLUMNS] = {
        [COL_NODE] = { "NODE", TEXT_RIGHT, 0, 0 },
        [COL_HOST] = { "HOST", TEXT_NAME, 0, 8 },
        [COL_ADDRESS] = { "ADDRESS", 0, 4, 0 },
        [COL_VIA] = { "VIA", 0, 3, 0 },
        [COL_DOMAIN] = { "DOMAIN", 0, 0, 0 },
        [COL_RANKS] = { "RANKS", TEXT_RIGHT, 0, 5 },
        [COL_SLOTS] = { "SLOTS", TEXT_RIGHT, 1, 0 },
        [COL_GPUS] = { "GPUS", 0, 0, 4 },
        [COL_CORES] = { "CORES", TEXT_RIGHT, 5, 0 },
        [COL_MEMORY] = { "MEMORY", TEXT_RIGHT, 6, 0 },
        [COL_ARCH] = { "ARCH", 0, 7, 0 },
        [COL_FROM] = { "FROM", TEXT_TRUNCATE, 2, 12 },
};

/* Returns the text of a node for a column shared by the nodes of a folded row, malloc'ed. NULL: the
 * column differs from node to node, and add_plan_row() folds the values. */
static char *format_shared_cell(const struct plan_view *v, const struct plan_node *n,
                                enum column column)
{
        const struct host *h = &v->hosts->v[n->host];
        const struct plan_inventory *inv = v->inventory ? &v->inventory[n->host] : NULL;
        const char *via = plan_view_parent(v, n);
        char memory[32];

        switch (column) {
        case COL_ADDRESS:
                return xstrdup(h->addr ? h->addr : "");
        case COL_VIA:
                return xstrdup(via ? via : "");
        case COL_DOMAIN:
                return host_domain(h) ? host_order_domain_name(host_domain(h)) : xstrdup("-");
        case COL_SLOTS:
                return xasprintf("%d/%d", n->n_ranks, n->slots);
        case COL_GPUS:
                return plan_view_fold_gpus(v, &n->gpus);
        case COL_CORES:
                return inv ? xasprintf("%d", inv->cores) : xstrdup("");
        case COL_MEMORY:
                format_size(memory, sizeof(memory), inv ? inv->memory : 0);
                return xstrdup(inv ? memory : "");
        case COL_ARCH:
                return xstrdup(inv ? inv->arch : "");
        default:
                return NULL;
        }
}

/* Whether @b continues the row of @a: only name, number, ranks and line differ, and follow the
 * values of @a. The ranks must be whole ranges, else "0-7" for the row would hide a gap. */
static bool continues_row(const struct plan_view *v, const struct plan_node *a,
                          const struct plan_node *b)
{
        const struct host *x = &v->hosts->v[a->host], *y = &v->hosts->v[b->host];
        size_t n = a->ranks.n;
        bool same = (a->node_rank < 0) == (b->node_rank < 0) && n == b->ranks.n &&
                    x->spare == y->spare &&
                    !strcmp(x->user ? x->user : "", y->user ? y->user : "") &&
                    !strcmp(x->file ? x->file : "", y->file ? y->file : "") &&
                    strverscmp(x->name, y->name) < 0;

        if (same && n)
                same = a->ranks.v[n - 1] == a->ranks.v[0] + (int)n - 1 &&
                       b->ranks.v[0] == a->ranks.v[n - 1] + 1;
        for (enum column c = 0; c < COLUMNS && same; c++) {
                CLEANUP(free_textp) char *of_a = format_shared_cell(v, a, c);
                CLEANUP(free_textp) char *of_b = format_shared_cell(v, b, c);

                same = !of_a || !strcmp(of_a, of_b);
        }
        return same;
}

/* Adds a row for @count nodes of the order. */
static void add_plan_row(struct text_table *t, const struct plan_view *v, const size_t *order,
                         size_t count)
{
        const struct plan_node *n = &v->p->nodes[order[0]];
        CLEANUP(intlist_finish) struct intlist nodes = { 0 }, ranks = { 0 };
        CLEANUP(host_group_finish) struct host_group hosts = { 0 };
        CLEANUP(free_textp) char *names = NULL;
        const struct host *h = &v->hosts->v[n->host];
        char **cells = text_table_add(t);
        bool used = n->node_rank >= 0;

        for (size_t i = 0; i < count; i++) {
                const struct plan_node *node = &v->p->nodes[order[i]];

                host_group_add(&hosts, node->host);
                intlist_add(&nodes, node->node_rank);
                for (size_t k = 0; k < node->ranks.n; k++)
                        intlist_add(&ranks, node->ranks.v[k]);
        }
        names = count > 1 ? hosts_fold(v->hosts, hosts.hosts, count) : xstrdup(h->name);
        for (enum column c = 0; c < COLUMNS; c++)
                cells[c] = format_shared_cell(v, n, c);
        if (count > 1) {
                free(cells[COL_SLOTS]);
                cells[COL_SLOTS] = xasprintf("%d/%d each", n->n_ranks, n->slots);
        }
        cells[COL_NODE] = used ? intlist_fold(&nodes) : xstrdup("-");
        cells[COL_HOST] = xasprintf("%s%s%s", h->user ? h->user : "", h->user ? "@" : "", names);
        cells[COL_RANKS] = used ? intlist_fold(&ranks) : xstrdup(h->spare ? "spare" : "unused");
        cells[COL_FROM] = hosts_places(v->hosts, hosts.hosts, count);
}

/* More than MANY nodes that are alike share a row, unless -v wants each. */
static void print_nodes(FILE *to, const struct plan_view *v)
{
        /* Up to here each node fits on a screen with its own row. */
        enum { MANY = 8 };
        bool fold = v->p->n_nodes > MANY && !v->o->verbose;
        CLEANUP(text_table_finish)
        struct text_table t = { .columns = plan_columns,
                                .n_columns = COLUMNS,
                                .width = isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO)
                                                               : 0,
                                .hidden = { [COL_ADDRESS] = true,
                                            [COL_SLOTS] = v->o->first, /* of a role each */
                                            [COL_VIA] = !v->parents,
                                            [COL_DOMAIN] = v->o->order != ORDER_TOPOLOGY,
                                            [COL_GPUS] = !plan_view_gpus_matter(v),
                                            [COL_CORES] = !v->inventory,
                                            [COL_MEMORY] = !v->inventory,
                                            [COL_ARCH] = !v->inventory } };
        CLEANUP(free_textp) char *text = NULL;
        size_t *order = plan_order_hosts(v->hosts);

        for (size_t i = 0; i < v->hosts->n; i++)
                t.hidden[COL_ADDRESS] &= !v->hosts->v[i].addr;
        for (size_t i = 0, end; i < v->p->n_nodes; i = end) {
                for (end = i + 1; fold && end < v->p->n_nodes; end++)
                        if (!continues_row(v, &v->p->nodes[order[end - 1]],
                                           &v->p->nodes[order[end]]))
                                break;
                add_plan_row(&t, v, order + i, end - i);
        }
        free(order);
        text = text_table_format(&t);
        fputs(text, to);
}

/* Prints the hosts without a row: only a failure brings these into the job. */
static void print_aside(FILE *to, const struct hosts *hosts)
{
        size_t n = hosts_aside(hosts), *index = xcalloc(n + 1, sizeof(*index));
        CLEANUP(free_textp) char *names = NULL;

        for (size_t i = 0; i < n; i++)
                index[i] = hosts->stood_in + i;
        if (n) {
                names = hosts_locate(hosts->aside, index, n);
                fprintf(to, "spares    %s, connected only in place of a node that fails\n", names);
        }
        free(index);
}

/* Prints how many variables ranks get, the words of -x behind, and with -v all names. Values of the
 * shell's variables are never printed, those of -x only when the name is no secret. */
static void print_exports(FILE *to, const struct plan_view *v)
{
        fprintf(to, "export    %zu variable%s", v->env.n, v->env.n == 1 ? "" : "s");
        for (size_t i = 0; i < v->o->exports.n; i++) {
                CLEANUP(free_textp) char *pair = plan_view_pair(v->o->exports.v[i]);

                fprintf(to, "  %s", strchr(v->o->exports.v[i], '=') ? pair : v->o->exports.v[i]);
        }
        for (size_t i = 0; i < v->unset.n; i++)
                fprintf(to, "  without %s", v->unset.v[i]);
        fputc('\n', to);
        for (size_t i = 0; v->o->verbose && i < v->env.n; i++)
                fprintf(to, "          %.*s\n", (int)strcspn(v->env.v[i], "="), v->env.v[i]);
}

/* Prints rank 0 as an example; --ranks shows others. */
static void print_one_rank(FILE *to, const struct plan_view *v)
{
        static const char *const names[] = {
                HN_RANK,      HN_LOCAL_RANK, HN_NODE_RANK,          "RANK",
                "LOCAL_RANK", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES"
        };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        const char *value;

        plan_view_rank_env(v, 0, &env);
        fputs("rank 0   ", to);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                value = strv_env_get(&env, names[i]);
                if (value)
                        fprintf(to, " %s=%s", names[i], value);
        }
        fputc('\n', to);
}

/* Names where the slots of an allocation come from; --ppn replaces any other source. */
static const char *slots_origin(const struct hosts *hosts, const struct options *o)
{
        return o->plan.ppn            ? "--ppn"
               : *hosts->slots_source ? hosts->slots_source
                                      : "the GPUs of each node, else 1";
}

/* Prints the words of a program and its folder, of several programs with their ranks, of a role
 * with its name. */
static void print_program(FILE *to, const struct plan_view *v, int program, const char *cwd)
{
        CLEANUP(free_textp) char *words = shell_words_join(options_argv(v->o, (size_t)program));
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        CLEANUP(free_textp) char *folded = NULL;
        const struct program_options *own = options_program(v->o, (size_t)program);

        for (int i = 0; i < v->p->world_size; i++)
                if (v->p->ranks[i].program == program)
                        intlist_add(&ranks, i);
        folded = intlist_fold(&ranks);
        fprintf(to, "program   %s  in  %s", words, own && own->chdir ? own->chdir : cwd);
        if (v->o->first)
                fprintf(to, "  (role %s)", options_role(v->o, (size_t)program)->name);
        else if (v->o->n_more)
                fprintf(to, "  (rank%s %s)", ranks.n == 1 ? "" : "s", folded);
        fputc('\n', to);
}

/* NULL = the node was not asked, or has not answered. */
static const struct plan_binding *find_binding(const struct plan_view *v, int rank)
{
        const struct plan_node *n = &v->p->nodes[v->p->ranks[rank].node];
        const struct plan_binding *all = v->inventory ? v->inventory[n->host].bindings : NULL;

        for (int i = 0; all && i < n->n_ranks; i++)
                if (n->ranks.v[i] == rank)
                        return all[i].cpus ? &all[i] : NULL;
        return NULL;
}

/* Returns "processors 0-3, memory of node 1", or why a rank is not bound; NULL = nothing to say.
 * malloc'ed. */
static char *describe_binding(const struct plan_binding *b)
{
        const char *comma = *b->nics ? ", NICs " : "";

        if (!*b->cpus && b->why)
                return xasprintf("none, %s%s%s", b->why, comma, b->nics);
        if (!*b->cpus)
                return *b->nics ? xasprintf("NICs %s", b->nics) : NULL;
        if (b->node >= 0)
                return xasprintf("processors %s, memory of node %d%s%s", b->cpus, b->node, comma,
                                 b->nics);
        return xasprintf("processors %s%s%s", b->cpus, comma, b->nics);
}

/* Prints each binding once, with its ranks. A text that has been printed is freed and becomes NULL,
 * so that later ranks with the same text are skipped. */
static void print_bindings(FILE *to, const struct plan_view *v)
{
        char **texts = xcalloc((size_t)v->p->world_size, sizeof(*texts));

        for (int i = 0; i < v->p->world_size; i++) {
                const struct plan_binding *b = find_binding(v, i);

                texts[i] = b ? describe_binding(b) : NULL;
        }
        for (int i = 0; i < v->p->world_size; i++) {
                CLEANUP(intlist_finish) struct intlist ranks = { 0 };
                CLEANUP(free_textp) char *text = STEAL(&texts[i]), *folded = NULL;

                if (!text)
                        continue;
                intlist_add(&ranks, i);
                for (int k = i + 1; k < v->p->world_size; k++)
                        if (texts[k] && !strcmp(texts[k], text)) {
                                intlist_add(&ranks, k);
                                free(texts[k]);
                                texts[k] = NULL;
                        }
                folded = intlist_fold(&ranks);
                fprintf(to, "binding   rank%s %s: %s\n", ranks.n == 1 ? "" : "s", folded, text);
        }
        free(texts);
}

/* --- files ------------------------------------------------------------------------------------ */

static const int file_uses[] = { PUSH_VENV, PUSH_STAGE, PUSH_RANKS };
static const char *const file_names[PUSH_USES] = {
        [PUSH_VENV] = "venv", [PUSH_STAGE] = "stage", [PUSH_RANKS] = "push"
};

/* Adds the words of the option for a use. */
static void list_file_words(const struct options *o, int use, struct strv *to)
{
        if (use == PUSH_RANKS)
                strv_copy(to, &o->push);
        else if (use == PUSH_STAGE)
                strv_copy(to, &o->staged.paths);
        else if (o->staged.venv)
                strv_push(to, o->staged.venv);
}

static void print_files(FILE *to, const struct options *o, const struct manifest *manifests)
{
        for (size_t i = 0; i < ARRAY_SIZE(file_uses); i++) {
                int use = file_uses[i];
                const struct manifest *m = &manifests[use];
                CLEANUP(strv_finish) struct strv words = STRV_INIT;
                CLEANUP(free_textp) char *text = NULL;
                char size[32];

                list_file_words(o, use, &words);
                if (!words.n)
                        continue;
                text = shell_words_join(&words);
                format_size(size, sizeof(size), m->bytes);
                fprintf(to, "%-9s %s  (%u file%s, %s%s)\n", file_names[use], text, m->files,
                        m->files == 1 ? "" : "s", size,
                        use == PUSH_RANKS && o->keep ? ", kept" : "");
        }
}

static void put_files(json_t *j, const struct options *o, const struct manifest *manifests)
{
        for (size_t i = 0; i < ARRAY_SIZE(file_uses); i++) {
                int use = file_uses[i];
                const struct manifest *m = &manifests[use];
                CLEANUP(strv_finish) struct strv words = STRV_INIT;
                json_t *one;

                list_file_words(o, use, &words);
                if (!words.n)
                        continue;
                one = json_pack("{s:o, s:i, s:I}", "from",
                                use == PUSH_VENV ? json_text(words.v[0]) : json_texts(&words),
                                "files", (int)m->files, "bytes", (json_int_t)m->bytes);
                if (use == PUSH_RANKS)
                        json_object_set_new(one, "keep", json_boolean(o->keep));
                json_object_set_new(j, file_names[use], one);
        }
}

/* Prints the parts in the order of questions of a user: how many ranks, where, which program, from
 * which source, and last what a rank gets. */
static void print_plan_parts(FILE *to, const struct plan *p, const struct hosts *hosts,
                             const struct options *o, const struct role_book *book,
                             const struct manifest *manifests,
                             const struct plan_inventory *inventory, const char *cwd)
{
        CLEANUP(plan_view_finish) struct plan_view v = plan_view_make(p, hosts, o, inventory);

        v.book = book;
        fprintf(to, "%d rank%s on %d", p->world_size, p->world_size == 1 ? "" : "s", p->num_nodes);
        if ((size_t)p->num_nodes < p->n_nodes)
                fprintf(to, " of %zu", p->n_nodes);
        fprintf(to, " node%s%s\n\n", p->n_nodes == 1 ? "" : "s",
                inventory ? "" : "  (nodes not contacted; add --probe to ask them)");
        if (o->first) {
                CLEANUP(free_textp) char *roles = plan_view_role_table(&v);

                fprintf(to, "%s\n", roles);
        }
        print_nodes(to, &v);
        fputc('\n', to);
        for (size_t i = 0; o->argv.n && i <= o->n_more; i++)
                print_program(to, &v, (int)i, cwd);
        if (hosts->source)
                fprintf(to, "hosts     %s, slots from %s\n", hosts->source, slots_origin(hosts, o));
        print_aside(to, hosts);
        if (o->segment)
                fprintf(to, "order     topology, in segments of %d node%s\n", o->segment,
                        o->segment == 1 ? "" : "s");
        else if (o->order == ORDER_TOPOLOGY)
                fprintf(to, "order     topology\n");
        if (o->plan.per_node)
                fprintf(to, "per node  one process, which gets all GPUs and starts the ranks\n");
        print_files(to, o, manifests);
        if (!program_link_is_ssh(o->via))
                fprintf(to, "agents    --start-with %s\n", o->via);
        if (o->container.kind)
                fprintf(to, "container %s:%s\n", container_kind_name(o->container.kind),
                        o->container.name);
        if (o->iface)
                fprintf(to, "network   %s\n", o->iface);
        print_bindings(to, &v);
        print_exports(to, &v);
        if (p->world_size)
                print_one_rank(to, &v);
}

void plan_print_table(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o, const struct role_book *book,
                      const struct manifest *manifests, const struct plan_inventory *inventory,
                      const char *cwd)
{
        char *text = NULL;
        size_t len = 0;
        /* Everything goes through memory, because names may have bytes that a terminal would
         * obey. */
        FILE *f = open_memstream(&text, &len);

        if (!f)
                return;
        print_plan_parts(f, p, hosts, o, book, manifests, inventory, cwd);
        fclose(f);
        printable_write(to, text, len); /* names of nodes, files and machines */
        free(text);
}

/* ---- JSON ---- */

/* Sets a text; NULL becomes null. */
static void set_json_text(json_t *j, const char *key, const char *text)
{
        json_object_set_new(j, key, json_text(text));
}

/* Returns the names of all spare hosts, connected or not. */
static json_t *json_spares(const struct hosts *hosts)
{
        json_t *names = json_array();

        for (size_t i = 0; i < hosts->n; i++)
                if (hosts->v[i].spare)
                        json_array_append_new(names, json_text(hosts->v[i].name));
        for (size_t i = 0; i < hosts_aside(hosts); i++)
                json_array_append_new(names, json_text(hosts->aside->v[hosts->stood_in + i].name));
        return names;
}

/* Adds nothing for a node that was not asked or has not answered. Not bound is null. */
static void add_json_binding(json_t *rank, const struct plan_binding *b)
{
        if (!b)
                return;
        set_json_text(rank, "cpus", *b->cpus ? b->cpus : NULL);
        json_object_set_new(rank, "memory_node",
                            b->node >= 0 ? json_integer(b->node) : json_null());
        set_json_text(rank, "nics", *b->nics ? b->nics : NULL);
}

static json_t *json_node(const struct plan_view *v, const struct plan_node *n)
{
        const struct host *h = &v->hosts->v[n->host];
        /* The hostfile goes before --user and --ssh-port. Without either ssh decides: null. */
        const char *user = h->user ? h->user : v->o->user;
        int port = h->port ? h->port : v->o->port;
        json_t *j = json_object(), *ranks = json_array();

        json_object_set_new(j, "node",
                            n->node_rank >= 0 ? json_integer(n->node_rank) : json_null());
        set_json_text(j, "host", h->name);
        set_json_text(j, "user", user);
        json_object_set_new(j, "port", port ? json_integer(port) : json_null());
        set_json_text(j, "addr", h->addr);
        set_json_text(j, "via", plan_view_parent(v, n));
        if (v->o->order == ORDER_TOPOLOGY) {
                set_json_text(j, "domain", host_domain(h));
                set_json_text(j, "switch", h->site ? h->site->path : NULL);
        }
        json_object_set_new(j, "slots", json_integer(n->slots));
        for (size_t i = 0; i < n->ranks.n; i++) {
                const struct plan_rank *r = &v->p->ranks[n->ranks.v[i]];
                json_t *gpus = json_numbers(r->gpus.v, r->gpus.n);
                json_t *rank = json_pack("{s:i, s:i, s:o}", "rank", r->rank, "local_rank",
                                         r->local_rank, "gpus", gpus);

                if (v->o->first) {
                        set_json_text(rank, "role", options_role(v->o, (size_t)r->program)->name);
                        json_object_set_new(rank, "world_rank",
                                            json_integer(r->rank - v->p->worlds[r->world].first));
                }
                add_json_binding(rank, find_binding(v, r->rank));
                json_array_append_new(ranks, rank);
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

/* Returns the programs between ":" with their ranks; roles have an array of their own. */
static json_t *json_programs(const struct plan_view *v)
{
        json_t *programs = json_array();

        for (size_t i = 0; i <= v->o->n_more; i++) {
                json_t *ranks = json_array();

                for (int k = 0; k < v->p->world_size; k++)
                        if (v->p->ranks[k].program == (int)i)
                                json_array_append_new(ranks, json_integer(k));
                json_array_append_new(programs,
                                      json_pack("{s:o, s:o}", "argv",
                                                json_texts(options_argv(v->o, i)), "ranks", ranks));
        }
        return programs;
}

void plan_print_json(FILE *to, const struct plan *p, const struct hosts *hosts,
                     const struct options *o, const struct role_book *book,
                     const struct manifest *manifests, const struct plan_inventory *inventory,
                     const char *cwd)
{
        CLEANUP(plan_view_finish) struct plan_view v = plan_view_make(p, hosts, o, inventory);
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        json_t *j = json_object(), *nodes = json_array();
        size_t *order = plan_order_hosts(hosts);

        v.book = book;
        /* The version of the format. */
        json_object_set_new(j, "v", json_integer(1));
        json_object_set_new(j, "world_size", json_integer(p->world_size));
        json_object_set_new(j, "num_nodes", json_integer(p->num_nodes));
        json_object_set_new(j, "per_node", json_boolean(o->plan.per_node));
        if (hosts->source) {
                set_json_text(j, "hosts_from", hosts->source);
                set_json_text(j, "slots_from", slots_origin(hosts, o));
        }
        json_object_set_new(j, "probed", json_boolean(inventory != NULL));
        for (size_t i = 0; i < p->n_nodes; i++)
                json_array_append_new(nodes, json_node(&v, &p->nodes[order[i]]));
        free(order);
        json_object_set_new(j, "nodes", nodes);
        json_object_set_new(j, "spares", json_spares(hosts));
        json_object_set_new(j, "argv", json_texts(&o->argv));
        if (o->first)
                json_object_set_new(j, "roles", plan_view_roles_json(&v));
        else if (o->n_more)
                json_object_set_new(j, "programs", json_programs(&v));
        set_json_text(j, "cwd", cwd);
        if (!program_link_is_ssh(o->via))
                set_json_text(j, "via", o->via);
        if (o->container.kind)
                json_object_set_new(j, "container",
                                    json_sprintf("%s:%s", container_kind_name(o->container.kind),
                                                 o->container.name));
        put_files(j, o, manifests);
        for (size_t i = 0; i < v.env.n; i++)
                strv_push_mem(&names, v.env.v[i], strcspn(v.env.v[i], "="));
        json_object_set_new(j, "exports", json_texts(&names));
        json_write_plain(j, to);
        json_decref(j);
}

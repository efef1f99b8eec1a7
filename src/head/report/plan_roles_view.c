/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan has no list of roles: ranks know the number of their role (plan_rank.program) and their
 * world, and collect_ranks() finds the ranks of a role in one world, or in all. The table has a row
 * for each world of a role, which a role with replicas has several of; the JSON has an object for
 * each role with its worlds inside.
 */
#include "head/report/plan_roles_view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "head/core/json_text.h"
#include "head/hosts/hosts.h"
#include "head/model/role_book.h"
#include "head/model/role_order.h"
#include "head/options/program_options.h"
#include "head/output/text_table.h"
#include "head/term/columns.h"

enum role_column {
        ROLE_NAME,
        ROLE_WORLD,
        ROLE_NODES,
        ROLE_HOSTS,
        ROLE_RANKS,
        ROLE_GPUS,
        ROLE_AFTER,
        ROLE_ADDRESS,
        ROLE_PORTS,
        ROLE_COLUMNS
};

static const struct text_column role_columns[ROLE_COLUMNS] = {
        [ROLE_NAME] = { "ROLE", TEXT_NAME, 0, 8 },    [ROLE_WORLD] = { "WORLD", TEXT_RIGHT, 1, 0 },
        [ROLE_NODES] = { "NODES", TEXT_RIGHT, 0, 0 }, [ROLE_HOSTS] = { "HOSTS", TEXT_NAME, 0, 8 },
        [ROLE_RANKS] = { "RANKS", TEXT_RIGHT, 0, 5 }, [ROLE_GPUS] = { "GPUS", 0, 0, 4 },
        [ROLE_AFTER] = { "AFTER", TEXT_NAME, 0, 5 },  [ROLE_ADDRESS] = { "ADDRESS", 0, 0, 7 },
        [ROLE_PORTS] = { "PORTS", 0, 0, 5 },
};

/* The ranks of a role in one world. */
struct role_ranks {
        struct intlist ranks;    /* numbers in the job */
        struct host_group hosts; /* with these ranks, in the order of the ranks */
        struct intlist gpus;     /* on the first host */
        bool gpus_differ;        /* another host has others */
};

static void role_ranks_finish(struct role_ranks *r)
{
        intlist_finish(&r->ranks);
        host_group_finish(&r->hosts);
        intlist_finish(&r->gpus);
}

/* Adds the GPUs of the role's ranks on @node to @to, each once. Nodes of a plan stand in the order
 * of the hosts, so that an index of a host serves as @node. */
static void collect_gpus(const struct plan_view *v, const struct role_ranks *of, int node,
                         struct intlist *to)
{
        for (size_t i = 0; i < of->ranks.n; i++) {
                const struct plan_rank *r = &v->p->ranks[of->ranks.v[i]];

                for (size_t g = 0; r->node == node && g < r->gpus.n; g++)
                        if (!intlist_has(to, r->gpus.v[g]))
                                intlist_add(to, r->gpus.v[g]);
        }
}

/* Collects the ranks of @role, of one world or with @world -1 of all. */
static struct role_ranks collect_ranks(const struct plan_view *v, size_t role, int world)
{
        struct role_ranks to = { .gpus_differ = false };
        bool *seen = xcalloc(v->p->n_nodes, sizeof(*seen));

        for (int i = 0; i < v->p->world_size; i++) {
                const struct plan_rank *r = &v->p->ranks[i];

                if (r->program != (int)role || (world >= 0 && r->world != world))
                        continue;
                intlist_add(&to.ranks, i);
                /* A host with several of the ranks is listed once. */
                if (!seen[r->node])
                        host_group_add(&to.hosts, v->p->nodes[r->node].host);
                seen[r->node] = true;
        }
        free(seen);
        return to;
}

/* Compares the GPUs of the hosts of a row: sets of->gpus to those of the first host, and
 * gpus_differ when another host has others. */
static void compare_gpus(const struct plan_view *v, struct role_ranks *of)
{
        for (size_t i = 0; i < of->hosts.n && !of->gpus_differ; i++) {
                CLEANUP(intlist_finish) struct intlist gpus = { 0 };

                collect_gpus(v, of, (int)of->hosts.hosts[i], i ? &gpus : &of->gpus);
                of->gpus_differ =
                        i &&
                        (gpus.n != of->gpus.n ||
                         (gpus.n && memcmp(gpus.v, of->gpus.v, gpus.n * sizeof(*gpus.v)) != 0));
        }
}

/* Returns "a,b"; "" of none. malloc'ed. */
static char *join_with_commas(const struct strv *names)
{
        struct buf b = BUF_INIT;

        for (size_t i = 0; i < names->n; i++)
                buf_printf(&b, "%s%s", i ? "," : "", names->v[i]);
        return buf_len(&b) ? buf_steal(&b) : xstrdup("");
}

/* Adds a row. @replica: number of the world among those of the role, -1 = the only one. */
static void add_role_row(struct text_table *t, const struct plan_view *v, size_t role, int world,
                         int replica)
{
        CLEANUP(role_ranks_finish) struct role_ranks of = collect_ranks(v, role, world);
        const char *name = options_role(v->o, role)->name;
        char **cells = text_table_add(t);

        compare_gpus(v, &of);
        cells[ROLE_NAME] = replica < 0 ? xstrdup(name) : xasprintf("%s/%d", name, replica);
        cells[ROLE_WORLD] = xasprintf("%d", v->p->worlds[world].size);
        cells[ROLE_NODES] = xasprintf("%zu", of.hosts.n);
        cells[ROLE_HOSTS] = hosts_fold(v->hosts, of.hosts.hosts, of.hosts.n);
        cells[ROLE_RANKS] = intlist_fold(&of.ranks);
        cells[ROLE_AFTER] = join_with_commas(&options_program(v->o, role)->conduct.after);
        if (v->book) {
                const struct strv *ports = role_book_ports(v->book, (int)role);

                cells[ROLE_ADDRESS] =
                        xstrdup(role_book_address(v->book, (int)role, MAX(replica, 0)));
                cells[ROLE_PORTS] = join_with_commas(ports);
        }
        cells[ROLE_GPUS] = of.gpus_differ ? xstrdup("differ") : plan_view_fold_gpus(v, &of.gpus);
}

/* Whether any role waits for another (--after), which the AFTER column shows. */
static bool has_order(const struct options *o)
{
        for (size_t i = 0; i < options_count_roles(o); i++)
                if (options_program(o, i)->conduct.after.n)
                        return true;
        return false;
}

/* Returns the first world with ranks of @role from @world on, or n_worlds. */
static int next_world(const struct plan_view *v, size_t role, int world)
{
        for (int i = 0; i < v->p->world_size; i++) {
                const struct plan_rank *r = &v->p->ranks[i];

                if (r->program == (int)role && r->world >= world)
                        return r->world;
        }
        return (int)v->p->n_worlds;
}

/* Whether a text refers to a role, or to a port. */
static bool has_references(const struct plan_view *v)
{
        for (size_t i = 0; v->book && i < options_count_roles(v->o); i++)
                if (role_book_ports(v->book, (int)i)->n || role_book_referred(v->book, (int)i)->n)
                        return true;
        return false;
}

/* A table that goes to a file or a pipe keeps its full width. */
char *plan_view_role_table(const struct plan_view *v)
{
        CLEANUP(text_table_finish)
        struct text_table t = { .columns = role_columns,
                                .n_columns = ROLE_COLUMNS,
                                .width = isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO)
                                                               : 0,
                                .hidden = { [ROLE_GPUS] = !plan_view_gpus_matter(v),
                                            [ROLE_AFTER] = !has_order(v->o),
                                            [ROLE_ADDRESS] = !has_references(v),
                                            [ROLE_PORTS] = !has_references(v) } };

        for (size_t i = 0; i < options_count_roles(v->o); i++) {
                bool many = options_role(v->o, i)->replicas > 1;
                int replica = 0;

                for (int w = next_world(v, i, 0); w < (int)v->p->n_worlds;
                     w = next_world(v, i, w + 1))
                        add_role_row(&t, v, i, w, many ? replica++ : -1);
        }
        return text_table_format(&t);
}

/* Returns the worlds with ranks of the role; a world that several roles share is in each. */
static json_t *json_worlds(const struct plan_view *v, size_t role)
{
        json_t *worlds = json_array();

        for (int w = next_world(v, role, 0); w < (int)v->p->n_worlds;
             w = next_world(v, role, w + 1)) {
                const struct plan_world *world = &v->p->worlds[w];

                json_array_append_new(worlds, json_pack("{s:i, s:i, s:i, s:i}", "world", w, "first",
                                                        world->first, "size", world->size, "nodes",
                                                        world->num_nodes));
        }
        return worlds;
}

/* Returns where the role stands in the form of --on: another role, one node of it, or null. */
static json_t *json_role_place(const struct role_place *on)
{
        if (!on->role)
                return json_null();
        if (on->node == ROLE_EACH_NODE)
                return json_text(on->role);
        if (on->node == ROLE_LAST_NODE)
                return json_sprintf("%s:last", on->role);
        return json_sprintf("%s:%d", on->role, on->node);
}

json_t *plan_view_roles_json(const struct plan_view *v)
{
        static const char *const scopes[] = {
                [ROLE_SCOPE_JOB] = "job", [ROLE_SCOPE_ROLE] = "role", [ROLE_SCOPE_ALONE] = "alone"
        };
        json_t *roles = json_array();

        for (size_t i = 0; i < options_count_roles(v->o); i++) {
                CLEANUP(role_ranks_finish) struct role_ranks of = collect_ranks(v, i, -1);
                const struct plan_role *role = options_role(v->o, i);
                unsigned scope = options_program(v->o, i)->conduct.restart_scope;
                json_t *nodes = json_array(), *j = json_object();

                for (size_t k = 0; k < of.hosts.n; k++)
                        json_array_append_new(nodes,
                                              json_text(v->hosts->v[of.hosts.hosts[k]].name));
                json_object_set_new(j, "name", json_text(role->name));
                json_object_set_new(j, "argv", json_texts(options_argv(v->o, i)));
                json_object_set_new(j, "on", json_role_place(&role->on));
                json_object_set_new(j, "after",
                                    json_texts(&options_program(v->o, i)->conduct.after));
                json_object_set_new(j, "restart_scope", json_text(scopes[scope]));
                json_object_set_new(j, "main",
                                    json_boolean(strv_has(&v->o->main_roles, role->name)));
                json_object_set_new(j, "per_node", json_boolean(role->plan.per_node));
                json_object_set_new(j, "nodes", nodes);
                json_object_set_new(j, "ranks", json_numbers(of.ranks.v, of.ranks.n));
                json_object_set_new(j, "worlds", json_worlds(v, i));
                json_object_set_new(j, "address", json_text(role_book_address(v->book, (int)i, 0)));
                json_object_set_new(j, "ports", json_texts(role_book_ports(v->book, (int)i)));
                json_array_append_new(roles, j);
        }
        return roles;
}

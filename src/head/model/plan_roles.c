/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three passes. Roles with nodes of their own come first, in the order of the line: claim_listed(),
 * claim_counted(), claim_needed(), claim_rest(). Each role, and each replica, is then planned by
 * plan_build_beside() with the nodes as the list of hosts (build_part()), roles on other roles
 * last; planner.taken remembers what a node has given. merge_parts() at last numbers the ranks of
 * all parts, world by world.
 */
#include "head/model/plan_roles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/hosts/range.h"
#include "head/term/diag.h"

/* The plan of a replica on its own nodes. */
struct role_part {
        struct plan plan; /* its node k is hosts.v[k] of all */
        struct intlist hosts;
};

/* What a role has got so far. */
struct role_state {
        struct intlist nodes; /* hosts that belong to the role, in order */
        struct role_part *parts;
        size_t n_parts;
};

struct roles_planner {
        const struct hosts *hosts;
        const struct plan_inventory *inv;
        const struct plan_role *roles;
        size_t n;
        struct role_state *states; /* by role */
        struct intlist order;      /* hosts that may have ranks, in the order of their places */
        size_t *owner;             /* by host: 1 + its role, 0 = none */
        struct intlist *taken;     /* by host, as of plan_build_beside() */
        struct diags *diags;
};

/* Returns the place of the role called @name in @roles, or @n. */
static size_t find_plan_role(const struct plan_role *roles, size_t n, const char *name)
{
        size_t i = 0;

        while (i < n && (!roles[i].name || strcmp(roles[i].name, name) != 0))
                i++;
        return i;
}

/* A role without --replicas has one. */
static int count_replicas(const struct plan_role *role)
{
        return MAX(role->replicas, 1);
}

/* Whether the nodes of the role follow from its ranks. */
static bool is_sized_by_ranks(const struct plan_role *role)
{
        const struct role_nodes *n = &role->nodes;

        return !role->on.role && !n->count && !n->percent && !n->rest && !n->list && role->plan.np;
}

bool plan_role_takes_rest(const struct plan_role *role)
{
        const struct role_nodes *n = &role->nodes;

        return !role->on.role && !n->count && !n->percent && !n->list &&
               (n->rest || !role->plan.np);
}

/* ---- messages ---- */

/* Returns the number of nodes that the role asks for, 0 = not by number. */
static size_t count_asked_nodes(const struct roles_planner *p, const struct plan_role *role)
{
        /* A percentage counts from all hosts, not from those left, and gives a node at least. */
        size_t each = (size_t)role->nodes.count;

        if (role->nodes.percent)
                each = MAX(p->order.n * (size_t)role->nodes.percent / 100, (size_t)1);
        return each * (size_t)count_replicas(role);
}

/* Adds a row for each role with nodes of its own: what it asks for, and the number of nodes. */
static void add_node_rows(const struct roles_planner *p, struct diag *d)
{
        for (size_t i = 0; i < p->n; i++) {
                const struct plan_role *role = &p->roles[i];
                size_t wanted = count_asked_nodes(p, role);

                if (role->on.role)
                        continue;
                if (role->nodes.list)
                        diag_row(d, "%-12s --nodes %s", role->name, role->nodes.list);
                else if (role->nodes.percent)
                        diag_row(d, "%-12s --nodes %d%%  %zu", role->name, role->nodes.percent,
                                 wanted);
                else if (role->nodes.count && role->replicas > 1)
                        diag_row(d, "%-12s --nodes %d, %d replicas  %zu", role->name,
                                 role->nodes.count, role->replicas, wanted);
                else if (role->nodes.count)
                        diag_row(d, "%-12s --nodes %d", role->name, role->nodes.count);
                else if (plan_role_takes_rest(role))
                        diag_row(d, "%-12s --nodes rest", role->name);
                else
                        diag_row(d, "%-12s -n %d", role->name, role->plan.np);
        }
}

/* Adds the line of the job file; roles of a command line have no place. */
static void place_role(const struct plan_role *role, struct diag *d)
{
        if (role->place)
                diag_place(d, "%s, role %s", role->place, role->name);
}

/* @role: that has too few; NULL = none of its own. */
static struct diag *refuse_nodes(const struct roles_planner *p, const struct plan_role *role,
                                 struct diag *d)
{
        if (role)
                place_role(role, d);
        add_node_rows(p, d);
        diag_help(d,
                  role && role->replicas > 1
                          ? "add hosts, lower --replicas, or lower --nodes of other roles"
                          : "add hosts, lower --nodes, or let a role share the nodes of another: "
                            "--on ROLE");
        return d;
}

/* Moves the messages of the plan of a role, with its name. */
static void tell_of_role(struct roles_planner *p, size_t role, struct diags *from)
{
        for (size_t i = 0; i < from->n && p->roles[role].name; i++)
                if (p->roles[role].place)
                        diag_note(&from->v[i], "role `%s`, %s", p->roles[role].name,
                                  p->roles[role].place);
                else
                        diag_note(&from->v[i], "role `%s`", p->roles[role].name);
        diags_move(p->diags, from);
}

/* ---- which nodes ---- */

/* Makes a free host the role's. Order matters: replicas split the list into equal parts. */
static void claim_node(struct roles_planner *p, size_t role, int host)
{
        p->owner[host] = role + 1;
        intlist_add(&p->states[role].nodes, host);
}

/* Claims the first @count free hosts. Returns the hosts missing. */
static size_t claim_free(struct roles_planner *p, size_t role, size_t count)
{
        for (size_t i = 0; i < p->order.n && count; i++)
                if (!p->owner[p->order.v[i]]) {
                        claim_node(p, role, p->order.v[i]);
                        count--;
                }
        return count;
}

/* HN140, with the nearest name. Returns -EINVAL. */
static int refuse_unknown_host(struct roles_planner *p, const struct plan_role *role,
                               const char *name)
{
        const char **names = xcalloc(p->hosts->n + 1, sizeof(*names)), *near;
        struct diag *d = diag_add(p->diags, HN_UNKNOWN_HOST, EX_USAGE,
                                  "no host `%s` in the list, which --nodes of role `%s` names",
                                  name, role->name);

        place_role(role, d);
        for (size_t i = 0; i < p->hosts->n; i++)
                names[i] = p->hosts->v[i].name;
        near = diag_did_you_mean(name, names, p->hosts->n);
        if (near && !strcmp(near, name))
                diag_help(d, "`%s` is a spare host, which takes the place of a host that fails",
                          name);
        else if (near)
                diag_help(d, "did you mean `%s`?", near);
        else
                diag_help(d, "hnlaunch plan without roles shows the hosts");
        free(names);
        return -EINVAL;
}

/* Claims the host called @name. A host named twice by one role counts once; a host of another role
 * is refused. Spare hosts are not in p->order, and so are unknown here. */
static int claim_host(struct roles_planner *p, size_t role, const char *name)
{
        struct diag *d;

        for (size_t i = 0; i < p->order.n; i++) {
                int host = p->order.v[i];

                if (strcmp(p->hosts->v[host].name, name) != 0)
                        continue;
                if (p->owner[host] == role + 1)
                        return 0;
                if (p->owner[host]) {
                        d = diag_add(p->diags, HN_ROLE_NODES, EX_USAGE,
                                     "%s is in --nodes of two roles, `%s` and `%s`", name,
                                     p->roles[p->owner[host] - 1].name, p->roles[role].name);
                        place_role(&p->roles[role], d);
                        diag_help(d,
                                  "a node belongs to one role; --on shares the nodes of another");
                        return -EINVAL;
                }
                claim_node(p, role, host);
                return 0;
        }
        return refuse_unknown_host(p, &p->roles[role], name);
}

/* Expands "gpu[001-004],gpu7". 0, or -EINVAL with @e filled in. */
static int expand_list(const char *list, struct strv *names, struct range_error *e)
{
        size_t len = strlen(list), end;
        int r = 0;

        for (size_t at = 0; at < len && r == 0; at = end + 1) {
                end = range_find(list, at, len, ", ");
                if (end > at)
                        r = range_expand(list + at, end - at, names, e);
        }
        return r;
}

/* Claims the hosts that the --nodes lists name, before hosts are given by number. */
static int claim_listed(struct roles_planner *p)
{
        int r = 0;

        for (size_t i = 0; i < p->n && r == 0; i++) {
                const char *list = p->roles[i].nodes.list;
                CLEANUP(strv_finish) struct strv names = STRV_INIT;
                struct range_error e;

                if (list && expand_list(list, &names, &e) < 0) {
                        place_role(&p->roles[i],
                                   diag_add(p->diags, e.id, EX_USAGE, "--nodes %s of role `%s`: %s",
                                            list, p->roles[i].name, e.text));
                        return -EINVAL;
                }
                for (size_t k = 0; k < names.n && r == 0; k++)
                        r = claim_host(p, i, names.v[k]);
        }
        return r;
}

/* Claims hosts for --nodes N and N%. The check for the rest comes here, so that all numbers are in
 * one message. */
static int claim_counted(struct roles_planner *p)
{
        size_t wanted = 0, free_hosts = 0, missing = 0;
        bool rest = false;

        for (size_t i = 0; i < p->n; i++) {
                wanted += count_asked_nodes(p, &p->roles[i]);
                rest |= plan_role_takes_rest(&p->roles[i]);
        }
        for (size_t i = 0; i < p->order.n; i++)
                free_hosts += !p->owner[p->order.v[i]];
        for (size_t i = 0; i < p->n; i++)
                missing += claim_free(p, i, count_asked_nodes(p, &p->roles[i]));
        if (!missing && (!rest || wanted < free_hosts))
                return 0;
        refuse_nodes(p, NULL,
                     missing ? diag_add(p->diags, HN_ROLE_NODES, EX_UNAVAILABLE,
                                        "the roles ask for %zu nodes, there are %zu%s", wanted,
                                        free_hosts,
                                        free_hosts < p->order.n ? " beside the named ones" : "")
                             : diag_add(p->diags, HN_ROLE_NODES, EX_UNAVAILABLE,
                                        "%zu of %zu nodes are given by number, and none is left "
                                        "as the rest",
                                        wanted, free_hosts));
        return -EINVAL;
}

/* Gives all free hosts to the role that takes the rest. A job without named roles fails later, in
 * plan_build(), with a message of its own. */
static int claim_rest(struct roles_planner *p)
{
        for (size_t i = 0; i < p->n; i++) {
                if (!plan_role_takes_rest(&p->roles[i]))
                        continue;
                claim_free(p, i, p->order.n);
                if (p->states[i].nodes.n || !p->roles[i].name)
                        continue;
                refuse_nodes(p, &p->roles[i],
                             diag_add(p->diags, HN_ROLE_NODES, EX_UNAVAILABLE,
                                      "no node is left for role `%s`", p->roles[i].name));
                return -EINVAL;
        }
        return 0;
}

/* ---- the plan of a role ---- */

/* The hosts of a part, with the inventory of each; the hosts are lent. */
struct part_hosts {
        struct hosts hosts;
        struct plan_inventory *inv;
        struct intlist *taken;
};

/* Makes the list of hosts of a part: @nodes in their order, and behind them the spare hosts. */
static struct part_hosts make_part_hosts(const struct roles_planner *p, const struct intlist *nodes,
                                         bool spares, struct intlist *index)
{
        struct part_hosts h = { .hosts = HOSTS_INIT };

        for (size_t i = 0; i < nodes->n; i++)
                intlist_add(index, nodes->v[i]);
        for (size_t i = 0; spares && i < p->hosts->n; i++)
                if (p->hosts->v[i].spare)
                        intlist_add(index, (int)i);
        h.hosts.v = xcalloc(index->n, sizeof(*h.hosts.v));
        h.hosts.n = index->n;
        h.inv = p->inv ? xcalloc(index->n, sizeof(*h.inv)) : NULL;
        h.taken = xcalloc(index->n, sizeof(*h.taken));
        for (size_t i = 0; i < index->n; i++) {
                /* A copy of the struct: texts and lists stay those of the job's hosts. */
                h.hosts.v[i] = p->hosts->v[index->v[i]];
                h.hosts.v[i].place = 0; /* the order is that of the places */
                if (p->inv)
                        h.inv[i] = p->inv[index->v[i]];
        }
        return h;
}

static void part_hosts_free(struct part_hosts *h)
{
        for (size_t i = 0; i < h->hosts.n; i++)
                intlist_finish(&h->taken[i]);
        free(h->hosts.v);
        free(h->inv);
        free(h->taken);
}

/* The options of a role for plan_build(). On the nodes of another role one process on each is meant
 * where no number is given, and ranks without GPUs need no slots. */
static struct plan_options choose_options(const struct plan_role *role)
{
        struct plan_options o = role->plan;

        if (!role->on.role)
                return o;
        if (!o.np && !o.ppn && !o.per_node)
                o.ppn = 1;
        o.oversubscribe |= !o.gpus_per_rank;
        return o;
}

/* Returns the first other role whose ranks on @host have slots, with their GPUs in @gpus. */
static const struct plan_role *find_holder(const struct roles_planner *p, size_t but, int host,
                                           struct intlist *gpus)
{
        for (size_t i = 0; i < p->n; i++) {
                const struct role_state *s = &p->states[i];
                bool holds = false;

                for (size_t k = 0; k < s->n_parts && i != but && p->roles[i].plan.gpus_per_rank;
                     k++)
                        for (size_t n = 0; n < s->parts[k].plan.n_nodes; n++) {
                                const struct plan_node *node = &s->parts[k].plan.nodes[n];

                                if (s->parts[k].hosts.v[n] != host || !node->n_ranks)
                                        continue;
                                holds = true;
                                for (size_t g = 0; g < node->gpus.n; g++)
                                        intlist_add(gpus, node->gpus.v[g]);
                        }
                if (holds)
                        return &p->roles[i];
        }
        return NULL;
}

/* Refuses a role that would fit if no other role had GPUs or slots of its nodes. */
static bool refuse_taken(struct roles_planner *p, size_t role, const struct intlist *nodes)
{
        const char *name = p->roles[role].name;
        CLEANUP(intlist_finish) struct intlist gpus = { 0 };
        CLEANUP(free_textp) char *list = NULL;
        const struct plan_role *holder = NULL;
        struct diag *d;
        int host = -1;

        for (size_t i = 0; i < nodes->n && !holder; i++) {
                host = nodes->v[i];
                holder = find_holder(p, role, host, &gpus);
        }
        if (!holder)
                return false;
        list = intlist_fold(&gpus);
        d = diag_add(p->diags, HN_ROLE_GPUS, EX_UNAVAILABLE,
                     "role `%s` asks for %s of %s that role `%s` has", name,
                     gpus.n ? "GPUs" : "slots", p->hosts->v[host].name, holder->name);
        place_role(&p->roles[role], d);
        if (gpus.n)
                diag_note(d, "role `%s` has GPU%s %s there", holder->name, gpus.n == 1 ? "" : "s",
                          list);
        diag_help(d,
                  "--gpus-per-rank 0 for `%s`, fewer ranks for `%s` (--ppn), or --share-gpus for "
                  "`%s` lets both have them",
                  name, holder->name, name);
        return true;
}

/* Plans a replica of @role on @nodes. */
static int build_part(struct roles_planner *p, size_t role, const struct intlist *nodes)
{
        const struct plan_role *r = &p->roles[role];
        struct role_state *s = &p->states[role];
        struct role_part part = { .plan = PLAN_INIT };
        struct part_hosts h = make_part_hosts(p, nodes, !r->on.role, &part.hosts);
        struct plan_options o = choose_options(r);
        struct plan trial = PLAN_INIT;
        struct diags d = DIAGS_INIT, unused = DIAGS_INIT;
        int rc;

        for (size_t i = 0; i < part.hosts.n && !r->share_gpus; i++)
                for (size_t k = 0; k < p->taken[part.hosts.v[i]].n; k++)
                        intlist_add(&h.taken[i], p->taken[part.hosts.v[i]].v[k]);
        rc = plan_build_beside(&part.plan, &h.hosts, h.inv, &o, h.taken, &d);
        if (rc < 0) {
                intlist_finish(&part.hosts);
                /* On the nodes of another role, a plan that succeeds without @taken shows that the
                 * other role is in the way; else the messages of the failed plan are told. */
                if (!r->on.role || plan_build(&trial, &h.hosts, h.inv, &o, &unused) < 0 ||
                    !refuse_taken(p, role, nodes))
                        tell_of_role(p, role, &d);
        } else {
                for (size_t i = 0; i < part.hosts.n; i++)
                        for (size_t k = 0; k < h.taken[i].n; k++)
                                if (!intlist_has(&p->taken[part.hosts.v[i]], h.taken[i].v[k]))
                                        intlist_add(&p->taken[part.hosts.v[i]], h.taken[i].v[k]);
                s->parts = xrealloc(s->parts, s->n_parts + 1, sizeof(*s->parts));
                /* The part owns the plan and the list from here on. */
                s->parts[s->n_parts++] = part;
                tell_of_role(p, role, &d);
        }
        plan_finish(&trial);
        diags_finish(&d);
        diags_finish(&unused);
        part_hosts_free(&h);
        return rc;
}

/* Plans roles whose nodes follow from their ranks, on the hosts that no role has. */
static int claim_needed(struct roles_planner *p)
{
        for (size_t i = 0; i < p->n; i++) {
                for (int k = 0; is_sized_by_ranks(&p->roles[i]) && k < count_replicas(&p->roles[i]);
                     k++) {
                        CLEANUP(intlist_finish) struct intlist open = { 0 };
                        const struct role_part *part;

                        for (size_t h = 0; h < p->order.n; h++)
                                if (!p->owner[p->order.v[h]] || p->owner[p->order.v[h]] == i + 1)
                                        intlist_add(&open, p->order.v[h]);
                        if (!open.n && p->roles[i].name) {
                                refuse_nodes(p, &p->roles[i],
                                             diag_add(p->diags, HN_ROLE_NODES, EX_UNAVAILABLE,
                                                      "no node is left for role `%s`",
                                                      p->roles[i].name));
                                return -EINVAL;
                        }
                        if (build_part(p, i, &open) < 0)
                                return -EINVAL;
                        part = &p->states[i].parts[k];
                        for (size_t h = 0; h < part->plan.n_nodes; h++)
                                if (part->plan.nodes[h].n_ranks && !p->owner[part->hosts.v[h]])
                                        claim_node(p, i, part->hosts.v[h]);
                }
        }
        return 0;
}

/* Plans a role with nodes of its own: each replica has an equal part. */
static int build_owner(struct roles_planner *p, size_t role)
{
        const struct intlist *nodes = &p->states[role].nodes;
        size_t replicas = (size_t)count_replicas(&p->roles[role]), each = nodes->n / replicas;

        if (!each && p->roles[role].name) {
                refuse_nodes(p, &p->roles[role],
                             diag_add(p->diags, HN_ROLE_NODES, EX_UNAVAILABLE,
                                      "role `%s` has %zu node%s for %zu replicas",
                                      p->roles[role].name, nodes->n, nodes->n == 1 ? "" : "s",
                                      replicas));
                return -EINVAL;
        }
        for (size_t i = 0; i < replicas; i++) {
                const struct intlist mine = { nodes->v + i * each, each };

                if (build_part(p, role, &mine) < 0)
                        return -EINVAL;
        }
        return 0;
}

/* Lists the hosts on which the role has ranks, in order. */
static void list_used(const struct roles_planner *p, size_t role, struct intlist *to)
{
        const struct role_state *s = &p->states[role];
        bool *listed = xcalloc(p->hosts->n, sizeof(*listed));

        for (size_t i = 0; i < s->n_parts; i++)
                for (size_t k = 0; k < s->parts[i].plan.n_nodes; k++) {
                        int host = s->parts[i].hosts.v[k];

                        if (s->parts[i].plan.nodes[k].n_ranks && !listed[host])
                                intlist_add(to, host);
                        listed[host] |= s->parts[i].plan.nodes[k].n_ranks > 0;
                }
        free(listed);
}

/* Plans a role on the nodes of another, which has been planned. */
static int build_guest(struct roles_planner *p, size_t role, size_t base)
{
        const struct role_place *on = &p->roles[role].on;
        CLEANUP(intlist_finish) struct intlist used = { 0 }, one = { 0 };
        struct diag *d;

        list_used(p, base, &used);
        if (on->node == ROLE_EACH_NODE)
                return build_part(p, role, &used);
        if (on->node >= (int)used.n) {
                d = diag_add(p->diags, HN_ROLE_NODES, EX_UNAVAILABLE,
                             "role `%s` stands on %s:%d, but `%s` has %zu node%s",
                             p->roles[role].name, on->role, on->node, on->role, used.n,
                             used.n == 1 ? "" : "s");
                place_role(&p->roles[role], d);
                diag_help(d, "nodes of a role count from 0; %s:last is its last one", on->role);
                return -EINVAL;
        }
        intlist_add(&one, used.v[on->node == ROLE_LAST_NODE ? (int)used.n - 1 : on->node]);
        return build_part(p, role, &one);
}

/* Plans roles with nodes of their own, then roles on planned roles, round by round: a role may
 * stand on a role that stands on another. */
static int build_parts(struct roles_planner *p)
{
        bool again = true;

        for (size_t i = 0; i < p->n; i++)
                if (!p->roles[i].on.role && !p->states[i].n_parts && build_owner(p, i) < 0)
                        return -EINVAL;
        while (again) {
                again = false;
                for (size_t i = 0; i < p->n; i++) {
                        const char *on = p->roles[i].on.role;
                        size_t base = on ? find_plan_role(p->roles, p->n, on) : p->n;

                        if (base == p->n || p->states[i].n_parts || !p->states[base].n_parts)
                                continue;
                        if (build_guest(p, i, base) < 0)
                                return -EINVAL;
                        again = true;
                }
        }
        return 0;
}

/* ---- the plan of all ---- */

/* Adds the ranks of a part to the last world. @local counts the ranks of the world by host. */
static void merge_ranks(struct plan *to, struct role_part *part, size_t role, const char *name,
                        int *local)
{
        for (int i = 0; i < part->plan.world_size; i++) {
                struct plan_rank *from = &part->plan.ranks[i], *r = &to->ranks[to->world_size];

                *r = *from;
                /* The list has a new owner; planner_finish() frees the part. */
                from->gpus = (struct intlist){ 0 };
                r->rank = to->world_size++;
                /* Nodes of the whole plan are hosts, so the part's node becomes its host. */
                r->node = part->hosts.v[from->node];
                r->local_rank = local[r->node]++;
                r->world = (int)to->n_worlds - 1;
                r->program = (int)role;
                r->role = name;
                intlist_add(&to->nodes[r->node].ranks, r->rank);
                to->nodes[r->node].n_ranks++;
        }
        for (size_t i = 0; i < part->plan.n_nodes; i++) {
                const struct plan_node *from = &part->plan.nodes[i];
                struct plan_node *node = &to->nodes[part->hosts.v[i]];

                node->slots = MAX(node->slots, from->slots);
                node->gpus_are_subset |= from->gpus_are_subset;
                for (size_t g = 0; g < from->gpus.n; g++)
                        if (!intlist_has(&node->gpus, from->gpus.v[g]))
                                intlist_add(&node->gpus, from->gpus.v[g]);
        }
}

/* Whether both roles are in one world by --world. Roles without a name of a world share none. */
static bool share_world(const struct plan_role *a, const struct plan_role *b)
{
        return a->world && b->world && !strcmp(a->world, b->world);
}

/* Adds the worlds of a role, the first of its world, with the ranks of the other roles there. */
static void merge_role(struct roles_planner *p, struct plan *to, size_t role)
{
        int *local = xcalloc(p->hosts->n, sizeof(*local));

        for (size_t k = 0; k < p->states[role].n_parts; k++) {
                to->n_worlds++;
                memset(local, 0, p->hosts->n * sizeof(*local));
                merge_ranks(to, &p->states[role].parts[k], role, p->roles[role].name, local);
        }
        for (size_t i = role + 1; i < p->n; i++)
                if (share_world(&p->roles[role], &p->roles[i]))
                        merge_ranks(to, &p->states[i].parts[0], i, p->roles[i].name, local);
        free(local);
}

/* Puts the parts together: worlds in the order of the first role of each, then nodes are numbered
 * in the order of places. 0, or -EINVAL: too many ranks. */
static int merge_parts(struct roles_planner *p, struct plan *to)
{
        size_t ranks = 0, worlds = 0;

        for (size_t i = 0; i < p->n; i++)
                for (size_t k = 0; k < p->states[i].n_parts; k++) {
                        ranks += (size_t)p->states[i].parts[k].plan.world_size;
                        worlds++;
                }
        if (ranks > PLAN_MAX_RANKS) {
                diag_add(p->diags, HN_WORLD_TOO_LARGE, EX_UNAVAILABLE,
                         "%zu ranks in all roles, at most %d can be started", ranks,
                         PLAN_MAX_RANKS);
                return -EINVAL;
        }
        to->n_nodes = p->hosts->n;
        to->nodes = xcalloc(to->n_nodes, sizeof(*to->nodes));
        to->ranks = xcalloc(ranks, sizeof(*to->ranks));
        to->worlds = xcalloc(worlds, sizeof(*to->worlds));
        for (size_t i = 0; i < to->n_nodes; i++)
                to->nodes[i] = (struct plan_node){ .host = i, .node_rank = -1 };
        for (size_t i = 0; i < p->n; i++) {
                /* The first role of a world brings in the others, so each world is made once. */
                size_t first = 0;

                while (first < i && !share_world(&p->roles[first], &p->roles[i]))
                        first++;
                if (first == i)
                        merge_role(p, to, i);
        }
        for (size_t i = 0; i < p->order.n; i++) {
                struct plan_node *node = &to->nodes[p->order.v[i]];

                if (!node->n_ranks)
                        continue;
                node->node_rank = to->num_nodes++;
                node->first_rank = node->ranks.v[0];
        }
        plan_count_worlds(to);
        return 0;
}

/* ---- */

/* Frees all but the plan. Parts that were merged have given their lists of devices away. */
static void planner_finish(struct roles_planner *p)
{
        for (size_t i = 0; i < p->n; i++) {
                for (size_t k = 0; k < p->states[i].n_parts; k++) {
                        plan_finish(&p->states[i].parts[k].plan);
                        intlist_finish(&p->states[i].parts[k].hosts);
                }
                free(p->states[i].parts);
                intlist_finish(&p->states[i].nodes);
        }
        for (size_t i = 0; i < p->hosts->n; i++)
                intlist_finish(&p->taken[i]);
        free(p->states);
        free(p->taken);
        free(p->owner);
        intlist_finish(&p->order);
}

int plan_roles_build(struct plan *plan, const struct hosts *hosts, const struct plan_inventory *inv,
                     const struct plan_role *roles, size_t n, struct diags *diags)
{
        struct roles_planner p = {
                .hosts = hosts, .inv = inv, .roles = roles, .n = n, .diags = diags
        };
        size_t *order = plan_order_hosts(hosts);
        int r;

        p.states = xcalloc(n, sizeof(*p.states));
        p.owner = xcalloc(hosts->n, sizeof(*p.owner));
        p.taken = xcalloc(hosts->n, sizeof(*p.taken));
        for (size_t i = 0; i < hosts->n; i++)
                if (!hosts->v[order[i]].spare)
                        intlist_add(&p.order, (int)order[i]);
        free(order);
        r = claim_listed(&p);
        if (r == 0)
                r = claim_counted(&p);
        if (r == 0)
                r = claim_needed(&p);
        if (r == 0)
                r = claim_rest(&p);
        if (r == 0)
                r = build_parts(&p);
        if (r == 0)
                r = merge_parts(&p, plan);
        planner_finish(&p);
        return r;
}

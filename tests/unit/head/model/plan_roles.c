/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "head/hosts/hostfile.h"
#include "head/model/compat_nodes.h"
#include "head/model/plan_roles.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

enum { ROLES = 4 };

/* Nodes in the order of the hostfile; @gpus of each node, -1 = not known. */
struct job {
        const char *hosts;
        int gpus;
        struct plan_role roles[ROLES];
};

struct made {
        struct hosts hosts;
        struct plan plan;
        struct diags diags;
        int r;
};

/* The defaults of options. */
#define G1              .gpus_per_rank = 1
#define NAMED(n)        .name = (char *)(n)
#define ON(role, index) .on = { (char *)(role), (index) }

static size_t count_roles(const struct job *j)
{
        size_t n = 0;

        while (n < ROLES && j->roles[n].name)
                n++;
        return n;
}

static struct made make(const struct job *j)
{
        struct made m = { .hosts = HOSTS_INIT, .plan = PLAN_INIT, .diags = DIAGS_INIT };
        struct plan_inventory *inv = NULL;

        assert_int_equal(
                hostfile_parse(&m.hosts, "hosts.txt", j->hosts, strlen(j->hosts), &m.diags), 0);
        if (j->gpus >= 0)
                inv = xcalloc(m.hosts.n, sizeof(*inv));
        for (size_t i = 0; inv && i < m.hosts.n; i++)
                inv[i] = (struct plan_inventory){ .known = true, .gpus = j->gpus, .cores = 16 };
        m.r = plan_roles_build(&m.plan, &m.hosts, inv, j->roles, count_roles(j), &m.diags);
        free(inv);
        return m;
}

static void made_finish(struct made *m)
{
        plan_finish(&m->plan);
        hosts_finish(&m->hosts);
        diags_finish(&m->diags);
}

/* Node after node: "ROLE RANK-IN-WORLD@WORLD:GPUS", with the first letter of the role. malloc'ed.
 */
static char *described(const struct plan *p, const struct plan_role *roles)
{
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < p->n_nodes; i++) {
                buf_appends(&out, i ? " / " : "");
                for (size_t k = 0; k < p->nodes[i].ranks.n; k++) {
                        const struct plan_rank *r = &p->ranks[p->nodes[i].ranks.v[k]];
                        CLEANUP(free_textp) char *gpus = intlist_fold(&r->gpus);

                        buf_printf(&out, "%s%c%d@%d%s%s", k ? " " : "", *roles[r->program].name,
                                   r->rank - p->worlds[r->world].first, r->world,
                                   r->gpus.n ? ":" : "", gpus);
                }
        }
        return buf_steal(&out);
}

/* Asserts the rules of every plan of roles. */
static void assert_sound(const struct plan *p)
{
        int ranks = 0, nodes = 0;

        for (size_t w = 0; w < p->n_worlds; w++) {
                assert_int_equal(p->worlds[w].first, ranks);
                assert_true(p->worlds[w].size > 0);
                for (int i = 0; i < p->worlds[w].size; i++) {
                        const struct plan_rank *r = &p->ranks[ranks + i];
                        int local = 0;

                        assert_int_equal(r->rank, ranks + i);
                        assert_int_equal(r->world, w);
                        assert_true(r->node_rank < p->worlds[w].num_nodes);
                        for (int k = 0; k < i; k++)
                                local += p->ranks[ranks + k].node == r->node;
                        assert_int_equal(r->local_rank, local);
                        assert_true(intlist_has(&p->nodes[r->node].ranks, r->rank));
                }
                ranks += p->worlds[w].size;
        }
        assert_int_equal(ranks, p->world_size);
        for (size_t i = 0; i < p->n_nodes; i++) {
                ranks -= p->nodes[i].n_ranks;
                nodes += p->nodes[i].n_ranks > 0;
                assert_int_equal(p->nodes[i].n_ranks, p->nodes[i].ranks.n);
                assert_int_equal(p->nodes[i].node_rank >= 0, p->nodes[i].n_ranks > 0);
        }
        assert_int_equal(ranks, 0);
        assert_int_equal(nodes, p->num_nodes);
}

TEST(roles_share_the_nodes)
{
        static const struct {
                struct job job;
                const char *want;
        } table[] = {
                /* Numbers of nodes in the order of the line; the rest is what they leave. */
                { { "n[1-4]",
                    1,
                    { { NAMED("a"), .nodes.count = 1, .plan = { G1 } },
                      { NAMED("b"), .plan = { G1 } },
                      { NAMED("c"), .nodes.count = 2, .plan = { G1 } } } },
                  "a0@0:0 / c0@2:0 / c1@2:0 / b0@1:0" },
                { { "n[1-4]",
                    1,
                    { { NAMED("a"), .nodes.percent = 50, .plan = { G1 } },
                      { NAMED("b"), .nodes.rest = true, .plan = { G1 } } } },
                  "a0@0:0 / a1@0:0 / b0@1:0 / b1@1:0" },
                { { "n[1-4]",
                    1,
                    { { NAMED("a"), .nodes.count = 2, .plan = { G1 } },
                      { NAMED("b"), .nodes.list = (char *)("n[1-2]"), .plan = { G1 } } } },
                  "b0@1:0 / b1@1:0 / a0@0:0 / a1@0:0" },
                /* Without --nodes as many as the ranks need. */
                { { "n[1-3]",
                    2,
                    { { NAMED("a"), .plan = { G1, .np = 1 } },
                      { NAMED("b"), .plan = { G1, .np = 3 } } } },
                  "a0@0:0 / b0@1:0 b1@1:1 / b2@1:0" },
                { { "n[1-4]", 1, { { NAMED("a"), .nodes.count = 2, .plan = { G1 } } } },
                  "a0@0:0 / a1@0:0 /  / " },
                /* Helpers need neither GPUs nor slots, wherever they stand in the line. */
                { { "n[1-2]",
                    2,
                    { { NAMED("r"), ON("t", ROLE_EACH_NODE) }, { NAMED("t"), .plan = { G1 } } } },
                  "r0@0 t0@1:0 t1@1:1 / r1@0 t2@1:0 t3@1:1" },
                { { "n[1-3]",
                    1,
                    { { NAMED("t"), .plan = { G1 } },
                      { NAMED("a"), ON("t", 1) },
                      { NAMED("b"), ON("t", ROLE_LAST_NODE), .plan = { .ppn = 2 } },
                      { NAMED("c"), ON("b", 0), .plan = { .np = 3 } } } },
                  "t0@0:0 / t1@0:0 a0@1 / t2@0:0 b0@2 b1@2 c0@3 c1@3 c2@3" },
                { { "n1",
                    4,
                    { { NAMED("t"), .plan = { G1 } },
                      { NAMED("p"), ON("t", 0), .plan = { .per_node = true } } } },
                  "t0@0:0 t1@0:1 t2@0:2 t3@0:3 p0@1" },
                /* GPUs are given once. */
                { { "n[1-2]",
                    4,
                    { { NAMED("t"), .plan = { G1, .ppn = 2 } },
                      { NAMED("i"), ON("t", ROLE_EACH_NODE), .plan = { G1, .ppn = 2 } } } },
                  "t0@0:0 t1@0:1 i0@1:2 i1@1:3 / t2@0:0 t3@0:1 i2@1:2 i3@1:3" },
                { { "n1 gpus=1,3,5,7",
                    8,
                    { { NAMED("t"), .plan = { G1, .ppn = 2 } },
                      { NAMED("i"), ON("t", 0), .plan = { .gpus_per_rank = 2 } } } },
                  "t0@0:1 t1@0:3 i0@1:5,7" },
                { { "n1 slots=4",
                    0,
                    { { NAMED("t"), .plan = { G1, .ppn = 3 } },
                      { NAMED("i"), ON("t", 0), .plan = { G1 } } } },
                  "t0@0 t1@0 t2@0 i0@1" },
                { { "n1",
                    -1,
                    { { NAMED("t"), .plan = { G1 } },
                      { NAMED("i"), ON("t", 0), .plan = { G1 } } } },
                  "t0@0:0 i0@1:1" },
                { { "n1",
                    2,
                    { { NAMED("t"), .plan = { G1 } },
                      { NAMED("i"), ON("t", 0), .share_gpus = true, .plan = { G1 } } } },
                  "t0@0:0 t1@0:1 i0@1:0" },
                { { "n1",
                    2,
                    { { NAMED("t"), .plan = { G1 } },
                      { NAMED("i"), ON("t", 0), .share_gpus = true,
                        .plan = { G1, .per_node = true } } } },
                  "t0@0:0 t1@0:1 i0@1:0-1" },
                /* Replicas are worlds of their own. */
                { { "n[1-5]",
                    1,
                    { { NAMED("a"), .nodes.count = 2, .replicas = 2, .plan = { G1 } },
                      { NAMED("b"), .plan = { G1 } } } },
                  "a0@0:0 / a1@0:0 / a0@1:0 / a1@1:0 / b0@2:0" },
                { { "n[1-5]", 1, { { NAMED("a"), .replicas = 2, .plan = { G1 } } } },
                  "a0@0:0 / a1@0:0 / a0@1:0 / a1@1:0 / " },
                { { "n[1-2]", 4, { { NAMED("a"), .replicas = 3, .plan = { G1, .np = 2 } } } },
                  "a0@0:0 a1@0:1 a0@1:2 a1@1:3 / a0@2:0 a1@2:1" },
                /* Roles of one world are numbered together. */
                { { "n[1-3]",
                    1,
                    { { NAMED("a"), .world = (char *)"w", .nodes.count = 1, .plan = { G1 } },
                      { NAMED("b"), .nodes.count = 1, .plan = { G1 } },
                      { NAMED("c"), .world = (char *)"w", .plan = { G1 } } } },
                  "a0@0:0 / b0@1:0 / c1@0:0" },
                { { "n1",
                    2,
                    { { NAMED("a"), .world = (char *)"w", .plan = { G1, .ppn = 1 } },
                      { NAMED("c"), .world = (char *)"w", ON("a", 0), .plan = { G1 } } } },
                  "a0@0:0 c1@0:1" },
                /* The mapping holds inside a role. */
                { { "n[1-3]",
                    2,
                    { { NAMED("a"), .nodes.count = 2, .plan = { G1, .map = PLAN_MAP_NODE } },
                      { NAMED("b"), .plan = { .gpus_per_rank = 2 } } } },
                  "a0@0:0 a2@0:1 / a1@0:0 a3@0:1 / b0@1:0-1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                CLEANUP(made_finish) struct made m = make(&table[i].job);
                CLEANUP(free_textp) char *got = NULL;

                if (m.r)
                        fail_msg("%s: %s", table[i].want, diags_text(&m.diags, false));
                got = described(&m.plan, table[i].job.roles);
                assert_string_equal(got, table[i].want);
                assert_sound(&m.plan);
        }
}

TEST(worlds_list_the_ranks_of_their_roles)
{
        static const struct job job = { "n[1-3]\nn4 spare",
                                        2,
                                        { { NAMED("t"), .nodes.count = 2, .world = (char *)("w"),
                                            .plan = { G1 } },
                                          { NAMED("s"), .plan = { G1 } },
                                          { NAMED("r"), ON("t", 1), .world = (char *)("w") } } };
        static const char *const want[] = { "t:0-3,r:4", "s:0-1" };
        static const bool limited[] = { false, true, false };
        CLEANUP(made_finish) struct made m = make(&job);

        assert_int_equal(m.r, 0);
        assert_int_equal(m.plan.n_worlds, 2);
        for (size_t i = 0; i < 2; i++) {
                CLEANUP(free_textp) char *roles = plan_list_world_roles(&m.plan, i);

                assert_string_equal(roles, want[i]);
        }
        /* Only where a helper stands beside ranks with GPUs. */
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(plan_sets_visible(&m.plan, i, i == 2), limited[i]);
        /* A spare host needs no slot for a helper. */
        assert_int_equal(m.plan.nodes[1].n_ranks, 3);
        assert_true(plan_move(&m.plan, 1, 3));
        assert_int_equal(m.plan.ranks[4].node, 3);
}

TEST(what_does_not_fit_is_told)
{
        static const struct {
                struct job job;
                int id;
                const char *says;
        } table[] = {
                { { "n[1-3]",
                    1,
                    { { NAMED("a"), .nodes.count = 2, .plan = { G1 } },
                      { NAMED("b"), .nodes.count = 1, .replicas = 2, .plan = { G1 } } } },
                  315,
                  "the roles ask for 4 nodes, there are 3" },
                { { "n[1-2]",
                    1,
                    { { NAMED("a"), .nodes.count = 2, .plan = { G1 } },
                      { NAMED("b"), .plan = { G1 } } } },
                  315,
                  "2 of 2 nodes are given by number, and none is left as the rest" },
                { { "n1",
                    1,
                    { { NAMED("a"), .plan = { G1, .np = 1 } },
                      { NAMED("b"), .plan = { G1, .np = 1 } } } },
                  315,
                  "no node is left for role `b`" },
                { { "n1",
                    1,
                    { { NAMED("a"), .plan = { G1, .np = 1 } }, { NAMED("b"), .plan = { G1 } } } },
                  315,
                  "no node is left for role `b`" },
                { { "n[1-3]", 1, { { NAMED("a"), .replicas = 4, .plan = { G1 } } } },
                  315,
                  "role `a` has 3 nodes for 4 replicas" },
                { { "n[1-2]",
                    1,
                    { { NAMED("a"), .nodes.list = (char *)("n1"), .plan = { G1 } },
                      { NAMED("b"), .nodes.list = (char *)("n[1-2]"), .plan = { G1 } } } },
                  315,
                  "n1 is in --nodes of two roles, `a` and `b`" },
                { { "gpu[1-2]",
                    1,
                    { { NAMED("a"), .nodes.list = (char *)("gpu3"), .plan = { G1 } } } },
                  140,
                  "no host `gpu3` in the list, which --nodes of role `a` names" },
                { { "n[1-2]", 1, { { NAMED("a"), .plan = { G1 } }, { NAMED("b"), ON("a", 2) } } },
                  315,
                  "role `b` stands on a:2, but `a` has 2 nodes" },
                { { "n1",
                    8,
                    { { NAMED("a"), .plan = { G1 } },
                      { NAMED("b"), ON("a", 0), .plan = { G1 } } } },
                  316,
                  "role `b` asks for GPUs of n1 that role `a` has" },
                { { "n1",
                    8,
                    { { NAMED("a"), .plan = { G1 } },
                      { NAMED("b"), ON("a", 0), .plan = { G1 } } } },
                  316,
                  "role `a` has GPUs 0-7 there" },
                { { "n1 slots=2",
                    0,
                    { { NAMED("a"), .plan = { G1 } },
                      { NAMED("b"), ON("a", 0), .plan = { G1 } } } },
                  316,
                  "role `b` asks for slots of n1 that role `a` has" },
                { { "n1",
                    2,
                    { { NAMED("a"), .plan = { G1, .ppn = 1 } },
                      { NAMED("b"), ON("a", 0), .plan = { .gpus_per_rank = 3 } } } },
                  302,
                  "role `b`" },
                { { "n[1-2]",
                    2,
                    { { NAMED("a"), .nodes.count = 1, .plan = { G1, .np = 3 } },
                      { NAMED("b"), .plan = { G1 } } } },
                  301,
                  "role `a`" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                CLEANUP(made_finish) struct made m = make(&table[i].job);
                CLEANUP(free_textp) char *text = diags_text(&m.diags, false);

                if (m.r != -EINVAL)
                        fail_msg("%s: no error", table[i].says);
                if (m.diags.v[0].id != table[i].id || !strstr(text, table[i].says))
                        fail_msg("%s: %s", table[i].says, text);
                assert_null(m.plan.ranks);
        }
}

/* Compares plans with one world. */
static void assert_equal_plans(const struct plan *want, const struct plan *got)
{
        assert_int_equal(got->world_size, want->world_size);
        assert_int_equal(got->num_nodes, want->num_nodes);
        for (int i = 0; i < want->world_size; i++) {
                const struct plan_rank *a = &want->ranks[i], *b = &got->ranks[i];
                CLEANUP(free_textp) char *of_a = intlist_fold(&a->gpus);
                CLEANUP(free_textp) char *of_b = intlist_fold(&b->gpus);

                assert_string_equal(of_a, of_b);
                assert_int_equal(a->node, b->node);
                assert_int_equal(a->local_rank, b->local_rank);
                assert_int_equal(a->node_rank, b->node_rank);
                assert_int_equal(b->world + b->program, 0);
        }
        for (size_t i = 0; i < want->n_nodes; i++) {
                const struct plan_node *a = &want->nodes[i], *b = &got->nodes[i];
                CLEANUP(free_textp) char *of_a = intlist_fold(&a->gpus);
                CLEANUP(free_textp) char *of_b = intlist_fold(&b->gpus);

                assert_string_equal(of_a, of_b);
                assert_int_equal(a->node_rank, b->node_rank);
                assert_int_equal(a->slots, b->slots);
                assert_int_equal(a->first_rank, b->first_rank);
                assert_int_equal(a->gpus_are_subset, b->gpus_are_subset);
        }
}

TEST(one_role_without_a_name_is_the_plan_of_today)
{
        static const char *const hosts[] = { "n[1-3]", "n1 slots=2\nn2 spare\nn3 slots=3",
                                             "n[1-3] gpus=0,1", "n1:4\nn2:1 max_slots=2",
                                             "n1 spare" };
        static const struct plan_options options[] = {
                { G1 },
                { G1, .np = 2 },
                { G1, .np = 3, .map = PLAN_MAP_NODE },
                { .gpus_per_rank = 2 },
                { .gpus_per_rank = 0 },
                { G1, .ppn = 2, .oversubscribe = true },
                { G1, .per_node = true },
                { G1, .np = 9, .oversubscribe = true },
                { G1, .np = 99 },
        };
        int planned = 0;

        for (size_t i = 0; i < ARRAY_SIZE(hosts) * ARRAY_SIZE(options) * 3; i++) {
                const struct plan_role role = { .plan = options[i / 3 % ARRAY_SIZE(options)] };
                const char *list = hosts[i / 3 / ARRAY_SIZE(options)];
                struct made want = { .plan = PLAN_INIT }, got = { .plan = PLAN_INIT };
                struct plan_inventory inv[3], *known = i % 3 ? inv : NULL;
                CLEANUP(free_textp) char *of_want = NULL, *of_got = NULL;

                for (size_t k = 0; k < ARRAY_SIZE(inv); k++)
                        inv[k] = (struct plan_inventory){ .known = true,
                                                          .gpus = i % 3 == 1 ? 0 : 2 };
                hostfile_parse(&want.hosts, "hosts.txt", list, strlen(list), &want.diags);
                want.r = plan_build(&want.plan, &want.hosts, known, &role.plan, &want.diags);
                got.r = plan_roles_build(&got.plan, &want.hosts, known, &role, 1, &got.diags);
                of_want = diags_text(&want.diags, false);
                of_got = diags_text(&got.diags, false);
                assert_int_equal(got.r, want.r);
                if (want.r == 0) /* an error lists spare hosts last */
                        assert_string_equal(of_got, of_want);
                assert_equal_plans(&want.plan, &got.plan);
                planned += want.r == 0;
                made_finish(&want);
                made_finish(&got);
        }
        assert_true(planned > 50);
}

/* The list of nodes for --compat slurm is that of a world, and may be longest in any. */
TEST(the_longest_list_of_nodes_is_that_of_any_world)
{
        static const struct job job = { "n[1-4]",
                                        1,
                                        { { NAMED("a"), .nodes.count = 1, .plan = { G1 } },
                                          { NAMED("b"), .nodes.count = 2, .plan = { G1 } },
                                          { NAMED("c"), .nodes.count = 1, .plan = { G1 } } } };
        CLEANUP(made_finish) struct made m = make(&job);
        int nodes;

        assert_int_equal(m.r, 0);
        assert_int_equal(compat_nodes_longest(COMPAT_SLURM, &m.plan, &m.hosts, &nodes),
                         strlen("n[2-3]"));
        assert_int_equal(nodes, 2);
        assert_int_equal(compat_nodes_longest(COMPAT_OMPI, &m.plan, &m.hosts, &nodes), 0);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "head/model/role_list.h"
#include "lib/unit.h"

/* Three ranks of a on two nodes, two replicas of b with one rank each, then c and d in one world.
 */
static struct role_list make_list(void)
{
        static struct plan_rank ranks[] = {
                { .rank = 0, .node = 0, .world = 0, .program = 0, .role = "a" },
                { .rank = 1, .node = 1, .world = 0, .program = 0, .role = "a" },
                { .rank = 2, .node = 0, .world = 0, .program = 0, .role = "a" },
                { .rank = 3, .node = 2, .world = 1, .program = 1, .role = "b" },
                { .rank = 4, .node = 2, .world = 2, .program = 1, .role = "b" },
                { .rank = 5, .node = 2, .world = 3, .program = 2, .role = "c" },
                { .rank = 6, .node = 3, .world = 3, .program = 3, .role = "d" },
                { .rank = 7, .node = 3, .world = 3, .program = 3, .role = "d" },
        };
        static struct plan_world worlds[] = { { 0, 3, 2 }, { 3, 1, 1 }, { 4, 1, 1 }, { 5, 3, 2 } };
        const struct plan plan = {
                .n_nodes = 4, .ranks = ranks, .world_size = 8, .worlds = worlds, .n_worlds = 4
        };
        struct role_list p;

        role_list_from_plan(&p, &plan);
        return p;
}

static void assert_entries(const struct role_list *p)
{
        static const struct listed_role expected[] = {
                { (char *)"a", 0, 0, 0, 3, 0, 2 }, { (char *)"b", 0, 1, 3, 1, 0, 1 },
                { (char *)"b", 1, 2, 4, 1, 0, 1 }, { (char *)"c", 0, 3, 5, 1, 0, 1 },
                { (char *)"d", 0, 3, 6, 2, 1, 1 },
        };

        assert_int_equal(p->n, ARRAY_SIZE(expected));
        for (size_t i = 0; i < p->n; i++) {
                const struct listed_role *e = &expected[i], *g = &p->v[i];

                assert_string_equal(g->name, e->name);
                assert_int_equal(g->replica, e->replica);
                assert_int_equal(g->world, e->world);
                assert_int_equal(g->first, e->first);
                assert_int_equal(g->size, e->size);
                assert_int_equal(g->role_rank, e->role_rank);
                assert_int_equal(g->nodes, e->nodes);
        }
}

TEST(entries_of_a_plan_come_back_from_json)
{
        struct role_list p = make_list(), again;
        json_t *j = role_list_json(&p);

        assert_entries(&p);
        role_list_load(&again, j, 8);
        assert_entries(&again);
        role_list_finish(&again);
        role_list_load(&again, j, 6); /* d has a rank too many */
        assert_int_equal(again.n, 4);
        role_list_finish(&again);
        role_list_load(&again, NULL, 6);
        assert_int_equal(again.n, 0);
        json_decref(j);
        role_list_finish(&p);
}

TEST(ranks_are_named_by_their_role)
{
        CLEANUP(role_list_finish) struct role_list p = make_list();
        char name[PLAN_RANK_NAME_MAX];

        assert_string_equal(role_list_name(&p, 2, name), "role a, rank 2");
        assert_string_equal(role_list_name(&p, 7, name), "role d, rank 2");
        assert_string_equal(role_list_name(NULL, 7, name), "rank 7");
        assert_string_equal(role_list_name(&p, 4, name), "role b:1, rank 0");
        assert_string_equal(role_list_label(&p, 4, name), "b:1:0");
        assert_string_equal(role_list_label(&p, 6, name), "d:1");
        assert_string_equal(role_list_label(&p, 8, name), "8");
        assert_null(role_list_find(&p, -1));
}

static void assert_ranks(const struct role_list *p, int first, int last, const char *expected)
{
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        CLEANUP(free_textp) char *name = NULL;

        for (int i = first; i <= last; i++)
                intlist_add(&ranks, i);
        name = role_list_ranks_name(p, &ranks);
        assert_string_equal(name, expected);
}

TEST(several_ranks_are_named_by_their_roles)
{
        CLEANUP(role_list_finish) struct role_list p = make_list();

        assert_ranks(&p, 1, 1, "role a, rank 1");
        assert_ranks(&p, 0, 2, "role a, ranks 0-2");
        assert_ranks(&p, 4, 4, "role b:1, rank 0");
        assert_ranks(&p, 2, 7, "ranks a:2,b:0:0,b:1:0,c:0,d:1-2");
        assert_ranks(NULL, 3, 3, "rank 3");
        assert_ranks(&(struct role_list){ 0 }, 3, 5, "ranks 3-5");
}

static void assert_members(const struct role_list *p, int rank, const char *expected)
{
        json_t *j = json_object();
        CLEANUP(free_textp) char *text = NULL;

        role_list_put(p, j, rank);
        text = json_dumps(j, JSON_COMPACT | JSON_PRESERVE_ORDER);
        assert_string_equal(text, expected);
        json_decref(j);
}

TEST(ranks_have_their_role_in_json)
{
        CLEANUP(role_list_finish) struct role_list p = make_list();

        assert_members(&p, 1, "{\"role\":\"a\",\"role_rank\":1}");
        assert_members(&p, 4, "{\"role\":\"b\",\"role_rank\":0,\"replica\":1}");
        assert_members(&p, 8, "{}");
}

TEST(roles_are_counted_in_a_line)
{
        CLEANUP(role_list_finish) struct role_list p = make_list();
        CLEANUP(free_textp) char *full = role_list_count(&p, false);
        CLEANUP(free_textp) char *brief = role_list_count(&p, true);

        assert_string_equal(full,
                            "4 roles: a 3 ranks on 2 nodes, b 2 x 1 on 1, c 1 on 1, d 2 on 1");
        assert_string_equal(brief, "4 roles: a 3, b 2, c 1, d 2");
}

static void assert_choice(const struct role_list *p, const char *text, const char *expected)
{
        struct error err = { 0 };
        size_t n = 0;
        struct role_span *spans = role_list_choose(p, text, &n, &err);
        char got[200] = "";

        for (size_t i = 0; i < n; i++)
                snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d+%d", i ? " " : "",
                         spans[i].first, spans[i].size);
        assert_string_equal(spans ? got : err.text, expected);
        free(spans);
}

TEST(a_role_is_chosen_with_a_replica_or_a_rank)
{
        CLEANUP(role_list_finish) struct role_list p = make_list();

        assert_choice(&p, "a", "0+3");
        assert_choice(&p, "a:2", "2+1");
        assert_choice(&p, "b", "3+1 4+1");
        assert_choice(&p, "b:1", "4+1");
        assert_choice(&p, "b:1:0", "4+1");
        assert_choice(&p, "b:1:1", "its role b has ranks 0 to 0 in a replica, and no 1");
        assert_choice(&p, "b:2:0", "its role b has replicas 0 to 1, and no 2:0");
        assert_choice(&p, "b:1:", "its role b has replicas 0 to 1, and no 1:");
        assert_choice(&p, "a:1:0", "its role a has ranks 0 to 2, and no 1:0");
        assert_choice(&p, "d:1", "6+1");
        assert_choice(&p, "d:0", "its role d has ranks 1 to 2, and no 0");
        assert_choice(&p, "a:", "its role a has ranks 0 to 2, and no ");
        assert_choice(&p, "a:-1", "its role a has ranks 0 to 2, and no -1");
        assert_choice(&p, "b:2", "its role b has replicas 0 to 1, and no 2");
        assert_choice(&p, "aa", "it has no role aa, but a, b, c, d");
        assert_choice(&(struct role_list){ 0 }, "a", "it has no roles");
}

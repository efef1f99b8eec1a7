/* SPDX-License-Identifier: Apache-2.0 */
/* Who is missing: assembly of answers, connections and ranks, folding, the words. */
#include <stdio.h>

#include "base/memory.h"
#include "base/strv.h"
#include "head/status/rank_table.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* Two nodes or more, some ranks on each, in order. */
struct scene {
        struct hosts hosts;
        struct plan plan;
        struct rank_table t;
};

static void init_scene(struct scene *s, int n_nodes, int ppn)
{
        *s = (struct scene){ 0 };
        s->plan = (struct plan){ .n_nodes = (size_t)n_nodes,
                                 .world_size = n_nodes * ppn,
                                 .num_nodes = n_nodes };
        s->plan.nodes = xcalloc((size_t)n_nodes, sizeof(*s->plan.nodes));
        s->plan.ranks = xcalloc((size_t)(n_nodes * ppn), sizeof(*s->plan.ranks));
        for (int i = 0; i < n_nodes; i++) {
                struct host *h = hosts_add(&s->hosts);

                h->name = xasprintf("gpu%03d", i + 1);
                s->plan.nodes[i].host = (size_t)i;
                s->plan.nodes[i].n_ranks = ppn;
                for (int k = 0; k < ppn; k++) {
                        int rank = i * ppn + k;

                        intlist_add(&s->plan.nodes[i].ranks, rank);
                        s->plan.ranks[rank] =
                                (struct plan_rank){ .rank = rank, .local_rank = k, .node = i };
                }
        }
        rank_table_init(&s->t, &s->plan, &s->hosts, "k3f9q");
}

static void finish_scene(struct scene *s)
{
        rank_table_finish(&s->t);
        plan_finish(&s->plan);
        hosts_finish(&s->hosts);
}

static struct node_status_rank make_sleeping_rank(uint32_t rank)
{
        return (struct node_status_rank){ .rank = rank,
                                          .pid = 1000 + rank,
                                          .state = 'S',
                                          .started_ms = 121000,
                                          .said_ms = STATUS_NEVER,
                                          .seen_ms = STATUS_NEVER,
                                          .channel = "do_sleep" };
}

static struct node_status_wait make_wait(const char *op, const char *key, uint32_t ms)
{
        struct node_status_wait w = { .n_keys = 1, .ms = ms };

        snprintf(w.op, sizeof(w.op), "%s", op);
        snprintf(w.key, sizeof(w.key), "%s", key);
        return w;
}

/* All of the node's ranks, asleep; those below @n_waiting in the barrier for 12 s. */
static void add_answer(struct scene *s, int node, int n_waiting)
{
        const struct intlist *ranks = &s->plan.nodes[node].ranks;
        CLEANUP(node_status_finish) struct node_status m = { .n_ranks = (uint32_t)ranks->n };

        m.ranks = xcalloc(ranks->n, sizeof(*m.ranks));
        for (size_t i = 0; i < ranks->n; i++) {
                m.ranks[i] = make_sleeping_rank((uint32_t)ranks->v[i]);
                if (ranks->v[i] < n_waiting) {
                        m.ranks[i].said_ms = 100;
                        m.ranks[i].wait = make_wait("BARRIER", "x", 12000);
                }
        }
        rank_table_add(&s->t, node, &m);
}

#define assert_has(text, part)                                                                     \
        do {                                                                                       \
                if (!strstr(text, part))                                                           \
                        fail_msg("no \"%s\" in:\n%s", part, text);                                 \
        } while (0)

TEST(rows_say_what_is_known)
{
        CLEANUP(finish_scene) struct scene s;
        struct node_status m = { .n_ranks = 2 };
        struct node_status_rank ranks[2] = { make_sleeping_rank(1), make_sleeping_rank(2) };

        init_scene(&s, 3, 2);
        m.ranks = ranks;
        ranks[0].state = 0;
        rank_table_ended(&s.t, 4);
        rank_table_add(&s.t, 0, &m); /* rank 2 does not live on node 0, rank 0 is not told */
        assert_int_equal(s.t.rows[0].known, RANK_ROW_UNKNOWN);
        assert_int_equal(s.t.rows[1].known, RANK_ROW_ENDED);
        assert_int_equal(s.t.rows[2].known, RANK_ROW_SILENT);
        assert_int_equal(s.t.rows[4].known, RANK_ROW_ENDED);
        rank_table_joined(&s.t, 5, 70);
        assert_int_equal(rank_table_count(&s.t, rank_row_missing), 3);
        assert_false(rank_row_missing(&s.t.rows[1]));
        assert_false(rank_row_missing(&s.t.rows[5]));
}

TEST(a_rank_of_a_lost_node_is_neither_silent_nor_missing)
{
        CLEANUP(finish_scene) struct scene s;
        CLEANUP(free_textp) char *text = NULL;

        init_scene(&s, 2, 1);
        rank_table_lost(&s.t, 1);
        add_answer(&s, 0, 0);
        add_answer(&s, 1, 0); /* on its way before the loss */
        assert_int_equal(s.t.rows[1].known, RANK_ROW_LOST);
        assert_int_equal(rank_table_count(&s.t, rank_row_missing), 1);
        text = rank_table_print(&s.t, NULL);
        assert_non_null(strstr(text, "lost"));
        assert_null(strstr(text, "no answer"));
}

TEST(connections_find_their_ranks)
{
        struct msg_addr a[] = { { "eth0", "10.0.0.1", 24 }, { "docker0", "172.17.0.1", 16 } };
        struct msg_addr b[] = { { "eth0", "10.0.0.2", 24 }, { "docker0", "172.17.0.1", 16 } };
        const struct hello ha = { .addrs = a, .n_addrs = 2 }, hb = { .addrs = b, .n_addrs = 2 };
        const struct hello *hellos[] = { &ha, &hb };
        struct node_status_conn conns[] = {
                { .addr = "10.0.0.2", .port = 4000, .wait = make_wait("WAIT", "k", 5000) },
                { .addr = "::ffff:10.0.0.1", .port = 4000, .wait = make_wait("GET", "g", 100) },
                { .addr = "127.0.0.1", .port = 4001, .seen_ms = 7 },  /* the endpoint's own node */
                { .addr = "192.0.2.1", .port = 4100, .seen_ms = 9 },  /* translated, one has it */
                { .addr = "172.17.0.1", .port = 4000, .seen_ms = 1 }, /* two nodes, two ranks */
                { .addr = "10.0.0.2", .port = 4999, .seen_ms = 1 },   /* of no rank */
        };
        struct node_status_rank n0[] = { make_sleeping_rank(0), make_sleeping_rank(1) },
                                n1[] = { make_sleeping_rank(2), make_sleeping_rank(3) };
        struct node_status m0 = { .ranks = n0, .n_ranks = 2, .conns = conns, .n_conns = 6 };
        struct node_status m1 = { .ranks = n1, .n_ranks = 2 };
        CLEANUP(finish_scene) struct scene s;

        n0[0].ports[0] = 4000, n0[0].n_ports = 1;
        n0[1].ports[0] = 4001, n0[1].n_ports = 1;
        n1[0].ports[0] = 4000, n1[0].n_ports = 1;
        n1[1].ports[0] = 4001, n1[1].ports[1] = 4100, n1[1].n_ports = 2;
        init_scene(&s, 2, 2);
        rank_table_add(&s.t, 0, &m0);
        rank_table_add(&s.t, 1, &m1);
        assert_int_equal(rank_table_match(&s.t, hellos), 2);
        assert_string_equal(s.t.rows[2].k.wait.key, "k");
        assert_string_equal(s.t.rows[0].k.wait.key, "g");
        assert_int_equal(s.t.rows[1].k.seen_ms, 7);
        assert_int_equal(s.t.rows[3].k.seen_ms, 9);
        assert_int_equal(rank_table_count(&s.t, rank_row_joined), 4);
        assert_int_equal(rank_table_longest(&s.t), 5000);
}

TEST(names_are_folded)
{
        CLEANUP(finish_scene) struct scene s;
        CLEANUP(free_textp) char *text = NULL;

        init_scene(&s, 2, 3);
        for (int i = 0; i < 6; i++)
                if (i != 3 && i != 5)
                        rank_table_joined(&s.t, i, 10);
        text = rank_table_missing_sentence(&s.t, 120000);
        assert_string_equal(text, "ranks 3,5 on gpu002 did not join within 120s");
        free(text);
        rank_table_joined(&s.t, 5, 10);
        text = rank_table_missing_sentence(&s.t, 2500);
        assert_string_equal(text, "rank 3 on gpu002 did not join within 2.5s");
}

TEST(missing_ranks_are_told_with_evidence)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(finish_scene) struct scene s;
        CLEANUP(free_textp) char *text = NULL;

        init_scene(&s, 2, 2);
        add_answer(&s, 0, 2);
        add_answer(&s, 1, 2);
        for (int i = 0; i < 3; i++)
                rank_table_joined(&s.t, i, 900 + i);
        rank_table_tell_missing(&s.t, &d, 120000, true);
        assert_int_equal(d.v[0].exit, 75);
        text = diags_text(&d, false);
        assert_has(text, "error[HN402]: 1 of 4 ranks did not join within 120s");
        assert_has(text,
                   "|    3  gpu002      1  1003  yes (S)  started 121s ago, no word  not joined  "
                   "0% CPU, do_sleep");
        assert_has(text, "= note: 3 ranks joined in 900ms-902ms, 1 of them on gpu002");
        assert_has(text, "= note: ranks 0-1 wait in barrier `x` for 12s");
        assert_null(strstr(text, "hnlaunch why"));
        assert_has(text, "--start-timeout 10m");
        assert_null(strstr(text, "gpu001"));
        free(text);
        diags_finish(&d);
        rank_table_tell_missing(&s.t, &d, 120000, false);
        assert_true(d.v[0].warning);
        text = diags_text(&d, false);
        assert_has(text, "= help: hnlaunch why k3f9q shows what rank 3 does");
}

TEST(long_waits_are_told)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(finish_scene) struct scene s;
        CLEANUP(free_textp) char *text = NULL;

        init_scene(&s, 2, 2);
        add_answer(&s, 0, 3);
        add_answer(&s, 1, 3);
        assert_false(rank_table_tell_waiting(&s.t, &d, 12001));
        assert_int_equal(d.n, 0);
        s.t.rows[3].k.state = 'T';
        assert_true(rank_table_tell_waiting(&s.t, &d, 12000));
        text = diags_text(&d, false);
        assert_has(text, "warning[HN404]: ranks 0-2 wait in barrier `x` for 12s; rank 3 on gpu002 "
                         "has not come");
        assert_has(text, "stopped (T)");
        assert_has(text, "ssh gpu002 kill -CONT 1003");
        free(text);
        diags_finish(&d);

        s.t.rows[3].k.wait = make_wait("WAIT", "y", 20000);
        s.t.rows[3].k.wait.n_keys = 3;
        assert_true(rank_table_tell_waiting(&s.t, &d, 12000));
        text = diags_text(&d, false);
        assert_has(text,
                   "rank 3 waits for `y` and 2 more for 20s; all others wait, too (deadlock)");
        assert_has(text, "= note: ranks 0-2 wait in barrier `x` for 12s");
        free(text);
        diags_finish(&d);

        /* Ranks that have waited for less are rows of the table, and no note says it again. */
        assert_true(rank_table_tell_waiting(&s.t, &d, 15000));
        text = diags_text(&d, false);
        assert_has(text, "rank 3 waits for `y` and 2 more for 20s; ranks 0-2 on gpu[001-002] have");
        assert_null(strstr(text, "= note: ranks 0-2 wait"));
        free(text);
        diags_finish(&d);

        s.t.rows[3].k.wait = s.t.rows[0].k.wait;
        assert_true(rank_table_tell_waiting(&s.t, &d, 12000));
        text = diags_text(&d, false);
        assert_has(text, "warning[HN404]: all 4 ranks wait in barrier `x` for 12s (deadlock)");
}

TEST(equal_ranks_are_one_line)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(finish_scene) struct scene s;
        CLEANUP(free_textp) char *text = NULL;
        int lines = 0;

        init_scene(&s, 64, 8);
        for (int i = 1; i < 63; i++)
                add_answer(&s, i, 512);
        add_answer(&s, 0, 0);
        s.t.rows[5].k.state = 'R';
        for (int i = 8; i < 504; i++)
                rank_table_progress(&s.t, i, (struct rank_progress){ i % 2 + 40, 1000, NULL });
        rank_table_progress(&s.t, 5, (struct rank_progress){ 7, 0, "epoch 2" });
        rank_table_tell_all(&s.t, &d, 12300);
        text = diags_text(&d, false);
        assert_has(text, "note: 512 ranks on 64 nodes, 12.3s after the start");
        assert_has(text, "| ranks 8-503 wait in barrier `x` for 12s, step 40-41\n");
        assert_has(text, "|    5  gpu001      5  1005  yes (R)");
        assert_has(text, "  7 epoch 2  ");
        assert_has(text, "|  511  gpu064      7        no answer");
        assert_has(text, "= note: no answer from gpu064");
        for (const char *c = text; *c; c++)
                lines += *c == '\n';
        assert_true(lines < 25);
}

TEST(a_job_without_the_store_has_no_such_column)
{
        CLEANUP(finish_scene) struct scene s;
        CLEANUP(free_textp) char *text = NULL;

        init_scene(&s, 1, 2);
        add_answer(&s, 0, 0);
        text = rank_table_print(&s.t, NULL);
        assert_null(strstr(text, "STORE"));
        assert_null(strstr(text, "STEP"));
        assert_null(strstr(text, "joined"));
        free(text);
        rank_table_joined(&s.t, 0, 2000);
        text = rank_table_print(&s.t, NULL);
        assert_has(text, "joined after 2s");
        assert_has(text, "not joined");
}

/* Makes node 0 a role a and the others a role b, each a world. */
static void give_roles(struct scene *s, int ppn)
{
        static struct plan_world worlds[2];

        worlds[0] = (struct plan_world){ .first = 0, .size = ppn, .num_nodes = 1 };
        worlds[1] = (struct plan_world){ .first = ppn, .size = s->plan.world_size - ppn };
        s->plan.worlds = worlds;
        s->plan.n_worlds = 2;
        for (int i = 0; i < s->plan.world_size; i++) {
                s->plan.ranks[i].world = s->plan.ranks[i].program = s->t.rows[i].world = i >= ppn;
                s->plan.ranks[i].role = i < ppn ? "a" : "b";
        }
}

static void finish_roles(struct scene *s)
{
        s->plan.worlds = NULL;
        finish_scene(s);
}

TEST(waits_are_told_for_each_world)
{
        struct diags d = DIAGS_INIT;
        struct scene s;
        CLEANUP(free_textp) char *text = NULL;

        init_scene(&s, 2, 3);
        give_roles(&s, 3);
        add_answer(&s, 0, 2); /* ranks 0 and 1 wait in `x` */
        add_answer(&s, 1, 6); /* and all of b in their own */
        assert_true(rank_table_tell_waiting(&s.t, &d, 12000));
        assert_int_equal(d.n, 2);
        text = diags_text(&d, false);
        assert_has(text, "warning[HN404]: role a, ranks 0-1 wait in barrier `x` for 12s; role a, "
                         "rank 2 on gpu001 has not come\n");
        assert_has(text, "|  a:2  gpu001");
        assert_has(text, "shows what role a, rank 2 does");
        assert_has(text, "warning[HN404]: role b, ranks 0-2 wait in barrier `x` for 12s "
                         "(deadlock)\n");
        assert_has(text, "shows what role b, rank 0 does");
        diags_finish(&d);
        finish_roles(&s);
}

/* A server never joins, and a role may start late. */
TEST(ranks_are_missed_by_their_own_world)
{
        const struct hello *hellos[2] = { NULL, NULL };
        struct scene s;
        CLEANUP(free_textp) char *text = NULL;

        init_scene(&s, 2, 2);
        give_roles(&s, 2);
        add_answer(&s, 0, 0);
        add_answer(&s, 1, 0);
        rank_table_joined(&s.t, 2, 10);
        rank_table_match(&s.t, hellos);
        assert_int_equal(rank_table_count(&s.t, rank_row_missing), 1);
        text = rank_table_missing_sentence(&s.t, 2500);
        assert_string_equal(text, "role b, rank 1 on gpu002 did not join within 2.5s");
        finish_roles(&s);
}

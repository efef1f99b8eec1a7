/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/memory.h"
#include "head/hosts/filter.h"
#include "head/hosts/hostfile.h"
#include "head/model/plan.h"
#include "head/term/diag.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* A launch in short: the hostfile's text, and the GPUs of each node: "4 4", "-" = not known. */
struct launch {
        const char *hosts, *gpus;
        struct plan_options o;
        const char *include, *exclude;
};

struct made {
        struct hosts hosts;
        struct plan plan;
        struct diags diags;
        int r;
};

static void parse_inventory(const char *gpus, struct plan_inventory *inv, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char *end;

                inv[i] = (struct plan_inventory){ .cores = 16 };
                gpus += strspn(gpus, " ");
                if (*gpus == '-') {
                        gpus++;
                        continue;
                }
                inv[i].known = true;
                inv[i].gpus = (int)strtol(gpus, &end, 10);
                assert_ptr_not_equal(gpus, end);
                gpus = end;
        }
        assert_int_equal(*gpus, '\0');
}

static void narrow(struct made *m, const char *include, const char *exclude)
{
        CLEANUP(strv_finish) struct strv in = STRV_INIT, ex = STRV_INIT;

        if (include)
                strv_push(&in, include);
        if (exclude)
                strv_push(&ex, exclude);
        assert_int_equal(filter_apply(&m->hosts, &in, &ex, 0, &m->diags), 0);
}

static struct made make(const struct launch *l)
{
        struct made m = { .hosts = HOSTS_INIT, .plan = PLAN_INIT, .diags = DIAGS_INIT };
        struct plan_inventory *inv = NULL;

        assert_int_equal(
                hostfile_parse(&m.hosts, "hosts.txt", l->hosts, strlen(l->hosts), &m.diags), 0);
        narrow(&m, l->include, l->exclude);
        if (l->gpus) {
                inv = xcalloc(m.hosts.n, sizeof(*inv));
                parse_inventory(l->gpus, inv, m.hosts.n);
        }
        m.r = plan_build(&m.plan, &m.hosts, inv, &l->o, &m.diags);
        free(inv);
        return m;
}

static void made_finish(struct made *m)
{
        plan_finish(&m->plan);
        hosts_finish(&m->hosts);
        diags_finish(&m->diags);
}

static void put_ints(struct buf *out, const struct intlist *l)
{
        for (size_t i = 0; i < l->n; i++)
                buf_printf(out, "%s%d", i ? "+" : "", l->v[i]);
}

/* Node after node, by local rank: "RANK:GPUS", GPUs with "+" between. "/": next node, "-": unused,
 * "!": CUDA_VISIBLE_DEVICES must be set. malloc'ed. */
static char *described(const struct plan *p)
{
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < p->n_nodes; i++) {
                const struct plan_node *node = &p->nodes[i];

                buf_appends(&out, i ? " / " : "");
                if (node->node_rank < 0)
                        buf_appends(&out, "-");
                for (size_t k = 0; k < node->ranks.n; k++) {
                        const struct plan_rank *r = &p->ranks[node->ranks.v[k]];

                        buf_printf(&out, "%s%d", k ? " " : "", r->rank);
                        if (r->gpus.n)
                                buf_appends(&out, ":");
                        put_ints(&out, &r->gpus);
                }
                if (node->gpus_are_subset)
                        buf_appends(&out, "!");
        }
        return buf_steal(&out);
}

/* Asserts the rules of every plan, with any options. */
static void assert_sound(const struct plan *p)
{
        int ranks = 0, nodes = 0;

        for (size_t i = 0; i < p->n_nodes; i++) {
                const struct plan_node *node = &p->nodes[i];

                assert_int_equal(node->host, i);
                assert_int_equal(node->n_ranks, node->ranks.n);
                assert_int_equal(node->node_rank, node->n_ranks ? nodes++ : -1);
                ranks += node->n_ranks;
                for (size_t k = 0; k < node->ranks.n; k++) {
                        const struct plan_rank *r = &p->ranks[node->ranks.v[k]];

                        assert_int_equal(r->rank, node->ranks.v[k]);
                        assert_int_equal(r->node, i);
                        assert_int_equal(r->local_rank, k);
                        assert_true(node->first_rank <= r->rank);
                        for (size_t g = 0; g < r->gpus.n; g++)
                                assert_true(intlist_has(&node->gpus, r->gpus.v[g]));
                }
        }
        assert_int_equal(ranks, p->world_size);
        assert_int_equal(nodes, p->num_nodes);
        assert_int_equal(p->n_worlds, 1);
        assert_int_equal(p->worlds[0].first, 0);
        assert_int_equal(p->worlds[0].size, p->world_size);
        assert_int_equal(p->worlds[0].num_nodes, p->num_nodes);
        for (int i = 0; i < p->world_size; i++)
                assert_int_equal(p->ranks[i].node_rank, p->nodes[p->ranks[i].node].node_rank);
}

static void assert_plan(const struct launch *l, const char *want)
{
        CLEANUP(made_finish) struct made m = make(l);
        CLEANUP(free_textp) char *got = NULL;

        if (m.r < 0)
                fail_msg("%s", diags_text(&m.diags, false));
        assert_sound(&m.plan);
        got = described(&m.plan);
        assert_string_equal(got, want);
}

#define G1(...)                                                                                    \
        {                                                                                          \
                .gpus_per_rank = 1, __VA_ARGS__                                                    \
        }

#define G0(...)                                                                                    \
        {                                                                                          \
                .gpus_per_rank = 0, __VA_ARGS__                                                    \
        }

TEST(ranks_and_devices_are_assigned)
{
        static const struct {
                struct launch l;
                const char *plan;
        } cases[] = {
                /* two nodes with four GPUs each */
                { { "a\nb", "4 4", G1(), NULL, NULL }, "0:0 1:1 2:2 3:3 / 4:0 5:1 6:2 7:3" },
                { { "a:4\nb:4", "4 4", G1(), NULL, NULL }, "0:0 1:1 2:2 3:3 / 4:0 5:1 6:2 7:3" },
                { { "a:4\nb:4", NULL, G1(), NULL, NULL }, "0:0 1:1 2:2 3:3 / 4:0 5:1 6:2 7:3" },
                /* the same with two GPUs for a process */
                { { "a\nb", "4 4", { .gpus_per_rank = 2 }, NULL, NULL },
                  "0:0+1 1:2+3 / 2:0+1 3:2+3" },
                { { "a:4\nb:4", NULL, { .gpus_per_rank = 2 }, NULL, NULL },
                  "0:0+1 1:2+3 / 2:0+1 3:2+3" },
                { { "a\nb", "4 4", { .gpus_per_rank = 4 }, NULL, NULL }, "0:0+1+2+3 / 1:0+1+2+3" },
                /* two with two, one with four, unequal nodes */
                { { "a\nb", "2 2", G1(), NULL, NULL }, "0:0 1:1 / 2:0 3:1" },
                { { "a", "4", G1(), NULL, NULL }, "0:0 1:1 2:2 3:3" },
                { { "a:4\nb:3\nc:2", "4 4 4", G1(), NULL, NULL },
                  "0:0 1:1 2:2 3:3 / 4:0 5:1 6:2! / 7:0 8:1!" },
                { { "a\nb\nc", "4 3 2", G1(), NULL, NULL },
                  "0:0 1:1 2:2 3:3 / 4:0 5:1 6:2 / 7:0 8:1" },
                /* round robin */
                { { "a\nb", "2 2", G1(.map = PLAN_MAP_NODE), NULL, NULL }, "0:0 2:1 / 1:0 3:1" },
                { { "a:4\nb:3\nc:2", NULL, G1(.map = PLAN_MAP_NODE), NULL, NULL },
                  "0:0 3:1 6:2 8:3 / 1:0 4:1 7:2 / 2:0 5:1" },
                { { "a:4\nb:4", NULL, G1(.map = PLAN_MAP_NODE, .np = 3), NULL, NULL },
                  "0:0 2:1 / 1:0" },
                { { "a:4\nb:4\nc:4", NULL, G1(.map = PLAN_MAP_NODE, .np = 2), NULL, NULL },
                  "0:0 / 1:0 / -" },
                /* fewer ranks than slots */
                { { "a:8\nb:8\nc:8\nd:8", NULL, G1(.np = 20), NULL, NULL },
                  "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 / 8:0 9:1 10:2 11:3 12:4 13:5 14:6 15:7 / "
                  "16:0 17:1 18:2 19:3 / -" },
                { { "a\nb", "4 4", G1(.np = 2), NULL, NULL }, "0:0 1:1! / -" },
                /* devices by name */
                { { "a gpus=0,2,4-6", "8", G1(), NULL, NULL }, "0:0 1:2 2:4 3:5 4:6!" },
                { { "a gpus=0,2,4-6", NULL, G1(), NULL, NULL }, "0:0 1:2 2:4 3:5 4:6!" },
                { { "a gpus=0,2,4-6", "8", { .gpus_per_rank = 2, .np = 2 }, NULL, NULL },
                  "0:0+2 1:4+5!" },
                { { "a gpus=1,0", "2", G1(), NULL, NULL }, "0:1 1:0!" },
                { { "a gpus=0,1", "2", G1(), NULL, NULL }, "0:0 1:1" },
                /* filters */
                { { "a:4\nb:4", "4 4", G1(), "a:1,3@b:0", NULL }, "0:1 1:3! / 2:0!" },
                { { "a\nb", "4 4", G1(), NULL, "a:0" }, "0:1 1:2 2:3! / 3:0 4:1 5:2 6:3" },
                { { "a gpus=4-7", "8", G1(), "a:0,2", NULL }, "0:4 1:6!" },
                { { "a\nb", "4 4", { .gpus_per_rank = 2 }, NULL, "a:0,3" },
                  "0:1+2! / 1:0+1 2:2+3" },
                /* nodes without GPUs: slots win, nothing is assigned */
                { { "a:3\nb", "0 0", G1(), NULL, NULL }, "0 1 2 / 3" },
                { { "a:4", "0", { .gpus_per_rank = 2 }, NULL, NULL }, "0 1 2 3" },
                { { "a\nb:2", "2 0", G1(), NULL, NULL }, "0:0 1:1 / 2 3" },
                /* nothing assigned on demand */
                { { "a", "4", { 0 }, NULL, NULL }, "0 1 2 3" },
                { { "a:2", "4", { 0 }, NULL, NULL }, "0 1" },
                { { "a:6", "4", { 0 }, NULL, NULL }, "0 1 2 3 4 5" },
                { { "a gpus=2,3", "4", { 0 }, NULL, NULL }, "0 1!" },
                /* nothing known */
                { { "a\nb", NULL, G1(), NULL, NULL }, "0:0 / 1:0" },
                { { "a\nb", NULL, { .gpus_per_rank = 2 }, NULL, NULL }, "0:0+1 / 1:0+1" },
                { { "a\nb", "- 2", G1(), NULL, NULL }, "0:0 / 1:0 2:1" },
                { { "a slots=auto", "2", G1(), NULL, NULL }, "0:0 1:1" },
                /* --ppn */
                { { "a\nb", "4 4", G1(.ppn = 2), NULL, NULL }, "0:0 1:1! / 2:0 3:1!" },
                { { "a:8\nb:8", NULL, G1(.ppn = 2), NULL, NULL }, "0:0 1:1 / 2:0 3:1" },
                { { "a\nb", NULL, G1(.ppn = 2), NULL, NULL }, "0:0 1:1 / 2:0 3:1" },
                { { "a\nb", "0 0", G1(.ppn = 3), NULL, NULL }, "0 1 2 / 3 4 5" },
                { { "a\nb", "4 4", { .gpus_per_rank = 2, .ppn = 1 }, NULL, NULL },
                  "0:0+1! / 1:0+1!" },
                { { "a\nb", "4 4", G1(.ppn = 2, .np = 3), NULL, NULL }, "0:0 1:1! / 2:0!" },
                { { "a:1", "3", G1(.ppn = PLAN_PPN_GPU), NULL, NULL }, "0:0 1:1 2:2" },
                { { "a:1", "3", G1(.ppn = PLAN_PPN_CPU), NULL, NULL },
                  "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15" },
                /* more ranks than slots on demand: by rounds, devices from the first on */
                { { "a:2\nb:2", "2 2", G1(.np = 6, .oversubscribe = true), NULL, NULL },
                  "0:0 1:1 2:0 3:1 / 4:0 5:1" },
                { { "a:2\nb:1", NULL, G1(.np = 5, .oversubscribe = true, .map = PLAN_MAP_NODE),
                    NULL, NULL },
                  "0:0 2:1 4:0 / 1:0 3:0" },
                { { "a slots=1 max_slots=2\nb:1", NULL, G1(.np = 5, .oversubscribe = true), NULL,
                    NULL },
                  "0:0 1:0 / 2:0 3:0 4:0" },
                { { "a:4", "2", G1(.oversubscribe = true), NULL, NULL }, "0:0 1:1 2:0 3:1" },
                { { "a", "2", G1(.ppn = 4, .oversubscribe = true), NULL, NULL },
                  "0:0 1:1 2:0 3:1" },
                { { "a", "1", { .gpus_per_rank = 2, .oversubscribe = true }, NULL, NULL }, "0:0" },
                /* --local */
                { { "localhost:4", "0", G1(.local = true), NULL, NULL }, "0 1 2 3" },
                { { "localhost:4", "2", G1(.local = true), NULL, NULL }, "0:0 1:1 2:0 3:1" },
                { { "localhost", "2", G1(.local = true), NULL, NULL }, "0:0 1:1" },
                { { "localhost", "0", G1(.local = true, .np = 2), NULL, NULL }, "0 1" },
                { { "localhost:2", "8", { .gpus_per_rank = 2, .local = true }, NULL, NULL },
                  "0:0+1 1:2+3!" },
                { { "localhost", "2", G1(.local = true, .np = 3), NULL, NULL }, "0:0 1:1 2:0" },
                { { "localhost:2", "0", G1(.local = true, .np = 3, .oversubscribe = true), NULL,
                    NULL },
                  "0 1 2" },
                { { "localhost", "0", G1(.local = true), NULL, NULL },
                  "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_plan(&cases[i].l, cases[i].plan);
}

TEST(device_numbers_may_have_gaps)
{
        static const int devices[] = { 1, 3 };
        const struct plan_inventory inv = { .known = true, .gpus = 2, .gpu_index = devices };
        const struct plan_options o = G1();
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        CLEANUP(plan_finish) struct plan p = PLAN_INIT;
        CLEANUP(free_textp) char *got = NULL;

        hostlist_parse(&h, "a", &d);
        assert_int_equal(plan_build(&p, &h, &inv, &o, &d), 0);
        got = described(&p);
        assert_string_equal(got, "0:1 1:3");
}

TEST(plans_that_cannot_be_say_why)
{
        static const struct {
                struct launch l;
                const char *shown;
        } cases[] = {
                { { "a:8\nb:8\nc:8\nd:8", NULL, G1(.np = 40), NULL, NULL },
                  "error[HN301]: 40 ranks wanted, 32 slots available\n"
                  "    |\n"
                  "    | -n 40           wanted\n"
                  "    | 4 × slots=8     hosts.txt:1-4\n"
                  "    |\n"
                  "    = help: -n 32, add a host, or --oversubscribe\n" },
                { { "a:8\n\nb:8\nc:2\nd", "8 8 2 1", G1(.np = 40), NULL, NULL },
                  "error[HN301]: 40 ranks wanted, 19 slots available\n"
                  "    |\n"
                  "    | -n 40           wanted\n"
                  "    | 2 × slots=8     hosts.txt:1,3\n"
                  "    | 1 × slots=2     hosts.txt:4\n"
                  "    | 1 × 1           hosts.txt:5\n"
                  "    |\n"
                  "    = help: -n 19, add a host, or --oversubscribe\n" },
                { { "a\nb", NULL, G1(.np = 8), NULL, NULL },
                  "error[HN301]: 8 ranks wanted, 2 slots available\n"
                  "    |\n"
                  "    | -n 8      wanted\n"
                  "    | 2 × 1     hosts.txt:1-2\n"
                  "    |\n"
                  "    = note: 2 nodes without slots= count as one: add --probe to ask them\n"
                  "    = help: -n 2, add a host, or --oversubscribe\n" },
                { { "a:4", NULL, { .gpus_per_rank = 2, .np = 3 }, NULL, NULL },
                  "error[HN301]: 3 ranks wanted, 2 slots available\n"
                  "    |\n"
                  "    | -n 3            wanted\n"
                  "    | 1 × slots=4     hosts.txt:1\n"
                  "    |\n"
                  "    = note: --gpus-per-rank 2: a rank takes 2 GPUs\n"
                  "    = help: -n 2, add a host, or --oversubscribe\n" },
                { { "g[1-3]:8\ng4:8\ng5", "8 8 8 7 8", G1(), NULL, NULL },
                  "error[HN601]: g4 has 7 usable GPUs, its line says slots=8\n"
                  "   --> g4  (hosts.txt:2)\n"
                  "    |\n"
                  "    = note: 4 of 5 nodes have 8 GPUs\n"
                  "    = help: --exclude g4, or set slots=7\n" },
                { { "g[1-3]:8", "7 7 8", G1(), NULL, NULL },
                  "error[HN601]: 2 nodes have 7 usable GPUs, their lines say slots=8\n"
                  "   --> g[1-2]  (hosts.txt:1)\n"
                  "    |\n"
                  "    = note: 1 of 3 nodes have 8 GPUs\n"
                  "    = help: --exclude g[1-2], or set slots=7\n" },
                { { "a gpus=0,6", "4", G1(), NULL, NULL },
                  "error[HN602]: a has no GPU 6, which gpus= names\n"
                  "   --> a  (hosts.txt:1)\n"
                  "    |\n"
                  "    = note: 4 GPUs can be used there\n" },
                { { "a gpus=0", "0", G1(), NULL, NULL },
                  "error[HN602]: a has no GPU 0, which gpus= names\n"
                  "   --> a  (hosts.txt:1)\n"
                  "    |\n"
                  "    = note: 0 GPUs can be used there\n" },
                { { "a\nb", "8 4", G1(.ppn = 8), NULL, NULL },
                  "error[HN302]: --ppn 8, but b has 4 slots\n"
                  "   --> b  (hosts.txt:2)\n"
                  "    |\n"
                  "    = help: --ppn 4, or --oversubscribe\n" },
                { { "a:2", NULL, G1(.ppn = 4), NULL, NULL },
                  "error[HN302]: --ppn 4, but a has 2 slots\n"
                  "   --> a  (hosts.txt:1)\n"
                  "    |\n"
                  "    = help: --ppn 2, or --oversubscribe\n" },
                { { "a", "2", G1(), "a:5", NULL },
                  "error[HN303]: a has no slot 5, which --include or --exclude names\n"
                  "   --> a  (hosts.txt:1)\n"
                  "    |\n"
                  "    = note: 2 slots there, counted from 0\n" },
                { { "a", "0", G1(.ppn = PLAN_PPN_GPU), NULL, NULL },
                  "error[HN304]: --ppn gpu, but a has no GPU\n"
                  "   --> a  (hosts.txt:1)\n"
                  "    |\n"
                  "    = help: --ppn with a number, or --ppn cpu\n" },
                { { "a:1", "1", G1(), NULL, "a:0" },
                  "error[HN301]: no slot is left\n"
                  "    |\n"
                  "    | 1 × slots=1     hosts.txt:1\n"
                  "    |\n"
                  "    = help: take fewer slots out with --include and --exclude, or add a "
                  "host\n" },
                { { "a:2\nb:2\nc:2\nd:2", NULL, G1(.ppn = 3), NULL, NULL },
                  "error[HN302]: --ppn 3, but these 4 nodes have 2 slots each\n"
                  "   --> a,b,c,d  (hosts.txt:1-4)\n"
                  "    |\n"
                  "    = help: --ppn 2, or --oversubscribe\n" },
                { { "a:4", NULL, { .gpus_per_rank = 2, .ppn = 3 }, NULL, NULL },
                  "error[HN302]: --ppn 3, but a has room for 2 ranks (--gpus-per-rank 2)\n"
                  "   --> a  (hosts.txt:1)\n"
                  "    |\n"
                  "    = help: --ppn 2, or --oversubscribe\n" },
                { { "a:2\nb:1", NULL, { .gpus_per_rank = 3 }, NULL, NULL },
                  "error[HN308]: a rank needs 3 GPUs; no node has more than 2 slots\n"
                  "    |\n"
                  "    | 1 × slots=2     hosts.txt:1\n"
                  "    | 1 × slots=1     hosts.txt:2\n"
                  "    |\n"
                  "    = help: --gpus-per-rank 2, or --oversubscribe\n" },
                { { "a:2 spare\nb spare", NULL, G1(), NULL, NULL },
                  "error[HN307]: all 2 hosts are spare\n"
                  "    = help: a spare host has no ranks until a node is lost: remove `spare` from "
                  "a line, or add a host\n" },
                { { "a:2 spare", NULL, G1(.np = 2), NULL, NULL },
                  "error[HN307]: the only host is spare\n"
                  "    = help: a spare host has no ranks until a node is lost: remove `spare` from "
                  "a line, or add a host\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(made_finish) struct made m = make(&cases[i].l);
                CLEANUP(free_textp) char *got = diags_text(&m.diags, false);

                assert_string_equal(got, cases[i].shown);
                assert_int_equal(m.r, -EINVAL);
                assert_int_equal(m.diags.v[0].exit, 69);
                assert_null(m.plan.nodes);
        }
}

TEST(all_faults_are_told_at_once)
{
        static const struct launch l = { "a:8\nb gpus=9\nc:8", "7 2 6", G1(), NULL, NULL };
        CLEANUP(made_finish) struct made m = make(&l);

        assert_int_equal(m.r, -EINVAL);
        assert_int_equal(diags_errors(&m.diags), 3);
}

TEST(left_over_devices_are_a_warning)
{
        static const struct launch l = { "a\nb", "5 4", { .gpus_per_rank = 2 }, NULL, NULL };
        CLEANUP(made_finish) struct made m = make(&l);
        CLEANUP(free_textp) char *got = diags_text(&m.diags, false);

        assert_int_equal(m.r, 0);
        assert_int_equal(m.plan.world_size, 4);
        assert_string_equal(got,
                            "warning[HN305]: a has 1 GPU that no rank uses\n"
                            "   --> a  (hosts.txt:1)\n"
                            "    |\n"
                            "    = note: --gpus-per-rank 2 does not divide the number of GPUs\n");
}

TEST(ranks_of_a_lost_node_move_to_a_spare_one)
{
        struct made m = make(&(struct launch){ .hosts = "a slots=2\nb slots=2\nc slots=1 spare\n"
                                                        "d slots=4 spare\n" });

        assert_int_equal(m.plan.world_size, 4);
        assert_int_equal(m.plan.nodes[3].n_ranks, 0);
        assert_false(plan_move(&m.plan, 1, 2)); /* too small */
        assert_false(plan_move(&m.plan, 1, 0)); /* has ranks */
        assert_true(plan_move(&m.plan, 1, 3));
        assert_int_equal(m.plan.ranks[2].node, 3);
        assert_int_equal(m.plan.ranks[3].node, 3);
        assert_int_equal(m.plan.ranks[3].local_rank, 1);
        assert_int_equal(m.plan.nodes[3].node_rank, 1);
        assert_int_equal(m.plan.nodes[3].host, 3);
        assert_int_equal(m.plan.nodes[1].n_ranks, 0);
        assert_false(plan_move(&m.plan, 0, 3)); /* taken */
        made_finish(&m);
}

TEST(without_a_node_the_other_ranks_close_up)
{
        static const struct {
                struct launch l;
                size_t gone[2];
                const char *want;
        } table[] = {
                { { "a:2\nb:2\nc:2", NULL, G0(), NULL, NULL }, { 0, 0 }, "- / 0 1 / 2 3" },
                { { "a:2\nb:2\nc:2", NULL, G0(), NULL, NULL }, { 1, 1 }, "0 1 / - / 2 3" },
                { { "a:2\nb:2\nc:2", NULL, G0(), NULL, NULL }, { 2, 1 }, "0 1 / - / -" },
                { { "a:1\nb:3\nc:2", NULL, G0(.map = PLAN_MAP_NODE), NULL, NULL },
                  { 0, 0 },
                  "- / 0 2 4 / 1 3" },
                { { "a\nb\nc", "2 1 3", G1(), NULL, NULL }, { 1, 1 }, "0:0 1:1 / - / 2:0 3:1 4:2" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                CLEANUP(made_finish) struct made m = make(&table[i].l);
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(m.r, 0);
                plan_leave_out(&m.plan, table[i].gone[0]);
                if (table[i].gone[1] != table[i].gone[0])
                        plan_leave_out(&m.plan, table[i].gone[1]);
                assert_sound(&m.plan);
                got = described(&m.plan);
                assert_string_equal(got, table[i].want);
        }
}

TEST(programs_share_the_ranks_in_order)
{
        static const struct {
                int counts[3];
                bool fits;
                const char *want; /* program of each of six ranks */
        } table[] = { { { 1, 2, 3 }, true, "011222" },
                      { { 0, 1, 1 }, true, "000012" },
                      { { 2, 3, 0 }, true, "001112" },
                      { { 0, 3, 3 }, false, NULL },
                      { { 4, 0, 5 }, false, NULL } };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                CLEANUP(made_finish)
                struct made m = make(&(struct launch){ "a:4\nb:2", NULL, G0(), NULL, NULL });
                char got[7] = "";

                assert_int_equal(plan_share(&m.plan, table[i].counts, 3), table[i].fits);
                for (int rank = 0; table[i].fits && rank < m.plan.world_size; rank++)
                        got[rank] = (char)('0' + m.plan.ranks[rank].program);
                if (table[i].fits)
                        assert_string_equal(got, table[i].want);
        }
}

TEST(the_largest_world_has_a_million_ranks)
{
        struct launch l = { "n[1-1024]:1024", NULL, G1(), NULL, NULL };
        CLEANUP(made_finish) struct made m = make(&l);

        assert_int_equal(m.r, 0);
        assert_int_equal(m.plan.world_size, PLAN_MAX_RANKS);
        made_finish(&m);
        l.hosts = "n[1-1025]:1024";
        m = make(&l);
        assert_int_equal(m.r, -EINVAL);
        assert_string_equal(m.diags.v[0].fact, "1049600 ranks, at most 1048576 can be started");
}

TEST(ten_thousand_nodes_are_assigned_round_robin)
{
        static const struct launch l = { "n[00001-10000]:8", NULL, G1(.map = PLAN_MAP_NODE), NULL,
                                         NULL };
        CLEANUP(made_finish) struct made m = make(&l);

        assert_int_equal(m.r, 0);
        assert_sound(&m.plan);
        assert_int_equal(m.plan.world_size, 80000);
        assert_int_equal(m.plan.ranks[79999].node, 9999);
        assert_int_equal(m.plan.ranks[79999].local_rank, 7);
}

TEST(per_node_gives_a_rank_the_whole_node)
{
        static const struct {
                struct launch l;
                const char *want;
        } table[] = {
                { { "a slots=2\nb slots=8\nc", "4 2 0", { .gpus_per_rank = 1 } },
                  "0:0+1+2+3 / 1:0+1 / 2" },
                { { "a slots=2\nb slots=8", NULL, { .gpus_per_rank = 1 } }, "0 / 1" },
                { { "a gpus=1,3\nb", "4 4", { .gpus_per_rank = 0 } }, "0:1+3! / 1:0+1+2+3" },
                { { "a\nb", "4 4", { .gpus_per_rank = 1 }, .exclude = "a:1,3" },
                  "0:0+2! / 1:0+1+2+3" },
                { { "a\nb\nc", "1 1 1", { .np = 2, .gpus_per_rank = 1 } }, "0:0 / 1:0 / -" },
                { { "a slots=8\nb", "2 2", { .map = PLAN_MAP_NODE, .oversubscribe = true } },
                  "0:0+1 / 1:0+1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct launch l = table[i].l;
                CLEANUP(made_finish) struct made m;
                CLEANUP(free_textp) char *got = NULL;

                l.o.per_node = true;
                m = make(&l);
                got = m.r == 0 ? described(&m.plan) : xstrdup(m.diags.n ? m.diags.v[0].fact : "?");
                assert_string_equal(got, table[i].want);
                assert_int_equal(m.plan.nodes[0].slots, 1);
        }
}

TEST(per_node_has_no_more_ranks_than_nodes)
{
        struct launch l = { "a slots=8", "8", { .np = 2, .gpus_per_rank = 1, .per_node = true } };
        CLEANUP(made_finish) struct made m = make(&l);

        assert_int_equal(m.r, -EINVAL);
        assert_int_equal(m.diags.v[0].id, 219);
        assert_string_equal(m.diags.v[0].fact, "-n 2 with --per-node: there is 1 node");
}

TEST(a_host_has_the_ranks_of_the_place_where_it_stands)
{
        struct launch l = { "a\nb\nc\nd\ne", NULL, { .ppn = 2, .gpus_per_rank = 0 } };
        CLEANUP(made_finish) struct made m = make(&l);
        struct host *h = m.hosts.v;
        CLEANUP(free_textp) char *got = NULL;

        plan_finish(&m.plan);
        h[0].spare = h[2].spare = h[4].spare = true;
        h[4].place = h[3].place = 1; /* e stood in for a, and d for e; b keeps its place */
        assert_int_equal(plan_build(&m.plan, &m.hosts, NULL, &l.o, &m.diags), 0);
        got = described(&m.plan);
        assert_string_equal(got, "- / 2 3 / - / 0 1 / -");
        assert_int_equal(m.plan.nodes[3].node_rank, 0);
        assert_int_equal(m.plan.nodes[1].node_rank, 1);
}

static void expect_order(const struct hosts *h, const char *want)
{
        size_t *order = plan_order_hosts(h);
        char got[16] = "";

        for (size_t i = 0; i < h->n; i++)
                got[i] = *h->v[order[i]].name;
        assert_string_equal(got, want);
        free(order);
}

TEST(hosts_stand_in_their_turns)
{
        struct hosts h = HOSTS_INIT, part;

        for (size_t i = 0; i < 4; i++) {
                static const size_t turns[] = { 9, 2, 7, 3 };
                struct host *host = hosts_add(&h);

                host->name = strdup((char[2]){ (char)('a' + i) });
                host_site_of(host)->turn = turns[i];
        }
        expect_order(&h, "bdca");
        part = (struct hosts){ .v = h.v + 2, .n = 2 };
        expect_order(&part, "dc");
        h.v[1].spare = true; /* c is in the place of b */
        h.v[2].place = 2;
        expect_order(&h, "bcda");
        h.v[3].site->turn = 0;
        h.v[2].place = 0;
        expect_order(&h, "abcd");
        hosts_finish(&h);
}

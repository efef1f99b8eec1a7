/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bind/binding.h"
#include "base/buf.h"
#include "base/memory.h"
#include "lib/unit.h"

enum { MAX_TEST_RANKS = 16 };

/* A machine in one line: the processors of each node, separated by blanks. */
struct machine {
        const char *nodes;
        uint32_t stride;  /* processor p is the sibling of p % stride; 0 = no siblings */
        uint32_t socket;  /* nodes of a socket; 0 = one */
        const char *only; /* allowed; NULL = all */
};

static const struct machine dgx = { "0-55,112-167 56-111,168-223", 112, 0, NULL };
static const struct machine gb200 = { "0-71 72-143", 0, 0, NULL };
static const struct machine nps4 = { "0-15 16-31 32-47 48-63 64-79 80-95 96-111 112-127", 0, 4,
                                     NULL };
static const struct machine small = { "0-3", 2, 0, NULL };

static void build_machine(struct cpu_topology *t, const struct machine *m)
{
        CLEANUP(free_textp) char *copy = xstrdup(m->nodes);
        char *rest = copy, *word;
        uint32_t first[64], number = 0;

        *t = (struct cpu_topology){ .core = xcalloc(CPU_MASK_BITS, sizeof(uint16_t)),
                                    .socket = xcalloc(CPU_MASK_BITS, sizeof(uint16_t)) };
        if (m->only)
                assert_int_equal(cpu_mask_parse(&t->allowed, m->only, strlen(m->only)), 0);
        else
                memset(&t->allowed, 0xff, sizeof(t->allowed));
        while ((word = strsep(&rest, " "))) {
                struct topology_node node = { .id = (int32_t)number };

                assert_int_equal(cpu_mask_parse(&node.cpus, word, strlen(word)), 0);
                cpu_mask_and(&node.cpus, &t->allowed);
                first[number] = cpu_mask_next(&node.cpus, 0);
                for (uint32_t cpu = 0; cpu < 1024; cpu++) {
                        if (!cpu_mask_has(&node.cpus, cpu))
                                continue;
                        t->core[cpu] = (uint16_t)(m->stride ? cpu % m->stride : cpu);
                        t->socket[cpu] =
                                (uint16_t)first[m->socket ? number - number % m->socket : number];
                }
                t->nodes = xrealloc(t->nodes, t->n_nodes + 1, sizeof(*t->nodes));
                t->nodes[t->n_nodes++] = node;
                number++;
        }
        if (m->only)
                return;
        memset(&t->allowed, 0, sizeof(t->allowed));
        for (size_t i = 0; i < t->n_nodes; i++)
                cpu_mask_or(&t->allowed, &t->nodes[i].cpus);
}

/* @gpus: a letter for each rank, the node of the GPU, - = none, ? = not known. Writes "CPUS@NODE"
 * of each rank. */
static char *bind_machine(const struct machine *m, const char *gpus, uint32_t threads,
                          const char *policy, struct binding *out)
{
        struct binding_rank ranks[MAX_TEST_RANKS] = { 0 };
        int32_t nodes[MAX_TEST_RANKS];
        struct binding all[MAX_TEST_RANKS];
        struct cpu_mask taken = { { 0 } };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct bind_policy p;
        struct cpu_topology t;
        struct error err;
        uint32_t n = (uint32_t)strlen(gpus);

        assert_true(n <= MAX_TEST_RANKS);
        build_machine(&t, m);
        assert_int_equal(bind_policy_parse(&p, policy, &err), 0);
        for (uint32_t i = 0; i < n; i++) {
                nodes[i] = gpus[i] == '?' ? NUMA_UNKNOWN : gpus[i] - '0';
                ranks[i] = (struct binding_rank){ &nodes[i], gpus[i] != '-', threads };
        }
        binding_make(all, ranks, n, &t, &p, &taken);
        for (uint32_t i = 0; i < n; i++) {
                CLEANUP(free_textp) char *list = cpu_mask_format(&all[i].cpus);

                buf_printf(&b, "%s%s", i ? " " : "", *list ? list : "-");
                if (all[i].node != NUMA_UNKNOWN)
                        buf_printf(&b, "@%d", (int)all[i].node);
                if (out)
                        out[i] = all[i];
        }
        bind_policy_finish(&p);
        cpu_topology_finish(&t);
        return xstrndup((const char *)buf_data(&b), buf_len(&b));
}

struct binding_row {
        const struct machine *machine;
        const char *gpus;
        uint32_t threads;
        const char *policy, *want;
};

static void expect_bindings(const struct binding_row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                CLEANUP(free_textp)
                char *got = bind_machine(rows[i].machine, rows[i].gpus, rows[i].threads,
                                         rows[i].policy, NULL);

                assert_string_equal(got, rows[i].want);
        }
}

#define LOW  "0-55,112-167@0"
#define HIGH "56-111,168-223@1"

TEST(auto_binds_to_the_node_of_the_gpu)
{
        static const struct machine half = { "0-55,112-167 56-111,168-223", 112, 0, "0-9,112-121" };
        static const struct binding_row rows[] = {
                { &dgx, "0011", 0, "auto", LOW " " LOW " " HIGH " " HIGH },
                { &dgx, "0011", 56, "auto", LOW " " LOW " " HIGH " " HIGH },
                /* 112 processors are 56 cores. */
                { &dgx, "01", 57, "auto", "- -" },
                { &dgx, "--", 0, "auto", "- -" },
                { &dgx, "0-?", 0, "auto", LOW " - -" },
                { &gb200, "0011", 0, "auto", "0-71@0 0-71@0 72-143@1 72-143@1" },
                { &small, "00", 0, "auto", "- -" },
                /* A cpuset of one node: there is no choice, and the other one has nothing. */
                { &half, "01", 0, "auto", "- -" },
                { &dgx, "0011", 0, "none", "- - - -" },
        };

        expect_bindings(rows, ARRAY_SIZE(rows));
}

TEST(nodes_and_sockets_are_divided_between_ranks_without_gpus)
{
        static const struct binding_row rows[] = {
                { &dgx, "----", 0, "numa", LOW " " LOW " " HIGH " " HIGH },
                { &dgx, "-", 0, "numa", LOW },
                { &dgx, "1?", 0, "numa", HIGH " -" },
                { &nps4, "--", 0, "socket", "0-63 64-127" },
                { &nps4, "06", 0, "socket", "0-63 64-127" },
                { &nps4, "06", 0, "numa", "0-15@0 96-111@6" },
                { &nps4, "--------", 0, "numa",
                  "0-15@0 16-31@1 32-47@2 48-63@3 64-79@4 80-95@5 96-111@6 112-127@7" },
                { &small, "--", 0, "numa", "0-3 0-3" },
                { &small, "--", 3, "numa", "- -" },
        };

        expect_bindings(rows, ARRAY_SIZE(rows));
}

TEST(whole_cores_are_given_once)
{
        static const struct machine three = { "0-2", 0, 0, NULL };
        static const struct binding_row rows[] = {
                { &dgx, "00-1", 0, "core:2",
                  "0-1,112-113@0 2-3,114-115@0 56-57,168-169@1 58-59,170-171@1" },
                { &dgx, "01", 0, "core", "0,112@0 56,168@1" },
                /* As many as threads. */
                { &dgx, "01", 3, "core:2", "0-2,112-114@0 56-58,168-170@1" },
                /* The own node is used up: cores of the other. */
                { &gb200, "000", 0, "core:36", "0-35@0 36-71@0 72-107@1" },
                { &gb200, "00000", 0, "core:36", "0-35@0 36-71@0 72-107@1 108-143@1 -" },
                { &three, "--", 0, "core:2", "0-1 -" },
        };

        expect_bindings(rows, ARRAY_SIZE(rows));
}

TEST(exclusive_divides_the_cores_of_a_node)
{
        static const struct machine cpuset = { "0-55,112-167 56-111,168-223", 112, 0,
                                               "10-12,122-124,60-61" };
        static const struct binding_row rows[] = {
                { &dgx, "0011", 0, "exclusive",
                  "0-27,112-139@0 28-55,140-167@0 56-83,168-195@1 84-111,196-223@1" },
                { &dgx, "001", 28, "exclusive", "0-27,112-139@0 28-55,140-167@0 " HIGH },
                { &dgx, "001", 29, "exclusive", "- - " HIGH },
                { &gb200, "--", 0, "exclusive", "0-71@0 72-143@1" },
                /* The node of one is not known: the machine is divided. */
                { &gb200, "0?", 0, "exclusive", "0-71@0 72-143@1" },
                { &small, "--", 0, "exclusive", "0,2 1,3" },
                { &small, "---", 0, "exclusive", "- - -" },
                { &cpuset, "00", 0, "exclusive", "10,122@0 11-12,123-124@0" },
        };

        expect_bindings(rows, ARRAY_SIZE(rows));
}

TEST(a_list_is_what_the_user_says)
{
        static const struct binding_row rows[] = {
                { &dgx, "00-", 9, "list:0-3;4-7", "0-3@0 4-7@0 0-3@0" },
                { &dgx, "--", 0, "list:50-60;300", "50-60 -" },
        };

        expect_bindings(rows, ARRAY_SIZE(rows));
}

TEST(threads_are_counted_from_the_mask)
{
        struct binding all[MAX_TEST_RANKS];

        free(bind_machine(&dgx, "00001111", 0, "auto", all));
        assert_int_equal(all[0].threads, 28);
        assert_null(all[0].why);
        free(bind_machine(&dgx, "0", 0, "auto", all));
        assert_int_equal(all[0].threads, 112);
        free(bind_machine(&dgx, "00001111", 0, "exclusive", all));
        assert_int_equal(all[7].threads, 28);
        free(bind_machine(&dgx, "00", 57, "auto", all));
        assert_string_equal(all[1].why, "there are fewer cores than threads of OMP_NUM_THREADS");
        free(bind_machine(&dgx, "-", 57, "auto", all));
        assert_null(all[0].why);
        free(bind_machine(&dgx, "?", 0, "numa", all));
        assert_string_equal(all[0].why, "the NUMA node of a GPU is not known");
}

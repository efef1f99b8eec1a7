/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/place_check.h"

#include "lib/unit.h"

static struct gpu_holders h;

static void add_gpu(int i, uint8_t cluster, uint32_t clique, uint32_t state, uint32_t status)
{
        h.fabric[i] = (struct gpu_fabric){ .clique = clique, .state = state, .status = status };
        memset(h.fabric[i].cluster, cluster, sizeof(h.fabric[i].cluster));
}

/* Compares the value or the problem of the only fact. */
static void expect_domain(const char *expected)
{
        CLEANUP(checked_finish) struct checked m = { 0 };

        place_check_domain(&m, &h);
        assert_int_equal(m.n_facts, 1);
        assert_string_equal(m.facts[0].name, "gpu.domain");
        assert_string_equal(*m.facts[0].problem ? m.facts[0].problem : m.facts[0].value, expected);
}

TEST(nvlink_domain_is_cluster_and_clique)
{
        h = (struct gpu_holders){ .mark = GPU_RECORD_MARK };
        for (int i = 0; i < GPU_RECORD_GPUS; i++)
                add_gpu(i, 0, 0, GPU_RECORD_UNKNOWN, 0);
        expect_domain("none");
        /* A machine of eight GPUs with switches of its own has no UUID. */
        add_gpu(0, 0, 0, GPU_FABRIC_COMPLETED, 0);
        expect_domain("none");
        add_gpu(0, 0xa5, 3, GPU_FABRIC_IN_PROGRESS, 0);
        expect_domain("none");
        add_gpu(0, 0xa5, 3, GPU_FABRIC_COMPLETED, 7);
        expect_domain("none");
        add_gpu(0, 0xa5, 3, GPU_FABRIC_COMPLETED, 0);
        expect_domain("a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5.3");
        add_gpu(1, 0xa5, 3, GPU_FABRIC_COMPLETED, 0);
        expect_domain("a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5.3");
        add_gpu(1, 0xa5, 4, GPU_FABRIC_COMPLETED, 0);
        expect_domain("its GPUs are in several NVLink domains");
        add_gpu(1, 0xa6, 3, GPU_FABRIC_COMPLETED, 0);
        expect_domain("its GPUs are in several NVLink domains");
}

static void expect_path(const char *addr, const char *pattern, const char *expected)
{
        CLEANUP(checked_finish) struct checked m = { 0 };

        place_check_switches(&m, addr, pattern);
        assert_int_equal(m.n_facts, 1);
        assert_string_equal(m.facts[0].name, "switch.path");
        assert_string_equal(m.facts[0].value, expected);
}

TEST(switches_are_those_of_slurm)
{
        expect_path(NULL, NULL, "none");
        expect_path("node007", NULL, "none");
        expect_path("node007", "node", "none");
        expect_path("core.leaf1.node007", "switch.switch.node", "core/leaf1");
        expect_path("core.leaf1.node007.site.org", "switch.switch.node", "core/leaf1");
        expect_path("b1.node007", "block.node", "b1");
        expect_path("core", "switch.switch.node", "core");
        expect_path("", "switch.node", "none");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "head/check/check_judge.h"

#include <stdio.h>

#include "base/memory.h"
#include "head/check/check_print.h"
#include "lib/unit.h"

enum { NODES_MAX = 512 };

static struct check_node nodes[NODES_MAX];
static struct checked facts[NODES_MAX];
static struct hosts hosts;
static struct check_report r;

/* A fact of a healthy node. */
static const struct {
        const char *name, *value;
} healthy[] = {
        { "gpu.count", "8" },
        { "gpu.model", "NVIDIA H100" },
        { "gpu.driver", "575.57" },
        { "gpu.ecc", "0" },
        { "gpu.remap", "none" },
        { "gpu.xid", "none" },
        { "gpu.fabric", "ready" },
        { "gpu.imex", "channel0" },
        { "gpu.imex.daemon", "running" },
        { "gpu.processes", "0" },
        { "cpu.count", "64" },
        { "cpu.quota", "none" },
        { "memory.quota", "none" },
        { "limit.files", "1048576" },
        { "limit.processes", "unlimited" },
        { "limit.memlock", "unlimited" },
        { "memory", "1000000000000" },
        { "arch", "aarch64" },
        { "shm.size", "500000000000" },
        { "shm.free", "500000000000" },
        { "tmp.free", "90000000000" },
        { "kernel", "6.1.0" },
        { "hugepages", "0" },
        { "thp", "madvise" },
        { "clock", "+0.002" },
        { "ib.ports", "8 of 8 active, 400 Gb/sec (4X NDR)" },
        { "ib.errors", "3 (symbol_error of mlx5_0/1)" },
        { "leftovers", "none" },
        { "workdir", "there" },
        { "program", "4096 bytes, 0123456789ab" },
        { "script", "77 bytes, 0123456789ab" },
        { "python", "3.11.2" },
        { "torch", "2.5.1+cu124" },
        { "cuda", "12.4" },
        { "nccl", "2.30.7" },
        { "nccl.plugin", "libnccl-net-ofi.so, 9 bytes, 0123456789ab" },
        { "hostname", "a network address" },
        { "name.peers", "2 names" },
        { "run", "exit 0" },
};

/* Makes @n healthy nodes gpu001 ... with 8 slots. */
static void make_nodes(size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct host *h = hosts_add(&hosts);

                h->name = xasprintf("gpu%03zu", i + 1);
                for (size_t k = 0; k < ARRAY_SIZE(healthy); k++)
                        checked_add(&facts[i], healthy[k].name, healthy[k].value, "");
        }
        for (size_t i = 0; i < n; i++)
                nodes[i] = (struct check_node){
                        .host = hosts.v[i].name, .ranks = 8, .gpus_wanted = 8, .facts = &facts[i]
                };
}

static int drop_nodes(void **state UNUSED)
{
        check_report_finish(&r);
        for (size_t i = 0; i < hosts.n; i++)
                checked_finish(&facts[i]);
        hosts_finish(&hosts);
        return 0;
}

static struct check_fact *fact_of(size_t node, const char *name)
{
        for (uint32_t i = 0; i < facts[node].n_facts; i++)
                if (!strcmp(facts[node].facts[i].name, name))
                        return &facts[node].facts[i];
        fail_msg("no fact %s", name);
        return NULL;
}

static void set_fact(size_t node, const char *name, const char *value)
{
        snprintf(fact_of(node, name)->value, CHECK_VALUE, "%s", value);
}

static const struct check_line *line_of(const char *name)
{
        for (size_t i = 0; i < r.n; i++)
                if (!strcmp(r.v[i].name, name))
                        return &r.v[i];
        fail_msg("no check %s", name);
        return NULL;
}

TEST_WITH(NULL, drop_nodes, healthy_nodes_pass_every_check)
{
        make_nodes(3);
        check_judge(&r, nodes, 3, true);
        for (size_t i = 0; i < r.n; i++)
                if (r.v[i].count[CHECK_PASS] != 3)
                        fail_msg("%s: %s", r.v[i].name, r.v[i].of[0].cause);
        assert_int_equal(r.n, ARRAY_SIZE(healthy) - 1); /* less "memory" and "arch", and "reach" */
        assert_int_equal(check_whole_level(&r), CHECK_PASS);
}

TEST(each_check_finds_the_broken_twin)
{
        static const struct {
                const char *name, *value;
                enum check_level level;
                const char *cause;
        } broken[] = {
                { "gpu.count", "7", CHECK_FAIL, "gpu002 has 7 GPUs, and its slots need 8" },
                { "gpu.count", "9", CHECK_WARN,
                  "gpu002 has this number of GPUs: 9, 2 others have 8" },
                { "gpu.count", "0", CHECK_FAIL, "gpu002 has 0 GPUs, and its slots need 8" },
                { "gpu.model", "NVIDIA A100", CHECK_WARN,
                  "gpu002 has this model of GPU: NVIDIA A100, 2 others have NVIDIA H100" },
                { "gpu.driver", "570.86", CHECK_WARN,
                  "gpu002 has driver 570.86, 2 others have 575.57" },
                { "gpu.driver", "none", CHECK_WARN,
                  "gpu002 has driver none, 2 others have 575.57" },
                { "gpu.ecc", "4 (4 of GPU 2)", CHECK_FAIL,
                  "gpu002 has uncorrected ECC errors: 4 (4 of GPU 2)" },
                { "gpu.remap", "failed (GPU 2)", CHECK_FAIL,
                  "gpu002 could not replace broken memory of a GPU: failed (GPU 2)" },
                { "gpu.remap", "pending (GPU 2)", CHECK_WARN,
                  "gpu002 has broken memory to replace at the next reset: pending (GPU 2)" },
                { "gpu.xid", "79 (fallen off the bus) of GPU 0000:18:00", CHECK_FAIL,
                  "gpu002 has a broken GPU, by its kernel log: Xid 79 (fallen off the bus) of GPU "
                  "0000:18:00" },
                { "gpu.fabric", "in progress (GPU 0)", CHECK_FAIL,
                  "gpu002 has an NVLink fabric that is not ready: in progress (GPU 0)" },
                { "gpu.fabric", "none", CHECK_FAIL,
                  "gpu002 has NVLink fabric: none, 2 others have ready" },
                { "gpu.imex", "none", CHECK_WARN,
                  "gpu002 has no IMEX channel for this user, and NVLink to other nodes needs one" },
                { "gpu.imex.daemon", "none", CHECK_WARN,
                  "gpu002 runs no nvidia-imex, and NVLink to other nodes needs it" },
                { "gpu.processes", "1 (pid 7 python3: 71680 MiB of GPU 0)", CHECK_WARN,
                  "gpu002 has processes on its GPUs: 1 (pid 7 python3: 71680 MiB of GPU 0)" },
                { "cpu.count", "32", CHECK_WARN,
                  "gpu002 has this number of processors: 32, 2 others have 64" },
                { "cpu.quota", "4", CHECK_WARN, "gpu002 has a quota of 4 of 64 processors" },
                { "cpu.quota", "96", CHECK_WARN,
                  "gpu002 has a quota of processors of 96, 2 others have none" },
                { "memory.quota", "16000000000", CHECK_WARN,
                  "gpu002 has a quota of 16.0 GB of 1.0 TB of memory" },
                { "limit.files", "4095", CHECK_WARN, "gpu002 allows a process 4095 open files" },
                { "limit.files", "4096", CHECK_WARN,
                  "gpu002 has a limit of open files of 4096, 2 others have 1048576" },
                { "limit.processes", "100", CHECK_WARN, "gpu002 allows the user 100 processes" },
                { "limit.memlock", "65536", CHECK_WARN,
                  "gpu002 allows only 65.5 kB of locked memory, and RDMA locks all that it "
                  "sends" },
                { "shm.size", "67108864", CHECK_FAIL,
                  "gpu002 has only 67.1 MB in /dev/shm for 8 ranks" },
                { "shm.size", "536870912", CHECK_WARN,
                  "gpu002 has a /dev/shm of 537 MB, 2 others have 500 GB" },
                { "shm.free", "1000000", CHECK_WARN, "gpu002 has only 1.0 MB free in /dev/shm" },
                { "tmp.free", "99999999", CHECK_FAIL,
                  "gpu002 has only 100.0 MB free in /tmp that the user can write" },
                { "kernel", "5.15.0", CHECK_WARN, "gpu002 has kernel 5.15.0, 2 others have 6.1.0" },
                { "hugepages", "2097152", CHECK_WARN,
                  "gpu002 has huge pages of 2.1 MB, 2 others have 0 bytes" },
                { "thp", "always", CHECK_WARN,
                  "gpu002 has transparent huge pages always, 2 others have madvise" },
                { "clock", "-2.500", CHECK_WARN,
                  "gpu002 has a clock 2.500 s behind of this machine's" },
                { "clock", "+86400.000", CHECK_WARN,
                  "gpu002 has a clock 86400.000 s ahead of this machine's" },
                { "ib.ports", "7 of 8 active, 400 Gb/sec (4X NDR)", CHECK_WARN,
                  "gpu002 has InfiniBand ports: 7 of 8 active, 400 Gb/sec (4X NDR), 2 others have "
                  "8 of 8 active, 400 Gb/sec (4X NDR)" },
                { "ib.errors", "5000 (link_downed of mlx5_3/1)", CHECK_WARN,
                  "gpu002 has 5000 (link_downed of mlx5_3/1) errors, most nodes about 3" },
                { "leftovers", "2 folders", CHECK_WARN,
                  "gpu002 has leftovers of runs whose agent is gone: 2 folders" },
                { "workdir", "missing", CHECK_FAIL,
                  "gpu002 has no usable working directory: it is missing" },
                { "program", "missing", CHECK_FAIL, "gpu002 has no usable program: it is missing" },
                { "program", "4096 bytes, ba9876543210", CHECK_FAIL,
                  "gpu002 has this program: 4096 bytes, ba9876543210, 2 others have 4096 bytes, "
                  "0123456789ab" },
                { "script", "not readable", CHECK_FAIL,
                  "gpu002 has no usable script: it is not readable" },
                { "python", "3.10.4", CHECK_WARN,
                  "gpu002 has Python 3.10.4, 2 others have 3.11.2" },
                { "torch", "2.4.0+cu124", CHECK_WARN,
                  "gpu002 has torch 2.4.0+cu124, 2 others have 2.5.1+cu124" },
                { "torch", "none", CHECK_WARN, "gpu002 has torch none, 2 others have 2.5.1+cu124" },
                { "cuda", "12.1", CHECK_WARN, "gpu002 has CUDA 12.1, 2 others have 12.4" },
                { "nccl", "2.27.5", CHECK_FAIL, "gpu002 has NCCL 2.27.5, 2 others have 2.30.7" },
                { "nccl", "none", CHECK_FAIL, "gpu002 has NCCL none, 2 others have 2.30.7" },
                { "nccl.plugin", "none", CHECK_WARN,
                  "gpu002 has net plug-in of NCCL: none, 2 others have libnccl-net-ofi.so, 9 "
                  "bytes, 0123456789ab" },
                { "hostname", "127.0.1.1", CHECK_WARN,
                  "gpu002 has as the address of its own name: 127.0.1.1, 2 others have a "
                  "network address" },
                { "hostname", "none", CHECK_WARN,
                  "gpu002 does not know the address of its own name" },
                { "name.peers", "no address of gpu003, and 1 more", CHECK_WARN,
                  "gpu002 knows no address of gpu003, and 1 more" },
                { "name.peers", "a wrong address of gpu003: 127.0.1.1", CHECK_WARN,
                  "gpu002 knows a wrong address of gpu003: 127.0.1.1" },
                { "run", "exit 3: no license", CHECK_FAIL,
                  "gpu002 has ended the command of --run with: exit 3: no license" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                const struct check_line *l;

                make_nodes(3);
                set_fact(1, broken[i].name, broken[i].value);
                check_judge(&r, nodes, 3, false);
                l = line_of(broken[i].name);
                if (l->of[1].level != broken[i].level || !*l->of[1].help)
                        fail_msg("%s %s: %s", broken[i].name, broken[i].value,
                                 check_level_name(l->of[1].level));
                assert_string_equal(l->of[1].cause, broken[i].cause);
                assert_int_equal(l->count[CHECK_PASS], 2);
                assert_int_equal(check_node_level(&r, 0), CHECK_PASS);
                assert_int_equal(check_whole_level(&r), broken[i].level);
                drop_nodes(NULL);
        }
}

TEST_WITH(NULL, drop_nodes, a_rule_holds_for_nodes_that_are_all_alike)
{
        make_nodes(2);
        for (size_t i = 0; i < 2; i++) {
                set_fact(i, "limit.files", "1024");
                set_fact(i, "ib.ports", "0 of 1 active");
        }
        check_judge(&r, nodes, 2, false);
        assert_int_equal(line_of("limit.files")->count[CHECK_WARN], 2);
        assert_int_equal(line_of("ib.ports")->count[CHECK_WARN], 2);
        check_report_finish(&r);
        check_judge(&r, nodes, 2, true);
        assert_int_equal(line_of("limit.files")->count[CHECK_FAIL], 2);
        assert_int_equal(check_whole_level(&r), CHECK_FAIL);
}

TEST_WITH(NULL, drop_nodes, an_nccl_with_a_known_fault_is_told_with_its_remedy)
{
        const struct check_result *one;

        make_nodes(3);
        for (size_t i = 0; i < 3; i++)
                set_fact(i, "nccl", "2.28.9");
        set_fact(2, "arch", "x86_64");
        check_judge(&r, nodes, 3, false);
        one = &line_of("nccl")->of[0];
        assert_int_equal(one->level, CHECK_WARN);
        assert_non_null(strstr(one->cause, "gpu001 has NCCL 2.28.9, which on aarch64 can hang"));
        assert_non_null(strstr(one->help, "use NCCL 2.29.3 or newer"));
        assert_int_equal(line_of("nccl")->count[CHECK_PASS], 1);
        check_report_finish(&r);
        set_fact(0, "nccl", "2.28.7");
        check_judge(&r, nodes, 3, false);
        one = &line_of("nccl")->of[0];
        assert_int_equal(one->level, CHECK_FAIL);
        assert_string_equal(one->cause, "gpu001 has NCCL 2.28.7, 2 others have 2.28.9");
        assert_non_null(strstr(one->help, "the same NCCL"));
}

/* As Debian installs them. */
TEST_WITH(NULL, drop_nodes, all_names_may_have_loopback_addresses)
{
        make_nodes(3);
        for (size_t i = 0; i < 3; i++)
                set_fact(i, "hostname", "127.0.1.1");
        check_judge(&r, nodes, 3, false);
        assert_int_equal(line_of("hostname")->count[CHECK_PASS], 3);
}

TEST_WITH(NULL, drop_nodes, what_is_not_known_is_not_run)
{
        const struct check_line *l;

        make_nodes(3);
        set_fact(0, "kernel", "");
        snprintf(fact_of(0, "kernel")->problem, CHECK_PROBLEM, "cannot read it");
        snprintf(fact_of(1, "clock")->name, CHECK_NAME, "silence");
        nodes[2].lost = "connection refused";
        check_judge(&r, nodes, 3, false);
        l = line_of("kernel");
        assert_int_equal(l->of[0].level, CHECK_NOT_RUN);
        assert_string_equal(l->of[0].cause, "cannot read it");
        l = line_of("clock");
        assert_int_equal(l->of[1].level, CHECK_NOT_RUN);
        assert_string_equal(l->of[1].cause, "the node has not answered in time");
        assert_int_equal(l->of[2].level, CHECK_NOT_RUN);
        assert_int_equal(line_of("reach")->of[2].level, CHECK_FAIL);
        assert_int_equal(line_of("ib.errors")->of[0].level, CHECK_NOT_RUN);
        assert_int_equal(check_node_level(&r, 0), CHECK_PASS);
        assert_int_equal(check_node_level(&r, 2), CHECK_FAIL);
        check_report_finish(&r);

        for (size_t i = 0; i < 3; i++) {
                set_fact(i, "gpu.count", "0");
                set_fact(i, "ib.ports", "none");
        }
        check_judge(&r, nodes, 2, false);
        assert_int_equal(line_of("gpu.count")->count[CHECK_NOT_RUN], 2);
        assert_string_equal(line_of("gpu.count")->of[0].cause, "no NVIDIA GPU");
        assert_int_equal(line_of("ib.ports")->count[CHECK_NOT_RUN], 2);
        assert_int_equal(line_of("ib.errors")->count[CHECK_NOT_RUN], 2);
}

TEST_WITH(NULL, drop_nodes, nodes_that_are_lost_have_no_vote)
{
        make_nodes(5);
        for (size_t i = 2; i < 5; i++) {
                set_fact(i, "kernel", "5.15.0");
                nodes[i].lost = "its agent was ended";
        }
        check_judge(&r, nodes, 5, false);
        assert_int_equal(line_of("kernel")->count[CHECK_PASS], 2);
        assert_int_equal(line_of("kernel")->count[CHECK_NOT_RUN], 3);
        assert_string_equal(line_of("ib.errors")->of[0].cause,
                            "fewer than three nodes have counters to compare");
}

TEST_WITH(NULL, drop_nodes, nodes_without_ranks_have_no_vote_about_files)
{
        make_nodes(6);
        for (size_t i = 2; i < 6; i++) {
                set_fact(i, "script", "66 bytes, ba9876543210");
                set_fact(i, "torch", "2.4.0+cu124");
                set_fact(i, "kernel", "5.15.0");
                nodes[i].aside = true;
        }
        check_judge(&r, nodes, 6, false);
        assert_int_equal(line_of("script")->of[0].level, CHECK_PASS);
        assert_int_equal(line_of("script")->count[CHECK_FAIL], 4);
        assert_string_equal(line_of("script")->of[2].cause,
                            "gpu003 has this script: 66 bytes, ba9876543210, 2 others have 77 "
                            "bytes, 0123456789ab");
        assert_int_equal(line_of("torch")->of[0].level, CHECK_PASS);
        assert_int_equal(line_of("kernel")->of[0].level, CHECK_WARN);
        check_report_finish(&r);
        /* With ranks nowhere nothing is compared. */
        for (size_t i = 0; i < 6; i++) {
                nodes[i].aside = true;
                set_fact(i, "torch", "none");
        }
        check_judge(&r, nodes, 6, false);
        assert_int_equal(line_of("script")->count[CHECK_PASS], 6);
        assert_int_equal(line_of("torch")->count[CHECK_NOT_RUN], 6);
}

TEST_WITH(NULL, drop_nodes, a_little_difference_between_sizes_is_none)
{
        make_nodes(3);
        set_fact(0, "shm.size", "499000000000");
        set_fact(2, "shm.size", "501000000000");
        set_fact(0, "limit.processes", "96365");
        set_fact(1, "limit.processes", "96360");
        set_fact(2, "limit.processes", "96371");
        check_judge(&r, nodes, 3, true);
        assert_int_equal(check_whole_level(&r), CHECK_PASS);
        check_report_finish(&r);
        set_fact(2, "shm.size", "600000000000");
        check_judge(&r, nodes, 3, false);
        assert_string_equal(line_of("shm.size")->of[2].cause,
                            "gpu003 has a /dev/shm of 600 GB, 2 others have 499 GB");
}

TEST_WITH(NULL, drop_nodes, programs_have_a_line_each)
{
        make_nodes(2);
        checked_add(&facts[0], "program.1", "1 bytes, 00", "");
        checked_add(&facts[1], "program.1", "missing", "");
        check_judge(&r, nodes, 2, false);
        assert_int_equal(line_of("program.1")->count[CHECK_FAIL], 1);
        assert_string_equal(line_of("program.1")->of[1].cause,
                            "gpu002 has no usable program: it is missing");
}

TEST_WITH(NULL, drop_nodes, a_file_that_most_nodes_lack_is_no_fault_of_the_others)
{
        make_nodes(3);
        set_fact(0, "program", "missing");
        set_fact(1, "program", "missing");
        set_fact(0, "workdir", "missing");
        set_fact(2, "workdir", "missing");
        check_judge(&r, nodes, 3, false);
        assert_int_equal(line_of("program")->of[2].level, CHECK_PASS);
        assert_int_equal(line_of("program")->count[CHECK_FAIL], 2);
        assert_int_equal(line_of("workdir")->of[1].level, CHECK_PASS);
        assert_int_equal(line_of("workdir")->count[CHECK_FAIL], 2);
}

/* The ailing cluster of 64 nodes. */
static void make_ailing(void)
{
        make_nodes(64);
        set_fact(43, "gpu.count", "7");
        set_fact(11, "gpu.ecc", "4 (4 of GPU 2)");
        set_fact(40, "gpu.driver", "570.86");
        set_fact(41, "gpu.driver", "570.86");
        set_fact(40, "nccl", "2.21.5");
        set_fact(41, "nccl", "2.21.5");
        set_fact(11, "gpu.remap", "pending (GPU 2)");
        set_fact(43, "clock", "-2.120");
        for (size_t i = 19; i < 22; i++)
                set_fact(i, "limit.memlock", "65536");
        for (size_t i = 0; i < 64; i++) {
                fact_of(i, "gpu.processes")->value[0] = '\0';
                snprintf(fact_of(i, "gpu.processes")->problem, CHECK_PROBLEM,
                         "the driver does not answer");
        }
        check_judge(&r, nodes, 64, false);
}

TEST_WITH(NULL, drop_nodes, the_table_folds_hosts_and_names_what_differs)
{
        static const char *const lines[] = {
                "CHECK            RESULT  NODES  VALUE\n",
                "reach            pass       64  connected\n",
                "gpu.count        fail        1  gpu044: 7, expected 8\n"
                "                 pass       63  8\n",
                "gpu.driver       warn        2  gpu[041-042]: 570.86, 62 others have 575.57\n",
                "nccl             fail        2  gpu[041-042]: 2.21.5, 62 others have 2.30.7\n"
                "                 pass       62  2.30.7\n",
                "gpu.remap        warn        1  gpu012: pending (GPU 2), expected none\n",
                "limit.memlock    warn        3  gpu[020-022]: 65.5 kB, expected unlimited\n",
                "clock            warn        1  gpu044: -2.120 s, expected at most 1 s\n",
                "ib.ports         pass       64  8 of 8 active, 400 Gb/sec (4X NDR)\n",
                "not run: gpu.processes: the driver does not answer\n",
                "help: gpu.driver: install one version of the driver on all nodes\n",
        };
        CLEANUP(free_textp) char *text = NULL, *verdict = NULL;

        make_ailing();
        text = check_print_table(&r, &hosts, 0);
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                if (!strstr(text, lines[i]))
                        fail_msg("`%s` is missing in\n%s", lines[i], text);
        verdict = check_print_verdict(&r);
        assert_string_equal(verdict, "3 checks failed on 4 of 64 nodes, 4 checks warn of 7 of 64 "
                                     "nodes");
}

TEST_WITH(NULL, drop_nodes, five_hundred_nodes_fit_one_screen)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t rows = 0;

        make_nodes(NODES_MAX);
        for (size_t i = 0; i < NODES_MAX; i++) {
                char value[32];

                snprintf(value, sizeof(value), "%zu", 90000000000 + i * 1000000);
                set_fact(i, "tmp.free", value);
                if (i % 5 == 0)
                        set_fact(i, "kernel", value);
                if (i % 7 == 0)
                        set_fact(i, "thp", "always");
        }
        check_judge(&r, nodes, NODES_MAX, false);
        text = check_print_table(&r, &hosts, 120);
        for (const char *p = text; *p; p++)
                rows += *p == '\n';
        if (rows > 50)
                fail_msg("%zu rows:\n%s", rows, text);
}

TEST_WITH(NULL, drop_nodes, the_json_has_the_promised_names)
{
        const char *const members[] = { "name", "result", "value", "expected", "cause", "help" };
        json_t *all, *node, *check;

        make_ailing();
        all = check_print_json(&r);
        assert_string_equal(json_string_value(json_object_get(all, "result")), "fail");
        assert_int_equal(json_array_size(json_object_get(all, "nodes")), 64);
        node = json_array_get(json_object_get(all, "nodes"), 43);
        assert_string_equal(json_string_value(json_object_get(node, "host")), "gpu044");
        assert_string_equal(json_string_value(json_object_get(node, "result")), "fail");
        assert_int_equal(json_array_size(json_object_get(node, "checks")), r.n);
        check = json_array_get(json_object_get(node, "checks"), 1);
        assert_int_equal(json_object_size(check), ARRAY_SIZE(members));
        for (size_t i = 0; i < ARRAY_SIZE(members); i++)
                assert_true(json_is_string(json_object_get(check, members[i])));
        assert_string_equal(json_string_value(json_object_get(check, "name")), "gpu.count");
        assert_string_equal(json_string_value(json_object_get(check, "value")), "7");
        assert_string_equal(json_string_value(json_object_get(check, "expected")), "8");
        json_decref(all);
}

static struct check_profile profile;
static struct diags diags;

static void judge_by(size_t n, const char *text, bool strict)
{
        check_profile_init(&profile);
        assert_true(check_profile_parse(&profile, "site.ini", text, check_exists, &diags));
        check_judge_by(&r, nodes, n, &profile, strict);
        check_profile_finish(&profile);
}

TEST_WITH(NULL, drop_nodes, a_profile_has_other_limits)
{
        make_nodes(2);
        set_fact(0, "shm.size", "536870912"); /* 64 MiB for each of 8 ranks */
        set_fact(1, "shm.size", "536870912");
        set_fact(0, "clock", "+0.040");
        judge_by(2, "[limit]\nshm_per_rank = 65M\nclock = 10ms\nfiles = 2000000\n", false);
        assert_int_equal(line_of("shm.size")->count[CHECK_FAIL], 2);
        assert_int_equal(line_of("clock")->count[CHECK_WARN], 1);
        assert_string_equal(line_of("clock")->of[0].expected, "at most 0.01 s");
        assert_int_equal(line_of("limit.files")->count[CHECK_WARN], 2);
        assert_string_equal(line_of("limit.files")->of[0].expected, "at least 2000000");
        check_report_finish(&r);
        judge_by(2, "[limit]\nshm_per_rank = 64M\n", false);
        assert_int_equal(line_of("shm.size")->count[CHECK_PASS], 2);
}

TEST(only_facts_can_be_expected)
{
        static const char *const others[] = { "reach", "net.peers", "net.bandwidth", "net.latency",
                                              "baseline" };
        bool is_fact;

        assert_true(check_exists("gpu.driver", &is_fact) && is_fact);
        assert_true(check_exists("run", &is_fact) && is_fact);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                assert_true(check_exists(others[i], &is_fact) && !is_fact);
        assert_false(check_exists("net", &is_fact));
}

TEST_WITH(NULL, drop_nodes, a_profile_expects_values)
{
        make_nodes(3);
        judge_by(3, "[expect]\ngpu.driver = 575.*\ngpu.count = 8\n", true);
        assert_int_equal(check_whole_level(&r), CHECK_PASS);
        check_report_finish(&r);
        judge_by(3, "[expect]\ngpu.driver = 570.86\nnccl = 2.29.3\n", false);
        assert_int_equal(line_of("gpu.driver")->count[CHECK_WARN], 3);
        assert_string_equal(line_of("gpu.driver")->of[0].cause,
                            "gpu001 has driver 575.57, the profile wants 570.86");
        assert_string_equal(line_of("gpu.driver")->of[0].expected, "570.86");
        assert_int_equal(line_of("nccl")->count[CHECK_FAIL], 3);
        check_report_finish(&r);
        for (size_t i = 0; i < 3; i++)
                set_fact(i, "gpu.driver", "none");
        judge_by(3, "[expect]\ngpu.driver = 570.86\n", false);
        assert_int_equal(line_of("gpu.driver")->count[CHECK_WARN], 3);
}

TEST_WITH(NULL, drop_nodes, a_profile_moves_levels)
{
        make_nodes(3);
        set_fact(0, "thp", "always");
        set_fact(1, "kernel", "5.15.0");
        set_fact(2, "program", "missing");
        checked_add(&facts[0], "program.1", "missing", "");
        judge_by(3, "[check]\nthp = ignore\nkernel = fail\nprogram = warn\n", false);
        assert_int_equal(line_of("thp")->of[0].level, CHECK_NOT_RUN);
        assert_string_equal(line_of("thp")->of[0].cause, "the profile ignores it");
        assert_int_equal(line_of("thp")->count[CHECK_PASS], 2);
        assert_int_equal(line_of("kernel")->of[1].level, CHECK_FAIL);
        assert_int_equal(line_of("kernel")->count[CHECK_PASS], 2);
        assert_int_equal(line_of("program")->of[2].level, CHECK_WARN);
        assert_int_equal(line_of("program.1")->of[0].level, CHECK_WARN);
        check_report_finish(&r);
        judge_by(3, "[check]\nprogram = warn\nthp = ignore\n", true);
        assert_int_equal(line_of("program")->of[2].level, CHECK_FAIL);
        assert_int_equal(line_of("thp")->count[CHECK_FAIL], 0);
}

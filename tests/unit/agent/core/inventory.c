/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/inventory.h"
#include "agent/endpoint/port.h"
#include "agent/rank/base_env.h"
#include "lib/files.h"
#include "lib/unit.h"

/* As the driver writes it. */
static void add_gpu(const char *pci, const char *name, const char *uuid, int minor, bool has_node)
{
        char path[128], text[512];

        snprintf(path, sizeof(path), "%s/gpus/%s", scratch, pci);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/gpus/%s/information", scratch, pci);
        snprintf(text, sizeof(text),
                 "Model: \t\t %s\nIRQ:   \t\t 271\nGPU UUID: \t %s\nVideo BIOS: \t "
                 "96.00.74.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nBus Location: \t "
                 "%s\nDevice Minor: \t %d\nGPU Firmware: \t 550.90\nGPU Excluded:\t No\n",
                 name, uuid, pci, minor);
        write_file(path, text);
        snprintf(path, sizeof(path), "%s/nvidia%d", scratch, minor);
        if (has_node)
                write_file(path, "");
}

static int make_node(void **state)
{
        char path[128];

        assert_int_equal(make_scratch(state), 0);
        snprintf(path, sizeof(path), "%s/gpus", scratch);
        assert_int_equal(mkdir(path, 0700), 0);
        add_gpu("0000:c9:00.0", "NVIDIA H100 80GB HBM3", "GPU-cccc", 0, true);
        add_gpu("0000:1b:00.0", "NVIDIA A100-SXM4-40GB", "GPU-aaaa", 3, true);
        add_gpu("0000:5d:00.0", "Hidden", "GPU-hidden", 2, false);
        add_gpu("0000:43:00.0", "Asleep", "GPU-????????", 1, true);
        return 0;
}

static void read_node(struct gpu_list *h)
{
        char gpus[128], nodes[128];

        snprintf(gpus, sizeof(gpus), "%s/gpus", scratch);
        snprintf(nodes, sizeof(nodes), "%s/nvidia", scratch);
        *h = (struct gpu_list){ 0 };
        inventory_read_gpus(h, gpus, nodes);
}

TEST(devices_count_in_the_order_of_the_bus)
{
        struct gpu_list h;

        read_node(&h);
        assert_int_equal(h.n, 3);
        assert_string_equal(h.v[0].name, "NVIDIA A100-SXM4-40GB");
        assert_string_equal(h.v[0].uuid, "GPU-aaaa");
        assert_string_equal(h.v[1].name, "Asleep");
        assert_string_equal(h.v[1].uuid, "");
        assert_string_equal(h.v[2].name, "NVIDIA H100 80GB HBM3");
        for (uint32_t i = 0; i < h.n; i++)
                assert_int_equal(h.v[i].index, i);
        free(h.v);
}

static void add_kfd_node(int number, const char *properties)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/kfd", scratch);
        mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/kfd/%d", scratch, number);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/kfd/%d/properties", scratch, number);
        write_file(path, properties);
}

TEST(devices_of_amd_count_in_the_order_of_hip)
{
        char path[128], nodes[128];
        struct gpu_list h = { 0 };

        add_kfd_node(0, "cpu_cores_count 96\nsimd_count 0\nlocation_id 0\n");
        add_kfd_node(10, "simd_count 440\nlocation_id 773\ndomain 2\ndrm_render_minor 129\n"
                         "gfx_target_version 90010\nunique_id 0\n");
        add_kfd_node(2, "simd_count 1216\nlocation_id 4026540800\ndomain 0\ndrm_render_minor 128\n"
                        "gfx_target_version 90402\nunique_id 16177178000000000000\n");
        add_kfd_node(3, "simd_count 1216\nlocation_id 9984\ndrm_render_minor 130\n");
        for (int minor = 128; minor < 130; minor++) {
                snprintf(path, sizeof(path), "%s/render%d", scratch, minor);
                write_file(path, "");
        }
        snprintf(path, sizeof(path), "%s/kfd", scratch);
        snprintf(nodes, sizeof(nodes), "%s/render", scratch);
        inventory_read_amd_gpus(&h, path, nodes);
        assert_int_equal(h.n, 2);                            /* the third has no device node */
        assert_string_equal(h.v[0].address, "0000:23:00.0"); /* upper bits: a partition */
        assert_string_equal(h.v[0].name, "AMD gfx942");
        assert_string_equal(h.v[0].uuid, "GPU-e080e1ae3e43a000");
        assert_string_equal(h.v[1].address, "0002:03:00.5");
        assert_string_equal(h.v[1].name, "AMD gfx90a");
        assert_string_equal(h.v[1].uuid, "");
        assert_int_equal(h.v[1].index, 1);
        free(h.v);
}

TEST(a_node_without_a_driver_has_no_devices)
{
        struct gpu_list h = { 0 };

        inventory_read_gpus(&h, "/nowhere/gpus", "/nowhere/nvidia");
        assert_int_equal(h.n, 0);
}

TEST(visible_devices_are_read_as_cuda_does)
{
        static const struct {
                const char *visible, *want;
        } cases[] = {
                { "0,1,2", "012" }, { "2,0", "20" },         { " 1 ", "1" },
                { "", "" },         { "0,7,1", "0" },        { "-1", "" },
                { "GPU-c", "2" },   { "GPU-cccc,0", "20" },  { "GPU-", "" },
                { "x,0", "" },      { "NoDevFiles", "" },    { "1gpu,0", "10" },
                { "0,0", "" },      { "1,GPU-aaaa,0", "" },  { "GPU", "" },
                { "2,,1", "2" },    { "MIG-a,MIG-b", "MM" }, { "MIG-a,MIG-a", "" },
                { "MIG-", "" },     { "GPU-a,GPU-c", "02" },
        };
        struct gpu_list all;

        read_node(&all);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct gpu_list h = { 0 };
                char got[8] = "";

                gpu_list_choose(&h, &all, cases[i].visible);
                for (uint32_t g = 0; g < h.n && g < sizeof(got) - 1; g++)
                        got[g] =
                                h.v[g].index == GPU_BY_PLACE + g ? 'M' : (char)('0' + h.v[g].index);
                if (strcmp(got, cases[i].want))
                        fail_msg("'%s' gives '%s' instead of '%s'", cases[i].visible, got,
                                 cases[i].want);
                free(h.v);
        }
        free(all.v);
}

TEST(devices_of_a_fabric_are_counted)
{
        char path[128];

        assert_int_equal(inventory_count_devices("/nowhere"), 0);
        snprintf(path, sizeof(path), "%s/gpus", scratch);
        assert_int_equal(inventory_count_devices(path), 4);
}

TEST(the_node_under_us_is_described)
{
        struct hello h;

        setenv("SSH_CONNECTION", "10.0.0.9 50000 fe80::1%eth0 22", 1);
        inventory_take(&h);
        assert_int_equal(h.version, MSG_VERSION);
        assert_int_equal(h.pid, getpid());
        assert_true(h.cores >= 1);
        assert_true(h.memory > 1 << 20);
        assert_true(h.nofile > 0);
        assert_true(h.locking.memlock > 0);
        assert_int_equal(h.locking.infiniband, inventory_count_devices("/sys/class/infiniband"));
        assert_true(strlen(h.arch) > 0);
        assert_true(strlen(h.host) > 0);
        assert_string_equal(h.ssh_addr, "fe80::1");
        for (uint32_t i = 0; i < h.n_addrs; i++) {
                assert_true(h.addrs[i].prefix <= 128);
                assert_string_not_equal(h.addrs[i].addr, "127.0.0.1");
        }
        hello_finish(&h);
        unsetenv("SSH_CONNECTION");
}

TEST(a_held_port_is_kept_and_taken_back)
{
        struct held_port a = PORT_INIT, b = PORT_INIT;
        uint32_t number;

        port_hold(&a);
        assert_true(a.fd >= 0);
        number = a.number;
        assert_true(number > 0);
        b.number = number;
        port_hold(&b);
        assert_int_equal(b.fd, -1);
        port_release(&a);
        assert_int_equal(a.number, number);
        port_hold(&a);
        assert_true(a.fd >= 0);
        assert_int_equal(a.number, number);
        port_release(&a);
        port_hold(&b); /* still locked */
        assert_int_equal(b.fd, -1);
        port_drop(&a);
        port_hold(&b);
        assert_int_equal(b.number, number);
        port_drop(&b);
}

static bool has_number(const struct reserved_ports *p, uint32_t number)
{
        for (uint32_t i = 0; i < p->n; i++)
                if (p->v[i].number == number)
                        return true;
        return false;
}

/* A released port may be bound by a rank, but no other agent gives it to its ranks. */
TEST(a_released_port_stays_locked_until_it_is_dropped)
{
        enum { PORTS = 200, ROUNDS = 50 };
        struct reserved_ports a = { 0 }, b = { 0 };
        struct sockaddr_in rank = { .sin_family = AF_INET };
        int fd;

        assert_int_equal(ports_hold(&a, PORTS), 0);
        assert_int_equal(a.n, PORTS);
        ports_release(&a);
        rank.sin_port = htons((uint16_t)a.v[7].number);
        fd = port_bind((struct sockaddr *)&rank, sizeof(rank), 0);
        assert_true(fd >= 0);
        close(fd);
        for (int i = 0; i < ROUNDS; i++) { /* some 28,000 ports, 10,000 tries */
                assert_int_equal(ports_hold(&b, PORTS), 0);
                for (uint32_t k = 0; k < b.n; k++)
                        assert_false(has_number(&a, b.v[k].number));
        }
        ports_drop(&a);
        ports_drop(&b);
        assert_int_equal(a.n, 0);
        ports_drop(&a);
}

TEST(the_login_environment_loses_its_session)
{
        const char *login[] = { "PATH=/bin", "SSH_TTY=x",
                                "PWD=/",     "PWDX=kept",
                                "_=y",       "SLURM_JOB=1",
                                "nonsense",  "=empty name",
                                "A=old",     "MY_X=1",
                                "MY_=2",     "B=gone",
                                "HN_RANK=9", "CUDA_VISIBLE_DEVICES=3",
                                NULL };
        CLEANUP(launch_order_finish) struct launch_order l = { 0 };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;

        strv_push(&l.unset, "B");
        strv_push(&l.unset, "MY_*");
        strv_push(&l.env, "A=new=value");
        strv_push(&l.env, "EMPTY=");
        strv_push(&l.env, "MY_Y=set after");
        strv_push(&l.env, "no pair");
        base_env_build(&env, (char **)login, &l);
        assert_int_equal(env.n, 6);
        assert_string_equal(strv_env_get(&env, "PATH"), "/bin");
        assert_string_equal(strv_env_get(&env, "CUDA_VISIBLE_DEVICES"), "3");
        assert_string_equal(strv_env_get(&env, "PWDX"), "kept");
        assert_string_equal(strv_env_get(&env, "A"), "new=value");
        assert_string_equal(strv_env_get(&env, "EMPTY"), "");
        assert_string_equal(strv_env_get(&env, "MY_Y"), "set after");
        strv_finish(&env);
        strv_push(&l.unset, "*"); /* --export NONE */
        base_env_build(&env, (char **)login, &l);
        assert_int_equal(env.n, 3);
}

UNIT_MAIN(make_node, remove_scratch)

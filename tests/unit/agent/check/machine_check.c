/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/machine_check.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/check/gpu_check.h"
#include "agent/check/leftovers.h"
#include "agent/check/path_check.h"
#include "base/memory.h"
#include "lib/files.h"
#include "lib/unit.h"

/* Writes a file below the scratch, and makes its folders. */
static void put(const char *path, const char *text)
{
        CLEANUP(free_textp) char *file = xasprintf("%s%s", scratch, path);

        make_folders_of(file);
        write_file(file, text);
}

static const struct check_fact *get(const struct checked *m, const char *name)
{
        for (uint32_t i = 0; i < m->n_facts; i++)
                if (!strcmp(m->facts[i].name, name))
                        return &m->facts[i];
        fail_msg("no fact %s", name);
        return NULL;
}

static void expect(const char *name, const char *value)
{
        CLEANUP(checked_finish) struct checked m = { 0 };

        machine_check(&m, scratch);
        assert_string_equal(get(&m, name)->value, value);
        assert_string_equal(get(&m, name)->problem, "");
}

enum { NOBODY = 65534 };

/* As a user without rights to the folder: root may write anywhere. */
static _Noreturn void expect_no_room(void)
{
        struct checked m = { 0 };

        if (getuid() == 0 && setuid(NOBODY) < 0)
                _exit(2);
        machine_check(&m, scratch);
        _exit(strcmp(get(&m, "tmp.free")->value, "0") != 0);
}

TEST_WITH(make_scratch, remove_scratch, a_folder_that_the_user_cannot_write_has_no_room)
{
        CLEANUP(free_textp) char *folder = NULL;
        int status;
        pid_t pid;

        put("/tmp/x", "");
        folder = xasprintf("%s/tmp", scratch);
        assert_int_equal(chmod(scratch, 0755), 0);
        assert_int_equal(chmod(folder, 0555), 0);
        pid = fork();
        if (!pid)
                expect_no_room();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(chmod(folder, 0755), 0);
}

TEST_WITH(make_scratch, remove_scratch, quotas_of_version_2_are_the_least_up_to_the_root)
{
        put("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
        expect("cpu.quota", "none");
        put("/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
        put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
        expect("cpu.quota", "none");
        expect("memory.quota", "none");
        put("/sys/fs/cgroup/slurm/job_7/cpu.max", "250000 100000\n");
        put("/sys/fs/cgroup/slurm/cpu.max", "800000 100000\n");
        put("/sys/fs/cgroup/slurm/memory.max", "1073741824\n");
        put("/sys/fs/cgroup/slurm/job_7/pids.max", "512\n");
        expect("cpu.quota", "2.50");
        expect("memory.quota", "1073741824");
        expect("limit.processes", "512");
}

TEST_WITH(make_scratch, remove_scratch, quotas_of_version_1_are_found_by_their_controllers)
{
        put("/proc/self/cgroup",
            "5:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n");
        put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
        put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
        put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        expect("cpu.quota", "4");
        expect("memory.quota", "none");
        put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
        put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
        expect("cpu.quota", "none");
        expect("memory.quota", "2147483648");
}

TEST_WITH(make_scratch, remove_scratch, pages_and_kernel_are_read)
{
        put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        put("/proc/meminfo", "MemTotal: 8 kB\nHugePages_Total:      16\nHugepagesize:  2048 kB\n");
        expect("thp", "madvise");
        expect("hugepages", "33554432");
}

TEST_WITH(make_scratch, remove_scratch, what_cannot_be_read_is_a_problem)
{
        static const char *const names[] = { "thp",      "hugepages", "cpu.quota", "memory.quota",
                                             "shm.size", "shm.free",  "tmp.free" };
        CLEANUP(checked_finish) struct checked m = { 0 };

        machine_check(&m, scratch);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (*get(&m, names[i])->value || !*get(&m, names[i])->problem)
                        fail_msg("%s: %s", names[i], get(&m, names[i])->value);
}

TEST_WITH(make_scratch, remove_scratch, infiniband_ports_are_counted_with_their_errors)
{
        expect("ib.ports", "none");
        put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
        put("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
        put("/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "0\n");
        expect("ib.ports", "1 of 1 active, 400 Gb/sec (4X NDR)");
        expect("ib.errors", "0");
        put("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
        put("/sys/class/infiniband/mlx5_1/ports/1/rate", "10 Gb/sec (4X SDR)\n");
        put("/sys/class/infiniband/mlx5_1/ports/1/counters/symbol_error", "5\n");
        put("/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed", "12\n");
        expect("ib.ports", "1 of 2 active, 400 Gb/sec (4X NDR)");
        expect("ib.errors", "17 (link_downed of mlx5_1/1)");
        put("/sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
        expect("ib.ports", "2 of 2 active, different rates");
}

TEST_WITH(make_scratch, remove_scratch, the_version_of_the_driver_is_read_from_either_file)
{
        CLEANUP(checked_finish) struct checked m = { 0 };

        gpu_check(&m, scratch);
        assert_string_equal(get(&m, "gpu.driver")->value, "none");
        checked_finish(&m);
        put("/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n");
        gpu_check(&m, scratch);
        assert_string_equal(get(&m, "gpu.driver")->value, "570.86.15");
        checked_finish(&m);
        put("/sys/module/nvidia/version", "575.57.08\n");
        gpu_check(&m, scratch);
        assert_string_equal(get(&m, "gpu.driver")->value, "575.57.08");
}

TEST(processes_and_errors_of_gpus_are_told_with_the_largest)
{
        struct gpu_holders h = { .mark = GPU_RECORD_MARK };
        CLEANUP(checked_finish) struct checked m = { 0 };

        memset(h.ecc, 0xff, sizeof(h.ecc));
        gpu_check_holders(&m, &h, false, scratch);
        assert_string_equal(get(&m, "gpu.processes")->value, "0");
        assert_string_equal(get(&m, "gpu.ecc")->value, "");
        assert_string_equal(get(&m, "gpu.ecc")->problem, "the driver counts no ECC errors");
        checked_finish(&m);
        h.n = 2;
        h.v[0] = (struct gpu_holder){ .gpu = 0, .pid = 7, .memory_mib = GPU_RECORD_UNKNOWN };
        h.v[1] = (struct gpu_holder){ .gpu = 3, .pid = 8, .memory_mib = 71680 };
        h.ecc[0] = 0;
        gpu_check_holders(&m, &h, false, scratch);
        assert_string_equal(get(&m, "gpu.processes")->value, "2 (pid 8: 71680 MiB of GPU 3)");
        assert_string_equal(get(&m, "gpu.ecc")->value, "0");
        checked_finish(&m);
        h.ecc[2] = 4;
        gpu_check_holders(&m, &h, false, scratch);
        assert_string_equal(get(&m, "gpu.ecc")->value, "4 (4 of GPU 2)");
}

TEST_WITH(make_scratch, remove_scratch, the_health_of_gpus_is_told_by_the_worst)
{
        struct gpu_holders h = { .mark = GPU_RECORD_MARK };
        CLEANUP(checked_finish) struct checked m = { 0 };

        memset(h.fabric, 0xff, sizeof(h.fabric)); /* not known */
        memset(h.remap, GPU_HEALTH_UNKNOWN, sizeof(h.remap));
        gpu_check_holders(&m, &h, false, scratch);
        assert_string_equal(get(&m, "gpu.remap")->problem,
                            "the driver remaps no rows of these GPUs");
        assert_string_equal(get(&m, "gpu.fabric")->problem,
                            "the driver does not tell the state of the fabric");
        assert_string_equal(get(&m, "gpu.imex")->problem,
                            "the GPUs are of no NVLink domain of several nodes");
        checked_finish(&m);
        h.remap[0] = h.remap[1] = GPU_REMAP_NONE;
        h.fabric[0] = (struct gpu_fabric){ .state = GPU_FABRIC_COMPLETED };
        h.fabric[1] = (struct gpu_fabric){ { 7 }, .state = GPU_FABRIC_COMPLETED };
        gpu_check_holders(&m, &h, false, scratch);
        assert_string_equal(get(&m, "gpu.remap")->value, "none");
        assert_string_equal(get(&m, "gpu.fabric")->value, "ready");
        assert_string_equal(get(&m, "gpu.imex")->value, "none");
        checked_finish(&m);
        put("/dev/nvidia-caps-imex-channels/channel10", "");
        put("/dev/nvidia-caps-imex-channels/channel2", "");
        h.remap[1] = GPU_REMAP_PENDING;
        h.fabric[0].state = GPU_FABRIC_IN_PROGRESS;
        gpu_check_holders(&m, &h, false, scratch);
        assert_string_equal(get(&m, "gpu.remap")->value, "pending (GPU 1)");
        assert_string_equal(get(&m, "gpu.fabric")->value, "in progress (GPU 0)");
        assert_string_equal(get(&m, "gpu.imex")->value, "channel2");
        assert_string_equal(get(&m, "gpu.imex.daemon")->value, "");
}

/* Returns the fact about the daemon, lent until the next call. @named: outside of containers. */
static const struct check_fact *look_for_daemon(bool named)
{
        static struct check_fact found;
        struct gpu_holders h = { .mark = GPU_RECORD_MARK };
        struct checked m = { 0 };

        memset(h.ecc, 0xff, sizeof(h.ecc));
        memset(h.fabric, 0xff, sizeof(h.fabric));
        h.fabric[0] = (struct gpu_fabric){ { 7 }, .state = GPU_FABRIC_COMPLETED };
        gpu_check_holders(&m, &h, named, scratch);
        found = *get(&m, "gpu.imex.daemon");
        checked_finish(&m);
        return &found;
}

TEST_WITH(make_scratch, remove_scratch,
          the_imex_daemon_is_found_by_its_name_where_processes_are_seen)
{
        static const char unseen[] = "processes of root are not seen from here";

        put("/proc/4711/comm", "bash\n");
        assert_string_equal(look_for_daemon(true)->problem, unseen);
        put("/proc/1/comm", "systemd\n");
        assert_string_equal(look_for_daemon(true)->value, "none");
        assert_string_equal(look_for_daemon(false)->problem, unseen);
        put("/proc/812/comm", "nvidia-imex-ctl\n");
        assert_string_equal(look_for_daemon(true)->value, "none");
        put("/proc/813/comm", "nvidia-imex\n");
        assert_string_equal(look_for_daemon(true)->value, "running");
        assert_string_equal(look_for_daemon(true)->problem, "");
}

/* Returns the value of a path, lent until the next call. */
static const char *look(enum check_path_kind kind, char *path)
{
        static char value[CHECK_VALUE];
        struct check_path one = { .name = "x",
                                  .kind = (uint8_t)kind,
                                  .path = path,
                                  .cwd = scratch,
                                  .search = (char[]){ "nowhere:bin" } };
        struct check_order o = { .paths = &one, .n_paths = 1 };
        struct checked m = { 0 };

        path_check(&m, &o);
        memcpy(value, get(&m, "x")->value, sizeof(value));
        checked_finish(&m);
        return value;
}

TEST_WITH(make_scratch, remove_scratch, paths_are_there_with_contents_or_told)
{
        CLEANUP(free_textp) char *program = NULL;
        char first[CHECK_VALUE];

        put("/bin/a.out", "#!/bin/sh\n");
        program = xasprintf("%s/bin/a.out", scratch);
        assert_string_equal(look(CHECK_FOLDER, scratch), "there");
        assert_string_equal(look(CHECK_FOLDER, (char[]){ "bin" }), "there");
        assert_string_equal(look(CHECK_FOLDER, (char[]){ "gone" }), "missing");
        assert_string_equal(look(CHECK_FOLDER, program), "no folder");
        assert_string_equal(look(CHECK_PROGRAM, (char[]){ "./bin/a.out" }), "not executable");
        assert_string_equal(look(CHECK_PROGRAM, (char[]){ "a.out" }), "missing");
        assert_int_equal(chmod(program, 0755), 0);
        snprintf(first, sizeof(first), "%s", look(CHECK_PROGRAM, (char[]){ "./bin/a.out" }));
        assert_int_equal(strncmp(first, "10 bytes, ", 10), 0);
        assert_int_equal(strlen(first), 10 + 12);
        assert_string_equal(look(CHECK_PROGRAM, (char[]){ "a.out" }), first);
        assert_string_equal(look(CHECK_FILE, program), first);
        put("/bin/a.out", "#!/bin/ss\n");
        assert_string_not_equal(look(CHECK_PROGRAM, program), first);
        assert_string_equal(look(CHECK_FILE, (char[]){ "bin" }), "no file");
        assert_string_equal(look(CHECK_FILE, (char[]){ "gone" }), "missing");
}

TEST_WITH(make_scratch, remove_scratch, a_large_file_is_compared_at_both_ends)
{
        CLEANUP(free_textp) char *path = NULL;
        char first[CHECK_VALUE];
        FILE *f;

        path = xasprintf("%s/large", scratch);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(ftruncate(fileno(f), PATH_CHECK_WHOLE + 1000), 0);
        fflush(f);
        snprintf(first, sizeof(first), "%s", look(CHECK_FILE, path));
        assert_int_equal(strncmp(first, "67109864 bytes, ", 16), 0);
        assert_int_equal(pwrite(fileno(f), "x", 1, PATH_CHECK_WHOLE + 999), 1);
        assert_string_not_equal(look(CHECK_FILE, path), first);
        fclose(f);
}

TEST_WITH(make_scratch, remove_scratch, a_folder_without_an_agent_is_a_leftover)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        put("/hnlaunch-abcdef/known-0", "");
        put("/hnlaunch-0123/store", "");
        assert_int_equal(leftovers_count_folders(scratch), 0);
        snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/hnlaunch-abcdef/store", scratch);
        assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(leftovers_count_folders(scratch), 0);
        assert_true(leftovers_is_served(addr.sun_path));
        close(fd);
        assert_int_equal(leftovers_count_folders(scratch), 1);
        assert_false(leftovers_is_served(addr.sun_path));
}

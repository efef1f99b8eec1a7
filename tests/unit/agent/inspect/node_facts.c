/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/node_facts.h"

#include <stdio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

static struct node_facts read_path(const char *path)
{
        struct node_facts m = { 0 };

        node_facts_read_path(&m, path);
        return m;
}

TEST(a_path_has_the_type_and_the_id_of_its_file_system)
{
        struct statfs fs;

        assert_int_equal(statfs("/proc/self/stat", &fs), 0);
        assert_int_equal(read_path("/proc/self/stat").fs_type, fs.f_type);
        assert_int_equal(statfs("/", &fs), 0);
        assert_int_equal(read_path("/").fs_type, (uint64_t)fs.f_type & UINT32_MAX);
        assert_int_equal(read_path("/").fs_id, read_path("/etc/passwd").fs_id);
        assert_true(read_path("/").fs_id);
}

TEST(local_file_systems_of_two_machines_have_two_ids)
{
        const uint64_t xfs = 0x58465342, ext4 = 0xEF53, nfs = 0x6969;

        assert_true(node_facts_mix_id(xfs, 7, "boot-1") != node_facts_mix_id(xfs, 7, "boot-2"));
        assert_true(node_facts_mix_id(ext4, 7, "boot-1") != node_facts_mix_id(ext4, 7, "boot-2"));
        assert_true(node_facts_mix_id(ext4, 7, "boot-1") != node_facts_mix_id(ext4, 8, "boot-1"));
        assert_int_equal(node_facts_mix_id(xfs, 7, "boot-1"), node_facts_mix_id(xfs, 7, "boot-1"));
        assert_int_equal(node_facts_mix_id(nfs, 7, "boot-1"), 7);
        assert_int_equal(node_facts_mix_id(nfs, 7, ""), 7);
        assert_int_equal(node_facts_mix_id(xfs, 7, ""), 0);
        assert_int_equal(node_facts_mix_id(xfs, 0, "boot-1"), 0);
}

TEST(a_file_that_is_gone_counts_as_its_folder)
{
        struct node_facts root = read_path("/"), gone = read_path("/gone-since"),
                          proc = read_path("/proc/gone-since");

        assert_int_equal(gone.fs_type, root.fs_type);
        assert_int_equal(gone.fs_id, root.fs_id);
        assert_int_equal(proc.fs_type, read_path("/proc").fs_type);
}

TEST(of_a_folder_that_is_not_there_nothing_is_known)
{
        assert_int_equal(read_path("/gone-since/x").fs_type, 0);
        assert_int_equal(read_path("x").fs_type, 0);
        assert_int_equal(read_path("").fs_type, 0);
}

static void assert_xid(const char *line, unsigned number, const char *address)
{
        struct xid xid;

        if (node_facts_read_line(&xid, line, 5000000) != !!number)
                fail_msg("%s", line);
        if (!number)
                return;
        assert_int_equal(xid.number, number);
        assert_string_equal(xid.address, address);
}

TEST(the_kernel_log_tells_of_broken_gpus)
{
        /* Records of /dev/kmsg. */
        assert_xid("3,812,5678901,-;NVRM: Xid (PCI:0000:18:00): 79, pid=7, GPU has fallen off the "
                   "bus.",
                   79, "0000:18:00");
        assert_xid("4,812,5678901,c,caller=T7;NVRM: Xid (0000:3b:00): 48, DBE", 48, "0000:3b:00");
        /* Files of rsyslog, with its two formats of the time. */
        assert_xid("Nov  1 12:00:00 n1 kernel: [    5.678901] NVRM: Xid (PCI:0000:18:00): 95, x",
                   95, "0000:18:00");
        assert_xid("2026-11-01T12:00:00+00:00 n1 kernel: [12345.000001] NVRM: Xid "
                   "(PCI:0000:af:00): 94, x",
                   94, "0000:af:00");
}

TEST(other_lines_tell_nothing)
{
        /* An error of a program, an older message, another message. */
        assert_xid("3,812,5678901,-;NVRM: Xid (PCI:0000:18:00): 31, pid=7, MMU Fault", 0, NULL);
        assert_xid("3,812,4999999,-;NVRM: Xid (PCI:0000:18:00): 79, pid=7", 0, NULL);
        assert_xid("Nov  1 12:00:00 n1 kernel: [    4.999999] NVRM: Xid (PCI:0000:18:00): 79, x", 0,
                   NULL);
        assert_xid("6,812,5678901,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module", 0, NULL);
        /* A process has written it: /dev/kmsg with facility 1, a syslog without the kernel's time.
         */
        assert_xid("12,812,5678901,-;NVRM: Xid (PCI:0000:18:00): 79, pid=7", 0, NULL);
        assert_xid("Nov  1 12:00:00 n1 sh: NVRM: Xid (PCI:0000:18:00): 79, x", 0, NULL);
        assert_xid("Nov  1 12:00:00 n1 kernel: NVRM: Xid (PCI:0000:18:00): 79, x", 0, NULL);
        assert_xid("3,812,5678901,-;NVRM: Xid (PCI:", 0, NULL);
        assert_xid("", 0, NULL);
}

/* Returns the number of a process that has ended. */
static pid_t end_process(void)
{
        pid_t pid = fork();

        if (!pid)
                _exit(0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        return pid;
}

TEST(only_memory_of_ended_processes_of_the_attempt_is_held)
{
        const struct inspector_rank ended[] = { { 2, getpid() }, { 3, end_process() } };
        const uint32_t other = (uint32_t)end_process();
        struct gpu_holders h = { .n = 2, .v = { { 0, other, 7 }, { 0, (uint32_t)getpid(), 7 } } };
        struct node_facts m = { 0 };
        char want[80];

        node_facts_read_holders(&m, &h, ended, 2);
        assert_string_equal(m.held, "");
        h.v[h.n++] = (struct gpu_holder){ 1, (uint32_t)ended[1].pid, 71680 };
        node_facts_read_holders(&m, &h, ended, 2);
        snprintf(want, sizeof(want), "71680 MiB of GPU 1, of rank 3 (pid %d)", (int)ended[1].pid);
        assert_string_equal(m.held, want);
        *m.held = '\0';
        h.v[2].memory_mib = GPU_RECORD_UNKNOWN;
        node_facts_read_holders(&m, &h, ended, 2);
        snprintf(want, sizeof(want), "some memory of GPU 1, of rank 3 (pid %d)", (int)ended[1].pid);
        assert_string_equal(m.held, want);
}

TEST(ecc_errors_count_since_the_attempt_began)
{
        const struct inspect_order o = { .gpus = (uint32_t[]){ 1, 2, 100000 }, .n_gpus = 3 };
        struct gpu_record first = { .n = 3, .gpus = { { .ecc = 0 }, { .ecc = 7 }, { .ecc = 9 } } };
        struct gpu_holders now = { .ecc = { 5, 7, 3 } };
        struct node_facts m = { 0 };

        /* GPU 0 has no rank, that of GPU 2 was reset. */
        node_facts_compare_ecc(&m, &o, &first, &now);
        assert_string_equal(m.gpu, "");
        now.ecc[1] = GPU_RECORD_UNKNOWN;
        node_facts_compare_ecc(&m, &o, &first, &now);
        assert_string_equal(m.gpu, "");
        first.gpus[1].ecc = GPU_RECORD_UNKNOWN;
        now.ecc[1] = 8;
        node_facts_compare_ecc(&m, &o, &first, &now);
        assert_string_equal(m.gpu, "");
        first.gpus[1].ecc = 7;
        node_facts_compare_ecc(&m, &o, &first, &now);
        assert_string_equal(m.gpu, "1 uncorrected ECC error of GPU 1");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table has a row for each check: words, the meaning of a difference between the nodes, and a
 * rule. A rule reads the value of one node, and sets a result if the value is wrong. Values are the
 * texts of the agents (docs/protocol.md, "Facts of a check"); a number is read from the front of
 * the text, and "unlimited" and "none" of a quota count as endless.
 *
 * judge_value() calls a rule only for a fact with a value, and has set c->to->value to the text for
 * people before. A rule that sets nothing passes. The table, JSON and messages keep the order of
 * the rows; names are a promise of hnlaunch-check(1).
 */
#include "head/check/check_rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "head/model/known_bad.h"

/* Errors of ports warn above IB_TIMES times the median. The median counts from IB_NODES nodes on:
 * the median of two is the value of a single node. */
enum { IB_TIMES = 10, IB_NODES = 3 };

/* A resource manager may keep a part of the memory for the system. A quota below this part of the
 * whole leaves out more. */
static const double memory_part = 0.75;

/* --- facts and numbers ------------------------------------------------------------------------ */

const struct check_fact *check_fact_find(const struct check_node *n, const char *name)
{
        for (uint32_t i = 0; n->facts && i < n->facts->n_facts; i++) {
                const struct check_fact *k = &n->facts->facts[i];

                /* Few names begin alike: comparing the first letter saves most calls, a million for
                 * 5,000 nodes. */
                if (*k->name == *name && !strcmp(k->name, name))
                        return k;
        }
        return NULL;
}

const char *check_fact_value(const struct check_node *n, const char *name)
{
        const struct check_fact *k = check_fact_find(n, name);

        return k && !*k->problem ? k->value : NULL;
}

double check_read_amount(const char *text)
{
        /* From '+' to '9' ASCII has signs, point and digits. Without this test strtod() would read
         * "inf" and "nan", and 0 from words. */
        return text && *text >= '+' && *text <= '9' ? strtod(text, NULL) : INFINITY;
}

double check_fact_amount(const struct check_node *n, const char *name)
{
        return check_read_amount(check_fact_value(n, name));
}

/* --- rules ------------------------------------------------------------------------------------ */

/* Most results have empty texts: of 5,000 nodes 600,000. */
static char no_text[] = "";

char *check_text_copy(const char *text)
{
        return *text ? xstrdup(text) : no_text;
}

void check_text_free(char *text)
{
        if (text != no_text)
                free(text);
}

void check_case_set(struct check_case *c, enum check_level level, const char *expected,
                    const char *fmt, ...)
{
        CLEANUP(free_textp) char *cause = NULL;
        va_list ap;

        va_start(ap, fmt);
        cause = xvasprintf(fmt, ap);
        va_end(ap);
        check_text_free(c->to->expected);
        check_text_free(c->to->cause);
        c->to->level = level;
        /* A rule expects the value, not a number of other nodes. */
        c->to->others = 0;
        c->to->expected = check_text_copy(expected);
        c->to->cause = xasprintf("%s %s", c->node->host, cause);
}

void check_result_skip(struct check_result *to, const char *why)
{
        /* The value stays, for --json. */
        to->level = CHECK_NOT_RUN;
        check_text_free(to->cause);
        to->cause = xstrdup(why);
}

/* Fails a node with fewer GPUs than slots. Without GPUs, here and on most nodes, slots are
 * processors. @gpus_wanted is 0 in a launch, where the plan has judged the GPUs. */
static void judge_gpu_count(struct check_case *c)
{
        char want[32];
        bool has_gpus = check_read_amount(c->value) > 0 || check_read_amount(c->most) > 0;

        if (!has_gpus || check_read_amount(c->value) >= c->node->gpus_wanted)
                return;
        snprintf(want, sizeof(want), "%u", c->node->gpus_wanted);
        check_case_set(c, CHECK_FAIL, want, "has %s GPU%s, and its slots need %u", c->value,
                       strcmp(c->value, "1") ? "s" : "", c->node->gpus_wanted);
}

/* The value begins with the sum over the GPUs: "4 (4 of GPU 2)". */
static void judge_ecc(struct check_case *c)
{
        if (check_read_amount(c->value) > 0)
                check_case_set(c, CHECK_FAIL, "0", "has uncorrected ECC errors: %s", c->value);
}

/* The driver replaces broken rows of memory by spare rows at the next reset of the GPU ("pending").
 * After "failed" the broken rows stay in use. */
static void judge_remap(struct check_case *c)
{
        if (!strncmp(c->value, "failed", 6))
                check_case_set(c, CHECK_FAIL, "none",
                               "could not replace broken memory of a GPU: %s", c->value);
        else if (!strncmp(c->value, "pending", 7))
                check_case_set(c, CHECK_WARN, "none",
                               "has broken memory to replace at the next reset: %s", c->value);
}

/* Any state but "ready" fails, also "in progress" after a start of the node. A fabric missing on
 * this node alone is a difference, not a fault. */
static void judge_fabric(struct check_case *c)
{
        if (strcmp(c->value, "ready") != 0 && strcmp(c->value, "none") != 0)
                check_case_set(c, CHECK_FAIL, "ready", "has an NVLink fabric that is not ready: %s",
                               c->value);
}

/* Agents give the fact a value only for GPUs of an NVLink domain of several nodes. */
static void judge_imex(struct check_case *c)
{
        if (!strcmp(c->value, "none"))
                check_case_set(
                        c, CHECK_WARN, "a channel",
                        "has no IMEX channel for this user, and NVLink to other nodes needs one");
}

/* Without the daemon no memory of GPUs is shared between nodes, whatever channels there are. */
static void judge_imex_daemon(struct check_case *c)
{
        if (!strcmp(c->value, "none"))
                check_case_set(c, CHECK_WARN, "running",
                               "runs no nvidia-imex, and NVLink to other nodes needs it");
}

/* Agents report only Xids of broken hardware, of the last 24 hours. */
static void judge_xid(struct check_case *c)
{
        if (strcmp(c->value, "none") != 0)
                check_case_set(c, CHECK_FAIL, "none", "has a broken GPU, by its kernel log: Xid %s",
                               c->value);
}

static void judge_gpu_processes(struct check_case *c)
{
        if (check_read_amount(c->value) > 0)
                check_case_set(c, CHECK_WARN, "0", "has processes on its GPUs: %s", c->value);
}

static void judge_files(struct check_case *c)
{
        char want[48];

        if (check_read_amount(c->value) >= c->limits[CHECK_FILES])
                return;
        snprintf(want, sizeof(want), "at least %.0f", c->limits[CHECK_FILES]);
        check_case_set(c, CHECK_WARN, want, "allows a process %s open files", c->value);
}

static void judge_processes(struct check_case *c)
{
        char want[48];

        if (check_read_amount(c->value) >= c->limits[CHECK_PROCESSES])
                return;
        snprintf(want, sizeof(want), "at least %.0f", c->limits[CHECK_PROCESSES]);
        check_case_set(c, CHECK_WARN, want, "allows the user %s processes", c->value);
}

/* RDMA locks the memory of buffers, up to all memory of the node. Without an InfiniBand or RoCE
 * port no limit is too low. */
static void judge_memlock(struct check_case *c)
{
        const char *ports = check_fact_value(c->node, "ib.ports");

        if (ports && strcmp(ports, "none") != 0 &&
            check_read_amount(c->value) < check_fact_amount(c->node, "memory"))
                check_case_set(c, CHECK_WARN, "unlimited",
                               "allows only %s of locked memory, and RDMA locks all that it sends",
                               c->to->value);
}

/* A quota of control groups lets ranks run on all processors, but pauses the ranks when the time of
 * a period is used up. */
static void judge_cpu_quota(struct check_case *c)
{
        const char *count = check_fact_value(c->node, "cpu.count");

        if (count && check_read_amount(c->value) < check_read_amount(count))
                check_case_set(c, CHECK_WARN, count, "has a quota of %s of %s processors", c->value,
                               count);
}

static void judge_memory_quota(struct check_case *c)
{
        double memory = check_fact_amount(c->node, "memory");
        char all[32] = "";

        if (isinf(memory) || check_read_amount(c->value) >= memory_part * memory)
                return;
        format_size(all, sizeof(all), (uint64_t)memory);
        check_case_set(c, CHECK_WARN, all, "has a quota of %s of %s of memory", c->to->value, all);
}

/* NCCL and the data loaders of PyTorch exchange data of the ranks of a node through /dev/shm. A
 * write beyond the end kills the rank with SIGBUS. */
static void judge_shm_size(struct check_case *c)
{
        double need = c->limits[CHECK_SHM_PER_RANK] * MAX(c->node->ranks, 1U);
        char want[48] = "at least ";

        if (check_read_amount(c->value) >= need)
                return;
        format_size(want + strlen(want), sizeof(want) - strlen(want), (uint64_t)need);
        check_case_set(c, CHECK_FAIL, want, "has only %s in /dev/shm for %u rank%s", c->to->value,
                       MAX(c->node->ranks, 1U), c->node->ranks > 1 ? "s" : "");
}

static void judge_shm_free(struct check_case *c)
{
        double need = c->limits[CHECK_SHM_PER_RANK] * MAX(c->node->ranks, 1U);
        char want[48] = "at least ";

        /* judge_shm_size() already fails a /dev/shm of this size. */
        if (check_read_amount(c->value) >= need || check_fact_amount(c->node, "shm.size") < need)
                return;
        format_size(want + strlen(want), sizeof(want) - strlen(want), (uint64_t)need);
        check_case_set(c, CHECK_WARN, want, "has only %s free in /dev/shm", c->to->value);
}

/* The value is 0 where the user may not write to /tmp. */
static void judge_tmp(struct check_case *c)
{
        char want[48] = "at least ";

        if (check_read_amount(c->value) >= c->limits[CHECK_TMP_FREE])
                return;
        format_size(want + strlen(want), sizeof(want) - strlen(want),
                    (uint64_t)c->limits[CHECK_TMP_FREE]);
        check_case_set(c, CHECK_FAIL, want, "has only %s free in /tmp that the user can write",
                       c->to->value);
}

static void judge_clock(struct check_case *c)
{
        /* "+0.013" or "-2.500", of settle_clock(). The words "behind" and "ahead" take the place of
         * the sign. */
        double s = check_read_amount(c->value), limit_s = c->limits[CHECK_CLOCK];
        char want[48];

        if (isinf(s) || (s <= limit_s && s >= -limit_s))
                return;
        snprintf(want, sizeof(want), "at most %g s", limit_s);
        check_case_set(c, CHECK_WARN, want, "has a clock %s s %s of this machine's",
                       c->value + (s < 0 || *c->value == '+'), s < 0 ? "behind" : "ahead");
}

static void judge_ports(struct check_case *c)
{
        if (!strncmp(c->value, "0 of ", 5))
                check_case_set(c, CHECK_WARN, "an active port", "has no active InfiniBand port: %s",
                               c->value);
}

/* Counters add up since the machine was started: a counter counts only far above the median. */
static void judge_ib_errors(struct check_case *c)
{
        double own = check_read_amount(c->value);
        char usual[32];

        if (c->n_known < IB_NODES) {
                check_result_skip(c->to, "fewer than three nodes have counters to compare");
        } else if (own > c->limits[CHECK_IB_ERRORS] && own > IB_TIMES * c->median) {
                snprintf(usual, sizeof(usual), "about %.0f", c->median);
                check_case_set(c, CHECK_WARN, usual, "has %s errors, most nodes %s", c->value,
                               usual);
        }
}

static void judge_leftovers(struct check_case *c)
{
        if (strcmp(c->value, "none") != 0)
                check_case_set(c, CHECK_WARN, "none",
                               "has leftovers of runs whose agent is gone: %s", c->value);
}

/* The value is "there" for a folder, "1234 bytes, HASH" for a file, else the fault in words:
 * "missing", "not executable". c->name has the number of the program behind a point. */
static void judge_path(struct check_case *c)
{
        bool folder = !strncmp(c->name, "workdir", 7);
        const char *what = folder ? "working directory" : c->name;

        if (folder ? strcmp(c->value, "there") != 0 : *c->value < '0' || *c->value > '9')
                check_case_set(c, CHECK_FAIL, "there", "has no usable %.*s: it is %s",
                               (int)strcspn(what, "."), what, c->value);
}

static void judge_nccl(struct check_case *c)
{
        const char *arch = check_fact_value(c->node, "arch");
        unsigned part[3];
        const struct known_bad *bad;

        if (!arch || sscanf(c->value, "%u.%u.%u", &part[0], &part[1], &part[2]) != 3)
                return;
        /* As NCCL_VERSION_CODE of nccl.h from 2.9 on. */
        bad = known_bad_find(part[0] * 10000 + part[1] * 100 + part[2], arch, (int)c->n_nodes);
        if (!bad)
                return;
        check_case_set(c, CHECK_WARN, "", "has NCCL %s, which on %s %s: %s", c->value, arch,
                       bad->fact, bad->cause);
        c->to->help = bad->help;
}

/* A program may resolve its own host name and send the address to other nodes. */
static void judge_hostname(struct check_case *c)
{
        if (c->n_nodes > 1 && !strcmp(c->value, "none"))
                check_case_set(c, CHECK_WARN, "an address",
                               "does not know the address of its own name");
}

/* peer_names.c has compared the addresses: "5 names" are right. */
static void judge_names(struct check_case *c)
{
        if (strncmp(c->value, "no ", 3) != 0 && strncmp(c->value, "a wrong ", 8) != 0)
                return;
        check_case_set(c, CHECK_WARN, "an address of each node", "knows %s", c->value);
}

static void judge_run(struct check_case *c)
{
        if (strcmp(c->value, "exit 0") != 0)
                check_case_set(c, CHECK_FAIL, "exit 0", "has ended the command of --run with: %s",
                               c->value);
}

/* --- the table -------------------------------------------------------------------------------- */

/* Rows without .drift (CHECK_PASS) let values differ: only the rule judges. A rule may replace the
 * row's help in to->help (judge_nccl()). */
static const struct check_row check_rows[] = {
        { "gpu.count", "this number of GPUs:", .drift = CHECK_WARN, .rule = judge_gpu_count,
          .absent = "0", .why = "no NVIDIA GPU",
          .help = "a GPU that fell off the bus needs a reset or a restart of its node; leave the "
                  "node out with --exclude" },
        { "gpu.model", "this model of GPU:", .drift = CHECK_WARN, .absent = "none",
          .why = "no NVIDIA GPU",
          .help = "ranks wait for the slowest GPU: --exclude leaves nodes out" },
        { "gpu.driver", "driver", .drift = CHECK_WARN, .absent = "none", .why = "no NVIDIA driver",
          .help = "install one version of the driver on all nodes" },
        { "gpu.ecc", "this number of ECC errors:", .rule = judge_ecc,
          .help = "nvidia-smi -q -d ECC shows the GPU: reset it, or have it replaced" },
        { "gpu.remap", "replaced memory:", .rule = judge_remap,
          .help = "reset the GPU when it is idle: nvidia-smi -r; where this fails, have it "
                  "replaced" },
        { "gpu.xid", "Xid", .rule = judge_xid,
          .help = "reset the GPU, or restart the node; NVIDIA's Xid catalog tells more" },
        { "gpu.fabric", "NVLink fabric:", .drift = CHECK_FAIL, .rule = judge_fabric,
          .absent = "none", .why = "the GPUs have no NVLink fabric",
          .help = "nvidia-smi -q shows the fabric: restart nvidia-fabricmanager, or leave the node "
                  "out" },
        { "gpu.imex", "IMEX channel", .drift = CHECK_WARN, .rule = judge_imex,
          .help = "start nvidia-imex, and create the channel: "
                  "NVreg_CreateImexChannel0=1 of the kernel module" },
        { "gpu.imex.daemon", "the daemon nvidia-imex:", .rule = judge_imex_daemon,
          .help = "start it on each node: systemctl start nvidia-imex; its log is "
                  "/var/log/nvidia-imex.log" },
        { "gpu.processes", "this number of processes on GPUs:", .rule = judge_gpu_processes,
          .help = "nvidia-smi shows whose processes these are: wait for them, or end them" },
        { "cpu.count", "this number of processors:", .drift = CHECK_WARN,
          .help = "a smaller set may come from the resource manager or from a container" },
        { "cpu.quota", "a quota of processors of", .drift = CHECK_WARN, .rule = judge_cpu_quota,
          .help = "ask the resource manager or the container for all processors of the node" },
        { "memory.quota", "a quota of memory of", CHECK_SIZE, CHECK_WARN, judge_memory_quota,
          .help = "ask the resource manager or the container for more memory: Slurm's --mem=0" },
        { "limit.files", "a limit of open files of", .drift = CHECK_WARN, .rule = judge_files,
          .help = "raise nofile in /etc/security/limits.conf, or LimitNOFILE of the service" },
        { "limit.processes", "a limit of processes of", .kind = CHECK_ABOUT, .drift = CHECK_WARN,
          .rule = judge_processes,
          .help = "raise nproc in /etc/security/limits.conf, or the pids limit of the container" },
        { "limit.memlock", "a limit of locked memory of", CHECK_SIZE, CHECK_WARN, judge_memlock,
          .help = "set memlock to unlimited in /etc/security/limits.conf, or --ulimit memlock=-1 "
                  "of the container" },
        { "shm.size", "a /dev/shm of", CHECK_SIZE, CHECK_WARN, judge_shm_size,
          .help = "a container has 64 MB unless told otherwise: --shm-size=16g or --ipc=host; else "
                  "mount -o remount,size=50% /dev/shm" },
        { "shm.free", "free in /dev/shm", CHECK_SIZE, CHECK_PASS, judge_shm_free,
          .help = "ls -l /dev/shm shows what takes the room: leftovers of other programs" },
        { "tmp.free", "free in /tmp", CHECK_SIZE, CHECK_PASS, judge_tmp,
          .help = "remove files from /tmp; du -xs /tmp/* shows the large ones" },
        { "kernel", "kernel", .drift = CHECK_WARN, .help = "run one kernel on all nodes" },
        { "hugepages", "huge pages of", CHECK_SIZE, CHECK_WARN,
          .help = "set vm.nr_hugepages to one value on all nodes" },
        { "thp", "transparent huge pages", .drift = CHECK_WARN,
          .help = "write one value to /sys/kernel/mm/transparent_hugepage/enabled on all nodes" },
        { "clock", "a clock ahead by", CHECK_SECONDS, CHECK_PASS, judge_clock,
          .help = "let chrony or ntpd set the clock: chronyc tracking shows its state" },
        { "ib.ports", "InfiniBand ports:", .drift = CHECK_WARN, .rule = judge_ports,
          .absent = "none", .why = "no InfiniBand or RoCE device",
          .help = "ibstat shows the state of each port: a cable, a switch port or the subnet "
                  "manager" },
        { "ib.errors", "errors of InfiniBand ports:", .rule = judge_ib_errors, .median = true,
          .help = "perfquery shows the counters: reseat or replace the cable" },
        { "leftovers", "leftovers:", .rule = judge_leftovers,
          .help = "end the processes with kill, and remove folders hnlaunch-* in /dev/shm and "
                  "/tmp" },
        { "workdir", "this working directory:", .drift = CHECK_FAIL, .rule = judge_path,
          .each = true,
          .help = "mount the same file system on all nodes, or bring files with "
                  "--push" },
        { "program", "this program:", .drift = CHECK_FAIL, .rule = judge_path, .each = true,
          .help = "install the same file on all nodes, or bring it with --push" },
        { "script", "this script:", .drift = CHECK_FAIL, .rule = judge_path, .each = true,
          .help = "copy the same file to all nodes, or bring it with --push" },
        { "python", "Python", .drift = CHECK_WARN, .each = true, .absent = "none",
          .why = "the program runs no Python",
          .help = "use one environment on all nodes: a shared file system, or the same PATH" },
        { "torch", "torch", .drift = CHECK_WARN, .each = true, .absent = "none",
          .why = "the program finds no PyTorch",
          .help = "install the same packages on all nodes, or share one environment" },
        { "cuda", "CUDA", .drift = CHECK_WARN, .each = true, .absent = "none",
          .why = "the program names no CUDA library",
          .help = "install the same packages on all nodes, or share one environment" },
        { "nccl", "NCCL", .drift = CHECK_FAIL, .rule = judge_nccl, .each = true, .absent = "none",
          .why = "the program names no NCCL",
          .help = "install the same NCCL on all nodes: LD_LIBRARY_PATH may name another one" },
        { "nccl.plugin", "net plug-in of NCCL:", .drift = CHECK_WARN, .each = true,
          .absent = "none", .why = "there is no net plug-in of NCCL",
          .help = "install the same plug-in on all nodes: without one NCCL may use plain TCP" },
        { "hostname", "as the address of its own name:", .drift = CHECK_WARN,
          .rule = judge_hostname,
          .help = "name the node with an address of the network in /etc/hosts, in place of "
                  "127.0.1.1" },
        { "name.peers", "names of other nodes:", .rule = judge_names,
          .help = "name all nodes in DNS, or in /etc/hosts of each node: programs exchange their "
                  "names" },
        { "run", "result of --run:", .rule = judge_run, .optional = true,
          .help = "run the command on one of these nodes" },
};

bool check_row_compares(const struct check_row *row, const char *value)
{
        return value && (row->rule != judge_path || !strcmp(value, "there") ||
                         (*value >= '0' && *value <= '9'));
}

const struct check_row *check_row_at(size_t i)
{
        return i < ARRAY_SIZE(check_rows) ? &check_rows[i] : NULL;
}

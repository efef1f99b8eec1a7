/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_judge() goes through check_rows[], and for each row through the nodes. A row with .each has
 * a line for every program of the job: "program", "program.1" ... Values are the texts of the
 * agents (wire/check_msg.h); a number is read from the front of the text, and "unlimited" and
 * "none" of a quota count as endless.
 */
#include "head/check/check_judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "head/model/known_bad.h"

enum { IB_TIMES = 10, IB_NODES = 3 };

static const double memory_part = 0.75, same_part = 0.05;

/* One check on one node, while it is judged. */
struct check_case {
        const struct check_node *node;
        const char *name, *value; /* of the fact */
        const char *most;         /* the value of most nodes */
        double median;            /* over all nodes with a number */
        size_t n_known;           /* so many nodes */
        size_t n_nodes;
        const double *limits; /* by enum check_limit */
        struct check_result *to;
};

struct check_row {
        const char *name;
        const char *words; /* "HOST has WORDS VALUE" */
        enum { CHECK_TEXT, CHECK_ABOUT, CHECK_SIZE, CHECK_SECONDS } kind;
        enum check_level drift;             /* of another value than most nodes have */
        void (*rule)(struct check_case *c); /* NULL = none */
        const char *absent; /* the value for "nothing to check", if all nodes agree */
        const char *why;    /* ... in words */
        const char *help;
        bool each;     /* of each program */
        bool optional; /* no line if no node has the fact */
};

/* --- facts and numbers ------------------------------------------------------------------------ */

static const struct check_fact *find_fact(const struct check_node *n, const char *name)
{
        for (uint32_t i = 0; n->facts && i < n->facts->n_facts; i++)
                if (!strcmp(n->facts->facts[i].name, name))
                        return &n->facts->facts[i];
        return NULL;
}

const char *check_fact_value(const struct check_node *n, const char *name)
{
        const struct check_fact *k = find_fact(n, name);

        return k && !*k->problem ? k->value : NULL;
}

static double read_amount(const char *text)
{
        return text && *text >= '+' && *text <= '9' ? strtod(text, NULL) : INFINITY;
}

static double read_fact(const struct check_node *n, const char *name)
{
        return read_amount(check_fact_value(n, name));
}

/* Returns a value for people, malloc'ed. */
static char *format_value(const struct check_row *row, const char *value)
{
        char text[32];

        if (row->kind == CHECK_SIZE && *value >= '0' && *value <= '9') {
                format_size(text, sizeof(text), strtoull(value, NULL, 10));
                return xstrdup(text);
        }
        return row->kind == CHECK_SECONDS ? xasprintf("%s s", value) : xstrdup(value);
}

/* --- rules ------------------------------------------------------------------------------------ */

/* Sets the result of a rule: "HOST " and @fmt is the cause. */
PRINTF(4, 5)
static void set_case(struct check_case *c, enum check_level level, const char *expected,
                     const char *fmt, ...)
{
        CLEANUP(free_textp) char *cause = NULL;
        va_list ap;

        va_start(ap, fmt);
        cause = xvasprintf(fmt, ap);
        va_end(ap);
        free(c->to->expected);
        free(c->to->cause);
        c->to->level = level;
        c->to->others = 0;
        c->to->expected = xstrdup(expected);
        c->to->cause = xasprintf("%s %s", c->node->host, cause);
}

static void set_not_run(struct check_result *to, const char *why)
{
        to->level = CHECK_NOT_RUN;
        free(to->cause);
        to->cause = xstrdup(why);
}

static void judge_gpu_count(struct check_case *c)
{
        char want[32];
        bool has_gpus = read_amount(c->value) > 0 || read_amount(c->most) > 0;

        snprintf(want, sizeof(want), "%u", c->node->gpus_wanted);
        if (has_gpus && read_amount(c->value) < c->node->gpus_wanted)
                set_case(c, CHECK_FAIL, want, "has %s GPU%s, and its slots need %u", c->value,
                         strcmp(c->value, "1") ? "s" : "", c->node->gpus_wanted);
}

static void judge_ecc(struct check_case *c)
{
        if (read_amount(c->value) > 0)
                set_case(c, CHECK_FAIL, "0", "has uncorrected ECC errors: %s", c->value);
}

static void judge_remap(struct check_case *c)
{
        if (!strncmp(c->value, "failed", 6))
                set_case(c, CHECK_FAIL, "none", "could not replace broken memory of a GPU: %s",
                         c->value);
        else if (!strncmp(c->value, "pending", 7))
                set_case(c, CHECK_WARN, "none",
                         "has broken memory to replace at the next reset: %s", c->value);
}

static void judge_fabric(struct check_case *c)
{
        if (strcmp(c->value, "ready") != 0 && strcmp(c->value, "none") != 0)
                set_case(c, CHECK_FAIL, "ready", "has an NVLink fabric that is not ready: %s",
                         c->value);
}

static void judge_imex(struct check_case *c)
{
        if (!strcmp(c->value, "none"))
                set_case(c, CHECK_WARN, "a channel",
                         "has no IMEX channel for this user, and NVLink to other nodes needs one");
}

static void judge_xid(struct check_case *c)
{
        if (strcmp(c->value, "none") != 0)
                set_case(c, CHECK_FAIL, "none", "has a broken GPU, by its kernel log: Xid %s",
                         c->value);
}

static void judge_gpu_processes(struct check_case *c)
{
        if (read_amount(c->value) > 0)
                set_case(c, CHECK_WARN, "0", "has processes on its GPUs: %s", c->value);
}

static void judge_files(struct check_case *c)
{
        char want[48];

        snprintf(want, sizeof(want), "at least %.0f", c->limits[CHECK_FILES]);
        if (read_amount(c->value) < c->limits[CHECK_FILES])
                set_case(c, CHECK_WARN, want, "allows a process %s open files", c->value);
}

static void judge_processes(struct check_case *c)
{
        char want[48];

        snprintf(want, sizeof(want), "at least %.0f", c->limits[CHECK_PROCESSES]);
        if (read_amount(c->value) < c->limits[CHECK_PROCESSES])
                set_case(c, CHECK_WARN, want, "allows the user %s processes", c->value);
}

static void judge_memlock(struct check_case *c)
{
        const char *ports = check_fact_value(c->node, "ib.ports");

        if (ports && strcmp(ports, "none") != 0 &&
            read_amount(c->value) < read_fact(c->node, "memory"))
                set_case(c, CHECK_WARN, "unlimited",
                         "allows only %s of locked memory, and RDMA locks all that it sends",
                         c->to->value);
}

static void judge_cpu_quota(struct check_case *c)
{
        const char *count = check_fact_value(c->node, "cpu.count");

        if (count && read_amount(c->value) < read_amount(count))
                set_case(c, CHECK_WARN, count, "has a quota of %s of %s processors", c->value,
                         count);
}

static void judge_memory_quota(struct check_case *c)
{
        double memory = read_fact(c->node, "memory");
        char all[32] = "";

        if (isinf(memory) || read_amount(c->value) >= memory_part * memory)
                return;
        format_size(all, sizeof(all), (uint64_t)memory);
        set_case(c, CHECK_WARN, all, "has a quota of %s of %s of memory", c->to->value, all);
}

static void judge_shm_size(struct check_case *c)
{
        double need = c->limits[CHECK_SHM_PER_RANK] * MAX(c->node->ranks, 1U);
        char want[48] = "at least ";

        format_size(want + strlen(want), sizeof(want) - strlen(want), (uint64_t)need);
        if (read_amount(c->value) < need)
                set_case(c, CHECK_FAIL, want, "has only %s in /dev/shm for %u rank%s", c->to->value,
                         MAX(c->node->ranks, 1U), c->node->ranks > 1 ? "s" : "");
}

static void judge_shm_free(struct check_case *c)
{
        double need = c->limits[CHECK_SHM_PER_RANK] * MAX(c->node->ranks, 1U);
        char want[48] = "at least ";

        format_size(want + strlen(want), sizeof(want) - strlen(want), (uint64_t)need);
        /* A /dev/shm that is too small fails already. */
        if (read_amount(c->value) < need && read_fact(c->node, "shm.size") >= need)
                set_case(c, CHECK_WARN, want, "has only %s free in /dev/shm", c->to->value);
}

static void judge_tmp(struct check_case *c)
{
        char want[48] = "at least ";

        format_size(want + strlen(want), sizeof(want) - strlen(want),
                    (uint64_t)c->limits[CHECK_TMP_FREE]);
        if (read_amount(c->value) < c->limits[CHECK_TMP_FREE])
                set_case(c, CHECK_FAIL, want,
                         "has only %s free in /tmp that the user "
                         "can write",
                         c->to->value);
}

static void judge_clock(struct check_case *c)
{
        double s = read_amount(c->value), limit_s = c->limits[CHECK_CLOCK];
        char want[48];

        snprintf(want, sizeof(want), "at most %g s", limit_s);
        if (!isinf(s) && (s > limit_s || s < -limit_s))
                set_case(c, CHECK_WARN, want, "has a clock %s s %s of this machine's",
                         c->value + (s < 0 || *c->value == '+'), s < 0 ? "behind" : "ahead");
}

static void judge_ports(struct check_case *c)
{
        if (!strncmp(c->value, "0 of ", 5))
                set_case(c, CHECK_WARN, "an active port", "has no active InfiniBand port: %s",
                         c->value);
}

/* Counters add up since the machine was started: only many more than those of most nodes count. */
static void judge_ib_errors(struct check_case *c)
{
        double own = read_amount(c->value);
        char usual[32];

        snprintf(usual, sizeof(usual), "about %.0f", c->median);
        if (c->n_known < IB_NODES)
                set_not_run(c->to, "fewer than three nodes have counters to compare");
        else if (own > c->limits[CHECK_IB_ERRORS] && own > IB_TIMES * c->median)
                set_case(c, CHECK_WARN, usual, "has %s errors, most nodes %s", c->value, usual);
}

static void judge_leftovers(struct check_case *c)
{
        if (strcmp(c->value, "none") != 0)
                set_case(c, CHECK_WARN, "none", "has leftovers of runs whose agent is gone: %s",
                         c->value);
}

static void judge_path(struct check_case *c)
{
        bool folder = !strncmp(c->name, "workdir", 7);
        const char *what = folder ? "working directory" : c->name;

        if (folder ? strcmp(c->value, "there") != 0 : *c->value < '0' || *c->value > '9')
                set_case(c, CHECK_FAIL, "there", "has no usable %.*s: it is %s",
                         (int)strcspn(what, "."), what, c->value);
}

static void judge_nccl(struct check_case *c)
{
        const char *arch = check_fact_value(c->node, "arch");
        unsigned part[3];
        const struct known_bad *bad;

        if (!arch || sscanf(c->value, "%u.%u.%u", &part[0], &part[1], &part[2]) != 3)
                return;
        bad = known_bad_find(part[0] * 10000 + part[1] * 100 + part[2], arch, (int)c->n_nodes);
        if (!bad)
                return;
        set_case(c, CHECK_WARN, "", "has NCCL %s, which on %s %s: %s", c->value, arch, bad->fact,
                 bad->cause);
        c->to->help = bad->help;
}

/* Programs that ask for the address of their own name tell it to the others. */
static void judge_hostname(struct check_case *c)
{
        if (c->n_nodes > 1 && !strcmp(c->value, "none"))
                set_case(c, CHECK_WARN, "an address", "does not know the address of its own name");
}

static void judge_run(struct check_case *c)
{
        if (strcmp(c->value, "exit 0") != 0)
                set_case(c, CHECK_FAIL, "exit 0", "has ended the command of --run with: %s",
                         c->value);
}

/* --- the table -------------------------------------------------------------------------------- */

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
        { "ib.errors", "errors of InfiniBand ports:", .rule = judge_ib_errors,
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
        { "run", "result of --run:", .rule = judge_run, .optional = true,
          .help = "run the command on one of these nodes" },
};

/* --- judging a line --------------------------------------------------------------------------- */

/* Whether two values count as equal. Sizes, and limits that the kernel derives from the memory,
 * differ a little between equal machines. */
static bool is_same_value(const struct check_row *row, const char *a, const char *b)
{
        double x = read_amount(a), y = read_amount(b);

        if ((row->kind != CHECK_SIZE && row->kind != CHECK_ABOUT) || isinf(x) || isinf(y))
                return !strcmp(a, b);
        return (x > y ? x - y : y - x) <= same_part * MAX(x, y);
}

/* Whether a value counts for the comparison: where most nodes lack a file, those that have it are
 * right. */
static bool is_compared(const struct check_row *row, const char *value)
{
        return value && (row->rule != judge_path || !strcmp(value, "there") ||
                         (*value >= '0' && *value <= '9'));
}

/* Returns the value of most nodes, on a tie the first one; NULL = no node has a value that counts.
 */
static const char *find_most(const struct check_report *r, const struct check_row *row,
                             const char *name, size_t *ret_n)
{
        struct {
                const char *value;
                size_t n;
        } *found = xcalloc(r->n_nodes, sizeof(*found));
        const char *most = NULL;
        size_t kinds = 0;

        *ret_n = 0;
        for (size_t i = 0; i < r->n_nodes; i++) {
                const char *value = check_fact_value(&r->nodes[i], name);
                size_t k = 0;

                if (!is_compared(row, value))
                        continue;
                while (k < kinds && !is_same_value(row, found[k].value, value))
                        k++;
                if (k == kinds)
                        found[kinds++].value = value;
                found[k].n++;
        }
        for (size_t k = 0; k < kinds; k++)
                if (found[k].n > *ret_n) {
                        *ret_n = found[k].n;
                        most = found[k].value;
                }
        free(found);
        return most;
}

bool check_has_changed(const char *name, const char *then, const char *now)
{
        for (size_t i = 0; i < ARRAY_SIZE(check_rows); i++) {
                const struct check_row *row = &check_rows[i];

                if (!strcmp(row->name, name))
                        return row->drift != CHECK_PASS && !row->each &&
                               !is_same_value(row, then, now);
        }
        return false;
}

static void set_drift(struct check_result *to, const struct check_row *row, const char *host,
                      const char *most, size_t n)
{
        CLEANUP(free_textp) char *other = format_value(row, most);

        to->level = row->drift;
        to->others = n;
        to->help = "";
        free(to->expected);
        to->expected = xstrdup(other);
        free(to->cause);
        to->cause = xasprintf("%s has %s %s, %zu other%s ha%s %s", host, row->words, to->value, n,
                              n == 1 ? "" : "s", n == 1 ? "s" : "ve", other);
}

/* Judges a value: between the nodes, then by the rule. */
static void judge_value(struct check_case *c, const struct check_row *row, size_t n_most)
{
        bool differs = row->drift != CHECK_PASS && c->most && is_compared(row, c->value) &&
                       !is_same_value(row, c->value, c->most);

        free(c->to->value);
        c->to->value = format_value(row, c->value);
        if (row->absent && !strcmp(c->value, row->absent) && !strcmp(c->most, row->absent)) {
                set_not_run(c->to, row->why);
        } else {
                if (row->rule)
                        row->rule(c);
                if (differs && row->drift > c->to->level)
                        set_drift(c->to, row, c->node->host, c->most, n_most);
        }
}

static void judge_node(struct check_case *c, const struct check_row *row, size_t n_most)
{
        const struct check_fact *k = find_fact(c->node, c->name);

        if (c->node->lost)
                set_not_run(c->to, "the node was not reached");
        else if (!k)
                set_not_run(c->to, "the node has not answered in time");
        else if (*k->problem)
                set_not_run(c->to, k->problem);
        else {
                c->value = k->value;
                judge_value(c, row, n_most);
        }
}

/* Whether a value is the one that a profile wants; * at the end stands for any text. */
static bool fits_expected(const char *value, const char *want)
{
        size_t len = strlen(want);

        return len && want[len - 1] == '*' ? !strncmp(value, want, len - 1) : !strcmp(value, want);
}

/* Compares with the value that the profile wants. */
static void judge_expected(struct check_case *c, const struct check_row *row, const char *want)
{
        if (!c->value || !want || fits_expected(c->value, want) ||
            fits_expected(c->to->value, want) || c->to->level == CHECK_FAIL)
                return;
        set_case(c, MAX(row->drift, CHECK_WARN), want, "has %s %s, the profile wants %s",
                 row->words, c->to->value, want);
        c->to->help = "";
}

/* Gives a failure or a warning the level of the profile. */
static void move_level(struct check_result *r, const char *move)
{
        if (!move || r->level < CHECK_WARN)
                return;
        if (!strcmp(move, "ignore"))
                set_not_run(r, "the profile ignores it");
        else
                r->level = strcmp(move, "fail") != 0 ? CHECK_WARN : CHECK_FAIL;
}

/* How checks are judged besides their own rules. */
struct check_rules {
        const struct check_profile *profile;
        bool strict;
};

/* Ends the judgement of a node: levels and counts. @row: the name in the table. */
static void count_result(struct check_line *l, struct check_result *r, const char *row,
                         const char *help, const struct check_rules *rules)
{
        if (rules->profile)
                move_level(r, strv_env_get(&rules->profile->moves, row));
        if (rules->strict && r->level == CHECK_WARN)
                r->level = CHECK_FAIL;
        r->help = r->level < CHECK_WARN ? "" : *r->help ? r->help : help;
        l->count[r->level]++;
}

struct check_line *check_report_add(struct check_report *r, const char *name)
{
        struct check_line *l;

        r->v = xrealloc(r->v, r->n + 1, sizeof(*r->v));
        l = &r->v[r->n++];
        *l = (struct check_line){ .name = xstrdup(name),
                                  .of = xcalloc(r->n_nodes, sizeof(*l->of)) };
        for (size_t i = 0; i < r->n_nodes; i++)
                l->of[i] = (struct check_result){ .value = xstrdup(""),
                                                  .expected = xstrdup(""),
                                                  .cause = xstrdup(""),
                                                  .help = "" };
        return l;
}

static void judge_reach(struct check_report *r, const struct check_rules *rules)
{
        struct check_line *l = check_report_add(r, "reach");

        for (size_t i = 0; i < r->n_nodes; i++) {
                struct check_result *to = &l->of[i];

                free(to->value);
                to->value = xstrdup(r->nodes[i].lost ? r->nodes[i].lost : "connected");
                if (r->nodes[i].lost) {
                        to->level = CHECK_FAIL;
                        free(to->cause);
                        to->cause = xasprintf("%s cannot be reached: %s", r->nodes[i].host,
                                              r->nodes[i].lost);
                }
                count_result(l, to, "reach", "the messages above tell more of these nodes", rules);
        }
}

static int compare_amounts(const void *a, const void *b)
{
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Returns the median over all nodes with a number, and how many these are. */
static double find_median(const struct check_report *r, const char *name, size_t *ret_n)
{
        double *all = xcalloc(r->n_nodes, sizeof(*all)), median;

        *ret_n = 0;
        for (size_t i = 0; i < r->n_nodes; i++) {
                all[*ret_n] = read_fact(&r->nodes[i], name);
                *ret_n += !isinf(all[*ret_n]);
        }
        qsort(all, *ret_n, sizeof(*all), compare_amounts);
        median = all[*ret_n / 2];
        free(all);
        return median;
}

static void judge_check_line(struct check_report *r, const struct check_row *row, const char *name,
                             const struct check_rules *rules)
{
        struct check_line *l = check_report_add(r, name);
        size_t n_most, n_known;
        const char *most = find_most(r, row, name, &n_most);
        double median = find_median(r, name, &n_known);

        for (size_t i = 0; i < r->n_nodes; i++) {
                struct check_case c = { .node = &r->nodes[i],
                                        .name = l->name,
                                        .most = most,
                                        .median = median,
                                        .n_known = n_known,
                                        .n_nodes = r->n_nodes,
                                        .limits = rules->profile->limits,
                                        .to = &l->of[i] };

                judge_node(&c, row, n_most);
                judge_expected(&c, row, strv_env_get(&rules->profile->expected, row->name));
                count_result(l, c.to, row->name, row->help, rules);
        }
}

/* Whether any node has a fact of this name. */
static bool has_any_fact(const struct check_report *r, const char *name)
{
        for (size_t i = 0; i < r->n_nodes; i++)
                if (find_fact(&r->nodes[i], name))
                        return true;
        return false;
}

void check_judge(struct check_report *r, const struct check_node *nodes, size_t n, bool strict)
{
        struct check_profile p;

        check_profile_init(&p);
        check_judge_by(r, nodes, n, &p, strict);
        r->profile = NULL;
        check_profile_finish(&p);
}

void check_judge_by(struct check_report *r, const struct check_node *nodes, size_t n,
                    const struct check_profile *profile, bool strict)
{
        const struct check_rules rules = { profile, strict };

        *r = (struct check_report){
                .nodes = nodes, .n_nodes = n, .profile = profile, .strict = strict
        };
        judge_reach(r, &rules);
        for (size_t i = 0; i < ARRAY_SIZE(check_rows); i++) {
                const struct check_row *row = &check_rows[i];
                char name[CHECK_NAME];

                if (!row->optional || has_any_fact(r, row->name))
                        judge_check_line(r, row, row->name, &rules);
                for (unsigned k = 1; row->each; k++) {
                        snprintf(name, sizeof(name), "%s.%u", row->name, k);
                        if (!has_any_fact(r, name))
                                break;
                        judge_check_line(r, row, name, &rules);
                }
        }
}

bool check_exists(const char *name)
{
        static const char *const others[] = { "reach", "net.peers", "net.bandwidth", "net.latency",
                                              "baseline" };

        for (size_t i = 0; i < ARRAY_SIZE(check_rows); i++)
                if (!strcmp(check_rows[i].name, name))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (!strcmp(others[i], name))
                        return true;
        return false;
}

void check_report_set(const struct check_report *r, struct check_line *l, size_t node,
                      const struct check_judgement *k)
{
        const struct check_rules rules = { r->profile, r->strict };
        struct check_result *to = &l->of[node];

        if (to->set)
                l->count[to->level]--;
        to->set = true;
        free(to->value);
        free(to->expected);
        free(to->cause);
        to->level = k->level;
        to->value = xstrdup(k->value);
        to->expected = xstrdup(k->expected);
        to->others = k->others;
        to->cause = xstrdup(k->cause);
        to->help = "";
        count_result(l, to, l->name, k->help, &rules);
}

void check_report_finish(struct check_report *r)
{
        for (size_t i = 0; i < r->n; i++) {
                for (size_t k = 0; k < r->n_nodes; k++) {
                        free(r->v[i].of[k].value);
                        free(r->v[i].of[k].expected);
                        free(r->v[i].of[k].cause);
                }
                free(r->v[i].of);
                free(r->v[i].summary);
                free(r->v[i].name);
        }
        free(r->v);
        *r = (struct check_report){ 0 };
}

/* --- results ---------------------------------------------------------------------------------- */

/* Returns the worse of two levels; "not run" gives way to any other. */
static enum check_level join_levels(enum check_level a, enum check_level b)
{
        if (a == CHECK_NOT_RUN || b == CHECK_NOT_RUN)
                return a == CHECK_NOT_RUN ? b : a;
        return MAX(a, b);
}

enum check_level check_node_level(const struct check_report *r, size_t node)
{
        enum check_level level = CHECK_NOT_RUN;

        for (size_t i = 0; i < r->n; i++)
                level = join_levels(level, r->v[i].of[node].level);
        return level;
}

enum check_level check_whole_level(const struct check_report *r)
{
        enum check_level level = CHECK_NOT_RUN;

        for (size_t i = 0; i < r->n_nodes; i++)
                level = join_levels(level, check_node_level(r, i));
        return level;
}

const char *check_level_name(enum check_level level)
{
        static const char *const names[] = { "pass", "not run", "warn", "fail" };

        return names[level];
}

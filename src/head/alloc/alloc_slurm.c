/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm: nodes in SLURM_JOB_NODELIST, tasks in SLURM_TASKS_PER_NODE, in the same order. A
 * heterogeneous job has both once per group, with _HET_GROUP_k behind the names (_PACK_GROUP_k
 * before Slurm 20.02), and the plain names may be missing or describe the first group only.
 *
 * In a step SLURM_TASKS_PER_NODE describes the step, and the list of nodes still the job. There the
 * variable counts when SLURM_STEP_TASKS_PER_NODE differs (srun --preserve-env, the interactive step
 * of salloc), or covers all nodes with more than one task on some. Else the CPUs of the job count,
 * by SLURM_CPUS_PER_TASK, unless the job has GPUs.
 *
 * Variables outlive an allocation in old shells, and travel with SendEnv of ssh. Three facts prove
 * that this session owns the variables: this machine is a node of the job, this machine submitted
 * the job, or the cgroup of this process is the job's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/alloc/alloc_reader.h"

enum { GROUPS_MAX = 128 }; /* Slurm's own limit of a heterogeneous job */

/* Variables of a group, by name. */
struct slurm_names {
        char nodes[48], number[48], tasks[48], cpus[48], per_task[48];
};

static bool is_slurm_set(struct alloc_reader *r, const char *name)
{
        return alloc_variable(r->in->env, name);
}

/* Writes NAME, or NAME with the suffix of group @k. */
static void name_variable(char to[48], const char *name, const char *group, int k)
{
        if (group)
                snprintf(to, 48, "%s_%s_%d", name, group, k);
        else
                snprintf(to, 48, "%s", name);
}

static struct slurm_names name_group(struct alloc_reader *r, const char *group, int k)
{
        struct slurm_names n;

        name_variable(n.nodes, "SLURM_JOB_NODELIST", group, k);
        if (!is_slurm_set(r, n.nodes) && !group && is_slurm_set(r, "SLURM_NODELIST"))
                snprintf(n.nodes, sizeof(n.nodes), "SLURM_NODELIST");
        name_variable(n.number, "SLURM_JOB_NUM_NODES", group, k);
        name_variable(n.tasks, "SLURM_TASKS_PER_NODE", group, k);
        name_variable(n.cpus, "SLURM_JOB_CPUS_PER_NODE", group, k);
        name_variable(n.per_task, "SLURM_CPUS_PER_TASK", group, k);
        return n;
}

/* ---- GPUs ---- */

/* Reads "4", "h100:4" or "h100:2,a100:2": the GPUs of a node in all. */
static int read_gpus_per_node(struct alloc_reader *r, int *ret)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;
        const char *text;

        alloc_text_open(&t, r, "SLURM_GPUS_PER_NODE");
        text = t.t.text;
        for (size_t at = 0;; at++) {
                size_t end = at + strcspn(text + at, ",");
                struct alloc_count one;

                /* The number stands behind the last colon: "gpu:h100:4". */
                for (size_t i = at; i < end; i++)
                        if (text[i] == ':')
                                at = i + 1;
                if (alloc_take_number(&t, &at, SLOTS_MAX, &one) < 0)
                        return -EINVAL;
                if (at < end || *ret + one.value > SLOTS_MAX) {
                        alloc_text_error(&t, HN_ALLOC_TEXT, (struct text_range){ at, end - at },
                                         "GPUs are written 4 or h100:4, %d at most", SLOTS_MAX);
                        return -EINVAL;
                }
                *ret += one.value;
                if (!text[at])
                        return 0;
        }
}

/* Finds the number of GPUs on each node of the job; 0 = unknown. *from is the variable. */
static int read_slurm_gpus(struct alloc_reader *r, int *ret, const char **from)
{
        struct alloc_count here = { 0 };

        *ret = 0;
        *from = "SLURM_GPUS_PER_NODE";
        if (is_slurm_set(r, *from))
                return read_gpus_per_node(r, ret);
        /* GPUs of the whole job may be spread unevenly: this number is of a single node. */
        *from = "SLURM_GPUS_ON_NODE";
        if (!is_slurm_set(r, *from) || (r->hosts->n > 1 && is_slurm_set(r, "SLURM_GPUS")) ||
            !strcmp(alloc_variable(r->in->env, *from), "0"))
                return 0;
        if (alloc_read_number(r, *from, SLOTS_MAX, &here) < 0)
                return -EINVAL;
        *ret = here.value;
        return 0;
}

/* ---- nodes and tasks ---- */

/* Compares SLURM_JOB_NUM_NODES with the nodes of the list. */
static int check_node_number(struct alloc_reader *r, const struct slurm_names *n,
                             struct alloc_text *t, size_t nodes)
{
        struct alloc_count number;
        struct diag *d;

        if (!is_slurm_set(r, n->number))
                return 0;
        if (alloc_read_number(r, n->number, HOSTS_MAX, &number) < 0)
                return -EINVAL;
        if ((size_t)number.value == nodes)
                return 0;
        d = alloc_text_error(t, HN_ALLOC_COUNTS, (struct text_range){ 0, t->t.len },
                             "%zu node%s here, but %s is %d", nodes, nodes == 1 ? "" : "s",
                             n->number, number.value);
        diag_help(d, "after a change of the job's size, source the script that scontrol wrote; or "
                     "name the hosts with -H or -w");
        return -EINVAL;
}

/* Whether the tasks are the job's, not of a step on a part of the nodes. */
static bool tasks_are_of_job(struct alloc_reader *r, const struct slurm_names *n,
                             const struct alloc_counts *tasks, size_t nodes)
{
        const char *step = alloc_variable(r->in->env, "SLURM_STEP_TASKS_PER_NODE");
        int most = 0;

        if (!is_slurm_set(r, "SLURM_STEP_ID"))
                return true;
        if (step && strcmp(step, alloc_variable(r->in->env, n->tasks)) != 0)
                return true;
        for (size_t i = 0; i < tasks->n; i++)
                most = MAX(most, tasks->v[i].value);
        return tasks->n == nodes && (most > 1 || nodes == 1);
}

/* Reads the tasks of @nodes nodes from the CPUs of the job. */
static int read_cpus(struct alloc_reader *r, const struct slurm_names *n, size_t nodes,
                     struct alloc_counts *ret)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;
        struct alloc_count per_task = { .value = 1 };

        alloc_text_open(&t, r, n->cpus);
        if (alloc_take_counts(&t, ALLOC_CPUS_MAX, ret) < 0 ||
            (is_slurm_set(r, n->per_task) &&
             alloc_read_number(r, n->per_task, ALLOC_CPUS_MAX, &per_task) < 0))
                return -EINVAL;
        if (ret->n < nodes) {
                alloc_text_error(&t, HN_ALLOC_COUNTS, (struct text_range){ 0, t.t.len },
                                 "%zu count%s for the %zu nodes of %s", ret->n,
                                 ret->n == 1 ? "" : "s", nodes, n->nodes);
                return -EINVAL;
        }
        for (size_t i = 0; i < ret->n; i++)
                ret->v[i].value = MIN(MAX(ret->v[i].value / per_task.value, 1), (int)SLOTS_MAX);
        return 0;
}

/* Finds the tasks of each node of a group; none are known = no counts. *from is the variable. */
static int read_tasks(struct alloc_reader *r, const struct slurm_names *n, size_t nodes, bool gpus,
                      struct alloc_counts *ret, const char **from)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;
        bool of_job;

        /* For messages: without the suffix of a group. */
        *from = "SLURM_TASKS_PER_NODE";
        alloc_text_open(&t, r, n->tasks);
        if (!t.t.len)
                return 0;
        if (alloc_take_counts(&t, SLOTS_MAX, ret) < 0)
                return -EINVAL;
        of_job = tasks_are_of_job(r, n, ret, nodes);
        /* Counts beyond the nodes are ignored. */
        if (of_job && ret->n >= nodes)
                return 0;
        if (of_job) {
                alloc_text_error(&t, HN_ALLOC_COUNTS, (struct text_range){ 0, t.t.len },
                                 "%zu count%s for the %zu nodes of %s", ret->n,
                                 ret->n == 1 ? "" : "s", nodes, n->nodes);
                return -EINVAL;
        }
        alloc_counts_finish(ret);
        *from = "SLURM_JOB_CPUS_PER_NODE";
        return !gpus && is_slurm_set(r, n->cpus) ? read_cpus(r, n, nodes, ret) : 0;
}

/* Adds the nodes of a group. *from is the variable of the tasks. */
static int read_group(struct alloc_reader *r, const struct slurm_names *n, bool gpus,
                      const char **from)
{
        CLEANUP(alloc_names_finish) struct alloc_names nodes = { 0 };
        CLEANUP(alloc_counts_finish) struct alloc_counts tasks = { 0 };
        CLEANUP(alloc_text_finish) struct alloc_text t;

        alloc_text_open(&t, r, n->nodes);
        if (alloc_take_list(&t, &nodes) < 0 || check_node_number(r, n, &t, nodes.names.n) < 0 ||
            read_tasks(r, n, nodes.names.n, gpus, &tasks, from) < 0)
                return -EINVAL;
        for (size_t i = 0; i < nodes.names.n; i++)
                if (alloc_add_tasks(r, &t, nodes.at[i], nodes.names.v[i],
                                    tasks.n ? tasks.v[i].value : 1) < 0)
                        return -EINVAL;
        return 0;
}

/* Reads the groups of a heterogeneous job, under the old or the new names, or the only group. 0, or
 * -EINVAL. */
static int read_groups(struct alloc_reader *r, bool gpus, const char **from)
{
        bool het = is_slurm_set(r, "SLURM_HET_SIZE"), pack = is_slurm_set(r, "SLURM_PACK_SIZE");
        const char *group = het ? "HET_GROUP" : "PACK_GROUP";
        struct alloc_count size;
        struct slurm_names n;

        if (!het && !pack) {
                n = name_group(r, NULL, 0);
                return is_slurm_set(r, n.nodes) ? read_group(r, &n, gpus, from)
                                                : alloc_lacks(r, n.nodes, "SLURM_JOB_ID");
        }
        if (alloc_read_number(r, het ? "SLURM_HET_SIZE" : "SLURM_PACK_SIZE", GROUPS_MAX, &size) < 0)
                return -EINVAL;
        for (int k = 0; k < size.value; k++) {
                n = name_group(r, group, k);
                if (!is_slurm_set(r, n.nodes))
                        return alloc_lacks(r, n.nodes, het ? "SLURM_HET_SIZE" : "SLURM_PACK_SIZE");
                if (read_group(r, &n, gpus, from) < 0)
                        return -EINVAL;
        }
        return 0;
}

/* ---- whether the variables are this session's ---- */

/* Whether the cgroup of this process has a part "job_4711". */
static bool cgroup_is_of_job(const char *cgroup, const char *job)
{
        CLEANUP(free_textp) char *part = xasprintf("/job_%s", job);
        size_t len = strlen(part);

        for (const char *c = cgroup; c && (c = strstr(c, part)); c++)
                if (!c[len] || strchr("/\n", c[len]))
                        return true;
        return false;
}

/* Refuses variables of Slurm that belong to another machine, such as those that ssh has sent along.
 * 0, or -EINVAL. */
static int check_slurm_place(struct alloc_reader *r, const char *job)
{
        const char *submitter = alloc_variable(r->in->env, "SLURM_SUBMIT_HOST");
        const char *node = alloc_variable(r->in->env, "SLURMD_NODENAME");
        struct diag *d;

        if (r->in->asked || (!submitter && !node) || cgroup_is_of_job(r->in->cgroup, job) ||
            alloc_find_host(r->hosts, r->in->host) ||
            (submitter && alloc_same_name(submitter, r->in->host)))
                return 0;
        d = diag_add(r->diags, HN_ALLOC_ORIGIN, EX_DATAERR,
                     "the variables SLURM_* were set on another machine");
        diag_note(d, "job %s was submitted on %s; this machine, %s, is none of its nodes", job,
                  submitter ? submitter : node, r->in->host);
        diag_help(
                d,
                "--scheduler slurm uses the allocation all the same; -H, -w or --local name hosts");
        return -EINVAL;
}

/* Refuses an allocation whose time is over, in a shell that has outlived the job. 0, or -EINVAL. */
static int check_slurm_end(struct alloc_reader *r, const char *job)
{
        const char *end = alloc_variable(r->in->env, "SLURM_JOB_END_TIME");
        char *behind;
        long long at = end ? strtoll(end, &behind, 10) : 0;
        struct diag *d;

        if (r->in->asked || !end || *behind || at <= 0 || at >= r->in->now)
                return 0;
        d = diag_add(r->diags, HN_ALLOC_ORIGIN, EX_DATAERR,
                     "the time of Slurm job %s ended %lld s ago", job, (long long)r->in->now - at);
        diag_note(d, "SLURM_JOB_END_TIME is %s", end);
        diag_help(d, "leave this shell for one of a new allocation; --scheduler slurm uses the "
                     "nodes all "
                     "the same, if the time was extended");
        return -EINVAL;
}

/* Refuses to run as several tasks of a step: each copy would start the whole job. With srun
 * --pty all tasks but the first have no terminal and end. */
static int check_copies(struct alloc_reader *r)
{
        const char *tasks = alloc_variable(r->in->env, "SLURM_STEP_NUM_TASKS");
        struct diag *d;

        if (r->in->asked || !tasks || !is_slurm_set(r, "SLURM_PROCID") ||
            strtol(tasks, NULL, 10) < 2 || is_slurm_set(r, "SLURM_PTY_PORT"))
                return 0;
        d = diag_add(r->diags, HN_ALLOC_COPIES, EX_USAGE,
                     "srun starts %s copies of hnlaunch, and each would start the whole job",
                     tasks);
        diag_help(d, "start hnlaunch once: in the script of sbatch or the shell of salloc without "
                     "srun in front; or one on each node, with --dial-in auto");
        return -EINVAL;
}

static int read_slurm_allocation(struct alloc_reader *r)
{
        const char *job = alloc_variable(r->in->env, "SLURM_JOB_ID"), *tasks_from, *gpus_from;
        bool gpus_known =
                is_slurm_set(r, "SLURM_GPUS_PER_NODE") || is_slurm_set(r, "SLURM_GPUS_ON_NODE");
        int gpus;

        if (check_copies(r) < 0 || check_slurm_end(r, job) < 0 ||
            read_groups(r, gpus_known, &tasks_from) < 0 || check_slurm_place(r, job) < 0 ||
            read_slurm_gpus(r, &gpus, &gpus_from) < 0)
                return -EINVAL;
        alloc_settle(r, job, tasks_from, gpus, gpus_from);
        return 0;
}

const struct alloc_manager alloc_slurm = { .title = "Slurm",
                                           .marks = { "SLURM_JOB_ID" },
                                           .read = read_slurm_allocation };

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managers with a file of hosts: PBS, LSF, Grid Engine, the MPI Operator
 *
 * The files of PBS, LSF and the MPI Operator are read as hostfiles: repeated lines add up. The file
 * of Grid Engine has other columns. LSF also has a variable with the same list, which counts first.
 */
#include <errno.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/alloc/alloc_reader.h"
#include "head/hosts/hostfile.h"

#define OPERATOR_HOSTFILE "/etc/mpi/hostfile"

/* PBS_NODEFILE has a line per slot, and repeated lines of a hostfile add up. Torque may be set up
 * to write each node once, with the slots of each in PBS_PPN. */
static int read_pbs_allocation(struct alloc_reader *r)
{
        const struct alloc_input *in = r->in;
        const char *from = "PBS_NODEFILE", *ppn = alloc_variable(in->env, "PBS_PPN");
        CLEANUP(alloc_text_finish) struct alloc_text t = { 0 };
        struct alloc_count slots;
        bool repeated = false;
        size_t at = 0;

        if (!in->path)
                return alloc_lacks(r, "PBS_NODEFILE", "PBS_JOBID");
        if (hostfile_parse(r->hosts, in->path, in->text, in->len, r->diags) < 0)
                return -EINVAL;
        for (size_t i = 0; i < r->hosts->n; i++)
                repeated |= r->hosts->v[i].slots > 1;
        if (ppn && !repeated) {
                from = "PBS_PPN";
                alloc_text_open(&t, r, from);
                if (alloc_take_number(&t, &at, SLOTS_MAX, &slots) < 0)
                        return -EINVAL;
                for (size_t i = 0; i < r->hosts->n; i++)
                        r->hosts->v[i].slots = slots.value;
        }
        alloc_settle(r, alloc_variable(in->env, "PBS_JOBID"), from, 0, NULL);
        return 0;
}

/* Returns the path of PBS_NODEFILE, NULL = not set: read_pbs_allocation() tells so. */
static const char *find_pbs_file(char *const *env)
{
        return alloc_variable(env, "PBS_NODEFILE");
}

const struct alloc_manager alloc_pbs = {
        .title = "PBS",
        .marks = { "PBS_ENVIRONMENT", "PBS_JOBID" },
        .path = find_pbs_file,
        .read = read_pbs_allocation,
};

/* Reads a list of words: each is a host, followed by the slots if @counted. */
static int read_lsf_words(struct alloc_reader *r, const char *name, bool counted)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;
        struct text_range word;

        alloc_text_open(&t, r, name);
        for (size_t at = 0; alloc_next_word(&t, &at, &word);) {
                CLEANUP(strv_finish) struct strv names = STRV_INIT;
                struct alloc_count slots = { .value = 1 };

                if (alloc_take_names(&t, word, &names) < 0)
                        return -EINVAL;
                if (counted) {
                        at += strspn(t.t.text + at, " \t\n");
                        if (alloc_take_number(&t, &at, SLOTS_MAX, &slots) < 0)
                                return -EINVAL;
                }
                for (size_t i = 0; i < names.n; i++)
                        if (alloc_add_tasks(r, &t, word, names.v[i], slots.value) < 0)
                                return -EINVAL;
        }
        if (r->hosts->n)
                return 0;
        alloc_text_error(&t, HN_ALLOC_TEXT, (struct text_range){ 0, t.t.len }, "no host is named");
        return -EINVAL;
}

/* LSF: "host count host count ..." in LSB_MCPU_HOSTS; else a host per slot, in the file of
 * LSB_DJOB_HOSTFILE or in LSB_HOSTS, which LSF leaves out in large jobs. LSF runs the script of a
 * job on the first host, so this machine must be in the list. */
static int read_lsf_allocation(struct alloc_reader *r)
{
        const struct alloc_input *in = r->in;
        const char *from = alloc_variable(in->env, "LSB_MCPU_HOSTS") ? "LSB_MCPU_HOSTS"
                           : in->path                                ? "LSB_DJOB_HOSTFILE"
                                                                     : "LSB_HOSTS";
        const char *job = alloc_variable(in->env, "LSB_JOBID");
        struct diag *d;
        int rc;

        if (!alloc_variable(in->env, from))
                return alloc_lacks(r, "LSB_MCPU_HOSTS", "LSB_JOBID");
        /* Only LSB_MCPU_HOSTS has counts behind the names. */
        if (strcmp(from, "LSB_DJOB_HOSTFILE") != 0)
                rc = read_lsf_words(r, from, strcmp(from, "LSB_HOSTS") != 0);
        else
                rc = hostfile_parse(r->hosts, in->path, in->text, in->len, r->diags);
        if (rc < 0)
                return rc;
        if (!in->asked && !alloc_find_host(r->hosts, in->host)) {
                d = diag_add(r->diags, HN_ALLOC_ORIGIN, EX_DATAERR,
                             "the variables LSB_* were set on another machine");
                diag_note(d, "this machine, %s, is no host of job %s", in->host, job);
                diag_help(d, "--scheduler lsf uses the hosts all the same; -H, -w or --local name "
                             "hosts");
                return -EINVAL;
        }
        alloc_settle(r, job, from, 0, NULL);
        return 0;
}

/* No file is opened where a variable has the list. */
static const char *find_lsf_file(char *const *env)
{
        return alloc_variable(env, "LSB_MCPU_HOSTS") ? NULL
                                                     : alloc_variable(env, "LSB_DJOB_HOSTFILE");
}

const struct alloc_manager alloc_lsf = {
        .title = "LSF", .marks = { "LSB_JOBID" }, .path = find_lsf_file, .read = read_lsf_allocation
};

/* Reads "host slots queue processors" of the current line; the last two words do not matter. */
static int read_sge_line(struct alloc_reader *r, struct alloc_text *t)
{
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        size_t at = t->t.lines[t->t.line - 1], end = hostfile_text_line_end(&t->t, t->t.line);
        struct text_range word;
        struct alloc_count slots;

        if (!alloc_next_word(t, &at, &word) || word.at >= end)
                return 0;
        if (alloc_take_names(t, word, &names) < 0)
                return -EINVAL;
        at += strspn(t->t.text + at, " \t");
        if (alloc_take_number(t, &at, SLOTS_MAX, &slots) < 0)
                return -EINVAL;
        if (at < end && !strchr(" \t", t->t.text[at])) {
                alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ at, 1 },
                                 "lines are written HOST SLOTS QUEUE PROCESSORS");
                return -EINVAL;
        }
        for (size_t i = 0; i < names.n; i++)
                if (alloc_add_tasks(r, t, word, names.v[i], slots.value) < 0)
                        return -EINVAL;
        return 0;
}

/* PE_HOSTFILE has a line for each queue instance of the job: the lines of a host add up. */
static int read_sge_allocation(struct alloc_reader *r)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;

        alloc_text_open_file(&t, r);
        if (hostfile_text_check(&t.t) < 0)
                return -EINVAL;
        for (t.t.line = 1; (size_t)t.t.line <= t.t.n_lines; t.t.line++)
                if (read_sge_line(r, &t) < 0)
                        return -EINVAL;
        if (!r->hosts->n) {
                t.t.line = 1;
                alloc_text_error(&t, HN_ALLOC_TEXT, (struct text_range){ 0, 1 },
                                 "no host is named");
                return -EINVAL;
        }
        alloc_settle(r, alloc_variable(r->in->env, "JOB_ID"), "PE_HOSTFILE", 0, NULL);
        return 0;
}

static const char *find_sge_file(char *const *env)
{
        return alloc_variable(env, "PE_HOSTFILE");
}

const struct alloc_manager alloc_sge = {
        .title = "Grid Engine",
        .marks = { "SGE_ROOT", "ARC", "JOB_ID", "PE_HOSTFILE" },
        .path = find_sge_file,
        .read = read_sge_allocation,
};

/* MPI Operator, and the MPI runtime of Kubeflow Trainer: the hostfile of the launcher pod, written
 * for Open MPI (worker slots=8), Intel MPI or MPICH (worker:8). With runLauncherAsWorker the
 * launcher itself comes first. */
static int read_mpi_operator_allocation(struct alloc_reader *r)
{
        const struct alloc_input *in = r->in;

        if (hostfile_parse(r->hosts, in->path, in->text, in->len, r->diags) < 0)
                return -EINVAL;
        alloc_settle(r, NULL, in->path, 0, NULL);
        return 0;
}

/* Finds the hostfile of the launcher pod at each place where operators mount one. */
static const char *find_operator_hostfile(char *const *env)
{
        static const char *const names[] = { "OMPI_MCA_orte_default_hostfile",
                                             "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (alloc_variable(env, names[i]))
                        return alloc_variable(env, names[i]);
        return OPERATOR_HOSTFILE;
}

const struct alloc_manager alloc_mpi_operator = {
        .title = "MPI Operator",
        .marks = { "K_MPI_JOB_ROLE=launcher" },
        .also = "OMPI_MCA_orte_default_hostfile=" OPERATOR_HOSTFILE,
        .path = find_operator_hostfile,
        .shared_file = true,
        .read = read_mpi_operator_allocation,
};

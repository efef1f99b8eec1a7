/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table has each manager's name, the variables that tell it, and its reader. Its order is that of
 * --scheduler; alloc_find() goes through a second list, from the manager that runs inside others to
 * those that do not.
 */
#include "head/alloc/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/alloc/alloc_reader.h"
#include "head/core/ray_module.h"

/* What tells a manager: each of @marks is set, or @also is. NAME=VALUE must have that value. */
static const struct {
        const char *title, *option;
        const char *marks[5], *also;
        alloc_reader_run run;
} managers[ALLOC_CHOICES] = {
        [ALLOC_SLURM] = { "Slurm", "slurm", { "SLURM_JOB_ID" }, NULL, alloc_slurm_read },
        [ALLOC_PBS] = { "PBS", "pbs", { "PBS_ENVIRONMENT", "PBS_JOBID" }, NULL, alloc_pbs_read },
        [ALLOC_LSF] = { "LSF", "lsf", { "LSB_JOBID" }, NULL, alloc_lsf_read },
        [ALLOC_SGE] = { "Grid Engine",
                        "sge",
                        { "SGE_ROOT", "ARC", "JOB_ID", "PE_HOSTFILE" },
                        NULL,
                        alloc_sge_read },
        [ALLOC_FLUX] = { "Flux", "flux", { "FLUX_URI" }, NULL, alloc_flux_read },
        [ALLOC_MPI_OPERATOR] = { "MPI Operator",
                                 "mpi-operator",
                                 { "K_MPI_JOB_ROLE=launcher" },
                                 "OMPI_MCA_orte_default_hostfile=" MPI_OPERATOR_HOSTFILE,
                                 alloc_mpi_operator_read },
        [ALLOC_SAGEMAKER] = { "SageMaker",
                              "sagemaker",
                              { "SM_HOSTS", "SM_CURRENT_HOST" },
                              "TRAINING_JOB_ARN",
                              alloc_sagemaker_read },
        [ALLOC_RAY] = { "Ray", "ray", { NULL }, NULL, alloc_ray_read },
};

static bool has_manager_mark(char *const *env, const char *mark)
{
        CLEANUP(free_textp) char *name = xstrndup(mark, strcspn(mark, "="));
        const char *value = alloc_variable(env, name), *want = strchr(mark, '=');

        return value && (!want || !strcmp(value, want + 1));
}

/* Returns the first mark that is missing, NULL = this manager's variables are set. */
static const char *find_missing_mark(enum alloc_from from, char *const *env)
{
        if (managers[from].also && has_manager_mark(env, managers[from].also))
                return NULL;
        for (const char *const *m = managers[from].marks; *m; m++)
                if (!has_manager_mark(env, *m))
                        return *m;
        return NULL;
}

enum alloc_from alloc_find(char *const *env)
{
        static const enum alloc_from order[] = { ALLOC_FLUX,     ALLOC_SLURM, ALLOC_PBS,
                                                 ALLOC_LSF,      ALLOC_SGE,   ALLOC_MPI_OPERATOR,
                                                 ALLOC_SAGEMAKER };

        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                if (!find_missing_mark(order[i], env))
                        return order[i];
        return ALLOC_NONE;
}

const char *alloc_title(enum alloc_from from)
{
        return managers[from].title;
}

/* The hostfile of the launcher pod, wherever the operator mounts it. */
static const char *find_operator_hostfile(char *const *env)
{
        static const char *const names[] = { "OMPI_MCA_orte_default_hostfile",
                                             "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (alloc_variable(env, names[i]))
                        return alloc_variable(env, names[i]);
        return MPI_OPERATOR_HOSTFILE;
}

const char *alloc_path(enum alloc_from from, char *const *env)
{
        if (find_missing_mark(from, env))
                return NULL;
        switch (from) {
        case ALLOC_PBS:
                return alloc_variable(env, "PBS_NODEFILE");
        case ALLOC_LSF:
                return alloc_variable(env, "LSB_MCPU_HOSTS")
                               ? NULL
                               : alloc_variable(env, "LSB_DJOB_HOSTFILE");
        case ALLOC_SGE:
                return alloc_variable(env, "PE_HOSTFILE");
        case ALLOC_MPI_OPERATOR:
                return find_operator_hostfile(env);
        case ALLOC_SAGEMAKER:
                return alloc_variable(env, "SM_HOSTS") ? NULL : SAGEMAKER_CONFIG;
        default:
                return NULL;
        }
}

const char *const *alloc_command(enum alloc_from from, char *const *env)
{
        static const char *const flux[] = { "flux", "kvs", "get", "resource.R", NULL },
                                 *const ray[] = { "python3", "-c", RAY_MODULE_CODE, "nodes", NULL };

        if (from == ALLOC_RAY)
                return ray;
        return from == ALLOC_FLUX && !find_missing_mark(from, env) ? flux : NULL;
}

void alloc_settle_exact(struct alloc_reader *r, const char *job, const char *slots_from)
{
        CLEANUP(free_textp) char *shown = printable_text(job ? job : "", PRINTABLE_NOTE);

        for (size_t i = 0; i < r->hosts->n; i++)
                r->hosts->v[i].slots_given = r->hosts->v[i].slots > 0;
        r->hosts->source = xasprintf("%s%s%s", r->title, job ? " job " : " allocation", shown);
        r->hosts->slots_source = xstrdup(slots_from);
}

void alloc_settle(struct alloc_reader *r, const char *job, const char *tasks_from, int gpus,
                  const char *gpus_from)
{
        int most = 0;

        for (size_t i = 0; i < r->hosts->n && !r->in->ppn; i++)
                most = MAX(most, r->hosts->v[i].slots);
        for (size_t i = 0; i < r->hosts->n; i++)
                r->hosts->v[i].slots = most > 1 ? MAX(r->hosts->v[i].slots, 1) : gpus;
        alloc_settle_exact(r, job, most > 1 ? tasks_from : gpus ? gpus_from : "");
}

int alloc_read(enum alloc_from from, const struct alloc_input *in, struct hosts *h, struct diags *d)
{
        struct alloc_reader r = { in, managers[from].title, managers[from].option, h, d };
        const char *missing = find_missing_mark(from, in->env);
        int rc;

        if (missing) {
                diag_help(diag_add(d, HN_ALLOC_NOT_INSIDE, EX_USAGE,
                                   "--scheduler %s, but this is no %s allocation: %s is not set",
                                   r.option, r.title, missing),
                          "start hnlaunch inside the allocation, or name the hosts with -H or -w");
                return -EINVAL;
        }
        rc = managers[from].run(&r);
        if (rc == 0)
                alloc_mark_own(h, in->host);
        return rc;
}

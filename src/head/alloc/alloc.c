/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table has each manager's name, the variables that tell it, and its reader. Its order is that of
 * --from; alloc_find() goes through a second list, from the manager that runs inside others to
 * those that do not.
 */
#include "head/alloc/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/memory.h"
#include "base/printable.h"
#include "head/alloc/alloc_reader.h"

enum { HN_NOT_INSIDE = 153 };

static const struct {
        const char *title, *option;
        const char *marks[4]; /* variables that are set in each of its allocations */
        const char *file;     /* variable with the path of a file to read */
        alloc_reader_run run;
} managers[ALLOC_CHOICES] = {
        [ALLOC_SLURM] = { "Slurm", "slurm", { "SLURM_JOB_ID" }, NULL, alloc_slurm_read },
        [ALLOC_PBS] = { "PBS",
                        "pbs",
                        { "PBS_ENVIRONMENT", "PBS_JOBID" },
                        "PBS_NODEFILE",
                        alloc_pbs_read },
};

static bool is_manager_found(enum alloc_from from, char *const *env)
{
        for (const char *const *m = managers[from].marks; *m; m++)
                if (!alloc_variable(env, *m))
                        return false;
        return true;
}

enum alloc_from alloc_find(char *const *env)
{
        static const enum alloc_from order[] = { ALLOC_SLURM, ALLOC_PBS };

        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                if (is_manager_found(order[i], env))
                        return order[i];
        return ALLOC_NONE;
}

const char *alloc_title(enum alloc_from from)
{
        return managers[from].title;
}

const char *alloc_path(enum alloc_from from, char *const *env)
{
        return managers[from].file ? alloc_variable(env, managers[from].file) : NULL;
}

void alloc_settle(struct alloc_reader *r, const char *job, const char *tasks_from, int gpus,
                  const char *gpus_from)
{
        CLEANUP(free_textp) char *shown = printable_text(job ? job : "", PRINTABLE_NOTE);
        int most = 0;

        for (size_t i = 0; i < r->hosts->n && !r->in->ppn; i++)
                most = MAX(most, r->hosts->v[i].slots);
        for (size_t i = 0; i < r->hosts->n; i++) {
                struct host *h = &r->hosts->v[i];

                h->slots = most > 1 ? MAX(h->slots, 1) : gpus;
                h->slots_given = h->slots > 0;
        }
        r->hosts->source = xasprintf("%s%s%s", r->title, job ? " job " : " allocation", shown);
        r->hosts->slots_source = xstrdup(most > 1 ? tasks_from : gpus ? gpus_from : "");
}

/* Marks this machine, which needs no ssh. */
static void mark_own_host(struct hosts *h, const char *name)
{
        struct host *own = alloc_find_host(h, name);

        if (own && !own->port && !own->user)
                own->local = true;
}

int alloc_read(enum alloc_from from, const struct alloc_input *in, struct hosts *h, struct diags *d)
{
        struct alloc_reader r = { in, managers[from].title, managers[from].option, h, d };
        int rc;

        for (const char *const *m = managers[from].marks; *m; m++)
                if (!alloc_variable(in->env, *m)) {
                        diag_help(diag_add(d, HN_NOT_INSIDE, EX_USAGE,
                                           "--from %s, but this is no %s allocation: %s is not set",
                                           r.option, r.title, *m),
                                  "start hnlaunch inside the allocation, or name the hosts with -H "
                                  "or -w");
                        return -EINVAL;
                }
        rc = managers[from].run(&r);
        if (rc == 0)
                mark_own_host(h, in->host);
        return rc;
}

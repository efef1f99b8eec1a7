/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the job: one, or several in one world (hnlaunch -n 1 ./a : -n 3 ./b).
 *
 * launch_programs_find() makes l->programs before anything is connected, launch_programs_prepare()
 * adds variables and places of pushed files, launch_programs_share() gives each program ranks of
 * the plan. Words of the arguments belong to the options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/core/program.h"
#include "head/launch/launch_private.h"
#include "head/options/export_env.h"
#include "head/options/multi_prog.h"
#include "head/options/program_options.h"

/* Turns a program `train.bin` into ./train.bin when PATH has none and the file exists in @cwd, as
 * mpirun does. */
static void find_in_folder(char **name, const char *cwd)
{
        CLEANUP(free_textp) char *full = NULL;

        /* PATH of this machine: other nodes are taken to have the same. */
        if (strchr(*name, '/') || program_in_path(*name))
                return;
        full = xasprintf("%s/%s", cwd, *name);
        if (access(full, F_OK) == 0) {
                char *here = xasprintf("./%s", *name);

                free(*name);
                *name = here;
        }
}

/* Returns the working directory of a program behind a colon, malloc'ed; NULL = that of the job. */
static char *find_program_cwd(const struct launch *l, const char *chdir)
{
        if (!chdir)
                return NULL;
        return *chdir == '/' ? xstrdup(chdir) : xasprintf("%s/%s", l->here, chdir);
}

void launch_programs_find(struct launch *l)
{
        size_t n = l->o->argv.n ? 1 + l->o->n_more : 0; /* `hnlaunch plan` needs none */

        l->programs = xcalloc(n, sizeof(*l->programs));
        l->n_programs = n;
        for (size_t i = 0; i < n; i++) {
                const struct program_options *own = options_program(l->o, i);
                struct job_program *p = &l->programs[i];

                p->argv = options_argv(l->o, i);
                if (own)
                        p->cwd = find_program_cwd(l, own->chdir);
                /* A container's programs are elsewhere. */
                if (!l->o->container.kind)
                        find_in_folder(p->argv->v, p->cwd ? p->cwd : l->cwd);
        }
}

void launch_programs_prepare(struct launch *l)
{
        for (size_t i = 0; i < l->n_programs; i++) {
                const struct program_options *own = options_program(l->o, i);
                struct job_program *p = &l->programs[i];

                if (own)
                        export_env_add(l->o, &own->exports, environ, &p->env, &l->diags);
                /* Only a program named by a path may be a pushed file, and a directory of its own
                 * is not below the pushed files. */
                if (!p->cwd && strchr(p->argv->v[0], '/'))
                        p->pushed =
                                manifest_place(&l->manifests[PUSH_RANKS], l->here, p->argv->v[0]);
        }
}

int launch_programs_share(struct launch *l)
{
        struct intlist counts = { 0 };
        struct diag *d;
        bool fits;

        if (l->o->multi)
                return multi_prog_share(l->o->multi, &l->plan, &l->diags) < 0
                               ? verdict_nothing_started(l, EX_DATAERR)
                               : 0;
        intlist_add(&counts, l->o->first_np);
        for (size_t i = 0; i < l->o->n_more; i++)
                intlist_add(&counts, l->o->more[i].np);
        /* Ranks of roles are shared when the plan is made. */
        fits = !l->o->n_more || l->o->first || plan_share(&l->plan, counts.v, counts.n);
        for (size_t i = 0; !fits && i < counts.n; i++) {
                if (counts.v[i])
                        continue;
                d = diag_add(&l->diags, HN_TOO_MANY_RANKS, EX_UNAVAILABLE,
                             "no slot is left for `%s`: there are %d", options_argv(l->o, i)->v[0],
                             l->plan.world_size);
                diag_help(d, "it has no -n, and the other programs take all slots: lower their -n, "
                             "or name more hosts");
        }
        intlist_finish(&counts);
        return fits ? 0 : verdict_nothing_started(l, EX_UNAVAILABLE);
}

void launch_programs_free(struct launch *l)
{
        for (size_t i = 0; i < l->n_programs; i++) {
                strv_finish(&l->programs[i].env);
                strv_finish(&l->programs[i].words);
                free((char *)l->programs[i].cwd);
        }
        free(l->programs);
}

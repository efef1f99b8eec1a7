/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strv.h"
#include "head/launch_private.h"
#include "head/mpi_search.h"
#include "head/options/export_env.h"

enum { HN_TWO_MPIS = 245, HN_LONE_WORLDS = 313 };

static void warn_of_lone_ranks(struct launch *l, const char *program, const char *what)
{
        diag_help(diag_warn(&l->diags, HN_LONE_WORLDS,
                            "%s uses MPI (%s), and with --mpi none each of its %d ranks is a world "
                            "of one",
                            program, what, l->plan.world_size),
                  "leave out --mpi none");
}

static void warn_of_two_mpis(struct launch *l, const char *program,
                             const struct mpi_libraries *libs)
{
        bool first = libs->family == MPI_FAMILY_MPICH;
        struct diag *d = diag_warn(&l->diags, HN_TWO_MPIS,
                                   "%s would load two MPI libraries that exclude each other: %s "
                                   "(%s) and %s (%s)",
                                   program, libs->of[0], mpi_family_name(MPI_FAMILY_OPEN_MPI),
                                   libs->of[1], mpi_family_name(MPI_FAMILY_MPICH));

        for (size_t i = 0; i < 2; i++)
                diag_note(d, "%s needs %s", libs->by[i] ? libs->by[i] : program, libs->of[i]);
        diag_note(d, "its calls of MPI go to %s, which comes first", libs->of[first]);
        diag_help(d, "build the program and all of its libraries with one MPI");
}

/* Returns LD_LIBRARY_PATH of the ranks, malloc'ed; NULL = not set here. */
static char *find_library_path(const struct launch *l)
{
        struct strv env = STRV_INIT, unset = STRV_INIT;
        struct diags unused = DIAGS_INIT;
        const char *value;
        char *path;

        if (l->o.command == COMMAND_PLAN)
                export_env_collect(&l->o, environ, &env, &unset, &unused);
        value = strv_env_get(env.n ? &env : &l->env, "LD_LIBRARY_PATH");
        path = value ? xstrdup(value) : NULL;
        strv_finish(&env);
        strv_finish(&unset);
        diags_finish(&unused);
        return path;
}

void launch_mpi_choose(struct launch *l)
{
        CLEANUP(free_textp) char *library_path = find_library_path(l);
        CLEANUP(mpi_found_finish) struct mpi_found found = { 0 };
        const struct mpi_libraries *libs = &found.libs;
        const char *mpi;

        if (l->plan.world_size > 1 && !l->o.plan.per_node)
                mpi_search(&found, l->o.argv.v, l->cwd, library_path);
        mpi = libs->name ? libs->name : found.script ? "mpi4py" : "";
        snprintf(l->config.mpi, sizeof(l->config.mpi), "%s", mpi);
        if (l->o.mpi == MPI_NONE && *mpi)
                warn_of_lone_ranks(l, libs->name ? found.program : found.script, mpi);
        else if (libs->of[0] && libs->of[1])
                warn_of_two_mpis(l, found.program, libs);
        if (l->o.mpi == MPI_AUTO && libs->family == MPI_FAMILY_OPEN_MPI)
                l->o.mpi = MPI_PMIX;
}

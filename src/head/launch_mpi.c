/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strv.h"
#include "head/core/program.h"
#include "head/launch.h"
#include "head/mpi_program.h"
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

static void find_libraries(const struct launch *l, const char *path, struct mpi_libraries *libs)
{
        CLEANUP(free_textp) char *library_path = find_library_path(l);

        mpi_libraries_find(libs, path, library_path);
}

void launch_mpi_choose(struct launch *l)
{
        char *const *argv = l->o.argv.v;
        CLEANUP(free_textp)
        char *path = **argv == '/'        ? xstrdup(*argv)
                     : strchr(*argv, '/') ? xasprintf("%s/%s", l->cwd, *argv)
                                          : program_find_in_path(*argv);
        CLEANUP(mpi_libraries_finish) struct mpi_libraries libs = { 0 };
        CLEANUP(free_textp) char *script = NULL;
        const char *mpi;

        if (path && l->plan.world_size > 1 && !l->o.plan.per_node) {
                find_libraries(l, path, &libs);
                script = libs.name ? NULL : mpi_script_of(path, argv, l->cwd);
        }
        mpi = libs.name ? libs.name : script ? "mpi4py" : "";
        snprintf(l->config.mpi, sizeof(l->config.mpi), "%s", mpi);
        if (l->o.mpi == MPI_NONE && *mpi)
                warn_of_lone_ranks(l, script ? script : *argv, mpi);
        else if (libs.of[0] && libs.of[1])
                warn_of_two_mpis(l, *argv, &libs);
        if (l->o.mpi == MPI_AUTO && libs.family == MPI_FAMILY_OPEN_MPI)
                l->o.mpi = MPI_PMIX;
}

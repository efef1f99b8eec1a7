/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent reports for each rank what MPI_Init() did (enum rank_mpi): with PMI or PMIx the rank
 * has asked hnlaunch for the others. A library that was loaded but did not ask tells which way
 * would have fitted. A rank that joined PyTorch's store has met the others there, whatever its MPI
 * did.
 */
#include "head/model/lone_rank.h"

#include <stdio.h>

#include "base/elf/elf_libs.h"
#include "base/error_number.h"
#include "base/macros.h"
#include "head/model/plan.h"

/* Returns the family of the library loaded by the rank, unless functions of the library would have
 * found hnlaunch: then the rank did not call MPI. */
static enum mpi_family misfit_of(const struct lone_rank *r)
{
        switch (r->end->mpi) {
        case RANK_MPI_ALONE_OPEN_MPI:
                return MPI_FAMILY_OPEN_MPI;
        case RANK_MPI_ALONE_MPICH:
                return MPI_FAMILY_MPICH;
        case RANK_MPI_UNUSED_OPEN_MPI:
                return r->kind == MPI_PMIX ? MPI_FAMILY_NONE : MPI_FAMILY_OPEN_MPI;
        case RANK_MPI_UNUSED_MPICH:
                return r->kind == MPI_PMIX ? MPI_FAMILY_MPICH : MPI_FAMILY_NONE;
        default:
                return MPI_FAMILY_NONE;
        }
}

/* Whether the rank has asked for the others, with or without MPI_Finalize(). */
static bool has_used_pmi(const struct exited *e)
{
        return e->mpi == RANK_MPI_UNFINALIZED || e->mpi == RANK_MPI_FINALIZED;
}

/* Returns the variables by which an MPI of this family would have found hnlaunch, NULL = the kind
 * of the launch does not fit it. */
static const char *find_variables(enum mpi_family family, unsigned kind)
{
        if (family == MPI_FAMILY_OPEN_MPI)
                return kind == MPI_PMIX ? "PMIX_*" : NULL;
        return kind == MPI_PMIX ? NULL : "PMI_*";
}

/* Returns the word of --mpi for the family. */
static const char *find_way(enum mpi_family family)
{
        return family == MPI_FAMILY_OPEN_MPI ? "pmix" : "pmi1";
}

bool lone_rank_is_alone(const struct lone_rank *r)
{
        const struct exited *e = r->end;

        return r->kind != MPI_NONE && !r->joined && !e->stopped &&
               (e->mpi == RANK_MPI_ALONE_OPEN_MPI || e->mpi == RANK_MPI_ALONE_MPICH);
}

void lone_rank_sentence(const struct lone_rank *r, const char *both, char *to, size_t size)
{
        enum mpi_family family = misfit_of(r);
        const char *variables = find_variables(family, r->kind), *name = mpi_family_name(family);

        if (variables)
                snprintf(to, size,
                         "%s were each a world of one: the variables %s of hnlaunch did not reach "
                         "their MPI (%s)",
                         both, variables, name);
        else
                snprintf(to, size, "%s were each a world of one: their MPI (%s) needs --mpi %s",
                         both, name, find_way(family));
}

bool lone_rank_warn(const struct lone_rank *r, struct diags *d)
{
        enum mpi_family misfit = r->joined ? MPI_FAMILY_NONE : misfit_of(r);
        const struct exited *e = r->end;
        char name[PLAN_RANK_NAME_MAX];
        struct diag *di;

        if ((!*r->mpi && misfit == MPI_FAMILY_NONE) || r->kind == MPI_NONE || e->status ||
            e->stopped || has_used_pmi(e))
                return false;
        di = diag_warn(d, HN_LONE_RANK,
                       "%s on %s uses MPI (%s), and has ended without asking for the other ranks",
                       plan_rank_name(r->plan, (int)e->rank, name), r->host,
                       misfit ? mpi_family_name(misfit) : r->mpi);
        diag_note(di, "it was a world of one, unless it did not call MPI_Init()");
        if (misfit && find_variables(misfit, r->kind))
                diag_help(di, "let the variables %s of hnlaunch reach its MPI",
                          find_variables(misfit, r->kind));
        else if (misfit)
                diag_help(di, "name the way of its MPI: --mpi %s", find_way(misfit));
        else
                diag_help(di, "name the way of its MPI: --mpi pmix for Open MPI, --mpi pmi1 for "
                              "MPICH and Intel MPI");
        return true;
}

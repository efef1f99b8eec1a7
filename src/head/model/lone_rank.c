/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/lone_rank.h"

#include "base/elf/mpi_library.h"

enum { HN_LONE_RANK = 407 };

/* Returns the family of the library that the rank had loaded, unless its functions would have found
 * hnlaunch: then the rank did not call them. */
static enum mpi_family misfit_of(const struct lone_rank *r)
{
        switch (r->end->mpi) {
        case RANK_MPI_UNUSED_OPEN_MPI:
                return r->kind == MPI_PMIX ? MPI_FAMILY_NONE : MPI_FAMILY_OPEN_MPI;
        case RANK_MPI_UNUSED_MPICH:
                return r->kind == MPI_PMIX ? MPI_FAMILY_MPICH : MPI_FAMILY_NONE;
        default:
                return MPI_FAMILY_NONE;
        }
}

static bool has_used_pmi(const struct exited *e)
{
        return e->mpi == RANK_MPI_UNFINALIZED || e->mpi == RANK_MPI_FINALIZED;
}

bool lone_rank_warn(const struct lone_rank *r, struct diags *d)
{
        enum mpi_family misfit = r->joined ? MPI_FAMILY_NONE : misfit_of(r);
        const struct exited *e = r->end;
        struct diag *di;

        if ((!*r->mpi && misfit == MPI_FAMILY_NONE) || e->status || e->stopped || has_used_pmi(e))
                return false;
        di = diag_warn(d, HN_LONE_RANK,
                       "rank %u on %s uses MPI (%s), and has ended without asking for the other "
                       "ranks",
                       e->rank, r->host, misfit ? mpi_family_name(misfit) : r->mpi);
        diag_note(di, "it was a world of one, unless it did not call MPI_Init()");
        if (misfit)
                diag_help(di, "name the way of its MPI: --mpi %s",
                          misfit == MPI_FAMILY_OPEN_MPI ? "pmix" : "pmi1");
        else
                diag_help(di, "name the way of its MPI: --mpi pmix for Open MPI, --mpi pmi1 for "
                              "MPICH and Intel MPI");
        return true;
}

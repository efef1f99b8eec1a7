/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mpi_library: tells libraries of MPI by their names
 *
 * Two families exclude each other in one process: their handles and their protocols to a launcher
 * differ. Pure.
 */
#pragma once

#include <stdbool.h>

enum mpi_family {
        MPI_FAMILY_NONE,     /* no library of MPI */
        MPI_FAMILY_ANY,      /* libmpi_abi.so, the ABI of MPI 5: each library may have it */
        MPI_FAMILY_OPEN_MPI, /* Open MPI 3 to 5, by the number behind .so */
        MPI_FAMILY_MPICH,    /* the ABI of MPICH: Intel MPI, MVAPICH; and names without a number */
};

/* @name: of the file, with or without folders, such as "libmpi.so.40" or
 * "/opt/mpi/lib/libmpi.so.40.30.4". */
enum mpi_family mpi_library_family(const char *name);
/* Returns "Open MPI" or "MPICH's ABI", "MPI" for MPI_FAMILY_ANY, "" for MPI_FAMILY_NONE. */
const char *mpi_family_name(enum mpi_family family);
/* Whether a program of this name, without folders, starts processes of MPI itself. */
bool mpi_is_launcher(const char *name);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elf_libs: the libraries that a program or library asks the loader for
 *
 * Reads the file only; nothing is loaded or executed.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"

struct elf_libs {
        struct strv needed;  /* DT_NEEDED, in order */
        struct strv folders; /* DT_RUNPATH, else DT_RPATH, split; $ORIGIN is the file's folder */
        bool inherited;      /* they are of DT_RPATH: also for libraries of its libraries */
};

/* Reads @path into @ret, which needs no initialization and elf_libs_finish() in every case. 0;
 * -ENOEXEC: no dynamic ELF file of this machine's word size; other negative errno of open(). Names
 * above 255 bytes and folders above 4095 bytes are left out. Blocks as long as the file system
 * does. */
int elf_libs_read(struct elf_libs *ret, const char *path);
void elf_libs_finish(struct elf_libs *l);

/* Families of MPI libraries, recognized by name. Two families exclude each other in one process:
 * their handles and their protocols to a launcher differ. */

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

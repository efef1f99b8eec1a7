/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI program: tells from the file whether a program uses MPI
 */
#pragma once

#include <stdbool.h>

#include "base/elf/elf_libs.h"

struct mpi_libraries {
        char *name;             /* for example "libmpi.so.40"; NULL = no MPI */
        enum mpi_family family; /* of which MPI_Init() is called, as the loader binds it */
        char *of[2];            /* name of a library of Open MPI and of MPICH's ABI; NULL = none */
        char *by[2];            /* the libraries that need these, NULL = the program itself */
};

/* Looks for MPI among the libraries of the program at @path and those of its libraries, where the
 * loader of this machine would find them with LD_LIBRARY_PATH=@library_path (NULL = not set).
 * Everything in @ret is NULL if there is none. 0, or -errno: @path is no ELF file of this machine's
 * word size with a dynamic section. */
int mpi_libraries_find(struct mpi_libraries *ret, const char *path, const char *library_path);
void mpi_libraries_finish(struct mpi_libraries *l);

bool mpi_is_python(const char *path);

/* Returns the Python script run by @argv, or @path itself, if the script imports mpi4py at top
 * level (in a line without indentation); malloc'ed, as named in @argv. A relative script is looked
 * up in @cwd. NULL: none. */
char *mpi_script_of(const char *path, char *const *argv, const char *cwd);

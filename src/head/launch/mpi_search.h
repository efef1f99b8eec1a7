/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI search: from a command line to the program of MPI
 *
 * The first word is the program, or other words lead to one: `env ./a.out`, `timeout 5 ./a.out`,
 * `sh -c` and scripts of a shell. Only files of this machine are read.
 */
#pragma once

#include "head/launch/mpi_program.h"

struct mpi_found {
        struct mpi_libraries libs; /* of @program; all NULL = none */
        char *program;             /* the word that names it; NULL = no program of MPI was found */
        char *script;              /* a Python script that imports mpi4py; NULL = none */
};

/* Looks at the words of @argv in turn, at most some hundred files. Relative names are looked up in
 * @cwd, names without a folder in PATH, too. The words behind a launcher, such as mpirun, are its
 * own. */
void mpi_search(struct mpi_found *ret, char *const *argv, const char *cwd,
                const char *library_path);
void mpi_found_finish(struct mpi_found *f);

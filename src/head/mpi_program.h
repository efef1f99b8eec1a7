/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI program: tells from the file whether a program uses MPI
 */
#pragma once

#include <stdbool.h>

/* Returns the MPI library linked with the program, for example "libmpi.so.40", malloc'ed. NULL:
 * none, or no ELF file of this machine's word size. */
char *mpi_library_of(const char *path);

/* Whether @library is of Open MPI 3 to 5, by its number. The others have the ABI of MPICH. */
bool mpi_library_is_open_mpi(const char *library);

/* Returns the Python script run by @argv, or @path itself, if the script imports mpi4py at top
 * level (in a line without indentation); malloc'ed, as named in @argv. A relative script is looked
 * up in @cwd. NULL: none. */
char *mpi_script_of(const char *path, char *const *argv, const char *cwd);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI program: tells from a program's file whether it uses MPI
 */
#pragma once

/* Returns the MPI library that the program is linked with, such as "libmpi.so.40", malloc'ed. NULL:
 * none, or no ELF file of this machine's word size. */
char *mpi_library_of(const char *path);

/* Returns the Python script that @argv runs, or that @path is itself, if it imports mpi4py at top
 * level (in a line that is not indented); malloc'ed, as @argv names it. A relative script is looked
 * up in @cwd. NULL: none. */
char *mpi_script_of(const char *path, char *const *argv, const char *cwd);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI program: whether a program is one, told from its file
 */
#pragma once

/* The MPI library that the program is linked with, such as "libmpi.so.40", malloc'ed. NULL: none,
 * or no ELF file of this machine's kind. */
char *mpi_library_of(const char *path);

/* The Python script that @argv runs, or that @path is itself, when it imports mpi4py in a line that
 * is not indented, so always; malloc'ed, relative to @cwd unless it is absolute. NULL: none. */
char *mpi_script_of(const char *path, char *const *argv, const char *cwd);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI program: whether a program is one, told from its file
 */
#pragma once

/* The MPI library that the program is linked with, such as "libmpi.so.40", malloc'ed. NULL: none,
 * or no ELF file of this machine's kind; so are scripts, whatever they load later. */
char *mpi_library_of(const char *path);

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

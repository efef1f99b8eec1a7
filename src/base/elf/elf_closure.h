/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elf_closure: all libraries that a program would have, those of its libraries too
 *
 * They are looked for where the loader of this machine would (ld.so(8)), by reading files only.
 * Differences: libraries of LD_PRELOAD and those that a program opens itself are not seen, $ORIGIN
 * is replaced at the front of a folder only, $LIB and $PLATFORM are not, and folders for special
 * processors are left out. The parts of glibc are not listed: they lead nowhere.
 */
#pragma once

#include <stddef.h>

struct elf_library {
        char *name;     /* as it is asked for, mostly without a folder */
        char *path;     /* NULL = not found on this machine */
        const char *by; /* lent name of the first library that asks for it; NULL = the program */
};

struct elf_closure {
        struct elf_library *v; /* those of the program first, each name once */
        size_t n, cap;
};

/* Reads @program into @ret, which needs no initialization and elf_closure_finish() in every case.
 * @library_path: LD_LIBRARY_PATH of the program, or NULL. 0, or the error of elf_libs_read() for
 * the program itself. After 512 libraries, or 20,000 tries to open one, the rest is left out.
 * Blocks as long as the file system does. */
int elf_closure_read(struct elf_closure *ret, const char *program, const char *library_path);
void elf_closure_finish(struct elf_closure *c);

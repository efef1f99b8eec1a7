/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elf_closure: all libraries of a program, directly or through other libraries
 *
 * The search goes where the loader of this machine would look (ld.so(8)), by reading files only.
 * Differences: libraries of LD_PRELOAD and of dlopen() are not seen, $ORIGIN is replaced at the
 * front of a folder only, $LIB and $PLATFORM are not, and folders for special processors are left
 * out. The parts of glibc are not listed: they ask for no other library.
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

/* Returns the path of the library @name, without a folder, as dlopen(3) in a program without
 * folders of its own would find it, malloc'ed; NULL = it is nowhere. */
char *elf_closure_find(const char *name, const char *library_path);

/* The index /etc/ld.so.cache of libraries, which ldconfig(8) writes from the folders of ld.so.conf.
 * Pure: the bytes may be anything. Source: sysdeps/generic/dl-cache.h of glibc. The format of 2.2
 * and newer is read, alone or behind the older one; entries for special processors are left out. */

/* Returns the path of the library called @name, lent by @data; NULL: none is left. @at is 0 at
 * first, and leads to the next one (of another word size) afterwards. @data has @len bytes and a
 * NUL behind them. */
const char *loader_cache_find(const char *data, size_t len, const char *name, size_t *at);

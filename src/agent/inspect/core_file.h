/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core_file: the file that the kernel has written of a process that crashed
 *
 * Its name follows from core_pattern of the node (core(5)). The parts of it that are known only to
 * the kernel are looked for in the folder. The file itself names the process and its program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct core_file {
        /* Of the process that it is looked for: */
        pid_t pid;
        const char *cwd; /* "" = that of this process */
        bool dumped;     /* the kernel says so */
        /* The file: */
        char path[512];
        char program[512]; /* "" = not known */
};

/* Finds the file. False: @why has the reason. Blocks as long as the file system does. */
bool core_file_find(struct core_file *f, char *why, size_t size);

/* --- its parts, pure -------------------------------------------------------------------------- */

/* Stands for text of a path that is not known. */
#define CORE_FILE_ANY '\001'

/* Returns the path that the kernel makes of @pattern, malloc'ed, without a folder in front. */
char *core_file_expand(const char *pattern, bool uses_pid, pid_t pid);
/* Whether @name is such a path, with any text for CORE_FILE_ANY. */
bool core_file_match(const char *name, const char *expanded);
/* Writes which program gets the cores of a pattern that begins with a bar, and where it keeps that
 * of @pid. */
void core_file_describe_pipe(const char *pattern, pid_t pid, char *to, size_t size);
/* Reads the process and the program (of @size bytes) from the notes of a core file. False: it has
 * none of a process. */
bool core_file_read_notes(const void *notes, size_t len, pid_t *ret_pid, char *program,
                          size_t size);

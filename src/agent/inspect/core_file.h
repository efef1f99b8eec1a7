/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core_file: the file written by the kernel after the crash of a process
 *
 * The name follows from core_pattern of the node (core(5)). Parts known only to the kernel are
 * looked for in the folder. The file itself names the process and the program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct core_file {
        /* The crashed process: */
        pid_t pid;
        const char *cwd; /* "" = as of this process */
        bool dumped;     /* the kernel says so */
        /* The file: */
        char path[512];
        char program[512]; /* "" = not known */
};

/* Finds the file. False: @why has the reason. Blocks as long as the file system does. */
bool core_file_find(struct core_file *f, char *why, size_t size);

/* --- parts, pure ------------------------------------------------------------------------------ */

/* Stands for an unknown text in a path. */
#define CORE_FILE_ANY '\001'

/* Returns the kernel's path for @pattern, malloc'ed, without a folder in front. */
char *core_file_expand(const char *pattern, bool uses_pid, pid_t pid);
/* Whether @name matches a path of core_file_expand(), with any text for CORE_FILE_ANY. */
bool core_file_match(const char *name, const char *expanded);
/* Writes the program of a pattern with a bar in front, and where this program keeps the core of
 * @pid. */
void core_file_describe_pipe(const char *pattern, pid_t pid, char *to, size_t size);
/* Reads the process and the program (of @size bytes) from the notes of a core file. False: there
 * are none of a process. */
bool core_file_read_notes(const void *notes, size_t len, pid_t *ret_pid, char *program,
                          size_t size);

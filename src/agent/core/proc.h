/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proc: processes of this machine, read from /proc
 *
 * A process may end at any time, so every answer is a moment old. Source of files and fields:
 * proc(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- fields of a line ------------------------------------------------------------------------- */

/* The beginning of the @n-th word (from 0) of @line; NULL when there are fewer. Words are separated
 * by blanks; the line ends with a newline or NUL. */
const char *proc_word(const char *line, size_t n);
/* Reads the number with which the @n-th word begins. False: no such word, or no number. */
bool proc_number(const char *line, size_t n, uint64_t *ret);
/* The first line of @file with @text, from behind @text on, malloc'ed; NULL when there is none. */
char *proc_line(const char *file, const char *text);

/* --- one process ------------------------------------------------------------------------------ */

struct proc_stat {
        pid_t pid, parent, session;
        char state;           /* R S D T t Z X I */
        bool is_ending;       /* on its way out, such as in a core dump */
        uint64_t cpu_ticks;   /* user and system */
        uint64_t start_ticks; /* since boot */
        uint64_t resident_pages;
        uint64_t env_start, env_end; /* addresses; 0 = none, or not allowed to know */
};

/* Reads at most @size - 1 bytes of /proc/@pid/@file with a single read(), NUL-terminated. False:
 * the process is gone, the file is empty, or may not be read. */
bool proc_read(pid_t pid, const char *file, char *to, size_t size);
/* Parses one line of /proc/PID/stat. False: malformed. */
bool proc_parse_stat(struct proc_stat *p, const char *line);
bool proc_read_stat(struct proc_stat *p, pid_t pid); /* false: gone */
/* True for a process with a handler of @signo, or with the signal blocked, for a wait in some other
 * way. False on kernels that do not tell. */
bool proc_catches(pid_t pid, int signo);
/* The name of the file that the process executes, without folders: "" = not known. */
void proc_program(pid_t pid, char *to, size_t size);

/* True for a dead process held by a tracer, such as a debugger at the prompt, which must wait for
 * the process before the parent can. No signal helps. */
bool proc_is_held(pid_t pid);
/* True for a process stopped by its tracer. */
bool proc_is_traced(pid_t pid);

/* --- numbers of processes --------------------------------------------------------------------- */

/* A child of the agent that is born in a process namespace has the agent's /proc, with numbers of
 * the outer namespace. */

bool proc_is_outer(void); /* /proc is that of an outer process namespace */
pid_t proc_self(void);    /* the number of this process in /proc */
/* Translates a number of /proc, of this process's namespace or below, to the number for kill(2) and
 * ptrace(2). 0: gone, or not known. */
pid_t proc_local(pid_t pid);
/* Whether the process of this number in /proc has ended; false where that cannot be known. */
bool proc_is_gone(pid_t pid);

/* --- sets of processes ------------------------------------------------------------------------ */

struct pids {
        pid_t *v;
        size_t n, cap;
};

#define PIDS_INIT                                                                                  \
        {                                                                                          \
                0                                                                                  \
        }

void pids_push(struct pids *p, pid_t pid);
bool pids_have(const struct pids *p, pid_t pid);
void pids_finish(struct pids *p);

/* Calls @fn for every process of the machine. */
void proc_each(void (*fn)(void *ctx, pid_t pid), void *ctx);
/* True while this process has children, zombies included, held ones excluded. Exact. */
bool proc_any_child(void);
/* Appends the children of @of, a process with a single thread. A child may be missed when children
 * come or go meanwhile, so also ask proc_any_child(). */
void proc_children(pid_t of, struct pids *to);
/* Appends the children of all threads of @of, on kernels with such lists. */
void proc_children_of_threads(pid_t of, struct pids *to);
/* The process that was started last, dead or alive; 0 = unknown. */
pid_t proc_newest(void);
/* Appends processes of our uid, children and ourselves left out, with @name=@value in the initial
 * environment. @since: processes started after this one suffice, as long as process numbers, given
 * out in order, have not wrapped; 0 = all processes. */
void proc_marked(struct pids *to, const char *name, const char *value, pid_t since);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alloc_reader: common parts of the readers of head/alloc
 *
 * Variables, texts with places in messages, lists of counts, hosts with tasks.
 */
#pragma once

#include "head/alloc/alloc.h"
#include "head/hosts/hostfile_text.h"

enum {
        ALLOC_CPUS_MAX = 65535, /* of a node */
};

/* A reader at work. */
struct alloc_reader {
        const struct alloc_input *in;
        const char *title;  /* of the manager */
        const char *option; /* word of --scheduler */
        struct hosts *hosts;
        struct diags *diags;
};

/* The value of a variable, or a file, as a text with places. */
struct alloc_text {
        struct hostfile_text t;
        char name[64]; /* "$SLURM_JOB_NODELIST" */
};

/* Names of nodes, and the place of each in the text. */
struct alloc_names {
        struct strv names;
        struct text_range *at;
        size_t cap;
};

/* A number from a text, with the place. */
struct alloc_count {
        int value;
        struct text_range at;
};
struct alloc_counts {
        struct alloc_count *v;
        size_t n, cap;
};

/* Returns the value of a variable, NULL if empty or not set. Lent. */
const char *alloc_variable(char *const *env, const char *name);

/* Adds the error of a missing variable: @name is not set although @because is. -EINVAL. */
int alloc_lacks(struct alloc_reader *r, const char *name, const char *because);

/* Opens the value of @name, empty if not set. A newline is a blank. */
void alloc_text_open(struct alloc_text *t, struct alloc_reader *r, const char *name);
/* Opens a text of a single line from @file, a name for messages; both borrowed. */
void alloc_text_open_string(struct alloc_text *t, struct alloc_reader *r, const char *file,
                            const char *text);
/* Opens the file of the input. Messages have the number of the current line, t.line. */
void alloc_text_open_file(struct alloc_text *t, struct alloc_reader *r);
void alloc_text_finish(struct alloc_text *t); /* fits CLEANUP() */
/* Adds an error with carets under text[@at]; the pointer is valid until the next message. */
struct diag *alloc_text_error(struct alloc_text *t, int id, struct text_range at, const char *fmt,
                              ...) PRINTF(4, 5);

/* Reads a number from 1 to @max at text[*at], and moves *at behind. -EINVAL with an error. */
int alloc_take_number(struct alloc_text *t, size_t *at, int max, struct alloc_count *ret);
/* Reads a variable with such a number and nothing else. The same. */
int alloc_read_number(struct alloc_reader *r, const char *name, int max, struct alloc_count *ret);
/* Reads Slurm's "2(x3),1" as 2, 2, 2, 1: numbers up to @max, HOSTS_MAX at most. The same. */
int alloc_take_counts(struct alloc_text *t, int max, struct alloc_counts *ret);
void alloc_counts_finish(struct alloc_counts *c); /* fits CLEANUP() */

/* Reads the names of a word, "n[1-4]", at text[@at]: no user, no slots. -EINVAL with an error. */
int alloc_take_names(struct alloc_text *t, struct text_range at, struct strv *ret);

/* Reads a list of such words, separated by commas or blanks. -EINVAL with an error, also for an
 * empty list. */
int alloc_take_list(struct alloc_text *t, struct alloc_names *ret);
void alloc_names_finish(struct alloc_names *n); /* fits CLEANUP() */
/* Finds the next word from text[*at] on, up to a blank, and moves *at to the end. False: none. */
bool alloc_next_word(struct alloc_text *t, size_t *at, struct text_range *ret);

/* Adds @tasks to the host @name, which text[@at] names; a new host comes last. -EINVAL with
 * an error: too many hosts, or too many tasks of a host. */
int alloc_add_tasks(struct alloc_reader *r, struct alloc_text *t, struct text_range at,
                    const char *name, int tasks);

/* Whether two names mean the same machine: any case, and either may lack the domain. */
bool alloc_same_name(const char *a, const char *b);
/* Finds the host with this name, compared as above; NULL = none. */
struct host *alloc_find_host(struct hosts *h, const char *name);

/* Marks the host with this name as this machine, which needs no ssh; NULL and others are ignored.
 */
void alloc_mark_own(struct hosts *h, const char *name);

/* A manager and the reader. Recognized when each of @marks is set, or @also is; NAME=VALUE asks for
 * this value. Without marks only the user can choose the manager. */
struct alloc_manager {
        const char *title; /* for messages: "Slurm" */
        const char *marks[5], *also;
        bool inside; /* runs inside the allocation of another: alloc_find() begins here */
        /* Returns the path of the file for @read, lent by @env; NULL = none. */
        const char *(*path)(char *const *env);
        bool shared_file;         /* each node of the job has the file */
        const char *command[6];   /* with output instead of a file; ended by NULL */
        const char *command_name; /* for messages; NULL = the words of @command */
        int command_ms;           /* 0 = the usual time */
        const char *nodes_of;     /* for messages; NULL = "allocation" */
        /* Reads the allocation. 0 or -EINVAL with errors. */
        int (*read)(struct alloc_reader *r);
};

/* Returns the description of a manager; NULL for auto and none. */
const struct alloc_manager *alloc_manager(enum alloc_from from);

/* Ends a read: settles slots from tasks, else from @gpus of each node (0 = unknown), and names the
 * origin: @job is the manager's number of the job, which may be NULL, @tasks_from and @gpus_from
 * are variables or files. */
void alloc_settle(struct alloc_reader *r, const char *job, const char *tasks_from, int gpus,
                  const char *gpus_from);
/* The same when each host has slots already. */
void alloc_settle_exact(struct alloc_reader *r, const char *job, const char *slots_from);

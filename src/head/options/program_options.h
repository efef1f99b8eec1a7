/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program_options: the programs of a command line, and what stands behind a colon
 *
 * `hnlaunch -n 1 ./a : -n 3 ./b` has two programs in one world. The first is that of struct
 * options; struct options.more has the others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/intlist.h"
#include "base/strv.h"

struct diags;
struct error;
struct launch_program;
struct option_def;
struct options;

/* A program behind a colon. Options left out are as for the first. */
struct program_options {
        int np;              /* ranks, 0 = the slots that the others leave */
        struct strv exports; /* -x, on top of those of the job */
        char *chdir;
        struct strv argv;
        struct intlist env_words; /* words of options.line that are values of -x */
};

/* Adds a program to @o. Returns it; the next call may move it. */
struct program_options *program_options_add(struct options *o);
/* Sets an option of @p from @value, text as on the line. 0; -ENOENT: no option of one program;
 * -EINVAL with the right form in @err. */
int program_options_set(struct program_options *p, const struct option_def *def, const char *value,
                        struct error *err);
/* Adds up the ranks of several programs in o->plan.np. Returns 0, or -EINVAL with an error in @d:
 * two programs ask for the slots that the others leave. */
int program_options_count_ranks(struct options *o, struct diags *d);
/* Whether a word behind the first program, by its place in options.line, is the value of an -x. */
bool program_options_is_env_word(const struct options *o, size_t word);
void program_options_free(struct options *o);

/* Returns the words of program @i, 0 = the first; lent. */
const struct strv *options_argv(const struct options *o, size_t i);
/* Fills @p, which is zeroed: copies of the words of program @i, and how arguments are changed. */
void options_fill_program(const struct options *o, size_t i, struct launch_program *p);

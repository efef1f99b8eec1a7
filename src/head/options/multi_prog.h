/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multi_prog: a file of srun's --multi-prog, with the programs of one world
 *
 *   # ranks  program arguments
 *   0,3-5    ./server --rank %t
 *   *        ./client %o
 *
 * A line begins with ranks: numbers, ranges, or * for the ranks of no other line. %t is the rank,
 * %o the place among the ranks of the line; of * the rank. Single quotes and backslashes keep
 * characters as they are; a line whose first character is # is a comment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/intlist.h"

struct diags;
struct options;
struct plan;

/* The ranks of a program. */
struct multi_ranks {
        struct intlist ranks; /* none: all without another program */
        bool subst;           /* {rank} is in the words */
};

struct multi_prog {
        struct multi_ranks *v; /* by program */
        size_t n;
        char *path;
        /* Where the highest rank stands: the line, its text, and the place in it (1-based). */
        int highest, line, col, len;
        char *text;
        bool has_rest;
};

/* Reads the file named as the program of @o, and puts the programs in place of the name. 0, or
 * -EINVAL with an error in @d (HN724): no file (exit 66), mistakes in it (65), programs on the line
 * (64). */
int multi_prog_read(struct options *o, struct diags *d);
/* Gives the ranks of @plan their programs. 0, or -EINVAL with an error in @d (HN724): a rank of the
 * file beyond those of the plan. */
int multi_prog_share(const struct multi_prog *m, struct plan *plan, struct diags *d);
void multi_prog_free(struct multi_prog *m);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program_options: the programs of a command line, and what stands behind a colon
 *
 * `hnlaunch -n 1 ./a : -n 3 ./b` has two programs in one world. The first is that of struct
 * options; struct options.more has the others. In `hnlaunch --role a ./a : --role b ./b` each is a
 * role, and options.first has what the line says of the first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intlist.h"
#include "base/strv.h"
#include "head/model/plan_roles.h"
#include "head/options/role_ready.h"

struct diags;
struct error;
struct launch_program;
struct option_def;
struct options;

/* When a role starts, and what its end means; head/model/role_order.h has the rules. */
struct role_conduct {
        struct strv after; /* names of roles */
        struct role_ready ready;
        bool ends_ok;
        int64_t drain_ms;       /* 0 = none */
        unsigned restart_scope; /* enum role_scope of role_order.h */
};

/* A program behind a colon, or a role. Options left out are as for the first, or for the job. */
struct program_options {
        int np;              /* ranks, 0 = the slots that the others leave */
        struct strv exports; /* -x, on top of those of the job */
        char *chdir;
        struct strv argv;
        struct intlist env_words; /* words of options.line that are values of -x */
        struct plan_role role;    /* in a line with --role, with: */
        struct role_conduct conduct;
        unsigned mpi;   /* of a role: enum mpi_kind */
        unsigned given; /* options of the line, program_options_has() */
};

/* Adds a program to @o. Returns it; the next call may move it. */
struct program_options *program_options_add(struct options *o);
/* Sets an option of @p from @value, text as on the line; those of a role with @role only. 0;
 * -ENOENT: no option of one program; -EINVAL with the right form in @err. */
int program_options_set(struct program_options *p, const struct option_def *def, const char *value,
                        bool role, struct error *err);
/* Returns the option of a role for a key of a job file, "gpus_per_rank"; NULL: none. */
const struct option_def *program_option_by_key(const char *key);
/* The same of `hnlaunch config`, which has `program` and `env`, too. */
const struct option_def *program_option_by_config_key(const char *key);
/* Returns the option of a role nearest to a misspelt @key, or NULL. */
const char *program_option_suggest(const char *key);
/* Whether the line has this option for @p. */
bool program_options_has(const struct program_options *p, const char *name);
/* Adds up the ranks of several programs in o->plan.np. Returns 0, or -EINVAL with an error in @d:
 * two programs ask for the slots that the others leave. */
int program_options_count_ranks(struct options *o, struct diags *d);
void program_options_free(struct options *o);

/* Returns the options of program @i, 0 = the first; NULL: it has none but those of the job. */
struct program_options *options_program(const struct options *o, size_t i);
/* Whether programs @a and @b have a world in common. */
bool options_share_world(const struct options *o, size_t a, size_t b);
/* Returns how program @i meets for MPI, enum mpi_kind of wire/msg.h. */
unsigned options_mpi(const struct options *o, size_t i);
/* Sets that of program @i and of all that share its world. */
void options_set_mpi(struct options *o, size_t i, unsigned mpi);
/* Fills @p, which is zeroed: copies of the words of program @i, and how arguments are changed. */
void options_fill_program(const struct options *o, size_t i, struct launch_program *p);

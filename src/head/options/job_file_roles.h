/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job_roles: the roles of a job file
 *
 * config_parse() stores the keys of [role NAME] and [env NAME] as settings of the role, with their
 * places. job_file_roles_apply() makes roles of these as --role does on a command line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "head/options/config.h"

/* A role of the job file. */
struct job_role {
        struct settings keys; /* with the program, and --role of each section, for the name */
        size_t place;         /* of --role of the section [role NAME], in keys */
        bool declared;        /* false: only [env NAME] has come so far */
};

/* An option in the job file. */
struct job_place {
        const char *role;   /* NULL = of the job */
        const char *option; /* "role" = the section; NULL = none */
};

/* Returns the role called @name for a section [role @name], or @env: [env @name]; valid until the
 * next call. NULL: a second [role @name]. */
struct job_role *job_file_roles_enter(struct settings *s, const char *name, bool env);
/* Returns the role called @name, or NULL. */
struct job_role *job_file_roles_find(const struct settings *s, const char *name);
const char *job_role_name(const struct job_role *role);

/* Refuses roles without a program, [env NAME] of no role, and keys of [run] that belong to roles.
 * 0, or -EINVAL with errors in @d (exit 78): HN705, HN722, HN726, HN729. */
int job_file_roles_check(const struct settings *s, struct diags *d);
/* Adds the roles of the job file to @o. 0, or -EINVAL with errors in @d: wrong values (HN712),
 * roles or a program on the command line, too (HN721). */
int job_file_roles_apply(struct options *o, struct diags *d);
/* Shows the places of options that come from a file, if any: @v[0] is the mistake, others are part
 * of it. Then @diag is an error of configuration. */
void job_file_roles_place(const struct settings *s, const struct job_place *v, size_t n,
                          struct diag *diag);
/* Returns the program of the role called @name in the job file, or NULL. */
const struct setting *job_file_roles_program(const struct settings *s, const char *name);
/* Returns the variable of the role, NULL = of the job, whose NAME=VALUE is @pair in a file, or
 * NULL. */
const struct setting *job_file_roles_variable(const struct settings *s, const char *name,
                                              const char *pair);
void job_file_roles_finish(struct settings *s);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each role has a struct settings of its own, filled by the parser of configuration files. A
 * section header is the setting --role, with the name and the place. [env NAME] may stand in front
 * of [role NAME].
 *
 * Roles are kept in the order of their [role NAME], which is the order of the programs. Mistakes
 * are found in three steps: by the parser in a line, by job_file_roles_check() in the whole file,
 * and by job_file_roles_apply() in the values. Later checks of roles, which know no file, name
 * options; job_file_roles_place() finds the lines of such options.
 */
#include "head/options/job_file_roles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/options/option_parse.h"
#include "head/options/program_options.h"

/* ---- sections ---- */

const char *job_role_name(const struct job_role *role)
{
        return role->keys.v[role->place].value;
}

struct job_role *job_file_roles_find(const struct settings *s, const char *name)
{
        for (size_t i = 0; i < s->n_roles; i++)
                if (!strcmp(job_role_name(&s->roles[i]), name))
                        return &s->roles[i];
        return NULL;
}

/* Moves a role to the end: the order is that of [role NAME], and this role came by [env NAME]. */
static struct job_role *move_to_end(struct settings *s, struct job_role *role)
{
        struct job_role *last = &s->roles[s->n_roles - 1], moved = *role;

        memmove(role, role + 1, (size_t)(last - role) * sizeof(*role));
        *last = moved;
        return last;
}

struct job_role *job_file_roles_enter(struct settings *s, const char *name, bool env)
{
        struct job_role *role = job_file_roles_find(s, name);

        /* A second [env NAME] adds variables; a second [role NAME] is a mistake. */
        if (role && role->declared && !env)
                return NULL;
        if (!role) {
                s->roles = xrealloc(s->roles, s->n_roles + 1, sizeof(*s->roles));
                role = &s->roles[s->n_roles++];
                *role = (struct job_role){ .place = 0 };
        } else if (!env) {
                role = move_to_end(s, role);
        }
        if (!env) {
                role->place = role->keys.n;
                role->declared = true;
        }
        /* The caller fills in the place of the section, also of [env NAME]: an error
         * may be about the role. */
        settings_add(&role->keys, option_by_name("role"), LEVEL_JOB, name, "");
        return role;
}

void job_file_roles_finish(struct settings *s)
{
        for (size_t i = 0; i < s->n_roles; i++)
                settings_finish(&s->roles[i].keys);
        free(s->roles);
}

/* ---- checks ---- */

/* Returns the last value of the job file, which decides, or NULL. */
static const struct setting *find_setting(const struct settings *s, const struct option_def *def)
{
        for (size_t i = s->n; i-- > 0;)
                if (s->v[i].def == def && s->v[i].level == LEVEL_JOB)
                        return &s->v[i];
        return NULL;
}

/* Returns the value of a file that decides, NULL = none. A value of the command line or of a
 * variable has no line to show. */
static const struct setting *find_job_setting(const struct settings *s, const char *option)
{
        const struct option_def *def = option_by_name(option);

        for (size_t i = s->n; i-- > 0;)
                if (s->v[i].def == def && s->v[i].line &&
                    (int)s->v[i].level == settings_level(s, def))
                        return &s->v[i];
        return NULL;
}

/* Returns the setting of a place, or NULL: the option does not come from a file. */
static const struct setting *find_job_place(const struct settings *s, const struct job_place *p)
{
        const struct job_role *role = p->role ? job_file_roles_find(s, p->role) : NULL;

        if (!p->option)
                return NULL;
        if (!p->role)
                return find_job_setting(s, p->option);
        if (role && !strcmp(p->option, "role"))
                return &role->keys.v[role->place];
        return role ? find_setting(&role->keys, option_by_name(p->option)) : NULL;
}

/* Adds the lines of one file in their order, the mistake, @v[0], with a caret, others with dashes.
 * Two options in a line are shown once. */
static void add_sources(const struct setting **v, size_t n, struct diag *diag)
{
        const struct setting *first = v[0];
        int shown = 0;

        for (size_t k = 0; k < n; k++) {
                const struct setting *next = NULL;

                for (size_t i = 0; i < n; i++)
                        if (v[i]->line > shown && (!next || v[i]->line < next->line))
                                next = v[i];
                if (!next)
                        return;
                diag_source(diag, next->line, next->text, next->col, next->len,
                            next == first ? '^' : '-', NULL);
                shown = next->line;
        }
}

void job_file_roles_place(const struct settings *s, const struct job_place *v, size_t n,
                          struct diag *diag)
{
        const struct setting **found = xcalloc(n, sizeof(*found));
        size_t n_found = 0;

        for (size_t i = 0; i < n; i++) {
                const struct setting *one = find_job_place(s, &v[i]);

                /* A level is one file: lines of another file would seem to be of the same. */
                if (one && (!n_found || one->level == found[0]->level))
                        found[n_found++] = one;
        }
        if (n_found) {
                /* The mistake is in a file: 78 takes the place of 64, wrong use. */
                diag->exit = EX_CONFIG;
                diag_place(diag, "%s:%d", found[0]->origin, found[0]->col);
                add_sources(found, n_found, diag);
        }
        free(found);
}

const struct setting *job_file_roles_program(const struct settings *s, const char *name)
{
        const struct job_role *role = job_file_roles_find(s, name);

        return role ? find_setting(&role->keys, &option_program) : NULL;
}

const struct setting *job_file_roles_variable(const struct settings *s, const char *name,
                                              const char *pair)
{
        const struct job_role *role = name ? job_file_roles_find(s, name) : NULL;
        const struct settings *keys = role ? &role->keys : s;
        const struct option_def *def = option_by_name("env");

        if (name && !role)
                return NULL;
        for (size_t i = keys->n; i-- > 0;)
                if (keys->v[i].def == def && keys->v[i].line && !strcmp(keys->v[i].value, pair))
                        return &keys->v[i];
        return NULL;
}

/* Returns "`a`, `b`", the names of the declared roles, malloc'ed. */
static char *list_names(const struct settings *s)
{
        struct buf names = BUF_INIT;

        for (size_t i = 0; i < s->n_roles; i++)
                if (s->roles[i].declared)
                        buf_printf(&names, "%s`%s`", buf_len(&names) ? ", " : "",
                                   job_role_name(&s->roles[i]));
        return buf_steal(&names);
}

/* Refuses [env NAME] without a [role NAME], and lists the roles of the file. */
static void refuse_unknown_env(const struct settings *s, const struct job_role *role,
                               struct diags *d)
{
        CLEANUP(free_textp) char *names = list_names(s);
        struct diag *diag =
                diag_add(d, HN_NO_ROLE, EX_CONFIG, "[env %s]: there is no role of this name",
                         job_role_name(role));

        setting_place(&role->keys.v[role->place], diag);
        diag_help(diag, *names ? "the roles are %s" : "the file has no [role NAME]%s", names);
}

/* Refuses a key of [run] in a file with roles. */
static void refuse_run_key(const struct setting *one, int id, const char *why, const char *help,
                           struct diags *d)
{
        struct diag *diag = diag_add(d, id, EX_CONFIG, "%s", why);

        setting_place(one, diag);
        diag_help(diag, "%s", help);
}

int job_file_roles_check(const struct settings *s, struct diags *d)
{
        const struct setting *program = find_setting(s, &option_program);
        const struct setting *np = find_setting(s, option_by_name("np"));
        size_t before = diags_errors(d);

        for (size_t i = 0; i < s->n_roles; i++) {
                const struct job_role *role = &s->roles[i];
                struct diag *diag;

                if (!role->declared) {
                        refuse_unknown_env(s, role, d);
                } else if (!job_file_roles_program(s, job_role_name(role))) {
                        diag = diag_add(d, HN_NO_PROGRAM, EX_CONFIG, "role `%s` has no program",
                                        job_role_name(role));
                        setting_place(&role->keys.v[role->place], diag);
                        diag_help(diag, "write below it: program = ./a.out ARGS...");
                }
        }
        if (s->n_roles && program)
                refuse_run_key(program, HN_STRAY_PROGRAM, "a program of the job beside roles",
                               "each role has a program: put it under a [role NAME]", d);
        if (s->n_roles && np)
                refuse_run_key(np, HN_ROLE_OPTION, "a number of ranks for the job beside roles",
                               "each role has its own: put it under a [role NAME]", d);
        return diags_errors(d) > before ? -EINVAL : 0;
}

/* ---- options ---- */

/* Refuses a program or roles on the command line beside the roles of a job file. */
static void refuse_line_program(const struct options *o, struct diags *d)
{
        CLEANUP(free_textp) char *names = list_names(o->settings);
        struct buf words = BUF_INIT;
        CLEANUP(free_textp) char *line = NULL;

        if (!o->first) {
                diag_help(diag_add(d, HN_JOB_OPTION, EX_USAGE,
                                   "the command line has the program `%s`, and the job file %s "
                                   "roles: %s",
                                   o->argv.v[0], o->settings->job, names),
                          "leave it out: a program on the command line takes the place of one in "
                          "[run] only");
                return;
        }
        for (size_t i = 0; i < options_count_roles(o); i++)
                buf_printf(&words, i ? ", `%s`" : "`%s`", options_role(o, i)->name);
        line = buf_steal(&words);
        diag_help(diag_add(d, HN_JOB_OPTION, EX_USAGE,
                           "roles on the command line, %s, and in the job file %s, %s", line,
                           o->settings->job, names),
                  "all roles of a job are in one place: write them into the file, or start without "
                  "--job");
}

/* Sets the options of program @i, the role @role. */
static int apply_role(struct options *o, size_t i, struct job_role *role, struct diags *d)
{
        struct program_options *p;
        struct error err = { 0 };
        int bad = 0;

        if (i)
                p = program_options_add(o);
        else
                p = o->first = xcalloc(1, sizeof(*p));
        p->role.place = xstrdup(role->keys.v[role->place].origin);
        for (size_t k = 0; k < role->keys.n; k++) {
                struct setting *one = &role->keys.v[k];
                int r = one->def == &option_program
                                ? option_program.parse(i ? &p->argv : &o->argv, &option_program,
                                                       one->value, &err)
                                : program_options_set(p, one->def, one->value, true, &err);

                if (r == 0)
                        continue;
                setting_refuse(one, &err, d);
                /* `hnlaunch config` marks the value. */
                one->wrong = true;
                bad = -EINVAL;
        }
        return bad;
}

int job_file_roles_apply(struct options *o, struct diags *d)
{
        struct settings *s = o->settings;
        int r = 0;

        if (!s->n_roles)
                return 0;
        if (o->argv.n || o->first) {
                refuse_line_program(o, d);
                return -EINVAL;
        }
        for (size_t i = 0; i < s->n_roles; i++)
                if (apply_role(o, i, &s->roles[i], d) < 0)
                        r = -EINVAL;
        return r;
}

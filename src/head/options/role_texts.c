/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over arguments, variables and label. The first, before anything is connected, reads
 * which ports and roles the texts name, and tells all mistakes, with the line of a job file. The
 * second replaces the references by what the book has then.
 */
#include "head/options/role_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/memory.h"
#include "head/options/job_file_roles.h"
#include "head/options/options.h"
#include "head/options/program_options.h"

struct role_book *role_texts_book(const struct options *o)
{
        size_t n = options_count_roles(o);
        struct role_book *b = n ? role_book_create() : NULL;

        for (size_t i = 0; i < n; i++) {
                int role = role_book_add(b, options_role(o, i)->name);

                if (options_role(o, i)->replicas)
                        role_book_set_replicated(b, role);
        }
        return b;
}

/* Returns the values of -x of a role, -1 = of the job; lent. */
static const struct strv *exports_of(const struct options *o, int role)
{
        return role < 0 ? &o->exports : &options_program(o, (size_t)role)->exports;
}

/* Names an argument for messages, counted from 1 behind the program; malloc'ed. */
static char *argument_place(const struct options *o, size_t role, size_t i)
{
        return xasprintf("argument %zu of role %s", i, options_role(o, role)->name);
}

static char *env_place(const struct options *o, int role)
{
        return role < 0 ? xstrdup("-x of the job")
                        : xasprintf("-x of role %s", options_role(o, (size_t)role)->name);
}

/* Returns the text of --label, NULL = none, or one of the words auto and none. */
static const char *label_template(const struct options *o)
{
        return o->label == LABEL_TEMPLATE ? o->label_template : NULL;
}

/* --- the first pass --- */

/* Scans a text, whose setting of a file is @one, NULL = none; the text stands there from @value on.
 */
static int scan_placed_text(struct role_book *b, struct role_text t, const char *value,
                            const struct setting *one, struct diags *d)
{
        CLEANUP(free_textp)
        char *place = one ? xasprintf("%s, %s", one->origin, t.place) : NULL;
        const char *found = one ? strstr(one->text + one->col - 1, value) : NULL;
        size_t before = d->n;
        int rc;

        if (one)
                t.place = place;
        /* The text must lie in the line as a whole, NAME= included, so that offsets into the text
         * are offsets into the line. */
        if (found && found - one->text >= value - t.text) { /* else quoted */
                t.source = one->text;
                t.line = one->line;
                t.at = (size_t)((found - one->text) - (value - t.text));
        }
        rc = role_book_scan(b, &t, d);
        /* Mistakes of a file are those of a configuration. */
        for (; one && before < d->n; before++)
                d->v[before].exit = EX_CONFIG;
        return rc;
}

/* Scans the values of -x of a role, or with -1 of the job. A name without a value copies a variable
 * of this shell, which is no text of the job. */
static int scan_env(struct role_book *b, const struct options *o, int role, struct diags *d)
{
        const struct strv *pairs = exports_of(o, role);
        const char *name = role < 0 ? NULL : options_role(o, (size_t)role)->name;
        CLEANUP(free_textp) char *place = env_place(o, role);
        int rc = 0;

        for (size_t i = 0; i < pairs->n; i++) {
                const struct role_text t = { .text = pairs->v[i], .place = place, .role = role };
                const char *eq = strchr(t.text, '=');

                if (eq &&
                    scan_placed_text(b, t, eq + 1,
                                     job_file_roles_variable(o->settings, name, t.text), d) < 0)
                        rc = -EINVAL;
        }
        return rc;
}

int role_texts_scan(struct role_book *b, const struct options *o, struct diags *d)
{
        const struct role_text label = { .text = label_template(o),
                                         .place = "--label",
                                         .role = -1 };
        int rc = scan_env(b, o, -1, d);

        if (label.text && role_book_scan(b, &label, d) < 0)
                rc = -EINVAL;
        for (size_t r = 0; r < options_count_roles(o); r++) {
                const struct strv *argv = options_argv(o, r);
                const struct setting *program =
                        job_file_roles_program(o->settings, options_role(o, r)->name);

                /* The program itself has no references. */
                for (size_t i = 1; i < argv->n; i++) {
                        CLEANUP(free_textp) char *place = argument_place(o, r, i);
                        const struct role_text t = { .text = argv->v[i],
                                                     .place = place,
                                                     .role = (int)r };

                        if (scan_placed_text(b, t, t.text, program, d) < 0)
                                rc = -EINVAL;
                }
                if (scan_env(b, o, (int)r, d) < 0)
                        rc = -EINVAL;
        }
        return rc;
}

/* --- the second pass --- */

void role_texts_fill_words(const struct role_book *b, const struct options *o, int role,
                           bool planned, struct strv *argv, struct diags *d)
{
        const struct strv *from = options_argv(o, (size_t)role);
        /* Where the agent reads the words, it takes the backslash off \{port:NAME}. */
        bool agent =
                o->subst || options_is_per_node(o, (size_t)role) || role_book_ports(b, role)->n;

        for (size_t i = 0; i < from->n; i++) {
                CLEANUP(free_textp) char *place = argument_place(o, (size_t)role, i);
                const struct role_text t = { .text = from->v[i], .place = place, .role = role };

                if (!i || role_book_expand(b, &t, agent && !planned ? -1 : 0, argv, d) < 0)
                        strv_push(argv, from->v[i]);
        }
}

void role_texts_fill_env(const struct role_book *b, const struct options *o, int role, bool planned,
                         struct strv *env, struct diags *d)
{
        const struct strv *pairs = exports_of(o, role);
        CLEANUP(free_textp) char *place = env_place(o, role);
        bool agent = role >= 0 && role_book_ports(b, role)->n;

        for (size_t i = 0; i < pairs->n; i++) {
                const struct role_text t = { .text = pairs->v[i], .place = place, .role = role };
                CLEANUP(free_textp)
                char *pair = strchr(t.text, '=')
                                     ? role_book_expand_text(b, &t, agent && !planned ? -1 : 0, d)
                                     : NULL;
                char *value = pair ? strchr(pair, '=') : NULL;

                if (!value)
                        continue;
                *value++ = '\0';
                if (strv_env_get(env, pair)) /* else --unset has removed it */
                        strv_env_set(env, pair, value);
        }
}

char *role_texts_make_label(const struct role_book *b, const struct options *o, struct diags *d)
{
        const struct role_text label = { .text = label_template(o),
                                         .place = "--label",
                                         .role = -1 };

        return label.text ? role_book_expand_text(b, &label, -1, d) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that a program has of its own are not settings, which hold for the job: own_options ties
 * the names of such options to fields of struct program_options, and command_line.c stores values
 * while the line is read.
 *
 * Without roles a program behind a colon has -n, -x and --chdir only. The first program then has no
 * struct program_options: struct options has the values. With roles each program has a struct, the
 * first in options.first. Functions of @i count the first as 0.
 */
#include "head/options/program_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/options/multi_prog.h"
#include "head/options/option_table.h"
#include "head/options/options.h"
#include "head/options/role_options.h"
#include "head/term/diag.h"
#include "wire/msg.h"

#define OWN(f) offsetof(struct program_options, f)

/* The options of a program of its own. The place of an entry is its bit in program_options.given,
 * so there can be 32. */
static const struct {
        const char *name;
        size_t offset; /* in struct program_options */
        bool of_role;
        /* In place of the parser of the job's option; NULL = as there. */
        int (*parse)(void *field, const struct option_def *def, const char *text,
                     struct error *err);
} own_options[] = {
        { "np", OWN(np), false, NULL },
        { "env", OWN(exports), false, NULL },
        { "chdir", OWN(chdir), false, NULL },
        { "role", OWN(role.name), true, value_role_name },
        { "nodes", OWN(role.nodes), true, value_role_nodes },
        { "ppn", OWN(role.plan.ppn), true, NULL },
        { "per-node", OWN(role.plan.per_node), true, NULL },
        { "gpus-per-rank", OWN(role.plan.gpus_per_rank), true, NULL },
        { "map", OWN(role.plan.map), true, NULL },
        { "on", OWN(role.on), true, value_role_on },
        { "share-gpus", OWN(role.share_gpus), true, value_switch },
        { "mpi", OWN(mpi), true, NULL },
        { "world", OWN(role.world), true, value_role_name },
        { "replicas", OWN(role.replicas), true, value_number },
        { "after", OWN(conduct.after), true, value_role_names },
        { "ends", OWN(conduct.ends_ok), true, value_choice_bool },
        { "drain", OWN(conduct.drain_ms), true, value_span },
        { "restart-scope", OWN(conduct.restart_scope), true, value_choice },
        { "ready", OWN(conduct.ready), true, value_ready },
        { "ready-timeout", OWN(conduct.ready.timeout_ms), true, value_limit },
};

/* The array may move: options_program() finds a program again by its number. */
struct program_options *program_options_add(struct options *o)
{
        o->more = xrealloc(o->more, o->n_more + 1, sizeof(*o->more));
        o->more[o->n_more] = (struct program_options){ .np = 0 };
        return &o->more[o->n_more++];
}

int program_options_set(struct program_options *p, const struct option_def *def, const char *value,
                        bool role, struct error *err)
{
        for (size_t i = 0; i < ARRAY_SIZE(own_options); i++) {
                if (strcmp(def->name, own_options[i].name) != 0 ||
                    (own_options[i].of_role && !role))
                        continue;
                /* Set also for a refused value: the line has the option. */
                p->given |= 1U << i;
                return (own_options[i].parse ? own_options[i].parse : def->parse)(
                        (char *)p + own_options[i].offset, def, value, err);
        }
        return -ENOENT;
}

/* "gpus_per_rank" -> "gpus-per-rank", malloc'ed. */
static char *spell_option(const char *key)
{
        char *name = xstrdup(key);

        for (char *c = name; *c; c++)
                if (*c == '_')
                        *c = '-';
        return name;
}

const struct option_def *program_option_by_key(const char *key)
{
        CLEANUP(free_textp) char *name = spell_option(key);
        const struct option_def *def = NULL;

        /* A role has its name and its variables in the headers of sections. */
        if (!strcmp(name, "role") || !strcmp(name, "env"))
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(own_options) && !def; i++)
                if (!strcmp(own_options[i].name, name))
                        def = option_by_name(name);
        /* The key of -n has the letter's name. */
        return !def && !strcmp(name, "n") ? option_by_name("np") : def;
}

const struct option_def *program_option_by_config_key(const char *key)
{
        return !strcmp(key, option_program.name) ? &option_program
               : !strcmp(key, "env")             ? option_by_name(key)
                                                 : program_option_by_key(key);
}

const char *program_option_suggest(const char *key)
{
        const char *names[ARRAY_SIZE(own_options) + 1];
        CLEANUP(free_textp) char *name = spell_option(key);
        size_t n = 0;

        names[n++] = option_program.name;
        for (size_t i = 0; i < ARRAY_SIZE(own_options); i++)
                if (program_option_by_key(own_options[i].name))
                        names[n++] = own_options[i].name;
        return diag_did_you_mean(name, names, n);
}

bool program_options_has(const struct program_options *p, const char *name)
{
        size_t i = 0;

        /* Callers name an option of the table. */
        while (strcmp(own_options[i].name, name) != 0)
                i++;
        return p->given >> i & 1;
}

int program_options_count_ranks(struct options *o, struct diags *d)
{
        int64_t sum = o->plan.np;
        const char *rest;

        if (!o->n_more)
                return 0;
        /* The program without a number, for the message; NULL = each so far has a number. */
        rest = o->plan.np ? NULL : o->argv.v[0];
        /* plan.np becomes the sum. */
        o->first_np = o->plan.np;
        for (size_t i = 0; i < o->n_more; i++) {
                sum += o->more[i].np;
                if (!o->more[i].np && rest) {
                        diag_help(
                                diag_add(d, HN_SECOND_PROGRAM, EX_USAGE,
                                         "`%s` and `%s` have no -n: only one program can have the "
                                         "slots that the others leave",
                                         rest, o->more[i].argv.v[0]),
                                "write -n N in front of the other");
                        return -EINVAL;
                }
                if (!o->more[i].np)
                        rest = o->more[i].argv.v[0];
        }
        /* One above the limit is refused by the plan, with a separate message. */
        o->plan.np = rest ? 0 : (int)MIN(sum, (int64_t)PLAN_MAX_RANKS + 1);
        return 0;
}

bool options_is_env_word(const struct options *o, size_t word)
{
        for (size_t i = 0; i < o->n_more; i++)
                if (intlist_has(&o->more[i].env_words, (int)word))
                        return true;
        return o->first && intlist_has(&o->first->env_words, (int)word);
}

static void finish_program(struct program_options *p)
{
        strv_finish(&p->exports);
        strv_finish(&p->argv);
        intlist_finish(&p->env_words);
        free(p->chdir);
        role_options_finish(&p->role);
        strv_finish(&p->conduct.after);
        role_ready_finish(&p->conduct.ready);
}

void program_options_free(struct options *o)
{
        for (size_t i = 0; i < o->n_more; i++)
                finish_program(&o->more[i]);
        if (o->first)
                finish_program(o->first);
        free(o->more);
        free(o->first);
}

struct program_options *options_program(const struct options *o, size_t i)
{
        return i ? &o->more[i - 1] : o->first;
}

size_t options_count_roles(const struct options *o)
{
        return o->first ? 1 + o->n_more : 0;
}

const struct plan_role *options_role(const struct options *o, size_t i)
{
        return &options_program(o, i)->role;
}

bool options_is_per_node(const struct options *o, size_t i)
{
        return o->first ? options_role(o, i)->plan.per_node : o->plan.per_node;
}

bool options_divides_cores(const struct options *o, size_t i)
{
        return o->bind && !strcmp(o->bind, "exclusive") && !options_is_per_node(o, i);
}

bool options_share_world(const struct options *o, size_t a, size_t b)
{
        const char *of_a, *of_b;

        if (!o->first || a == b)
                return true;
        of_a = options_role(o, a)->world;
        of_b = options_role(o, b)->world;
        return of_a && of_b && !strcmp(of_a, of_b);
}

unsigned options_mpi(const struct options *o, size_t i)
{
        return o->first ? options_program(o, i)->mpi : o->mpi;
}

void options_set_mpi(struct options *o, size_t i, unsigned mpi)
{
        if (!o->first)
                o->mpi = mpi;
        for (size_t k = 0; k < options_count_roles(o); k++)
                if (options_share_world(o, i, k))
                        options_program(o, k)->mpi = mpi;
}

const struct strv *options_argv(const struct options *o, size_t i)
{
        return i ? &o->more[i - 1].argv : &o->argv;
}

void options_fill_program(const struct options *o, size_t i, struct launch_program *p)
{
        strv_copy(&p->argv, options_argv(o, i));
        p->cwd = xstrdup("");
        p->role = xstrdup(o->first ? options_role(o, i)->name : "");
        if (o->first)
                role_ready_fill(&options_program(o, i)->conduct.ready, options_role(o, i)->replicas,
                                &p->ready);
        p->arguments.subst = o->subst || (o->first && options_is_per_node(o, i)) ||
                             (o->multi && o->multi->v[i].subst);
        strv_copy(&p->arguments.wrap, &o->wrap);
        if (o->local_rank_arg)
                snprintf(p->arguments.local_rank, sizeof(p->arguments.local_rank), "%s",
                         o->local_rank_arg);
}

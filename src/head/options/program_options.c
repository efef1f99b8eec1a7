/* SPDX-License-Identifier: Apache-2.0 */
#include "head/options/program_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/options/option_table.h"
#include "head/options/options.h"
#include "head/term/diag.h"
#include "wire/msg.h"

/* The options that stand behind a colon, too. */
static const struct {
        const char *name;
        size_t offset; /* in struct program_options */
} own_options[] = {
        { "np", offsetof(struct program_options, np) },
        { "env", offsetof(struct program_options, exports) },
        { "chdir", offsetof(struct program_options, chdir) },
};

struct program_options *program_options_add(struct options *o)
{
        o->more = xrealloc(o->more, o->n_more + 1, sizeof(*o->more));
        o->more[o->n_more] = (struct program_options){ .np = 0 };
        return &o->more[o->n_more++];
}

int program_options_set(struct program_options *p, const struct option_def *def, const char *value,
                        struct error *err)
{
        for (size_t i = 0; i < ARRAY_SIZE(own_options); i++)
                if (!strcmp(def->name, own_options[i].name))
                        return def->parse((char *)p + own_options[i].offset, def, value, err);
        return -ENOENT;
}

int program_options_count_ranks(struct options *o, struct diags *d)
{
        int64_t sum = o->plan.np;
        const char *rest;

        if (!o->n_more)
                return 0;
        rest = o->plan.np ? NULL : o->argv.v[0];
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
        o->plan.np = rest ? 0 : (int)MIN(sum, (int64_t)PLAN_MAX_RANKS + 1);
        return 0;
}

bool program_options_is_env_word(const struct options *o, size_t word)
{
        for (size_t i = 0; i < o->n_more; i++)
                if (intlist_has(&o->more[i].env_words, (int)word))
                        return true;
        return false;
}

void program_options_free(struct options *o)
{
        for (size_t i = 0; i < o->n_more; i++) {
                strv_finish(&o->more[i].exports);
                strv_finish(&o->more[i].argv);
                intlist_finish(&o->more[i].env_words);
                free(o->more[i].chdir);
        }
        free(o->more);
}

const struct strv *options_argv(const struct options *o, size_t i)
{
        return i ? &o->more[i - 1].argv : &o->argv;
}

void options_fill_program(const struct options *o, size_t i, struct launch_program *p)
{
        strv_copy(&p->argv, options_argv(o, i));
        p->cwd = xstrdup("");
        p->arguments.subst = o->subst;
        strv_copy(&p->arguments.wrap, &o->wrap);
        if (o->local_rank_arg)
                snprintf(p->arguments.local_rank, sizeof(p->arguments.local_rank), "%s",
                         o->local_rank_arg);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/check_msg.h"

#include <stdio.h>

#include "base/memory.h"
#include "wire/msg_functions.h"

/* PATH_LIMIT is PATH_MAX of Linux; WORD_LIMIT is the longest argument of execve(2)
 * (MAX_ARG_STRLEN). */
enum {
        NAME_LIMIT = 255,
        PATH_LIMIT = 4096,
        SEARCH_LIMIT = 64 << 10,
        WORD_LIMIT = 128 << 10 /* of the kernel */
};

static void code_check_path(struct codec *c, struct check_path *p)
{
        codec_text(c, p->name, sizeof(p->name));
        codec_u8(c, &p->kind);
        codec_require(c, p->kind < CHECK_PATH_KINDS);
        codec_str(c, &p->path, PATH_LIMIT);
        codec_str(c, &p->cwd, PATH_LIMIT);
        codec_str(c, &p->search, SEARCH_LIMIT);
}

static void code_check_program(struct codec *c, struct check_program *p)
{
        codec_u32(c, &p->number);
        codec_strv(c, &p->argv, CHECK_WORDS_MAX, WORD_LIMIT);
        codec_strv(c, &p->env, CHECK_WORDS_MAX, WORD_LIMIT);
        codec_str(c, &p->cwd, PATH_LIMIT);
}

static void code_check_name(struct codec *c, struct check_name *n)
{
        codec_text(c, n->fact, sizeof(n->fact));
        codec_str(c, &n->host, NAME_LIMIT);
}

/* Each kind of answer has an array of its own, so an order for the place of a node is a few
 * bytes. */
static void code_check_order(struct codec *c, struct check_order *m)
{
        codec_u32(c, &m->number);
        codec_u8(c, &m->what);
        codec_require(c, m->what < CHECK_WHATS);
        CODEC_ARRAY(c, m->paths, m->n_paths, CHECK_PATHS_MAX, code_check_path);
        CODEC_ARRAY(c, m->programs, m->n_programs, CHECK_PATHS_MAX, code_check_program);
        CODEC_ARRAY(c, m->names.v, m->names.n, CHECK_NAMES_MAX, code_check_name);
        codec_str(c, &m->run, WORD_LIMIT);
        codec_str(c, &m->run_cwd, PATH_LIMIT);
}

static void code_check_fact(struct codec *c, struct check_fact *k)
{
        codec_text(c, k->name, sizeof(k->name));
        codec_text(c, k->value, sizeof(k->value));
        codec_text(c, k->problem, sizeof(k->problem));
}

static void code_checked(struct codec *c, struct checked *m)
{
        codec_u32(c, &m->number);
        codec_bool(c, &m->more);
        CODEC_ARRAY(c, m->facts, m->n_facts, CHECK_FACTS_MAX, code_check_fact);
}

DEFINE_OWNING_MESSAGE(check_order, MSG_CHECK)
DEFINE_OWNING_MESSAGE(checked, MSG_CHECKED)

/* Texts that are too long are cut. */
void checked_add(struct checked *m, const char *name, const char *value, const char *problem)
{
        struct check_fact *k;

        m->facts = xrealloc(m->facts, m->n_facts + 1, sizeof(*m->facts));
        k = &m->facts[m->n_facts++];
        snprintf(k->name, sizeof(k->name), "%s", name);
        snprintf(k->value, sizeof(k->value), "%s", value);
        snprintf(k->problem, sizeof(k->problem), "%s", problem);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A variable is a hostfile_text of a line without a number: messages show the line with carets, as
 * for the argument of -w, and only the exit code differs. Readers walk through a plain copy with an
 * offset. Numbers and places are kept until the counts are compared with the nodes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/alloc/alloc_reader.h"
#include "head/hosts/host_spec.h"

const char *alloc_variable(char *const *env, const char *name)
{
        size_t len = strlen(name);

        /* Not getenv(): tests of readers bring variables of their own. */
        for (; *env; env++)
                if (!strncmp(*env, name, len) && (*env)[len] == '=')
                        return (*env)[len + 1] ? *env + len + 1 : NULL;
        return NULL;
}

int alloc_lacks(struct alloc_reader *r, const char *name, const char *because)
{
        struct diag *d = diag_add(r->diags, HN_ALLOC_MISSING, EX_DATAERR,
                                  "%s is not set or empty, but %s is set", name, because);

        diag_note(d, "hnlaunch reads the hosts of the %s allocation from it", r->title);
        diag_help(d, "name the hosts with -H or -w, or start hnlaunch where %s set the variables",
                  r->title);
        return -EINVAL;
}

void alloc_text_open_string(struct alloc_text *t, struct alloc_reader *r, const char *file,
                            const char *text)
{
        hostfile_text_init(&t->t, file, text, strlen(text), r->diags);
        t->t.list = true;
        t->t.n_lines = 1; /* a newline is a blank here */
}

void alloc_text_open(struct alloc_text *t, struct alloc_reader *r, const char *name)
{
        const char *value = alloc_variable(r->in->env, name);

        snprintf(t->name, sizeof(t->name), "$%s", name);
        alloc_text_open_string(t, r, t->name, value ? value : "");
}

void alloc_text_open_file(struct alloc_text *t, struct alloc_reader *r)
{
        hostfile_text_init(&t->t, r->in->path, r->in->text, r->in->len, r->diags);
}

void alloc_text_finish(struct alloc_text *t)
{
        hostfile_text_finish_errors(&t->t);
        hostfile_text_finish(&t->t);
}

struct diag *alloc_text_error(struct alloc_text *t, int id, struct text_range at, const char *fmt,
                              ...)
{
        char fact[512];
        struct diag *d;
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(fact, sizeof(fact), fmt, ap);
        va_end(ap);
        at.len = MAX(at.len, (size_t)1);
        d = hostfile_text_error(&t->t, id, at, NULL, "%s", fact);
        if (d)
                /* A list of -w would be an error of usage. */
                d->exit = EX_DATAERR;
        return d;
}

int alloc_take_number(struct alloc_text *t, size_t *at, int max, struct alloc_count *ret)
{
        size_t from = *at, end = from + strspn(t->t.text + from, "0123456789");
        struct range_error e;

        if (end == from) {
                alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ from, 1 },
                                 t->t.text[from] ? "expected a number"
                                                 : "a number is missing here");
                return -EINVAL;
        }
        if (host_spec_number(t->t.text + from, end - from, "count", 1, max, &ret->value, &e) < 0) {
                alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ from, end - from },
                                 "the number must be 1 to %d", max);
                return -EINVAL;
        }
        ret->at = (struct text_range){ from, end - from };
        *at = end;
        return 0;
}

int alloc_read_number(struct alloc_reader *r, const char *name, int max, struct alloc_count *ret)
{
        CLEANUP(alloc_text_finish) struct alloc_text t;
        size_t at = 0;

        alloc_text_open(&t, r, name);
        if (alloc_take_number(&t, &at, max, ret) < 0)
                return -EINVAL;
        if (!t.t.text[at])
                return 0;
        alloc_text_error(&t, HN_ALLOC_TEXT, (struct text_range){ at, t.t.len - at },
                         "only a number is expected here");
        return -EINVAL;
}

void alloc_counts_finish(struct alloc_counts *c)
{
        free(c->v);
        *c = (struct alloc_counts){ 0 };
}

/* Reads "(x3)" at text[*at], if there: how often the count before is meant. */
static int take_repetition(struct alloc_text *t, size_t *at, struct alloc_count *ret)
{
        const char *text = t->t.text;

        ret->value = 1;
        if (text[*at] != '(')
                return 0;
        if (text[*at + 1] != 'x') {
                alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ *at, 1 },
                                 "counts are written 2, 2(x3) or 2(x3),1");
                return -EINVAL;
        }
        *at += 2;
        if (alloc_take_number(t, at, HOSTS_MAX, ret) < 0)
                return -EINVAL;
        if (text[*at] != ')') {
                alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ *at, 1 },
                                 "`)` is missing here");
                return -EINVAL;
        }
        (*at)++;
        return 0;
}

int alloc_take_counts(struct alloc_text *t, int max, struct alloc_counts *ret)
{
        const char *text = t->t.text;

        for (size_t at = 0;; at++) {
                struct alloc_count one, times;

                if (alloc_take_number(t, &at, max, &one) < 0 || take_repetition(t, &at, &times) < 0)
                        return -EINVAL;
                if (text[at] && text[at] != ',') {
                        alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ at, 1 },
                                         "counts are written 2, 2(x3) or 2(x3),1");
                        return -EINVAL;
                }
                /* "1(x999999999)" must not take the memory. */
                if ((size_t)times.value > HOSTS_MAX - ret->n) {
                        alloc_text_error(t, HN_ALLOC_TEXT, one.at, "there are more than %d counts",
                                         HOSTS_MAX);
                        return -EINVAL;
                }
                for (int i = 0; i < times.value; i++) {
                        ret->v = xgrow(ret->v, ret->n, &ret->cap, sizeof(*ret->v));
                        ret->v[ret->n++] = one;
                }
                if (!text[at])
                        return 0;
        }
}

int alloc_take_names(struct alloc_text *t, struct text_range at, struct strv *ret)
{
        CLEANUP(host_spec_finish) struct host_spec spec = { 0 };
        struct range_error e;

        if (host_spec_parse(&spec, t->t.text + at.at, at.len, &e) < 0) {
                alloc_text_error(t, e.id, (struct text_range){ at.at + e.at, e.len }, "%s", e.text);
                return -EINVAL;
        }
        if (spec.host.user || spec.host.slots_given) {
                alloc_text_error(t, HN_ALLOC_TEXT, at, "expected names of nodes and nothing else");
                return -EINVAL;
        }
        strv_copy(ret, &spec.names);
        return 0;
}

void alloc_names_finish(struct alloc_names *n)
{
        strv_finish(&n->names);
        free(n->at);
        *n = (struct alloc_names){ 0 };
}

int alloc_take_list(struct alloc_text *t, struct alloc_names *ret)
{
        for (size_t at = 0; at < t->t.len; at++) {
                size_t end = range_find(t->t.text, at, t->t.len, ", \t\n");
                struct text_range word = { at, end - at };
                size_t before = ret->names.n;

                if (word.len && alloc_take_names(t, word, &ret->names) < 0)
                        return -EINVAL;
                for (size_t i = before; i < ret->names.n; i++) {
                        ret->at = xgrow(ret->at, i, &ret->cap, sizeof(*ret->at));
                        ret->at[i] = word;
                }
                if (ret->names.n > HOSTS_MAX) {
                        alloc_text_error(t, HN_ALLOC_TEXT, word, "more than %d nodes", HOSTS_MAX);
                        return -EINVAL;
                }
                at = end;
        }
        if (ret->names.n)
                return 0;
        alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ 0, t->t.len }, "no node is named");
        return -EINVAL;
}

bool alloc_next_word(struct alloc_text *t, size_t *at, struct text_range *ret)
{
        ret->at = *at;
        while (ret->at < t->t.len && strchr(" \t\r\n", t->t.text[ret->at]))
                ret->at++;
        *at = ret->at;
        while (*at < t->t.len && !strchr(" \t\r\n", t->t.text[*at]))
                (*at)++;
        ret->len = *at - ret->at;
        return ret->len > 0;
}

int alloc_add_tasks(struct alloc_reader *r, struct alloc_text *t, struct text_range at,
                    const char *name, int tasks)
{
        struct host *host = hosts_find(r->hosts, name);

        if (!host && r->hosts->n == HOSTS_MAX) {
                alloc_text_error(t, HN_TOO_MANY_HOSTS, at, "more than %d hosts", HOSTS_MAX);
                return -EINVAL;
        }
        if (tasks > SLOTS_MAX - (host ? host->slots : 0)) {
                alloc_text_error(t, HN_ALLOC_TEXT, at, "%s has more than %d tasks", name,
                                 SLOTS_MAX);
                return -EINVAL;
        }
        if (!host) {
                host = hosts_add(r->hosts);
                host->name = xstrdup(name);
                host->file = xstrdup(t->t.file);
                host->line = t->t.line;
                host->col = (int)(at.at - t->t.lines[t->t.line - 1]) + 1;
        }
        host->slots += tasks;
        return 0;
}

bool alloc_same_name(const char *a, const char *b)
{
        size_t la = strcspn(a, "."), lb = strcspn(b, ".");

        /* Both have a domain. */
        if (a[la] && b[lb])
                return !strcasecmp(a, b);
        return la == lb && !strncasecmp(a, b, la);
}

/* First by index; the scan is for a list with domains and a name without, which is rare. */
struct host *alloc_find_host(struct hosts *h, const char *name)
{
        CLEANUP(free_textp) char *bare = xstrndup(name, strcspn(name, "."));
        struct host *host = hosts_find(h, name);

        if (!host && strcmp(bare, name) != 0)
                return hosts_find(h, bare);
        for (size_t i = 0; !host && i < h->n; i++)
                if (strchr(h->v[i].name, '.') && alloc_same_name(h->v[i].name, name))
                        host = &h->v[i];
        return host;
}

void alloc_mark_own(struct hosts *h, const char *name)
{
        struct host *own = name ? alloc_find_host(h, name) : NULL;

        if (own && !own->port && !own->user)
                own->local = true;
}

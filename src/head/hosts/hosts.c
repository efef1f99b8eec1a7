/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/hosts.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"

/* ---- the list ---- */

struct entry {
        char *key; /* the name in small letters */
        size_t at;
        UT_hash_handle hh;
};

/* Names are set after hosts_add(), so the index catches up when something is looked for. */
struct host_index {
        struct entry *by_name;
        size_t indexed;
};

static char *lower(const char *name)
{
        char *copy = xstrdup(name);

        for (char *c = copy; *c; c++)
                *c = (char)tolower((unsigned char)*c);
        return copy;
}

static void index_clear(struct host_index *index)
{
        struct entry *e, *next;

        HASH_ITER(hh, index->by_name, e, next)
        {
                HASH_DEL(index->by_name, e);
                free(e->key);
                free(e);
        }
        index->indexed = 0;
}

static void index_catch_up(struct host_index *index, const struct hosts *h)
{
        for (; index->indexed < h->n; index->indexed++) {
                char *key = lower(h->v[index->indexed].name);
                struct entry *e;

                HASH_FIND_STR(index->by_name, key, e);
                if (e) {
                        free(key);
                        continue;
                }
                e = xcalloc(1, sizeof(*e));
                e->key = key;
                e->at = index->indexed;
                HASH_ADD_KEYPTR(hh, index->by_name, e->key, strlen(e->key), e);
        }
}

static void host_finish(struct host *host)
{
        free(host->name);
        free(host->user);
        free(host->addr);
        free(host->iface);
        free(host->numa);
        free(host->tags);
        free(host->file);
        intlist_finish(&host->gpus);
        intlist_finish(&host->keep);
        intlist_finish(&host->drop);
}

void hosts_finish(struct hosts *h)
{
        for (size_t i = 0; i < h->n; i++)
                host_finish(&h->v[i]);
        free(h->v);
        if (h->index)
                index_clear(h->index);
        free(h->index);
        *h = (struct hosts)HOSTS_INIT;
}

struct host *hosts_add(struct hosts *h)
{
        if (!h->index)
                h->index = xcalloc(1, sizeof(*h->index));
        /* Full when the number of hosts is a power of two, or none. */
        if (!(h->n & (h->n - 1)))
                h->v = xrealloc(h->v, h->n ? h->n * 2 : 1, sizeof(*h->v));
        h->v[h->n] = (struct host){ 0 };
        return &h->v[h->n++];
}

const struct host *hosts_find(const struct hosts *h, const char *name)
{
        struct entry *e;
        char *key;

        if (!h->index)
                return NULL;
        index_catch_up(h->index, h);
        key = lower(name);
        HASH_FIND_STR(h->index->by_name, key, e);
        free(key);
        return e ? &h->v[e->at] : NULL;
}

void hosts_retain(struct hosts *h, const bool *keep)
{
        size_t n = 0, room = 1;

        for (size_t i = 0; i < h->n; i++) {
                if (keep[i])
                        h->v[n++] = h->v[i];
                else
                        host_finish(&h->v[i]);
        }
        h->n = n;
        if (h->index)
                index_clear(h->index);
        /* hosts_add() tells the room from the count, so that must be true again. */
        while (room < n)
                room *= 2;
        if (h->v)
                h->v = xrealloc(h->v, room, sizeof(*h->v));
}

/* ---- folding ---- */

/* A name as prefix, number, suffix: the last run of digits is the number. */
struct part {
        const char *name;
        size_t prefix, digits; /* lengths; no digits: the name stands for itself */
        int number;
        int width; /* of the zero padding, 0 = none */
        size_t group;
};

/* Names that differ in the number only. */
struct group {
        char *key;
        size_t id;
        UT_hash_handle hh;
};

static struct part split(const char *name)
{
        size_t end = strlen(name), start;
        struct part p = { .name = name, .prefix = strlen(name) };

        while (end && !isdigit((unsigned char)name[end - 1]))
                end--;
        for (start = end; start && isdigit((unsigned char)name[start - 1]);)
                start--;
        if (start == end || end - start > 9 || strchr(name, ':'))
                return p;
        p.prefix = start;
        p.digits = end - start;
        p.number = atoi(name + start);
        return p;
}

static struct group *group_find(struct group *groups, const char *key)
{
        struct group *g;

        HASH_FIND_STR(groups, key, g);
        return g;
}

/* The group of @key, made when it is new. Takes @key. */
static size_t group_get(struct group **groups, char *key)
{
        struct group *g = group_find(*groups, key);

        if (g) {
                free(key);
                return g->id;
        }
        g = xcalloc(1, sizeof(*g));
        g->key = key;
        g->id = HASH_COUNT(*groups);
        HASH_ADD_KEYPTR(hh, *groups, g->key, strlen(g->key), g);
        return g->id;
}

static void groups_finish(struct group **groups)
{
        struct group *g, *next;

        HASH_ITER(hh, *groups, g, next)
        {
                HASH_DEL(*groups, g);
                free(g->key);
                free(g);
        }
}

/* What names of one group share: prefix, suffix, width of the padding. */
static char *group_key(const struct part *p, int width)
{
        if (!p->digits)
                return xasprintf("%s/", p->name);
        return xasprintf("%.*s/%s/%d", (int)p->prefix, p->name, p->name + p->prefix + p->digits,
                         width);
}

/* "100" belongs to 001-100 when a padded name of three digits exists, else to 9-100. */
static void find_groups(struct part *parts, size_t n)
{
        CLEANUP(groups_finish) struct group *padded = NULL;
        CLEANUP(groups_finish) struct group *groups = NULL;

        for (size_t i = 0; i < n; i++)
                if (parts[i].digits && parts[i].name[parts[i].prefix] == '0')
                        group_get(&padded, group_key(&parts[i], (int)parts[i].digits));
        for (size_t i = 0; i < n; i++) {
                char *key = group_key(&parts[i], (int)parts[i].digits);

                parts[i].width = group_find(padded, key) ? (int)parts[i].digits : 0;
                free(key);
                parts[i].group = group_get(&groups, group_key(&parts[i], parts[i].width));
        }
}

static int by_group_and_number(const void *a, const void *b)
{
        const struct part *x = a, *y = b;

        if (x->group != y->group)
                return x->group < y->group ? -1 : 1;
        return (x->number > y->number) - (x->number < y->number);
}

/* Writes the parts [0, n) of one group, sorted. */
static void fold_group(struct buf *out, const struct part *p, size_t n)
{
        int width = p->width;

        if (!p->digits || p[0].number == p[n - 1].number) {
                buf_printf(out, strchr(p->name, ':') ? "[%s]" : "%s", p->name);
                return;
        }
        buf_printf(out, "%.*s[", (int)p->prefix, p->name);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && p[end].number <= p[end - 1].number + 1;)
                        end++;
                buf_printf(out, "%s%0*d", i ? "," : "", width, p[i].number);
                if (p[end - 1].number > p[i].number)
                        buf_printf(out, "-%0*d", width, p[end - 1].number);
        }
        buf_printf(out, "]%s", p->name + p->prefix + p->digits);
}

char *hosts_fold(const struct hosts *h, const size_t *index, size_t n)
{
        struct part *parts = xcalloc(n, sizeof(*parts));
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < n; i++)
                parts[i] = split(h->v[index[i]].name);
        find_groups(parts, n);
        if (n)
                qsort(parts, n, sizeof(*parts), by_group_and_number);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && parts[end].group == parts[i].group;)
                        end++;
                if (i)
                        buf_appends(&out, ",");
                fold_group(&out, parts + i, end - i);
        }
        free(parts);
        return buf_steal(&out);
}

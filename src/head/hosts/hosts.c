/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The array doubles whenever the count is a power of two, so no capacity is stored. Look-ups
 * go through a hash of the names in small letters, brought up to date by hosts_find() and dropped
 * by hosts_retain(), which moves hosts.
 *
 * Folding splits each name at its last run of digits. Names of equal prefix, suffix and padding
 * form a group; sorted by group and number, each group becomes "gpu[001-004,070]".
 */
#include "head/hosts/hosts.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/strv.h"

/* ---- names in small letters, and a number for each ---- */

/* An entry of a map from names in small letters to a number. */
struct name_entry {
        char *key;
        size_t value;
        UT_hash_handle hh;
};

/* Returns the entry of a key in small letters, NULL = none. */
static struct name_entry *find_name_entry(struct name_entry *map, const char *key)
{
        struct name_entry *e;

        HASH_FIND_STR(map, key, e);
        return e;
}

/* Returns the entry of @key, a new entry with @value if there is none. Takes @key. */
static struct name_entry *add_name_entry(struct name_entry **map, char *key, size_t value)
{
        struct name_entry *e = find_name_entry(*map, key);

        if (e) {
                free(key);
                return e;
        }
        e = xcalloc(1, sizeof(*e));
        e->key = key;
        e->value = value;
        HASH_ADD_KEYPTR(hh, *map, e->key, strlen(e->key), e);
        return e;
}

static void name_entries_finish(struct name_entry **map)
{
        struct name_entry *e, *next;

        HASH_ITER(hh, *map, e, next)
        {
                HASH_DEL(*map, e);
                free(e->key);
                free(e);
        }
}

/* Returns the name in small letters, malloc'ed. Names of hosts are ASCII (host_spec.c). */
static char *lower_host_name(const char *name)
{
        char *copy = xstrdup(name);

        for (char *c = copy; *c; c++)
                *c = (char)tolower((unsigned char)*c);
        return copy;
}

/* ---- the list ---- */

void host_finish(struct host *host)
{
        free(host->name);
        free(host->user);
        free(host->addr);
        free(host->iface);
        free(host->file);
        if (host->site) {
                free(host->site->domain);
                free(host->site->group);
                free(host->site->path);
        }
        free(host->site);
        intlist_finish(&host->gpus);
        intlist_finish(&host->keep);
        intlist_finish(&host->drop);
}

struct host_site *host_site_of(struct host *host)
{
        if (!host->site) {
                host->site = xcalloc(1, sizeof(*host->site));
                host->site->number = -1;
        }
        return host->site;
}

const char *host_domain(const struct host *host)
{
        const struct host_site *s = host->site;

        return !s ? NULL : s->domain ? s->domain : s->group;
}

bool host_shares_domain(const struct host *a, const struct host *b)
{
        const char *x = host_domain(a), *y = host_domain(b);

        return x && y && !strcmp(x, y);
}

void hosts_finish(struct hosts *h)
{
        for (size_t i = 0; i < h->n; i++)
                host_finish(&h->v[i]);
        free(h->v);
        free(h->source);
        free(h->slots_source);
        name_entries_finish(&h->by_name);
        if (h->aside)
                hosts_finish(h->aside);
        free(h->aside);
        *h = (struct hosts)HOSTS_INIT;
}

struct host *hosts_add(struct hosts *h)
{
        /* Full when the number of hosts is a power of two, or none. */
        if (!(h->n & (h->n - 1)))
                h->v = xrealloc(h->v, h->n ? h->n * 2 : 1, sizeof(*h->v));
        h->v[h->n] = (struct host){ 0 };
        return &h->v[h->n++];
}

struct host *hosts_add_like(struct hosts *h, const struct host *like)
{
        struct host *host = hosts_add(h);
        char **texts[] = { &host->name, &host->user, &host->addr, &host->iface, &host->file };
        struct intlist *lists[] = { &host->gpus, &host->keep, &host->drop };

        *host = *like;
        host->site = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                *texts[i] = *texts[i] ? xstrdup(*texts[i]) : NULL;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                struct intlist from = *lists[i];

                *lists[i] = (struct intlist){ 0 };
                for (size_t k = 0; k < from.n; k++)
                        intlist_add(lists[i], from.v[k]);
        }
        return host;
}

struct host *hosts_find(struct hosts *h, const char *name)
{
        struct name_entry *e;
        char *key;

        /* Hosts get names after hosts_add(), so each look-up adds the missing hosts. */
        for (; h->indexed < h->n; h->indexed++)
                add_name_entry(&h->by_name, lower_host_name(h->v[h->indexed].name), h->indexed);
        key = lower_host_name(name);
        e = find_name_entry(h->by_name, key);
        free(key);
        return e ? &h->v[e->value] : NULL;
}

/* After hosts have moved. */
static void drop_index(struct hosts *h)
{
        name_entries_finish(&h->by_name);
        h->indexed = 0;
}

void hosts_arrange(struct hosts *h, const size_t *order)
{
        struct host *was = xcalloc(h->n, sizeof(*was));

        for (size_t i = 0; i < h->n; i++)
                was[i] = h->v[i];
        for (size_t i = 0; i < h->n; i++)
                h->v[i] = was[order[i]];
        free(was);
        drop_index(h);
}

void hosts_retain(struct hosts *h, const bool *keep)
{
        size_t n = 0, capacity = 1;

        for (size_t i = 0; i < h->n; i++) {
                if (keep[i])
                        h->v[n++] = h->v[i];
                else
                        host_finish(&h->v[i]);
        }
        h->n = n;
        drop_index(h);
        /* hosts_add() derives the capacity from the count. */
        while (capacity < n)
                capacity *= 2;
        if (h->v)
                h->v = xrealloc(h->v, capacity, sizeof(*h->v));
}

/* ---- hosts that stand by ---- */

void hosts_put_aside(struct hosts *h, const bool *out)
{
        bool *keep = xcalloc(h->n, sizeof(*keep));

        if (!h->aside)
                h->aside = xcalloc(1, sizeof(*h->aside));
        for (size_t i = 0; i < h->n; i++) {
                keep[i] = !out[i];
                if (keep[i])
                        continue;
                *hosts_add(h->aside) = h->v[i];
                h->v[i] = (struct host){ 0 };
        }
        hosts_retain(h, keep);
        free(keep);
}

size_t hosts_aside(const struct hosts *h)
{
        return h->aside ? h->aside->n - h->stood_in : 0;
}

bool hosts_drop_aside(struct hosts *h, const char *name)
{
        size_t k = h->stood_in;

        while (h->aside && k < h->aside->n && strcasecmp(h->aside->v[k].name, name) != 0)
                k++;
        if (!h->aside || k == h->aside->n)
                return false;
        host_finish(&h->aside->v[k]);
        h->aside->n--;
        memmove(h->aside->v + k, h->aside->v + k + 1, (h->aside->n - k) * sizeof(*h->aside->v));
        return true;
}

const struct host *hosts_stand_in(struct hosts *h, size_t i)
{
        /* Hosts are moved as structs, with the texts that they own. */
        struct host was = h->v[i], next, *v = h->aside ? h->aside->v : NULL;
        size_t end = h->stood_in + hosts_aside(h), k = h->stood_in;

        while (k < end && (v[k].slots < was.slots || !host_shares_domain(&v[k], &was)))
                k++;
        if (k == end)
                k = h->stood_in;
        while (k < end && v[k].slots < was.slots)
                k++;
        if (k == end)
                return NULL;
        next = v[k];
        /* The failed host joins those that have been exchanged, in front; the free ones keep their
         * order. */
        memmove(v + h->stood_in + 1, v + h->stood_in, (k - h->stood_in) * sizeof(*v));
        v[h->stood_in] = was;
        next.place = was.place;
        if (was.site)
                host_site_of(&next)->turn = was.site->turn;
        h->v[i] = next;
        drop_index(h);
        return &v[h->stood_in++];
}

/* ---- folding ---- */

/* A name as prefix, number, suffix: the last run of digits is the number. */
struct name_part {
        const char *name;
        size_t prefix, digits; /* lengths; without digits the name stays whole */
        int number;
        int width; /* of the zero padding, 0 = none */
        size_t group;
};

/* Splits a name around the last number, by which hosts_fold() joins names; no digits: the name
 * stands alone. */
static struct name_part split_name(const char *name)
{
        size_t end = strlen(name), start;
        struct name_part p = { .name = name, .prefix = strlen(name) };

        while (end && !isdigit((unsigned char)name[end - 1]))
                end--;
        for (start = end; start && isdigit((unsigned char)name[start - 1]);)
                start--;
        /* More digits do not fit an int; a colon is of an IPv6 address. */
        if (start == end || end - start > 9 || strchr(name, ':'))
                return p;
        p.prefix = start;
        p.digits = end - start;
        p.number = atoi(name + start);
        return p;
}

/* Prefix, suffix and width of the padding, equal for all names of a group. malloc'ed. */
static char *make_group_key(const struct name_part *p, int width)
{
        if (!p->digits)
                return xasprintf("%s/", p->name);
        return xasprintf("%.*s/%s/%d", (int)p->prefix, p->name, p->name + p->prefix + p->digits,
                         width);
}

/* "100" belongs to 001-100 when a padded name of three digits exists, else to 9-100. */
static void group_names(struct name_part *parts, size_t n)
{
        CLEANUP(name_entries_finish) struct name_entry *padded = NULL;
        CLEANUP(name_entries_finish) struct name_entry *groups = NULL;

        for (size_t i = 0; i < n; i++)
                if (parts[i].digits && parts[i].name[parts[i].prefix] == '0')
                        add_name_entry(&padded, make_group_key(&parts[i], (int)parts[i].digits), 0);
        for (size_t i = 0; i < n; i++) {
                char *key = make_group_key(&parts[i], (int)parts[i].digits);

                parts[i].width = find_name_entry(padded, key) ? (int)parts[i].digits : 0;
                free(key);
                key = make_group_key(&parts[i], parts[i].width);
                parts[i].group = add_name_entry(&groups, key, HASH_COUNT(groups))->value;
        }
}

/* Groups in the order of their first name, names by number. */
static int by_group_and_number(const void *a, const void *b)
{
        const struct name_part *x = a, *y = b;

        if (x->group != y->group)
                return x->group < y->group ? -1 : 1;
        return (x->number > y->number) - (x->number < y->number);
}

/* Appends the sorted parts [0, n) of a group, folded. */
static void fold_name_group(struct buf *out, const struct name_part *p, size_t n)
{
        int width = p->width;

        /* A single name, perhaps several times. */
        if (!p->digits || p[0].number == p[n - 1].number) {
                buf_printf(out, strchr(p->name, ':') ? "[%s]" : "%s", p->name);
                return;
        }
        buf_printf(out, "%.*s[", (int)p->prefix, p->name);
        for (size_t i = 0, end; i < n; i = end) {
                /* Equal numbers continue a run, too: each name once. */
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
        struct name_part *parts = xcalloc(n, sizeof(*parts));
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < n; i++)
                parts[i] = split_name(h->v[index[i]].name);
        group_names(parts, n);
        if (n)
                qsort(parts, n, sizeof(*parts), by_group_and_number);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && parts[end].group == parts[i].group;)
                        end++;
                if (i)
                        buf_appends(&out, ",");
                fold_name_group(&out, parts + i, end - i);
        }
        free(parts);
        return buf_steal(&out);
}

/* ---- places ---- */

/* Whether a host comes from an option or a variable, which have no lines. */
static bool has_no_line(const struct host *h)
{
        return !h->file || strchr("-$", *h->file);
}

/* Returns the end of the hosts from @i on that stand in consecutive lines. */
static size_t find_run_end(const struct hosts *h, const size_t *index, size_t i, size_t n)
{
        const struct host *last = &h->v[index[i]], *next;

        for (i++; i < n; i++, last = next) {
                next = &h->v[index[i]];
                if (strcmp(next->file ? next->file : "", last->file ? last->file : "") ||
                    (!has_no_line(last) && next->line != last->line &&
                     next->line != last->line + 1))
                        break;
        }
        return i;
}

char *hosts_places(const struct hosts *h, const size_t *index, size_t n)
{
        enum { MAX_PLACES = 200 }; /* letters */
        const char *file = NULL;
        struct buf out = BUF_INIT;

        for (size_t i = 0, end; i < n; i = end) {
                const struct host *first = &h->v[index[i]], *last;
                bool same = file && first->file && !strcmp(file, first->file);

                end = find_run_end(h, index, i, n);
                last = &h->v[index[end - 1]];
                /* A list in any order has a place for each host. */
                if (buf_len(&out) > MAX_PLACES) {
                        buf_appends(&out, ", ...");
                        break;
                }
                file = first->file;
                if (!same)
                        buf_printf(&out, "%s%s", i ? ", " : "", file ? file : "");
                if (!has_no_line(first))
                        buf_printf(&out, "%c%d", same ? ',' : ':', first->line);
                if (!has_no_line(first) && last->line > first->line)
                        buf_printf(&out, "-%d", last->line);
        }
        return buf_steal(&out);
}

char *hosts_locate(const struct hosts *h, const size_t *index, size_t n)
{
        char *names = hosts_fold(h, index, n), *where = hosts_places(h, index, n), *both;

        if (!*where || *where == '-')
                both = xstrdup(names);
        else
                both = xasprintf("%s  (%s)", names, where);
        free(names);
        free(where);
        return both;
}

void host_group_add(struct host_group *g, size_t host)
{
        /* Full when the number of hosts is a power of two, or none. */
        if (!(g->n & (g->n - 1)))
                g->hosts = xrealloc(g->hosts, g->n ? g->n * 2 : 1, sizeof(*g->hosts));
        g->hosts[g->n++] = host;
}

void host_group_finish(struct host_group *g)
{
        free(g->hosts);
        *g = (struct host_group){ 0 };
}

void host_groups_add(struct host_groups *g, size_t host, host_equal equal, const void *ctx)
{
        size_t i = 0;

        while (i < g->n && !equal(ctx, g->v[i].hosts[0], host))
                i++;
        if (i == g->n) {
                g->v = xrealloc(g->v, g->n + 1, sizeof(*g->v));
                g->v[g->n++] = (struct host_group){ 0 };
        }
        host_group_add(&g->v[i], host);
}

void host_groups_finish(struct host_groups *g)
{
        for (size_t i = 0; i < g->n; i++)
                host_group_finish(&g->v[i]);
        free(g->v);
        *g = (struct host_groups){ 0 };
}

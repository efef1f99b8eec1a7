/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several worlds: ranks of roles are compared within their world. The sentences of a world have the
 * numbers there, and stand behind the name of the world; the strongest finding is that of the job.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/why/why.h"
#include "head/why/why_private.h"

const char *why_rank_name(const struct why_rank *r, char to[PLAN_RANK_NAME_MAX])
{
        return role_rank_name(r->role, r->replica, r->rank - (r->role ? r->first : 0), to);
}

size_t why_world_end(const struct why_rank *ranks, size_t n, size_t i)
{
        size_t end = i + 1;

        while (end < n && ranks[end].world == ranks[i].world)
                end++;
        return end;
}

static void shift_ranks(struct why_rank *ranks, size_t n, int by)
{
        for (size_t i = 0; i < n; i++)
                ranks[i].rank += by;
}

/* The ranks have the numbers of their world meanwhile, which the sentences name. */
static void find_by_role(struct why_rank *ranks, size_t n, struct why_finding *ret)
{
        const int first = ranks[0].first;

        shift_ranks(ranks, n, -first);
        why_find_in_world(ranks, n, ret);
        shift_ranks(ranks, n, first);
        for (size_t i = 0; i < ret->outliers.n; i++)
                ret->outliers.v[i] += first;
        if (ret->culprit >= 0)
                ret->culprit += first;
}

/* Returns "role a", of a replica "role a:1", or of a shared world "roles a, b"; malloc'ed. */
static char *name_world(const struct why_rank *ranks, size_t n)
{
        struct buf b = BUF_INIT;

        for (size_t i = 0; i < n; i++)
                if (!i || strcmp(ranks[i].role, ranks[i - 1].role) != 0)
                        buf_printf(&b, "%s%s", i ? ", " : "", ranks[i].role);
        if (ranks[0].replica >= 0)
                buf_printf(&b, ":%d", ranks[0].replica);
        CLEANUP(free_textp) char *roles = buf_steal(&b);

        return xasprintf("role%s %s", strchr(roles, ',') ? "s" : "", roles);
}

/* Returns copies of the ranks of a world with the numbers there, which share all texts. */
static struct why_rank *copy_world(const struct why_rank *ranks, size_t n)
{
        struct why_rank *own = xcalloc(n, sizeof(*own));

        memcpy(own, ranks, n * sizeof(*own));
        shift_ranks(own, n, -ranks[0].first);
        return own;
}

char *why_tell_ranks(const struct why_rank *ranks, size_t n, const struct intlist *which)
{
        struct buf b = BUF_INIT;

        if (n && !ranks[0].role)
                why_put_outliers(ranks, n, which, false, &b);
        for (size_t i = 0, end; i < n && ranks[0].role; i = end) {
                CLEANUP(intlist_finish) struct intlist own = { 0 };

                end = why_world_end(ranks, n, i);
                for (size_t k = 0; k < which->n; k++)
                        if (which->v[k] >= ranks[i].rank && which->v[k] <= ranks[end - 1].rank)
                                intlist_add(&own, which->v[k] - ranks[i].first);
                if (own.n) {
                        CLEANUP(free_textp) char *world = name_world(ranks + i, end - i);
                        struct why_rank *copy = copy_world(ranks + i, end - i);

                        buf_printf(&b, "%s%s: ", buf_len(&b) ? "; " : "", world);
                        why_put_outliers(copy, end - i, &own, false, &b);
                        free(copy);
                }
        }
        return buf_steal(&b);
}

/* Whether both ranks are of one role and world. */
static bool is_same_entry(const struct why_rank *a, const struct why_rank *b)
{
        return a->world == b->world && !strcmp(a->role, b->role);
}

char *why_ranks_name(const struct why_rank *ranks, size_t n, const struct intlist *which)
{
        struct listed_role *entries = xcalloc(n + 1, sizeof(*entries));
        struct role_list roles = { .v = entries };
        char *name;

        for (size_t i = 0; i < n && ranks[0].role; i++) {
                if (!i || !is_same_entry(&ranks[i], &ranks[i - 1]))
                        entries[roles.n++] = (struct listed_role){
                                .name = (char *)ranks[i].role,
                                .replica = ranks[i].replica,
                                .replicas = ranks[i].replica >= 0 ? 2 : 1,
                                .first = ranks[i].rank,
                                .role_rank = ranks[i].rank - ranks[i].first,
                        };
                entries[roles.n - 1].size++;
        }
        name = role_list_ranks_name(&roles, which);
        free(entries);
        return name;
}

/* Orders findings: any sure hang goes before any that may be none. */
static int finding_strength(const struct why_finding *f)
{
        static const int strengths[] = {
                [WHY_NO_HANG] = 0, [WHY_ALL_WAIT] = 1, [WHY_MISMATCH] = 2, [WHY_HANG] = 3
        };

        return strengths[f->kind] + (f->kind != WHY_NO_HANG && f->is_sure ? 4 : 0);
}

/* Sentences about no hang begin so once, in front of all worlds (head/record/story_text.c). */
static const char no_hang[] = "no hang is visible: ";

/* Returns the text of the finding of the job with that of a world behind it; malloc'ed. */
static char *join_texts(const struct why_finding *job, const struct why_finding *part,
                        const char *world)
{
        size_t front = strncmp(part->text, no_hang, sizeof(no_hang) - 1) ? 0 : sizeof(no_hang) - 1;
        bool hangs = part->kind != WHY_NO_HANG, hung = job->kind != WHY_NO_HANG;

        /* Worlds without a hang are of no interest beside one that hangs. */
        if (job->text && !hangs && hung)
                return xstrdup(job->text);
        if (job->text && hangs == hung)
                return xasprintf("%s; %s: %s", job->text, world, part->text + front);
        return xasprintf("%s%s: %s", hangs ? "" : no_hang, world, part->text + front);
}

/* Adds the finding @part of a world, which is taken over, to that of the job. */
static void merge_finding(struct why_finding *to, struct why_finding *part,
                          const struct why_rank *ranks, size_t n)
{
        CLEANUP(free_textp) char *world = name_world(ranks, n), *before = to->text;
        bool hangs = part->kind != WHY_NO_HANG, stronger;

        stronger = !before || finding_strength(part) > finding_strength(to);
        to->text =
                join_texts(&(struct why_finding){ .kind = to->kind, .text = before }, part, world);
        if (hangs && to->kind == WHY_NO_HANG) { /* nor of worlds without one */
                free(to->brief);
                to->brief = NULL;
                to->culprit = -1;
        }
        if (hangs)
                intlist_add(&to->worlds, ranks[0].world);
        for (size_t i = 0; hangs && i < part->outliers.n; i++)
                intlist_add(&to->outliers, part->outliers.v[i]);
        /* Without a hang, the only rank of a world says nothing about others. */
        if (part->brief && (hangs || n > 1) && (stronger || !to->brief)) {
                free(to->brief);
                to->culprit = part->culprit;
                to->brief = part->culprit >= 0 ? STEAL(&part->brief)
                                               : xasprintf("%s: %s", world, part->brief);
        }
        if (stronger) {
                to->kind = part->kind;
                to->is_sure = part->is_sure;
        }
        why_finding_finish(part);
}

/* Adds the findings of all worlds with this share. */
static void merge_worlds(struct why_rank *ranks, size_t n, enum why_share share,
                         struct why_finding *to)
{
        struct why_finding part;

        for (size_t i = 0, end; i < n; i = end) {
                end = why_world_end(ranks, n, i);
                if (ranks[i].share != share)
                        continue;
                find_by_role(ranks + i, end - i, &part);
                merge_finding(to, &part, ranks + i, end - i);
        }
}

static int compare_outliers(const void *a, const void *b)
{
        int x = *(const int *)a, y = *(const int *)b;

        return (x > y) - (x < y);
}

/* Worlds that idle are merged after those that are judged, whatever their ranks are. */
static void sort_outliers(struct intlist *l)
{
        if (l->n)
                qsort(l->v, l->n, sizeof(*l->v), compare_outliers);
}

static bool some_compute(const struct why_rank *ranks, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (ranks[i].share == WHY_JUDGED && why_computes(&ranks[i]))
                        return true;
        return false;
}

void why_find(struct why_rank *ranks, size_t n, struct why_finding *ret)
{
        if (!n || !ranks[0].role) {
                why_find_in_world(ranks, n, ret);
                if (ret->kind != WHY_NO_HANG)
                        intlist_add(&ret->worlds, 0);
                return;
        }
        *ret = (struct why_finding){ .culprit = -1 };
        merge_worlds(ranks, n, WHY_JUDGED, ret);
        /* A role that serves others idles by nature, and is suspect only when no better finding is
         * there. */
        if ((ret->kind == WHY_NO_HANG || !ret->is_sure) && !some_compute(ranks, n))
                merge_worlds(ranks, n, WHY_IDLES, ret);
        sort_outliers(&ret->outliers);
        if (!ret->text)
                ret->text = xstrdup("no hang is visible: all ranks go on");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan has the ranks of a role in one world side by side, so a new entry begins where program or
 * world differ from those of the rank before. The entry of a rank is found by halving.
 */
#include "head/model/role_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/core/json_text.h"

/* Adds a zeroed entry. The pointer holds up to the next call. */
static struct listed_role *add_role_entry(struct role_list *p)
{
        p->v = xrealloc(p->v, p->n + 1, sizeof(*p->v));
        p->v[p->n] = (struct listed_role){ 0 };
        return &p->v[p->n++];
}

/* Counts the earlier entries of the same program. */
static int count_earlier(const struct role_list *p, const struct plan *plan, int program)
{
        int n = 0;

        for (size_t i = 0; i < p->n; i++)
                n += plan->ranks[p->v[i].first].program == program;
        return n;
}

/* Counts the replicas of each role, which have the entries of a name. */
static void count_entry_replicas(struct role_list *p)
{
        for (size_t i = 0; i < p->n; i++) {
                if (p->v[i].replicas)
                        continue; /* with the first */
                for (int counts = 1; counts >= 0; counts--)
                        for (size_t k = i; k < p->n; k++)
                                if (strcmp(p->v[k].name, p->v[i].name) != 0)
                                        continue;
                                else if (counts)
                                        p->v[i].replicas++;
                                else
                                        p->v[k].replicas = p->v[i].replicas;
        }
}

/* Counts the nodes with ranks of each entry. */
static void count_entry_nodes(struct role_list *p, const struct plan *plan)
{
        int *last = xcalloc(plan->n_nodes, sizeof(*last)); /* number of the entry, from 1 */

        for (size_t i = 0; i < p->n; i++)
                for (int r = p->v[i].first; r < p->v[i].first + p->v[i].size; r++) {
                        int *at = &last[plan->ranks[r].node];

                        p->v[i].nodes += *at != (int)i + 1;
                        *at = (int)i + 1;
                }
        free(last);
}

void role_list_from_plan(struct role_list *p, const struct plan *plan)
{
        *p = (struct role_list){ 0 };
        for (int i = 0; i < plan->world_size; i++) {
                const struct plan_rank *r = &plan->ranks[i], *before = i ? r - 1 : NULL;

                if (!r->role)
                        continue;
                if (!p->n || before->program != r->program || before->world != r->world) {
                        int replica = count_earlier(p, plan, r->program);

                        *add_role_entry(p) = (struct listed_role){
                                .name = xstrdup(r->role),
                                .replica = replica,
                                .world = r->world,
                                .first = i,
                                .role_rank = i - plan->worlds[r->world].first,
                        };
                }
                p->v[p->n - 1].size++;
        }
        if (p->n)
                count_entry_nodes(p, plan);
        count_entry_replicas(p);
}

/* Reads a number of a record, which a user may have changed; 0 if it is missing or out of range. */
static int read_entry_number(const json_t *j, const char *name)
{
        json_int_t n = json_integer_value(json_object_get(j, name));

        return n < 0 || n > PLAN_MAX_RANKS ? 0 : (int)n;
}

void role_list_load(struct role_list *p, const json_t *roles, int n_ranks)
{
        const json_t *j;
        size_t i;

        *p = (struct role_list){ 0 };
        json_array_foreach(roles, i, j)
        {
                const char *name = json_string_value(json_object_get(j, "name"));
                int first = read_entry_number(j, "first"), size = read_entry_number(j, "size");
                int end = p->n ? p->v[p->n - 1].first + p->v[p->n - 1].size : 0;
                int world = read_entry_number(j, "world");
                int last = p->n ? p->v[p->n - 1].world : 0;

                /* Entries must follow each other without overlap: role_list_find() halves the
                 * list. */
                if (!name || first < end || size <= 0 || size > n_ranks - first)
                        continue;
                if (world < last || world > last + (p->n > 0))
                        continue; /* worlds are numbered from 0 without a gap */
                *add_role_entry(p) = (struct listed_role){
                        .name = printable_text(name, PRINTABLE_QUOTE),
                        .replica = read_entry_number(j, "replica"),
                        .world = world,
                        .first = first,
                        .size = size,
                        .role_rank = read_entry_number(j, "role_rank"),
                        .nodes = read_entry_number(j, "nodes"),
                };
        }
        count_entry_replicas(p);
}

void role_list_fill_plan(const struct role_list *p, struct plan *plan)
{
        int rank = 0;

        /* Ranks that no entry has would have no world: then the list is not of this plan. */
        for (size_t i = 0; i < p->n && p->v[i].first == rank; i++)
                rank += p->v[i].size;
        plan->n_worlds = rank == plan->world_size ? (size_t)p->v[p->n - 1].world + 1 : 1;
        plan->worlds = xcalloc(plan->n_worlds, sizeof(*plan->worlds));
        for (size_t i = 0; rank == plan->world_size && i < p->n; i++) {
                size_t program = 0; /* the first entry of the role stands for its program */

                while (strcmp(p->v[program].name, p->v[i].name) != 0)
                        program++;
                for (int r = p->v[i].first; r < p->v[i].first + p->v[i].size; r++) {
                        plan->ranks[r].role = p->v[i].name;
                        plan->ranks[r].world = p->v[i].world;
                        plan->ranks[r].program = (int)program;
                }
        }
        plan_count_worlds(plan);
}

void role_list_finish(struct role_list *p)
{
        for (size_t i = 0; i < p->n; i++)
                free(p->v[i].name);
        free(p->v);
        *p = (struct role_list){ 0 };
}

const struct listed_role *role_list_find(const struct role_list *p, int rank)
{
        size_t from = 0, until = p ? p->n : 0;

        while (from < until) {
                size_t middle = from + (until - from) / 2;
                const struct listed_role *entry = &p->v[middle];

                if (rank < entry->first)
                        until = middle;
                else if (rank - entry->first >= entry->size)
                        from = middle + 1;
                else
                        return entry;
        }
        return NULL;
}

int role_list_number(const struct listed_role *entry, int rank)
{
        return rank - entry->first + entry->role_rank;
}

/* Returns the number of the replica for a name; -1 = the role has no other, and names leave the
 * number out. */
static int name_replica(const struct listed_role *entry)
{
        return entry && entry->replicas > 1 ? entry->replica : -1;
}

const char *role_rank_name(const char *role, int replica, int number, char to[PLAN_RANK_NAME_MAX])
{
        if (role && replica >= 0)
                snprintf(to, PLAN_RANK_NAME_MAX, "role %.80s:%d, rank %d", role, replica, number);
        else if (role)
                snprintf(to, PLAN_RANK_NAME_MAX, "role %.80s, rank %d", role, number);
        else
                snprintf(to, PLAN_RANK_NAME_MAX, "rank %d", number);
        return to;
}

const char *role_list_name(const struct role_list *p, int rank, char to[PLAN_RANK_NAME_MAX])
{
        const struct listed_role *entry = role_list_find(p, rank);

        return role_rank_name(entry ? entry->name : NULL, name_replica(entry),
                              entry ? role_list_number(entry, rank) : rank, to);
}

/* Writes the short form. Names of roles are cut, so that all parts fit PLAN_RANK_NAME_MAX. */
static const char *label_rank(const char *role, int replica, int number,
                              char to[PLAN_RANK_NAME_MAX])
{
        if (role && replica >= 0)
                snprintf(to, PLAN_RANK_NAME_MAX, "%.80s:%d:%d", role, replica, number);
        else if (role)
                snprintf(to, PLAN_RANK_NAME_MAX, "%.80s:%d", role, number);
        else
                snprintf(to, PLAN_RANK_NAME_MAX, "%d", number);
        return to;
}

const char *plan_rank_label(const struct plan *plan, int rank, char to[PLAN_RANK_NAME_MAX])
{
        const struct plan_rank *r = &plan->ranks[rank];

        return label_rank(r->role, r->role ? plan_find_replica(plan, (size_t)r->world) : -1,
                          r->role ? rank - plan->worlds[r->world].first : rank, to);
}

const char *role_list_label(const struct role_list *p, int rank, char to[PLAN_RANK_NAME_MAX])
{
        const struct listed_role *entry = role_list_find(p, rank);

        return label_rank(entry ? entry->name : NULL, name_replica(entry),
                          entry ? role_list_number(entry, rank) : rank, to);
}

/* Returns the numbers in their world of the ranks of @entry from @i on, folded, and the end of
 * them. malloc'ed. */
static char *fold_entry_ranks(const struct listed_role *entry, const struct intlist *ranks,
                              size_t i, size_t *ret_end)
{
        CLEANUP(intlist_finish) struct intlist own = { 0 };

        for (; i < ranks->n && ranks->v[i] >= entry->first &&
               ranks->v[i] - entry->first < entry->size;
             i++)
                intlist_add(&own, role_list_number(entry, ranks->v[i]));
        *ret_end = i;
        return intlist_fold(&own);
}

char *role_list_ranks_name(const struct role_list *p, const struct intlist *ranks)
{
        const struct listed_role *entry = ranks->n ? role_list_find(p, ranks->v[0]) : NULL;
        CLEANUP(free_textp) char *list = intlist_fold(ranks), *own = NULL;
        char replica[16] = "";
        struct buf b = BUF_INIT;
        size_t end;

        if (!entry)
                return xasprintf("rank%s %s", ranks->n == 1 ? "" : "s", list);
        own = fold_entry_ranks(entry, ranks, 0, &end);
        if (name_replica(entry) >= 0)
                snprintf(replica, sizeof(replica), ":%d", entry->replica);
        /* All ranks are of one role and world, so its name stands once in front. */
        if (end == ranks->n)
                return xasprintf("role %s%s, rank%s %s", entry->name, replica,
                                 ranks->n == 1 ? "" : "s", own);
        buf_appends(&b, "ranks ");
        for (size_t i = 0; i < ranks->n; i = MAX(end, i + 1)) {
                CLEANUP(free_textp) char *some = NULL;

                entry = role_list_find(p, ranks->v[i]);
                if (!entry)
                        continue; /* there is none without */
                some = fold_entry_ranks(entry, ranks, i, &end);
                buf_printf(&b, "%s%s", i ? "," : "", entry->name);
                if (name_replica(entry) >= 0)
                        buf_printf(&b, ":%d", entry->replica);
                buf_printf(&b, ":%s", some);
        }
        return buf_steal(&b);
}

char *plan_ranks_name(const struct plan *plan, const struct intlist *ranks)
{
        struct role_list roles;
        char *name;

        role_list_from_plan(&roles, plan);
        name = role_list_ranks_name(&roles, ranks);
        role_list_finish(&roles);
        return name;
}

/* Appends the count of the role that begins with entry @i. Replicas may share nodes: those of each
 * are told, "2 x 4 ranks on 1 node". */
static void count_role(const struct role_list *p, size_t i, bool first, bool brief, struct buf *to)
{
        const struct listed_role *role = &p->v[i];
        int ranks = 0, replicas = 0, nodes = role->nodes;

        /* Replicas of a role stand side by side, behind the first. */
        for (size_t k = i; k < p->n && !strcmp(p->v[k].name, role->name); k++, replicas++) {
                ranks += p->v[k].size;
                nodes = MAX(nodes, p->v[k].nodes);
        }
        buf_printf(to, "%s%s ", first ? "" : ", ", role->name);
        if (!brief && replicas > 1)
                buf_printf(to, "%d x ", replicas);
        buf_printf(to, "%d", brief ? ranks : role->size);
        if (!brief && first)
                buf_printf(to, " rank%s on %d node%s", role->size == 1 ? "" : "s", nodes,
                           nodes == 1 ? "" : "s");
        else if (!brief)
                buf_printf(to, " on %d", nodes);
}

char *role_list_count(const struct role_list *p, bool brief)
{
        struct buf b = BUF_INIT;
        size_t n = 0;

        for (size_t i = 0; i < p->n; i++)
                n += !p->v[i].replica;
        buf_printf(&b, "%zu role%s: ", n, n == 1 ? "" : "s");
        for (size_t i = 0; i < p->n; i++)
                if (!p->v[i].replica)
                        count_role(p, i, i == 0, brief, &b);
        return buf_steal(&b);
}

json_t *role_list_json(const struct role_list *p)
{
        json_t *list = json_array();

        for (size_t i = 0; i < p->n; i++) {
                const struct listed_role *entry = &p->v[i];

                json_array_append_new(
                        list, json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:i}", "name",
                                        json_text(entry->name), "replica", entry->replica, "world",
                                        entry->world, "first", entry->first, "size", entry->size,
                                        "role_rank", entry->role_rank, "nodes", entry->nodes));
        }
        return list;
}

void role_list_put(const struct role_list *p, json_t *j, int rank)
{
        const struct listed_role *entry = role_list_find(p, rank);

        if (!entry)
                return;
        json_object_set_new(j, "role", json_text(entry->name));
        json_object_set_new(j, "role_rank", json_integer(role_list_number(entry, rank)));
        if (entry->replicas > 1)
                json_object_set_new(j, "replica", json_integer(entry->replica));
}

/* --- choice ----------------------------------------------------------------------------------- */

/* Whether the entry is of the role whose name is the first @len bytes of @text. */
static bool is_entry_of(const struct listed_role *entry, const char *text, size_t len)
{
        return strlen(entry->name) == len && !memcmp(entry->name, text, len);
}

/* Refuses a role that the run has not. */
static void refuse_role(const struct role_list *p, const char *text, size_t len, struct error *err)
{
        CLEANUP(buf_finish) struct buf list = BUF_INIT;

        for (size_t i = 0; i < p->n; i++)
                if (!p->v[i].replica)
                        buf_printf(&list, "%s%s", buf_len(&list) ? ", " : "", p->v[i].name);
        if (p->n)
                err_set(err, ENOENT, "it has no role %.*s, but %.*s", (int)len, text,
                        (int)buf_len(&list), (const char *)buf_data(&list));
        else
                err_set(err, ENOENT, "it has no roles");
}

/* What stands behind the name of a role. */
struct role_choice {
        int replica, rank; /* -1 = all */
        bool good;
};

/* Reads a number of @len bytes; -1 = it is none. */
static int read_choice(const char *text, size_t len)
{
        char *end;
        long n = len && strspn(text, "0123456789") >= len ? strtol(text, &end, 10) : -1;

        return n > PLAN_MAX_RANKS ? -1 : (int)n;
}

/* Reads "", ":N" or ":REPLICA:N". */
static struct role_choice read_choices(const char *text, bool has_replicas)
{
        struct role_choice c = { -1, -1, true };
        size_t first = *text ? strcspn(text + 1, ":") : 0;
        const char *second = *text && text[1 + first] ? text + 2 + first : NULL;
        int n = *text ? read_choice(text + 1, first) : -1;

        if (!*text)
                return c;
        /* One number is a replica where the role has several, else a rank. */
        c.replica = has_replicas ? n : -1;
        c.rank = has_replicas ? -1 : n;
        c.good = n >= 0 && (!second || has_replicas);
        if (second) {
                c.rank = read_choice(second, strlen(second));
                c.good = c.good && c.rank >= 0;
        }
        return c;
}

/* Refuses what stands behind the colon. */
static void refuse_role_number(const struct listed_role *last, const char *text,
                               struct role_choice c, struct error *err)
{
        const char *rank = strrchr(text, ':') ? strrchr(text, ':') + 1 : text;

        if (last->replicas > 1 && (!c.good || c.replica >= last->replicas || c.rank < 0))
                err_set(err, ENOENT, "its role %s has replicas 0 to %d, and no %s", last->name,
                        last->replicas - 1, text);
        else
                err_set(err, ENOENT, "its role %s has ranks %d to %d%s, and no %s", last->name,
                        last->role_rank, last->role_rank + last->size - 1,
                        last->replicas > 1 ? " in a replica" : "",
                        last->replicas > 1 ? rank : text);
}

struct role_span *role_list_choose(const struct role_list *p, const char *text, size_t *ret_n,
                                   struct error *err)
{
        size_t len = strcspn(text, ":"), n = 0;
        struct role_span *spans = xcalloc(p->n + 1, sizeof(*spans));
        struct role_choice c = { 0 };
        const struct listed_role *last = NULL;

        for (size_t i = 0; i < p->n; i++) {
                const struct listed_role *entry = &p->v[i];

                if (!is_entry_of(entry, text, len))
                        continue;
                /* For the message, if no entry of the role has the number. */
                last = entry;
                c = read_choices(text + len, entry->replicas > 1);
                if (!c.good || (c.replica >= 0 && c.replica != entry->replica))
                        continue;
                if (c.rank < 0)
                        spans[n++] = (struct role_span){ entry->first, entry->size };
                else if (c.rank >= entry->role_rank && c.rank - entry->role_rank < entry->size)
                        spans[n++] =
                                (struct role_span){ entry->first + c.rank - entry->role_rank, 1 };
        }
        *ret_n = n;
        if (n)
                return spans;
        free(spans);
        if (last)
                refuse_role_number(last, text + len + 1, c, err);
        else
                refuse_role(p, text, len, err);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generations are a list, the newest at its end. The order of "came" and "closed" is told by
 * @time, which counts both kinds of events. A generation has two sets of 64-bit marks: the first
 * keys of its members and their processes; and the set of names that were set in it (N > 0). When
 * the last client has left and the generation is old enough, its names go to the list @leftovers.
 */
#include "agent/endpoint/generation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "base/memory.h"

#define GROUP_PART  "default_pg"
#define MEMBER_KEY  "init/"
#define ATTEMPT_KEY "//worker/attempt_" /* up to 2.5 */

enum {
        PART_LEN = sizeof(GROUP_PART) - 1,
        KEEP = 2, /* generations behind the newest */
};

/* A set of hashes. */
struct group_mark {
        uint64_t hash;
        UT_hash_handle hh;
};

/* A name set in a generation, for the deletion; later an entry of @leftovers. */
struct group_name {
        struct group_name *next;
        UT_hash_handle hh;
        size_t len;
        unsigned char bytes[];
};

struct generation {
        struct generation *prev, *next;
        uint32_t number;
        size_t members;  /* that have joined */
        size_t clients;  /* members and clones with an open connection */
        uint64_t closed; /* time when the first member closed; 0 = none has */
        struct group_mark *openings, *processes;
        struct group_name *names;
};

struct generations {
        struct generation *list;
        uint64_t time;
        size_t ranks;
        size_t held; /* bytes of names */
        struct group_name *leftovers;
        struct group_name *taken; /* lent to the caller */
};

/* --- keys ------------------------------------------------------------------------------------- */

static bool key_has_at(struct bytes key, size_t at, const char *text)
{
        size_t len = strlen(text);

        return key.len >= at + len && memcmp((const char *)key.p + at, text, len) == 0;
}

/* Returns the first place from @at on without a digit. */
static size_t skip_digits(struct bytes key, size_t at)
{
        while (at < key.len && ((const char *)key.p)[at] >= '0' && ((const char *)key.p)[at] <= '9')
                at++;
        return at;
}

/* Returns where @part stands in the key of a group: /PART/... or //worker/attempt_N/PART/...; 0 =
 * it is another key. */
static size_t find_group_part(struct bytes key, const char *part)
{
        size_t at = 0;

        if (key_has_at(key, 0, ATTEMPT_KEY))
                at = skip_digits(key, sizeof(ATTEMPT_KEY) - 1);
        if (!key_has_at(key, at, "/") || !key_has_at(key, at + 1, part) ||
            !key_has_at(key, at + 1 + PART_LEN, "/"))
                return 0;
        return at + 1;
}

static void name_generation(const struct generation *g, char ret[PART_LEN + 1])
{
        snprintf(ret, PART_LEN + 1, "pg%08x", g->number);
}

/* The last part of the key is the number of a rank, as R or rank_R. */
static bool is_key_of_rank(struct bytes key)
{
        size_t at = key.len;

        while (at > 0 && ((const char *)key.p)[at - 1] != '/')
                at--;
        if (key_has_at(key, at, "rank_"))
                at += sizeof("rank_") - 1;
        return at < key.len && skip_digits(key, at) == key.len;
}

/* FNV-1a, never 0. */
static uint64_t hash_bytes(uint64_t hash, const void *p, size_t len)
{
        for (size_t i = 0; i < len; i++)
                hash = (hash ^ ((const unsigned char *)p)[i]) * 1099511628211U;
        return hash ? hash : 1;
}

#define HASH_SEED 14695981039346656037U

/* --- marks and names -------------------------------------------------------------------------- */

static bool has_group_mark(struct group_mark *set, uint64_t hash)
{
        struct group_mark *m;

        HASH_FIND(hh, set, &hash, sizeof(hash), m);
        return m != NULL;
}

/* Notes a group, once. */
static void add_group_mark(struct group_mark **set, uint64_t hash)
{
        struct group_mark *m;

        if (!hash || has_group_mark(*set, hash)) /* 0 = not known */
                return;
        m = xcalloc(1, sizeof(*m));
        m->hash = hash;
        HASH_ADD(hh, *set, hash, sizeof(m->hash), m);
}

static void free_group_marks(struct group_mark **set)
{
        struct group_mark *m, *next;

        HASH_ITER(hh, *set, m, next)
        {
                HASH_DEL(*set, m);
                free(m);
        }
}

/* Notes a name once. The first use counts, since the key may be set many times. */
static void remember_name(struct generations *g, struct generation *of, struct bytes key)
{
        struct group_name *n;

        HASH_FIND(hh, of->names, key.p, key.len, n);
        /* The key is not deleted then. */
        if (n || g->held + sizeof(*n) + key.len > GENERATION_NAMES_MAX)
                return;
        n = xcalloc(1, sizeof(*n) + key.len);
        n->len = key.len;
        memcpy(n->bytes, key.p, key.len);
        HASH_ADD_KEYPTR(hh, of->names, n->bytes, n->len, n);
        g->held += sizeof(*n) + n->len;
}

/* --- generations ------------------------------------------------------------------------------ */

/* The list is never empty: generations_create() makes generation 0. */
static struct generation *get_newest(const struct generations *g)
{
        return g->list->prev;
}

static void add_generation(struct generations *g)
{
        struct generation *n = xcalloc(1, sizeof(*n));

        /* A generation is never reused, so numbers tell the order. */
        n->number = g->list ? get_newest(g)->number + 1 : 0;
        DL_APPEND(g->list, n);
}

/* The names wait in @leftovers until sweep_past_groups() takes them. */
static void drop_generation(struct generations *g, struct generation *old)
{
        struct group_name *n, *next;

        HASH_ITER(hh, old->names, n, next)
        {
                HASH_DEL(old->names, n);
                LL_PREPEND(g->leftovers, n);
        }
        free_group_marks(&old->openings);
        free_group_marks(&old->processes);
        DL_DELETE(g->list, old);
        free(old);
}

/* After each arrival and departure. A generation with clients stays, however old. */
static void drop_old_generations(struct generations *g)
{
        struct generation *old, *next;

        DL_FOREACH_SAFE(g->list, old, next)
        {
                if (!old->clients && get_newest(g)->number - old->number >= KEEP)
                        drop_generation(g, old);
        }
}

/* Whether the member, which has not joined yet, belongs to a later group than the newest. */
static bool is_of_later_group(const struct generations *g, const struct generation_client *c,
                              uint64_t opening)
{
        const struct generation *newest = get_newest(g);

        /* A member that has left before this one came cannot be of the same group. */
        if (newest->closed && newest->closed < c->born)
                return true;
        if (opening && has_group_mark(newest->openings, opening))
                return true;
        return g->ranks && newest->members >= g->ranks && c->process &&
               has_group_mark(newest->processes, c->process);
}

static void join_as_member(struct generations *g, struct generation_client *c, uint64_t opening)
{
        if (is_of_later_group(g, c, opening))
                add_generation(g);
        c->of = get_newest(g);
        c->of->members++;
        add_group_mark(&c->of->openings, opening);
        add_group_mark(&c->of->processes, c->process);
}

/* Finds the generation of a connection that joins no group, such as a clone of a store: the newest
 * with the same process as a member, else the newest of all. */
static void join_as_clone(struct generations *g, struct generation_client *c)
{
        struct generation *of;

        c->of = get_newest(g);
        if (!c->process)
                return;
        /* From the newest back to the first. */
        for (of = c->of;; of = of->prev) {
                if (has_group_mark(of->processes, c->process)) {
                        c->of = of;
                        return;
                }
                if (of == g->list)
                        return;
        }
}

/* Places the client with the first key of a group that the client names. */
static void join_generation(struct generations *g, struct generation_client *c,
                            const struct tcpstore_command *cmd)
{
        uint64_t opening = 0;

        if (cmd->op == TCPSTORE_SET && is_key_of_rank(cmd->key))
                opening = hash_bytes(HASH_SEED, cmd->key.p, cmd->key.len);
        if (c->born)
                join_as_member(g, c, opening);
        else
                join_as_clone(g, c);
        c->of->clients++;
        drop_old_generations(g);
}

void generation_leave(struct generations *g, struct generation_client *c)
{
        if (!c->of)
                return;
        c->of->clients--;
        if (c->born && !c->of->closed) /* the first member that leaves */
                c->of->closed = ++g->time;
        c->of = NULL;
        drop_old_generations(g);
}

/* --- commands --------------------------------------------------------------------------------- */

/* Whether the command can make a key, which is to be deleted one day. */
static bool sets_keys(enum tcpstore_op op)
{
        return op == TCPSTORE_SET || op == TCPSTORE_COMPARE_SET || op == TCPSTORE_ADD ||
               op == TCPSTORE_APPEND || op == TCPSTORE_MULTI_SET || op == TCPSTORE_BARRIER;
}

/* Puts the client into a generation if it has none and the key is of a group; renames the key. */
static void take_key(struct generations *g, struct generation_client *c,
                     const struct tcpstore_command *cmd, struct bytes key)
{
        size_t at = find_group_part(key, GROUP_PART);
        char name[PART_LEN + 1];

        if (!at)
                return;
        if (!c->of)
                join_generation(g, c, cmd);
        if (!c->of->number)
                return;
        name_generation(c->of, name);
        memcpy((char *)key.p + at, name, PART_LEN);
        if (sets_keys(cmd->op))
                remember_name(g, c->of, key);
}

/* Notes what a client says of itself before the first key of a group: its process in PING, and with
 * ADD init/ that it is a member. */
static void meet_client(struct generations *g, struct generation_client *c, const char *host,
                        const struct tcpstore_command *cmd)
{
        if (cmd->op == TCPSTORE_PING) {
                /* The number of a process is unique on a host only; the NUL keeps the two apart. */
                c->process = hash_bytes(HASH_SEED, host, strlen(host) + 1);
                c->process = hash_bytes(c->process, &cmd->number, sizeof(cmd->number));
        } else if (cmd->op == TCPSTORE_ADD && cmd->key.len == sizeof(MEMBER_KEY) - 1 &&
                   key_has_at(cmd->key, 0, MEMBER_KEY) && !c->born) {
                c->born = ++g->time;
        }
}

void generation_command(struct generations *g, struct generation_client *c, const char *host,
                        const struct tcpstore_command *cmd)
{
        /* Generation 0 keeps all names, so nothing is to be looked at. */
        if (c->of && !c->of->number)
                return;
        if (!c->of)
                meet_client(g, c, host, cmd);
        if (cmd->key.len)
                take_key(g, c, cmd, cmd->key);
        for (uint32_t i = 0; i < cmd->n_keys; i++)
                take_key(g, c, cmd, cmd->keys[i]);
}

bool generation_renames(const struct generation_client *c)
{
        return c->of && c->of->number;
}

/* Reads a u64 as the store writes numbers: the lowest byte first. */
static uint64_t get_length(const unsigned char *p)
{
        uint64_t v = 0;

        for (unsigned i = 0; i < 8; i++)
                v |= (uint64_t)p[i] << 8 * i;
        return v;
}

uint32_t generation_list(const struct generation_client *c, struct bytes answer, struct buf *to)
{
        const unsigned char *p = answer.p, *end = p + answer.len;
        char name[PART_LEN + 1];
        struct bytes key;
        uint32_t n = 0;
        size_t at;

        name_generation(c->of, name);
        for (; end - p >= 8; p += 8 + key.len) {
                key = (struct bytes){ p + 8, get_length(p) };
                if (key.len > (size_t)(end - p) - 8) /* the answer of the store is malformed */
                        break;
                if (find_group_part(key, GROUP_PART)) /* of generation 0 */
                        continue;
                buf_append(to, p, 8 + key.len);
                at = find_group_part(key, name);
                if (at && !buf_failed(to))
                        /* The copy in @to is changed, not the answer, which other clients may
                         * share. */
                        memcpy(to->mem + to->end - key.len + at, GROUP_PART, PART_LEN);
                n++;
        }
        return n;
}

/* --- life cycle ------------------------------------------------------------------------------- */

bool generations_take_leftover(struct generations *g, struct bytes *ret)
{
        struct group_name *n = g->leftovers;

        free(g->taken);
        g->taken = n;
        if (!n)
                return false;
        LL_DELETE(g->leftovers, n);
        g->held -= sizeof(*n) + n->len;
        *ret = (struct bytes){ n->bytes, n->len };
        return true;
}

void generations_expect(struct generations *g, size_t ranks)
{
        g->ranks = ranks;
}

struct generations *generations_create(void)
{
        struct generations *g = xcalloc(1, sizeof(*g));

        add_generation(g);
        return g;
}

void generations_destroy(struct generations *g)
{
        struct bytes name;

        if (!g)
                return;
        while (g->list)
                drop_generation(g, g->list);
        while (generations_take_leftover(g, &name)) {
        }
        free(g);
}

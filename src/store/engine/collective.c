/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives: BARRIER, GATHER, BROADCAST, and LEAVE.
 *
 * A collective is found by name. The first arrival defines op, members and (for GATHER) length; an
 * arrival that differs ends the collective for all, because the others would wait for ever. Values
 * are kept in a single block, in member order.
 *
 * A group is the arrivals with the same owner and tag: a client alone, or ranks named by a node's
 * relay, in any number of requests. A request of several ranks is as many arrivals, in sequence:
 * take_arrival() answers, or notes the rank in the group. After each arrival the collective may be
 * over: complete, or failed because a member has ended. The end is a single answer to each group.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "store/engine/engine_private.h"
#include "store/engine/member_index.h"
#include "store/engine/rank_list.h"

/* RANKS_TEXT holds the list of rank_list_describe(), COLLECTIVE_TEXT the list and the name of the
 * collective. Lists of up to LIST_MAX members are shown whole, in LIST_TEXT bytes each. */
enum { RANKS_TEXT = 1024, COLLECTIVE_TEXT = 2048, LIST_TEXT = 400, LIST_MAX = 16 };

struct arrival_group {
        struct pending_request pending;
        struct collective *collective;
        struct arrival_group *prev, *next;
        bool is_named; /* by a relay: answers name the ranks */
        uint32_t n, cap;
        uint32_t *at; /* places among the members, in order of arrival */
};

struct collective {
        UT_hash_handle hh;
        uint8_t op;
        uint32_t root;
        uint32_t *members; /* NULL = the world */
        uint32_t n;
        struct member_index index;
        uint32_t n_arrived, first; /* first = place of the first arrival */
        struct arrival_group *groups;
        struct arrival_group **arrived; /* by member, NULL = missing */
        size_t len;                     /* GATHER: of a rank's value */
        char *values;                   /* GATHER: of all, BROADCAST: the root's */
        size_t values_len;
        size_t key_len; /* the name */
        char key[];
};

/* An arriving rank, of the ranks of a request. */
struct arrival {
        const struct store_request *req;
        uint32_t n_members;               /* of the call */
        const struct member_index *index; /* of the same */
        struct request_id id;
        int rank;
        struct bytes value; /* of the contribution; empty = none */
        uint32_t n_left;    /* ranks of the request that have no answer yet, from @rank on */
        bool differs;       /* all of these are answered */
};

static uint32_t rank_at(const struct collective *c, uint32_t place)
{
        return c->members ? c->members[place] : place;
}

/* The name of a collective in a sentence. */
#define NAME(c) KEY_FORMAT(((struct bytes){ (c)->key, (c)->key_len }))

/* --- life of a collective --------------------------------------------------------------------- */

static void free_arrival_group(struct store *s, struct arrival_group *g)
{
        quota_free(&s->table.quota, g->at, g->cap * sizeof(*g->at));
        quota_free(&s->table.quota, g, sizeof(*g));
}

/* Takes the group's arrivals back; @reply, if not NULL, answers all at once. */
static void end_arrival_group(struct store *s, struct arrival_group *g, struct store_reply *reply)
{
        struct collective *c = g->collective;
        struct request_id id = pending_id(&g->pending);

        for (uint32_t i = 0; i < g->n; i++) {
                c->arrived[g->at[i]] = NULL;
                g->at[i] = rank_at(c, g->at[i]); /* from now on these are ranks */
        }
        c->n_arrived -= g->n;
        if (g->is_named) {
                id.whom = g->at;
                id.n_whom = g->n;
        }
        if (reply)
                store_answer(s, id, reply);
        DL_DELETE(c->groups, g);
        pending_remove(&s->pending, &g->pending);
        free_arrival_group(s, g);
}

/* Ends the collective; @reply, if not NULL, answers all groups. @c may be half made, see
 * create_collective(). */
static void end_collective(struct store *s, struct collective *c, struct store_reply *reply)
{
        struct quota *q = &s->table.quota;

        while (c->groups)
                end_arrival_group(s, c->groups, reply);
        if (c->hh.tbl) /* the name was entered */
                HASH_DEL(s->collectives, c);
        member_index_finish(&c->index, q);
        quota_free(q, c->members, c->n * sizeof(*c->members));
        quota_free(q, c->arrived, c->n * sizeof(struct arrival_group *));
        quota_free(q, c->values, c->values_len);
        quota_free(q, c, sizeof(*c) + c->key_len + 1);
}

/* A collective without an arrival does not exist: the next caller of the name may define
 * another. */
static void end_if_empty(struct store *s, struct collective *c)
{
        if (c->n_arrived == 0)
                end_collective(s, c, NULL);
}

/* Makes the collective of a first arrival. NULL = no memory. */
static struct collective *create_collective(struct store *s, const struct arrival *a)
{
        const struct store_request *req = a->req;
        struct quota *q = &s->table.quota;
        struct collective *c = quota_alloc(q, sizeof(*c) + req->key.len + 1);

        if (!c)
                return NULL;
        c->key_len = req->key.len;
        if (c->key_len)
                memcpy(c->key, req->key.p, c->key_len);
        c->op = req->op;
        c->root = req->root;
        c->n = a->n_members;
        c->arrived = quota_alloc(q, c->n * sizeof(struct arrival_group *));
        if (req->n_members) {
                c->members = quota_alloc(q, c->n * sizeof(*c->members));
                if (c->members)
                        memcpy(c->members, req->members, c->n * sizeof(*c->members));
        }
        /* GATHER has a buffer for all from the first arrival on. A BROADCAST gets its value with
         * the root. */
        if (req->op == STORE_GATHER && a->value.len) {
                c->len = a->value.len;
                c->values_len = c->len * c->n;
                c->values = quota_alloc(q, c->values_len);
        }
        /* Each of these may have failed; the entry in the table shows that all have succeeded. */
        if (c->arrived && (c->members || !req->n_members) && (c->values || !c->len) &&
            member_index_init(&c->index, c->members, c->n, q) == 0)
                HASH_ADD_KEYPTR(hh, s->collectives, c->key, c->key_len, c);
        if (!c->hh.tbl) {
                end_collective(s, c, NULL);
                return NULL;
        }
        return c;
}

/* --- checks ----------------------------------------------------------------------------------- */

/* Checks the fields shared by all @arrivals of a request. False: refused. */
static bool check_request(struct store *s, const struct arrival *a, uint32_t arrivals)
{
        const struct store_request *req = a->req;
        uint32_t n = a->n_members;

        if (arrivals == 0) {
                store_refuse(s, a->id, STORE_INVALID, "only a rank can be a member");
                return false;
        }
        for (uint32_t i = 0; i < req->n_members; i++) {
                if (req->members[i] < (uint32_t)s->world_size)
                        continue;
                store_refuse(s, a->id, STORE_INVALID, "there is no rank %u", req->members[i]);
                return false;
        }
        /* The last check divides, because the product of two numbers of a message may overflow. */
        if (req->op == STORE_BROADCAST && req->root >= n)
                store_refuse(s, a->id, STORE_INVALID, "there is no member %u to broadcast",
                             req->root);
        else if (req->op == STORE_GATHER && req->value.len % arrivals)
                store_refuse(s, a->id, STORE_INVALID, "%zu bytes are no values of %u ranks",
                             req->value.len, arrivals);
        else if (req->op == STORE_GATHER && req->value.len / arrivals > STORE_VALUE_MAX / n)
                store_refuse(s, a->id, STORE_TOO_BIG, "%u times %zu bytes are more than %d", n,
                             req->value.len / arrivals, STORE_VALUE_MAX);
        else
                return true;
        return false;
}

/* Writes "0,1,3": order counts here, so nothing is folded. */
static void list_members(char *to, const uint32_t *ranks, uint32_t n)
{
        size_t at = 0;

        *to = '\0';
        for (uint32_t i = 0; i < n && at < LIST_TEXT; i++)
                at += (size_t)snprintf(to + at, LIST_TEXT - at, "%s%u", i ? "," : "",
                                       ranks ? ranks[i] : i);
}

/*
 * Writes how a newcomer differs from the first arrival: "calls all_gather where rank 0 calls
 * barrier". False: not at all. Comparing a list costs no more than the message with the list; the
 * world, named by all ranks of a large job, must cost nothing.
 */
static bool describe_difference(char *to, size_t size, const struct collective *c,
                                const struct arrival *a)
{
        const uint32_t *members = a->req->n_members ? a->req->members : NULL;
        uint32_t n = a->n_members, first = rank_at(c, c->first), i = 0;
        char theirs[LIST_TEXT], known[LIST_TEXT];

        if (!members && !c->members)
                i = n; /* both are the world: equal without a look at the ranks */
        while (i < n && i < c->n && (members ? members[i] : i) == rank_at(c, i))
                i++;
        if (c->op != a->req->op) {
                snprintf(to, size, "calls %s where rank %u calls %s", store_call_name(a->req->op),
                         first, store_call_name(c->op));
        } else if ((i < n || i < c->n) && n <= LIST_MAX && c->n <= LIST_MAX) {
                list_members(theirs, members, n);
                list_members(known, c->members, c->n);
                snprintf(to, size, "lists members %s where rank %u lists %s", theirs, first, known);
        } else if (i < n && i < c->n) {
                snprintf(to, size,
                         "lists %u members where rank %u lists %u: member %u is rank %u instead "
                         "of %u",
                         n, first, c->n, i, members ? members[i] : i, rank_at(c, i));
        } else if (i < n || i < c->n) {
                snprintf(to, size,
                         "lists %u members where rank %u lists %u: the first %u are the same", n,
                         first, c->n, i);
        } else if (c->op == STORE_GATHER && c->len != a->value.len) {
                snprintf(to, size, "passes %zu bytes where rank %u passes %zu", a->value.len, first,
                         c->len);
        } else if (c->op == STORE_BROADCAST && c->root != a->req->root) {
                snprintf(to, size, "broadcasts from member %u where rank %u broadcasts from %u",
                         a->req->root, first, c->root);
        } else {
                return false;
        }
        return true;
}

/* Ends the collective because of a differing newcomer, and tells all. The ranks behind @a in the
 * request differ alike: in a collective of their own they would wait for the members of this one.
 */
static void fail_mismatch(struct store *s, struct collective *c, struct arrival *a,
                          const char *difference)
{
        char text[COLLECTIVE_TEXT];
        struct store_reply reply = { .status = STORE_MISMATCH,
                                     .ranks = (uint32_t[]){ (uint32_t)a->rank },
                                     .n_ranks = 1 };

        a->differs = true;
        if (a->id.n_whom) {
                a->id.n_whom = a->n_left;
                reply.ranks = a->id.whom;
                reply.n_ranks = a->n_left;
        }
        snprintf(text, sizeof(text), "%s `%s`: rank %d (%s) %s", store_call_name(c->op), NAME(c),
                 a->rank, s->ops.host_of(s->ctx, a->rank), difference);
        reply.text = bytes_of(text);
        store_answer(s, a->id, &reply);
        end_collective(s, c, &reply);
}

/* --- arrivals --------------------------------------------------------------------------------- */

/* Keeps the value for all members. False: no memory for the value of the root. */
static bool store_contribution(struct store *s, struct collective *c, uint32_t place,
                               struct bytes value)
{
        if (c->op == STORE_GATHER && value.len)
                memcpy(c->values + place * c->len, value.p, value.len);
        if (c->op != STORE_BROADCAST || place != c->root)
                return true;
        /* A root that left before (CANCEL, LEAVE) has come again: the new value counts. */
        quota_free(&s->table.quota, c->values, c->values_len);
        c->values_len = value.len;
        c->values = quota_alloc(&s->table.quota, value.len);
        if (c->values && value.len)
                memcpy(c->values, value.p, value.len);
        return c->values;
}

/* Finds or makes the group of @a at this collective; NULL = no memory. */
static struct arrival_group *arrival_group_for(struct store *s, struct collective *c,
                                               const struct arrival *a)
{
        /* A rank may call another collective under a tag in use: then a second pending request. */
        struct pending_request *found = pending_find(&s->pending, a->id.owner, a->id.tag);
        struct arrival_group *g;

        if (found && found->kind == PENDING_COLLECTIVE) {
                g = container_of(found, struct arrival_group, pending);
                if (g->collective == c)
                        return g;
        }
        g = quota_alloc(&s->table.quota, sizeof(*g));
        if (!g)
                return NULL;
        if (pending_add(&s->pending, &g->pending, a->id.owner, a->id.tag, PENDING_COLLECTIVE) < 0) {
                free_arrival_group(s, g);
                return NULL;
        }
        g->collective = c;
        g->is_named = a->id.n_whom > 0;
        DL_APPEND(c->groups, g);
        return g;
}

/* Notes the arrival. False: refused, because the rank has arrived before or there is no memory; the
 * collective may be gone. */
static bool add_arrival(struct store *s, struct collective *c, const struct arrival *a,
                        uint32_t place)
{
        struct arrival_group *g;
        uint32_t *at, cap;

        if (c->arrived[place]) {
                store_refuse(s, a->id, STORE_INVALID, "%s `%s`: rank %u has come already",
                             store_call_name(c->op), NAME(c), rank_at(c, place));
                return false;
        }
        g = arrival_group_for(s, c, a);
        if (g && g->n == g->cap) {
                cap = MAX(2 * g->cap, 1U);
                at = quota_resize(&s->table.quota, g->at, g->cap * sizeof(*at), cap * sizeof(*at));
                if (at) {
                        g->at = at;
                        g->cap = cap;
                }
        }
        /* From here on nothing fails: the contribution is stored before the rank is counted. */
        if (g && g->n < g->cap && store_contribution(s, c, place, a->value)) {
                g->at[g->n++] = place;
                if (c->n_arrived++ == 0)
                        c->first = place;
                c->arrived[place] = g;
                return true;
        }
        if (g && g->n == 0)
                end_arrival_group(s, g, NULL);
        store_refuse_nomem(s, a->id);
        end_if_empty(s, c);
        return false;
}

/* Ends a collective that can no longer complete. The reason of the first failed rank is told, not
 * of the rank that is missed here. A rank that has exited well is lost, too. */
static void fail_for_lost_rank(struct store *s, struct collective *c, int rank)
{
        char text[COLLECTIVE_TEXT];

        if (s->rank_state[rank] == RANK_FAILED)
                snprintf(text, sizeof(text), "%s `%s`: %s", store_call_name(c->op), NAME(c),
                         rank == s->first_failed && s->failure ? s->failure : "a rank failed");
        else
                snprintf(text, sizeof(text), "%s `%s`: rank %d (%s) has already exited",
                         store_call_name(c->op), NAME(c), rank, s->ops.host_of(s->ctx, rank));
        end_collective(s, c,
                       &(struct store_reply){ .status = STORE_PEER,
                                              .text = bytes_of(text),
                                              .ranks = (uint32_t[]){ (uint32_t)rank },
                                              .n_ranks = 1 });
}

/* Returns a member that has ended, or -1. The first failure of the job comes before failures caused
 * by the first. */
static int find_lost_member(const struct store *s, const struct collective *c)
{
        int lost = -1;

        for (uint32_t i = 0; i < c->n; i++) {
                int rank = (int)rank_at(c, i);

                if (rank == s->first_failed)
                        return rank;
                if (lost < 0 && s->rank_state[rank] != RANK_ALIVE)
                        lost = rank;
        }
        return lost;
}

/* Takes the arrival of a rank. @known: a collective in agreement with the request, or NULL. Returns
 * the collective of @a, now in agreement, or NULL: refused, or the collective is over. */
static struct collective *take_arrival(struct store *s, struct arrival *a,
                                       const struct collective *known)
{
        const struct bytes name = a->req->key;
        int64_t place = member_index_find(a->index, a->rank);
        char difference[2 * LIST_TEXT + 64];
        struct collective *c;
        int lost;

        if (place < 0) {
                store_refuse(s, a->id, STORE_INVALID, "rank %d is not a member", a->rank);
                return NULL;
        }
        /* An agreement found for an earlier rank of the request holds for the next: a relay's list
         * is compared once, not for each rank. */
        HASH_FIND(hh, s->collectives, name.p, name.len, c);
        if (c && c != known && describe_difference(difference, sizeof(difference), c, a)) {
                fail_mismatch(s, c, a, difference);
                return NULL;
        }
        if (!c)
                c = create_collective(s, a);
        if (!c) {
                store_refuse_nomem(s, a->id);
                return NULL;
        }
        if (!add_arrival(s, c, a, (uint32_t)place))
                return NULL;
        /* Only the first arrival checks all members. Members who are lost later end the collective
         * through collective_rank_lost(). */
        lost = s->n_lost && c->n_arrived == 1 ? find_lost_member(s, c) : -1;
        if (lost >= 0) {
                fail_for_lost_rank(s, c, lost);
                return NULL;
        }
        if (c->n_arrived < c->n)
                return c;
        end_collective(
                s, c,
                &(struct store_reply){ .status = STORE_OK, .value = { c->values, c->values_len } });
        return NULL;
}

void collective_request(struct store *s, struct request_id id, int rank,
                        const struct store_request *req)
{
        struct arrival a = { .req = req, .id = id, .rank = rank };
        uint32_t n = rank < 0 ? req->n_ranks : 1, root = req->root;
        const struct collective *c = NULL;
        struct member_index index;
        size_t len;

        /* No members listed: the world. */
        a.n_members = req->n_members ? req->n_members : (uint32_t)s->world_size;
        /* The error of check_request() names all ranks of the request, later answers a single rank
         * each. */
        if (rank < 0) {
                a.id.whom = req->ranks;
                a.id.n_whom = n;
        }
        if (!check_request(s, &a, n))
                return;
        /* One index serves all ranks of the request; the collective has an index of its own. */
        if (member_index_init(&index, req->n_members ? req->members : NULL, a.n_members,
                              &s->table.quota) < 0) {
                store_refuse_nomem(s, id);
                return;
        }
        a.index = &index;
        /* @root is a place in the list; the ranks are numbers. */
        if (req->op == STORE_BROADCAST && req->n_members)
                root = req->members[req->root];
        len = req->op == STORE_GATHER ? req->value.len / n : 0;
        for (uint32_t i = 0; i < n && !a.differs; i++) {
                a.n_left = n - i;
                if (rank < 0) {
                        a.rank = (int)req->ranks[i];
                        a.id.whom = &req->ranks[i];
                        a.id.n_whom = 1;
                }
                /* The values of a GATHER stand in the order of the ranks. A BROADCAST carries the
                 * value once. */
                a.value = req->value;
                if (len)
                        a.value = (struct bytes){ (const char *)req->value.p + i * len, len };
                else if (n > 1 && (uint32_t)a.rank != root)
                        a.value.len = 0;
                /* NULL after a refusal or the end: the next rank of the request may begin a
                 * collective anew. */
                c = take_arrival(s, &a, c);
        }
        member_index_finish(&index, &s->table.quota);
}

/* --- giving up -------------------------------------------------------------------------------- */

void collective_drop(struct store *s, struct pending_request *p)
{
        struct arrival_group *g = container_of(p, struct arrival_group, pending);
        struct collective *c = g->collective;

        end_arrival_group(s, g, NULL);
        end_if_empty(s, c);
}

/* Returns a timeout's reply with the missing ranks, which are to be freed, and @text. No memory:
 * the text names no ranks. */
static struct store_reply timeout_reply(struct store *s, const struct collective *c,
                                        char text[static COLLECTIVE_TEXT])
{
        uint32_t n = 0, *missing = malloc(c->n * sizeof(*missing));
        char ranks[RANKS_TEXT] = "ranks";

        for (uint32_t i = 0; i < c->n && missing; i++)
                if (!c->arrived[i])
                        missing[n++] = rank_at(c, i);
        if (missing)
                rank_list_describe(ranks, sizeof(ranks), missing, n, s->ops.host_of, s->ctx);
        snprintf(text, COLLECTIVE_TEXT, "%s `%s`: %s missing", store_call_name(c->op), NAME(c),
                 ranks);
        return (struct store_reply){
                .status = STORE_TIMEOUT, .text = bytes_of(text), .ranks = missing, .n_ranks = n
        };
}

void collective_cancel(struct store *s, struct pending_request *p)
{
        struct arrival_group *g = container_of(p, struct arrival_group, pending);
        struct collective *c = g->collective;
        char text[COLLECTIVE_TEXT];
        struct store_reply reply = timeout_reply(s, c, text);

        end_arrival_group(s, g, &reply);
        free(reply.ranks);
        end_if_empty(s, c); /* @c is valid here: ending a group does not free the collective */
}

/* Drops the places of ranks that have left. */
static void compact_arrival_group(struct arrival_group *g)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < g->n; i++)
                if (g->collective->arrived[g->at[i]] == g)
                        g->at[n++] = g->at[i];
        g->n = n;
}

void collective_leave(struct store *s, struct request_id id, const struct store_request *req)
{
        struct pending_request *found = pending_find(&s->pending, id.owner, id.tag);
        struct store_reply reply = { .status = STORE_TIMEOUT };
        char text[COLLECTIVE_TEXT];
        struct arrival_group *g;
        struct collective *c;
        uint32_t left = 0;

        /* Answered meanwhile: the LEAVE crossed the answer. */
        if (!found || found->kind != PENDING_COLLECTIVE)
                return;
        g = container_of(found, struct arrival_group, pending);
        c = g->collective;
        for (uint32_t i = 0; i < req->n_ranks; i++) {
                int64_t place = member_index_find(&c->index, (int)req->ranks[i]);

                if (place < 0 || c->arrived[place] != g)
                        continue; /* not of this group, or answered meanwhile */
                /* The text is made before the first departure: no rank that leaves is called
                 * missing. */
                if (left++ == 0 && req->number)
                        reply = timeout_reply(s, c, text);
                c->arrived[place] = NULL;
                c->n_arrived--;
                id.whom = &req->ranks[i];
                id.n_whom = 1;
                store_answer(s, id, &reply);
        }
        free(reply.ranks);
        /* Before end_arrival_group(), which takes back every place in the list. */
        if (left)
                compact_arrival_group(g);
        if (g->n == 0)
                end_arrival_group(s, g, NULL);
        end_if_empty(s, c);
}

void collective_rank_lost(struct store *s, int rank)
{
        struct collective *c, *next;

        /* The iterator is safe here: only the collective at hand is freed, and replies never call
         * the store. */
        HASH_ITER(hh, s->collectives, c, next)
        {
                if (member_index_find(&c->index, rank) >= 0)
                        fail_for_lost_rank(s, c, rank);
        }
}

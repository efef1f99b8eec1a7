/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings. The first to come lays down op, members and (for GATHER) length; who differs ends the
 * meeting for all, because the others would wait for ever. Values are kept in one block by member.
 *
 * A party is those who come with one owner and tag: a client alone, or the ranks that a node's
 * relay names, in one request or in several. The end of the meeting is one answer to each.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "store/engine/engine_private.h"
#include "store/engine/rank_list.h"

enum { WHO_TEXT = 1024, MEETING_TEXT = 2048, LIST_TEXT = 400, LIST_MAX = 16 };

struct party {
        struct parked parked;
        struct meeting *meeting;
        struct party *prev, *next;
        bool is_named; /* by a relay: its answers say for whom they are */
        uint32_t n, cap;
        uint32_t *at; /* their places among the members, first come, first */
};

struct meeting {
        UT_hash_handle hh;
        uint8_t op;
        uint32_t root;
        uint32_t *members; /* NULL = the world */
        uint32_t n;
        uint32_t n_joined, first; /* first = index of who came first */
        struct party *parties;
        struct party **joins; /* by member, NULL = missing */
        char *values;         /* GATHER: n * len, BROADCAST: len */
        size_t len;
        size_t key_len; /* the name */
        char key[];
};

/* One who comes, of those that a request is for. */
struct comer {
        struct request_id id;
        int rank;
        bool is_named;
        struct bytes value;
};

static uint32_t rank_of(const struct meeting *m, uint32_t index)
{
        return m->members ? m->members[index] : index;
}

static const char *verb(uint8_t op)
{
        return op == STORE_BARRIER ? "barrier" : op == STORE_GATHER ? "all_gather" : "broadcast";
}

/* What it is called in a sentence. */
#define NAME(m) KEY_TEXT_OF(((struct bytes){ (m)->key, (m)->key_len }))

static void party_free(struct store *s, struct party *p)
{
        DL_DELETE(p->meeting->parties, p);
        parking_remove(&s->parking, &p->parked);
        free(p->at);
        free(p);
}

/* They have not come; with a reply they are told, all at once. */
static void party_end(struct store *s, struct party *p, struct store_reply *reply)
{
        struct meeting *m = p->meeting;
        struct request_id id = { .owner = p->parked.owner, .tag = (uint32_t)p->parked.tag };

        for (uint32_t i = 0; i < p->n; i++) {
                m->joins[p->at[i]] = NULL;
                p->at[i] = rank_of(m, p->at[i]); /* now these are ranks */
        }
        m->n_joined -= p->n;
        if (p->is_named) {
                id.whom = p->at;
                id.n_whom = p->n;
        }
        if (reply)
                store_answer(s, id, reply);
        party_free(s, p);
}

static void meeting_free(struct store *s, struct meeting *m)
{
        while (m->parties)
                party_end(s, m->parties, NULL);
        if (m->hh.tbl)
                HASH_DEL(s->meetings, m);
        free(m->members);
        free(m->joins);
        free(m->values);
        free(m);
}

/* Answers everybody who came with the same words, and ends the meeting. */
static void meeting_end(struct store *s, struct meeting *m, struct store_reply *reply)
{
        while (m->parties)
                party_end(s, m->parties, reply);
        meeting_free(s, m);
}

static void meeting_complete(struct store *s, struct meeting *m)
{
        struct store_reply reply = { .status = STORE_OK };

        if (m->op == STORE_GATHER)
                reply.value = (struct bytes){ m->values, m->len * m->n };
        else if (m->op == STORE_BROADCAST)
                reply.value = (struct bytes){ m->values, m->len };
        meeting_end(s, m, &reply);
}

static void meeting_fail(struct store *s, struct meeting *m, enum store_status why, uint32_t rank,
                         const char *text)
{
        meeting_end(s, m,
                    &(struct store_reply){ .status = (uint8_t)why,
                                           .text = bytes_of(text),
                                           .ranks = &rank,
                                           .n_ranks = 1 });
}

static bool meeting_fill(struct meeting *m, const struct store_request *req, int world_size,
                         size_t len)
{
        m->op = req->op;
        m->root = req->root;
        m->n = req->n_members ? req->n_members : (uint32_t)world_size;
        m->len = req->op == STORE_GATHER ? len : 0;
        m->joins = calloc(m->n, sizeof(struct party *));
        if (req->n_members) {
                m->members = malloc(m->n * sizeof(*m->members));
                if (m->members)
                        memcpy(m->members, req->members, m->n * sizeof(*m->members));
        }
        m->values = m->len ? malloc(m->len * m->n) : NULL;
        return m->joins && (m->members || !req->n_members) && (m->values || !m->len);
}

static struct meeting *meeting_make(struct store *s, const struct store_request *req, size_t len)
{
        struct meeting *m = calloc(1, sizeof(*m) + req->key.len + 1);

        if (!m)
                return NULL;
        m->key_len = req->key.len;
        if (m->key_len)
                memcpy(m->key, req->key.p, m->key_len);
        if (meeting_fill(m, req, s->world_size, len))
                HASH_ADD_KEYPTR(hh, s->meetings, m->key, m->key_len, m);
        if (!m->hh.tbl) {
                meeting_free(s, m);
                return NULL;
        }
        return m;
}

static struct meeting *meeting_find(struct store *s, const struct store_request *req)
{
        struct meeting *m;

        HASH_FIND(hh, s->meetings, req->key.p, req->key.len, m);
        return m;
}

/* The place of @rank among the members, or -1. */
static int64_t place_of(const uint32_t *members, uint32_t n, int rank)
{
        if (!members)
                return rank >= 0 && (uint32_t)rank < n ? rank : -1;
        for (uint32_t i = 0; i < n; i++)
                if (members[i] == (uint32_t)rank)
                        return i;
        return -1;
}

static uint32_t size_of(const struct store *s, const struct store_request *req)
{
        return req->n_members ? req->n_members : (uint32_t)s->world_size;
}

/* What is the same for all @comers that the request is for. */
static bool request_valid(struct store *s, struct request_id id, uint32_t comers,
                          const struct store_request *req)
{
        uint32_t n = size_of(s, req);

        for (uint32_t i = 0; i < req->n_members; i++) {
                if (req->members[i] < (uint32_t)s->world_size)
                        continue;
                store_refuse(s, id, STORE_INVALID, "there is no rank %u", req->members[i]);
                return false;
        }
        if (req->op == STORE_BROADCAST && req->root >= n)
                store_refuse(s, id, STORE_INVALID, "there is no member %u to broadcast", req->root);
        else if (req->op == STORE_GATHER && req->value.len % comers)
                store_refuse(s, id, STORE_INVALID, "%zu bytes are no values of %u ranks",
                             req->value.len, comers);
        else if (req->op == STORE_GATHER && req->value.len / comers > STORE_VALUE_MAX / n)
                store_refuse(s, id, STORE_TOO_BIG, "%u times %zu bytes are more than %d", n,
                             req->value.len / comers, STORE_VALUE_MAX);
        else
                return true;
        return false;
}

/* A list costs no more than the message that carried it; the world, which all of a large job name,
 * must cost nothing. */
static bool same_members(const struct meeting *m, const struct store_request *req)
{
        if (!m->members && !req->n_members)
                return true;
        for (uint32_t i = 0; i < m->n; i++)
                if (rank_of(m, i) != (req->n_members ? req->members[i] : i))
                        return false;
        return true;
}

/* What a newcomer says otherwise than who came first; NULL = nothing. */
static const char *difference(const struct store *s, const struct meeting *m,
                              const struct store_request *req, size_t len)
{
        if (m->op != req->op)
                return "another call";
        if (m->n != size_of(s, req))
                return "another number of members";
        if (!same_members(m, req))
                return "other members";
        if (m->op == STORE_GATHER && m->len != len)
                return "another length";
        if (m->op == STORE_BROADCAST && m->root != req->root)
                return "another root";
        return NULL;
}

/* "0,1,3": order counts here, so nothing is folded. */
static void list_ranks(char *to, const uint32_t *ranks, uint32_t n)
{
        size_t at = 0;

        *to = '\0';
        for (uint32_t i = 0; i < n && at < LIST_TEXT; i++)
                at += (size_t)snprintf(to + at, LIST_TEXT - at, "%s%u", i ? "," : "",
                                       ranks ? ranks[i] : i);
}

/* What the newcomer says: its members when they are the difference, else its call. */
static void describe_call(char *to, size_t size, const struct meeting *m,
                          const struct store_request *req, uint32_t n, size_t len)
{
        uint32_t i = 0;
        const uint32_t *members = req->n_members ? req->members : NULL;
        char theirs[LIST_TEXT], first[LIST_TEXT];

        while (i < n && i < m->n && (members ? members[i] : i) == rank_of(m, i))
                i++;
        if (m->op != req->op || (i == n && i == m->n)) {
                snprintf(to, size, "%s, %zu bytes", verb(req->op), len);
        } else if (n <= LIST_MAX && m->n <= LIST_MAX) {
                list_ranks(theirs, members, n);
                list_ranks(first, m->members, m->n);
                snprintf(to, size, "%s instead of %s", theirs, first);
        } else if (i == n || i == m->n) {
                snprintf(to, size, "%u instead of %u, the first %u are the same", n, m->n, i);
        } else {
                snprintf(to, size, "%u instead of %u, member %u is rank %u instead of %u", n, m->n,
                         i, members ? members[i] : i, rank_of(m, i));
        }
}

/* A newcomer who differs: all who came, and it, get to know. */
static void mismatch(struct store *s, struct meeting *m, const struct comer *c,
                     const struct store_request *req, const char *what)
{
        char text[MEETING_TEXT], call[2 * LIST_TEXT + 64];
        uint32_t who = (uint32_t)c->rank;

        describe_call(call, sizeof(call), m, req, size_of(s, req), c->value.len);
        snprintf(text, sizeof(text), "%s `%s`: rank %d (%s) comes with %s than rank %u: %s",
                 verb(m->op), NAME(m), c->rank, s->ops.host_of(s->ctx, c->rank), what,
                 rank_of(m, m->first), call);
        store_answer(s, c->id,
                     &(struct store_reply){ .status = STORE_MISMATCH,
                                            .text = bytes_of(text),
                                            .ranks = &who,
                                            .n_ranks = 1 });
        meeting_fail(s, m, STORE_MISMATCH, who, text);
}

static bool keep_value(struct meeting *m, uint32_t index, struct bytes value)
{
        if (m->op == STORE_GATHER && value.len)
                memcpy(m->values + index * m->len, value.p, value.len);
        if (m->op != STORE_BROADCAST || index != m->root)
                return true;
        free(m->values);
        m->len = value.len;
        m->values = malloc(MAX(value.len, (size_t)1));
        if (m->values && value.len)
                memcpy(m->values, value.p, value.len);
        return m->values;
}

/* The party of @c at this meeting; NULL = no memory. */
static struct party *party_of(struct store *s, struct meeting *m, const struct comer *c)
{
        struct parked *found = parking_find(&s->parking, c->id.owner, c->id.tag);
        struct party *p;

        if (found && found->kind == PARKED_MEETING) {
                p = container_of(found, struct party, parked);
                if (p->meeting == m)
                        return p;
        }
        p = calloc(1, sizeof(*p));
        if (!p)
                return NULL;
        p->parked =
                (struct parked){ .owner = c->id.owner, .tag = c->id.tag, .kind = PARKED_MEETING };
        if (parking_add(&s->parking, &p->parked) < 0) {
                free(p);
                return NULL;
        }
        p->meeting = m;
        p->is_named = c->is_named;
        DL_APPEND(m->parties, p);
        return p;
}

static bool party_add(struct party *p, uint32_t index)
{
        uint32_t cap = p->cap ? p->cap * 2 : 1, *at = p->at;

        if (p->n == p->cap) {
                at = realloc(at, cap * sizeof(*at));
                if (!at)
                        return false;
                p->at = at;
                p->cap = cap;
        }
        at[p->n++] = index;
        return true;
}

static bool seat(struct store *s, struct meeting *m, const struct comer *c, uint32_t index)
{
        struct party *p = party_of(s, m, c);

        if (p && keep_value(m, index, c->value) && party_add(p, index)) {
                if (m->n_joined++ == 0)
                        m->first = index;
                m->joins[index] = p;
                return true;
        }
        if (p && p->n == 0)
                party_free(s, p);
        return false;
}

static void join(struct store *s, struct meeting *m, const struct comer *c, uint32_t index)
{
        if (m->joins[index]) {
                store_refuse(s, c->id, STORE_INVALID, "%s `%s`: rank %u has come already",
                             verb(m->op), NAME(m), rank_of(m, index));
        } else if (!seat(s, m, c, index)) {
                store_refuse_nomem(s, c->id);
                if (m->n_joined == 0)
                        meeting_free(s, m);
        }
}

static void fail_lost(struct store *s, struct meeting *m, int rank)
{
        char text[MEETING_TEXT];

        if (s->rank_state[rank] == RANK_FAILED)
                snprintf(text, sizeof(text), "%s `%s`: %s", verb(m->op), NAME(m),
                         rank == s->first_failed && s->failure ? s->failure : "a rank failed");
        else
                snprintf(text, sizeof(text), "%s `%s`: rank %d (%s) has already exited",
                         verb(m->op), NAME(m), rank, s->ops.host_of(s->ctx, rank));
        meeting_fail(s, m, STORE_PEER, (uint32_t)rank, text);
}

/* A member that will not come any more, or -1. The failure that began it all comes before its
 * echoes, who have left because of it. */
static int lost_member(const struct store *s, const struct meeting *m)
{
        int lost = -1;

        if (s->n_lost == 0)
                return -1;
        for (uint32_t i = 0; i < m->n; i++) {
                int rank = (int)rank_of(m, i);

                if (rank == s->first_failed)
                        return rank;
                if (lost < 0 && s->rank_state[rank] != RANK_ALIVE)
                        lost = rank;
        }
        return lost;
}

/* @agrees: a meeting that is known to be as @req has it; the one that @c comes to is returned, or
 * NULL when it is over. */
static struct meeting *come(struct store *s, const struct comer *c, const struct store_request *req,
                            const struct meeting *agrees)
{
        int64_t index = place_of(req->members, size_of(s, req), c->rank);
        struct meeting *m = meeting_find(s, req);
        const char *what = NULL;
        int lost;

        if (index < 0) {
                store_refuse(s, c->id, STORE_INVALID, "rank %d is not a member", c->rank);
                return NULL;
        }
        if (m && m != agrees)
                what = difference(s, m, req, c->value.len);
        if (what) {
                mismatch(s, m, c, req, what);
                return NULL;
        }
        if (!m)
                m = meeting_make(s, req, c->value.len);
        if (!m) {
                store_refuse_nomem(s, c->id);
                return NULL;
        }
        join(s, m, c, (uint32_t)index);
        m = meeting_find(s, req);
        lost = m ? lost_member(s, m) : -1;
        if (lost >= 0)
                fail_lost(s, m, lost);
        else if (m && m->n_joined == m->n)
                meeting_complete(s, m);
        else
                return m;
        return NULL;
}

/* What the @i-th of @n brings. */
static struct bytes value_of(const struct store_request *req, uint32_t i, uint32_t n, int rank)
{
        size_t len = req->value.len / n;

        if (req->op == STORE_GATHER && len)
                return (struct bytes){ (const char *)req->value.p + i * len, len };
        if (n > 1 && (uint32_t)rank != (req->n_members ? req->members[req->root] : req->root))
                return (struct bytes){ 0 };
        return req->value;
}

void meeting_request(struct store *s, struct request_id id, int rank,
                     const struct store_request *req)
{
        uint32_t n = rank < 0 ? req->n_ranks : 1;
        struct comer c = { .id = id, .rank = rank, .is_named = rank < 0 };
        const struct meeting *m = NULL;

        if (c.is_named) {
                id.whom = req->ranks;
                id.n_whom = n;
        }
        if (n == 0) {
                store_refuse(s, id, STORE_INVALID, "only a rank can be a member");
                return;
        }
        if (!request_valid(s, id, n, req))
                return;
        for (uint32_t i = 0; i < n; i++) {
                if (c.is_named) {
                        c.rank = (int)req->ranks[i];
                        c.id.whom = &req->ranks[i];
                        c.id.n_whom = 1;
                }
                c.value = value_of(req, i, n, c.rank);
                m = come(s, &c, req, m);
        }
}

/* --- giving up -------------------------------------------------------------------------------- */

void meeting_drop(struct store *s, struct parked *p)
{
        struct party *party = container_of(p, struct party, parked);
        struct meeting *m = party->meeting;

        party_end(s, party, NULL);
        if (m->n_joined == 0)
                meeting_free(s, m);
}

/* A timeout's reply; @text and the ranks, which are to be freed, say who is missing. */
static struct store_reply timeout_of(struct store *s, const struct meeting *m,
                                     char text[static MEETING_TEXT])
{
        uint32_t n = 0, *missing = malloc(m->n * sizeof(*missing));
        char who[WHO_TEXT] = "ranks";

        for (uint32_t i = 0; i < m->n && missing; i++)
                if (!m->joins[i])
                        missing[n++] = rank_of(m, i);
        if (missing)
                who_describe(who, sizeof(who), missing, n, s->ops.host_of, s->ctx);
        snprintf(text, MEETING_TEXT, "%s `%s`: %s missing", verb(m->op), NAME(m), who);
        return (struct store_reply){
                .status = STORE_TIMEOUT, .text = bytes_of(text), .ranks = missing, .n_ranks = n
        };
}

void meeting_cancel(struct store *s, struct parked *p)
{
        struct party *party = container_of(p, struct party, parked);
        struct meeting *m = party->meeting;
        char text[MEETING_TEXT];
        struct store_reply reply = timeout_of(s, m, text);

        party_end(s, party, &reply);
        free(reply.ranks);
        if (m->n_joined == 0)
                meeting_free(s, m);
}

/* False: it is not one of them, or has been answered meanwhile. */
static bool party_remove(struct party *p, uint32_t rank)
{
        struct meeting *m = p->meeting;
        int64_t index = place_of(m->members, m->n, (int)rank);
        uint32_t i = 0;

        if (index < 0 || m->joins[index] != p)
                return false;
        while (p->at[i] != (uint32_t)index)
                i++;
        memmove(p->at + i, p->at + i + 1, (--p->n - i) * sizeof(*p->at));
        m->joins[index] = NULL;
        m->n_joined--;
        return true;
}

void meeting_leave(struct store *s, struct request_id id, const struct store_request *req)
{
        struct parked *found = parking_find(&s->parking, id.owner, id.tag);
        struct store_reply reply = { .status = STORE_TIMEOUT };
        char text[MEETING_TEXT];
        struct meeting *m;
        struct party *p;

        if (!found || found->kind != PARKED_MEETING)
                return;
        p = container_of(found, struct party, parked);
        m = p->meeting;
        if (req->number)
                reply = timeout_of(s, m, text);
        for (uint32_t i = 0; i < req->n_ranks; i++) {
                id.whom = &req->ranks[i];
                id.n_whom = 1;
                if (party_remove(p, req->ranks[i]))
                        store_answer(s, id, &reply);
        }
        free(reply.ranks);
        if (p->n == 0)
                party_free(s, p);
        if (m->n_joined == 0)
                meeting_free(s, m);
}

void meeting_rank_lost(struct store *s, int rank)
{
        struct meeting *m, *next;

        HASH_ITER(hh, s->meetings, m, next)
        {
                bool member = !m->members;

                for (uint32_t i = 0; i < m->n && !member; i++)
                        member = m->members[i] == (uint32_t)rank;
                if (member)
                        fail_lost(s, m, rank);
        }
}

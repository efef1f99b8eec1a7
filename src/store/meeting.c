/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings. The first to come lays down op, members and (for GATHER) length; who differs ends the
 * meeting for all, because the others would wait for ever. Values are kept in one block by member.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/private.h"
#include "store/who.h"

enum { WHO_TEXT = 1024, MEETING_TEXT = 2048, LIST_TEXT = 400, LIST_MAX = 16 };

struct join {
        struct parked parked;
        struct meeting *meeting;
        uint32_t index; /* as a member */
};

struct meeting {
        UT_hash_handle hh;
        uint8_t op;
        uint32_t root;
        uint32_t *members; /* NULL = the world */
        uint32_t n;
        uint32_t n_joined, first; /* first = index of who came first */
        struct join **joins;      /* by member, NULL = missing */
        char *values;             /* GATHER: n * len, BROADCAST: len */
        size_t len;
        size_t key_len; /* the name */
        char key[];
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

static struct request_id id_of(const struct join *j)
{
        return (struct request_id){ j->parked.owner, (uint32_t)j->parked.tag };
}

static void join_free(struct store *s, struct join *j)
{
        j->meeting->joins[j->index] = NULL;
        j->meeting->n_joined--;
        parking_remove(&s->parking, &j->parked);
        free(j);
}

static void meeting_free(struct store *s, struct meeting *m)
{
        for (uint32_t i = 0; i < m->n && m->joins; i++)
                if (m->joins[i])
                        join_free(s, m->joins[i]);
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
        for (uint32_t i = 0; i < m->n; i++)
                if (m->joins[i])
                        store_answer(s, id_of(m->joins[i]), reply);
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

static bool meeting_fill(struct meeting *m, const struct store_request *req, int world_size)
{
        m->op = req->op;
        m->root = req->root;
        m->n = req->n_members ? req->n_members : (uint32_t)world_size;
        m->len = req->op == STORE_GATHER ? req->value.len : 0;
        m->joins = calloc(m->n, sizeof(struct join *));
        if (req->n_members) {
                m->members = malloc(m->n * sizeof(*m->members));
                if (m->members)
                        memcpy(m->members, req->members, m->n * sizeof(*m->members));
        }
        m->values = m->len ? malloc(m->len * m->n) : NULL;
        return m->joins && (m->members || !req->n_members) && (m->values || !m->len);
}

static struct meeting *meeting_make(struct store *s, const struct store_request *req)
{
        struct meeting *m = calloc(1, sizeof(*m) + req->key.len + 1);

        if (!m)
                return NULL;
        m->key_len = req->key.len;
        if (m->key_len)
                memcpy(m->key, req->key.p, m->key_len);
        if (meeting_fill(m, req, s->world_size))
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
static int64_t index_of(const struct store *s, const struct store_request *req, int rank)
{
        if (!req->n_members)
                return rank < s->world_size ? rank : -1;
        for (uint32_t i = 0; i < req->n_members; i++)
                if (req->members[i] == (uint32_t)rank)
                        return i;
        return -1;
}

static bool request_valid(struct store *s, struct request_id id, int rank,
                          const struct store_request *req)
{
        uint32_t n = req->n_members ? req->n_members : (uint32_t)s->world_size;

        for (uint32_t i = 0; i < req->n_members; i++) {
                if (req->members[i] < (uint32_t)s->world_size)
                        continue;
                store_refuse(s, id, STORE_INVALID, "there is no rank %u", req->members[i]);
                return false;
        }
        if (index_of(s, req, rank) < 0)
                store_refuse(s, id, STORE_INVALID, "rank %d is not a member", rank);
        else if (req->op == STORE_BROADCAST && req->root >= n)
                store_refuse(s, id, STORE_INVALID, "there is no member %u to broadcast", req->root);
        else if (req->op == STORE_GATHER && req->value.len > STORE_VALUE_MAX / n)
                store_refuse(s, id, STORE_TOO_BIG, "%u times %zu bytes are more than %d", n,
                             req->value.len, STORE_VALUE_MAX);
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
static const char *difference(const struct meeting *m, const struct store_request *req,
                              int world_size)
{
        uint32_t n = req->n_members ? req->n_members : (uint32_t)world_size;

        if (m->op != req->op)
                return "another call";
        if (m->n != n)
                return "another number of members";
        if (!same_members(m, req))
                return "other members";
        if (m->op == STORE_GATHER && m->len != req->value.len)
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
                          const struct store_request *req, int world_size)
{
        uint32_t n = req->n_members ? req->n_members : (uint32_t)world_size, i = 0;
        const uint32_t *members = req->n_members ? req->members : NULL;
        char theirs[LIST_TEXT], first[LIST_TEXT];

        while (i < n && i < m->n && (members ? members[i] : i) == rank_of(m, i))
                i++;
        if (m->op != req->op || (i == n && i == m->n)) {
                snprintf(to, size, "%s, %zu bytes", verb(req->op), req->value.len);
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
static void mismatch(struct store *s, struct meeting *m, struct request_id id, int rank,
                     const struct store_request *req, const char *what)
{
        char text[MEETING_TEXT], call[2 * LIST_TEXT + 64];
        uint32_t who = (uint32_t)rank;

        describe_call(call, sizeof(call), m, req, s->world_size);
        snprintf(text, sizeof(text), "%s `%s`: rank %d (%s) comes with %s than rank %u: %s",
                 verb(m->op), NAME(m), rank, s->ops.host_of(s->ctx, rank), what,
                 rank_of(m, m->first), call);
        store_answer(s, id,
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

static struct join *join_make(struct store *s, struct meeting *m, struct request_id id,
                              uint32_t index, struct bytes value)
{
        struct join *j = calloc(1, sizeof(*j));

        if (!j)
                return NULL;
        j->parked = (struct parked){ .owner = id.owner, .tag = id.tag, .kind = PARKED_MEETING };
        j->meeting = m;
        j->index = index;
        if (!keep_value(m, index, value) || parking_add(&s->parking, &j->parked) < 0) {
                free(j);
                return NULL;
        }
        return j;
}

static void join(struct store *s, struct meeting *m, struct request_id id, uint32_t index,
                 const struct store_request *req)
{
        struct join *j;

        if (m->joins[index]) {
                store_refuse(s, id, STORE_INVALID, "%s `%s`: rank %u has come already", verb(m->op),
                             NAME(m), rank_of(m, index));
                return;
        }
        j = join_make(s, m, id, index, req->value);
        if (!j) {
                store_refuse_nomem(s, id);
                if (m->n_joined == 0)
                        meeting_free(s, m);
                return;
        }
        if (m->n_joined++ == 0)
                m->first = index;
        m->joins[index] = j;
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

void meeting_request(struct store *s, struct request_id id, int rank,
                     const struct store_request *req)
{
        struct meeting *m;
        const char *what;
        int lost;

        if (rank < 0) {
                store_refuse(s, id, STORE_INVALID, "only a rank can be a member");
                return;
        }
        if (!request_valid(s, id, rank, req))
                return;
        m = meeting_find(s, req);
        what = m ? difference(m, req, s->world_size) : NULL;
        if (what) {
                mismatch(s, m, id, rank, req, what);
                return;
        }
        if (!m)
                m = meeting_make(s, req);
        if (!m) {
                store_refuse_nomem(s, id);
                return;
        }
        join(s, m, id, (uint32_t)index_of(s, req, rank), req);
        m = meeting_find(s, req);
        lost = m ? lost_member(s, m) : -1;
        if (lost >= 0)
                fail_lost(s, m, lost);
        else if (m && m->n_joined == m->n)
                meeting_complete(s, m);
}

void meeting_drop(struct store *s, struct parked *p)
{
        struct join *j = container_of(p, struct join, parked);
        struct meeting *m = j->meeting;

        join_free(s, j);
        if (m->n_joined == 0)
                meeting_free(s, m);
}

void meeting_cancel(struct store *s, struct parked *p)
{
        struct join *j = container_of(p, struct join, parked);
        struct meeting *m = j->meeting;
        uint32_t n = 0, *missing = malloc(m->n * sizeof(*missing));
        char who[WHO_TEXT] = "ranks", text[MEETING_TEXT];

        for (uint32_t i = 0; i < m->n && missing; i++)
                if (!m->joins[i])
                        missing[n++] = rank_of(m, i);
        if (missing)
                who_describe(who, sizeof(who), missing, n, s->ops.host_of, s->ctx);
        snprintf(text, sizeof(text), "%s `%s`: %s missing", verb(m->op), NAME(m), who);
        store_answer(s, id_of(j),
                     &(struct store_reply){ .status = STORE_TIMEOUT,
                                            .text = bytes_of(text),
                                            .ranks = missing,
                                            .n_ranks = n });
        free(missing);
        meeting_drop(s, p);
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

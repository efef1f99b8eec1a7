/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives on a store that has only keys. NAME is the group's name after the number of times
 * this rank has joined; BASE is NAME and a hash of the members; SEQ counts the collectives of a
 * BASE, equal in every member because all of them take part in every collective.
 *
 *   w/NAME             the header of the current collective, written by the first arrival. A member
 *                      with another header ends the collective for all
 *   m/BASE/n           number of arrivals so far: a collective is complete at SEQ times members
 *   m/BASE/v/MEMBER    u32 SEQ and the member's value, overwritten by the next collective
 *   m/BASE/d/SEQ       the result: a status byte, and the answer or a sentence. Written once; all
 *                      members wait for this key. Deleted at the end of the next collective, when
 *                      all members have read it
 *
 * The last arrival collects the values and writes the result. A member whose time is over withdraws
 * from the count, unless the collective is complete by then, and may arrive again with the same
 * SEQ. Count and result are decided by single commands, so all members see the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "client/torchrun/torch_private.h"
#include "store/engine/rank_list.h"
#include "wire/codec.h"
#include "wire/store_msg.h"

enum { NAME = 11 + 255 + 1, BASE = NAME + 16 + 1, RANKS_TEXT = 600, SENTENCE = 1000 };

/* The fields of a header. */
struct collective_header {
        uint8_t op;
        uint32_t root, n, seq, by;
        uint64_t len, members;
};

struct torch_collective {
        struct torch_store *s;
        const struct store_request *req;
        struct torch_round *round;
        struct collective_header mine;
        uint32_t me; /* index in the member list */
        char name[NAME], base[BASE];
};

/* NAME/hash of the members */
#define BASE_FORMAT             "%s/%016llx"
#define BASE_KEY_OF(m, what, i) TORCH_KEY_OF((m)->s, 'm', "%s/%s/%u", (m)->base, (what), (i))
#define NAME_KEY_OF(m)          TORCH_KEY_OF((m)->s, 'w', "%s", (m)->name)

static uint32_t torch_member_rank(const struct torch_collective *m, uint32_t i)
{
        return m->req->n_members ? m->req->members[i] : i;
}

/* FNV-1a. */
static uint64_t hash_members(const struct torch_collective *m)
{
        uint64_t h = 0xcbf29ce484222325;

        for (uint32_t i = 0; i < m->mine.n; i++)
                for (unsigned shift = 0; shift < 32; shift += 8)
                        h = (h ^ (torch_member_rank(m, i) >> shift & 0xff)) * 0x100000001b3;
        return h;
}

/* Returns the count of collectives of @base, made at the first; NULL: out of memory. */
static struct torch_round *find_round(struct torch_store *s, const char *base)
{
        struct torch_round *r = s->rounds;

        while (r && strcmp(r->base, base) != 0)
                r = r->next;
        if (r)
                return r;
        r = calloc(1, sizeof(*r) + strlen(base) + 1);
        if (!r)
                return NULL;
        strcpy(r->base, base);
        r->next = s->rounds;
        s->rounds = r;
        return r;
}

/* --- headers ---------------------------------------------------------------------------------- */

static void put_header(struct buf *b, const struct collective_header *h)
{
        put_u8(b, h->op);
        put_u32(b, h->root);
        put_u64(b, h->len);
        put_u32(b, h->n);
        put_u64(b, h->members);
        put_u32(b, h->seq);
        put_u32(b, h->by);
}

static bool take_header(struct collective_header *h, const void *p, size_t len)
{
        struct reader r = READER_INIT(p, len);

        h->op = take_u8(&r);
        h->root = take_u32(&r);
        h->len = take_u64(&r);
        h->n = take_u32(&r);
        h->members = take_u64(&r);
        h->seq = take_u32(&r);
        h->by = take_u32(&r);
        return take_done(&r);
}

/* Writes how this rank's header differs from the first; false: not at all. */
static bool describe_header(char *to, size_t size, const struct collective_header *mine,
                            const struct collective_header *first)
{
        if (mine->op != first->op)
                snprintf(to, size, "calls %s where rank %u calls %s", store_call_name(mine->op),
                         first->by, store_call_name(first->op));
        else if (mine->n != first->n)
                snprintf(to, size, "lists %u members where rank %u lists %u", mine->n, first->by,
                         first->n);
        else if (mine->members != first->members)
                snprintf(to, size, "lists other members than rank %u", first->by);
        else if (mine->len != first->len)
                snprintf(to, size, "passes %llu bytes where rank %u passes %llu",
                         (unsigned long long)mine->len, first->by, (unsigned long long)first->len);
        else if (mine->root != first->root)
                snprintf(to, size, "broadcasts from member %u where rank %u broadcasts from %u",
                         mine->root, first->by, first->root);
        else
                return false;
        return true;
}

/* --- the result ------------------------------------------------------------------------------- */

/*
 * Writes the result of collective @base/@seq unless there is one; @ret = the result now. The SET
 * changes nothing, but wakes the clients waiting in old servers.
 */
static hn_status write_result(struct torch_collective *m, struct bytes key, struct bytes result,
                              struct conn_answer *ret)
{
        hn_status status = torch_swap(m->s, key, (struct bytes){ 0 }, result, ret);

        if (status == HN_OK)
                status = torch_set(m->s, key, (struct bytes){ ret->value, ret->len });
        return status;
}

/* Turns the result into this member's answer. */
static hn_status take_result(struct torch_collective *m, struct conn_answer *result,
                             struct conn_answer *ret)
{
        const char *p = result->value;
        uint32_t rank;

        m->round->ended = m->mine.seq;
        if (result->len < 1)
                return set_error(HN_ERR_PROTOCOL, "a collective ended without a result");
        if (p[0] == STORE_MISMATCH && result->len > 5) {
                struct reader r = READER_INIT(result->value, result->len);

                take_u8(&r);
                rank = take_u32(&r);
                set_error(HN_ERR_MISMATCH, "%s", p + 5);
                set_error_ranks(&rank, 1);
                return HN_ERR_MISMATCH;
        }
        ret->len = result->len - 1;
        ret->value = result->value;
        memmove(ret->value, p + 1, result->len); /* with the NUL */
        result->value = NULL;
        return HN_OK;
}

/* Ends a collective with HN_ERR_MISMATCH: this rank differs from the first arrival. */
static hn_status end_with_mismatch(struct torch_collective *m, const char *difference,
                                   const struct collective_header *first, struct conn_answer *ret)
{
        bool same_members = m->mine.members == first->members;
        struct conn_answer result = CONN_ANSWER_INIT;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        char text[SENTENCE];
        struct bytes key = TORCH_KEY_OF(m->s, 'm', BASE_FORMAT "/d/%u", m->name,
                                        (unsigned long long)first->members, first->seq);
        hn_status status;

        snprintf(text, sizeof(text), "%s `%s`: rank %u (%s) %s", store_call_name(first->op),
                 KEY_FORMAT(m->req->key), m->mine.by, torch_host_of(m->s, (int)m->mine.by),
                 difference);
        put_u8(&b, STORE_MISMATCH);
        put_u32(&b, m->mine.by);
        buf_appends(&b, text);
        status = torch_delete(m->s, NAME_KEY_OF(m), NULL);
        if (status == HN_OK)
                status = write_result(m, key, torch_bytes(&b), &result);
        /* With the same members and number, this is the answer of this rank, too. */
        if (status == HN_OK && same_members)
                status = torch_add(m->s, BASE_KEY_OF(m, "n", 0), 1, NULL);
        if (status == HN_OK && same_members) {
                status = take_result(m, &result, ret);
        } else if (status == HN_OK) {
                status = set_error(HN_ERR_MISMATCH, "%s", text);
                set_error_ranks(&m->mine.by, 1);
        }
        conn_answer_finish(&result);
        return status;
}

/* --- arriving and leaving --------------------------------------------------------------------- */

/*
 * Writes the header, or finds an equal one. A header of the same BASE with a lower number is left
 * over from a collective that ended otherwise; with a higher number, this collective has ended
 * already and the wait will be short. @ret is filled in when the collective has ended here.
 */
static hn_status post_header(struct torch_collective *m, struct conn_answer *ret, bool *ended)
{
        struct collective_header first = { 0 };
        CLEANUP(buf_finish) struct buf header = BUF_INIT;
        struct conn_answer now = CONN_ANSWER_INIT;
        char difference[160];
        hn_status status;

        put_header(&header, &m->mine);
        if (buf_failed(&header))
                return set_error(HN_ERR_NOMEM, "out of memory");
        do {
                struct conn_answer stale = now;

                now = (struct conn_answer)CONN_ANSWER_INIT;
                status = torch_swap(m->s, NAME_KEY_OF(m), (struct bytes){ stale.value, stale.len },
                                    torch_bytes(&header), &now);
                conn_answer_finish(&stale);
                if (status == HN_OK && !take_header(&first, now.value, now.len))
                        status = set_error(HN_ERR_PROTOCOL, "malformed header of a collective");
        } while (status == HN_OK && first.members == m->mine.members && first.seq < m->mine.seq);
        conn_answer_finish(&now);
        if (status != HN_OK || (first.members == m->mine.members && first.seq > m->mine.seq) ||
            !describe_header(difference, sizeof(difference), &m->mine, &first))
                return status;
        *ended = true;
        return end_with_mismatch(m, difference, &first, ret);
}

/* Writes the value and adds one to the count. */
static hn_status count_arrival(struct torch_collective *m, int64_t *arrived)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        hn_status status;

        put_u32(&b, m->mine.seq);
        if (m->req->op == STORE_GATHER || (m->req->op == STORE_BROADCAST && m->me == m->req->root))
                buf_append(&b, m->req->value.p, m->req->value.len);
        if (buf_failed(&b))
                return set_error(HN_ERR_NOMEM, "out of memory");
        status = torch_set(m->s, BASE_KEY_OF(m, "v", m->me), torch_bytes(&b));
        return status == HN_OK ? torch_add(m->s, BASE_KEY_OF(m, "n", 0), 1, arrived) : status;
}

static int64_t complete_at(const struct torch_collective *m)
{
        return (int64_t)m->mine.seq * m->mine.n;
}

/* Appends the value of member @i. */
static hn_status append_value(struct torch_collective *m, uint32_t i, struct buf *to)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status = torch_read(m->s, BASE_KEY_OF(m, "v", i), &a);

        if (status == HN_OK && a.len < 4)
                status = set_error(HN_ERR_PROTOCOL, "rank %u arrived without a value",
                                   torch_member_rank(m, i));
        if (status == HN_OK)
                buf_append(to, (char *)a.value + 4, a.len - 4);
        conn_answer_finish(&a);
        return status;
}

static hn_status read_result(struct torch_collective *m, int64_t deadline, struct conn_answer *ret)
{
        struct bytes key = BASE_KEY_OF(m, "d", m->mine.seq);
        struct conn_answer result = CONN_ANSWER_INIT;
        hn_status status = torch_fetch(m->s, key, deadline, &result);

        if (status == HN_OK)
                status = take_result(m, &result, ret);
        conn_answer_finish(&result);
        return status;
}

/*
 * Builds and writes the result for all members, unless the collective failed before the last
 * arrival. The next collective cannot begin earlier.
 */
static hn_status complete_torch_collective(struct torch_collective *m, struct conn_answer *ret)
{
        struct conn_answer result = CONN_ANSWER_INIT;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct bytes key = BASE_KEY_OF(m, "d", m->mine.seq);
        bool over = false;
        hn_status status = torch_check(m->s, &key, 1, &over);

        put_u8(&b, STORE_OK);
        if (status == HN_OK && !over && m->req->op == STORE_BROADCAST)
                status = append_value(m, m->req->root, &b);
        for (uint32_t i = 0; !over && m->req->op == STORE_GATHER && i < m->mine.n; i++)
                if (status == HN_OK)
                        status = append_value(m, i, &b);
        if (status == HN_OK && buf_failed(&b))
                status = set_error(HN_ERR_NOMEM, "out of memory");
        if (status == HN_OK)
                status = torch_delete(m->s, NAME_KEY_OF(m), NULL);
        if (status == HN_OK && over)
                return read_result(m, torch_soon(), ret);
        if (status == HN_OK)
                status = write_result(m, key, torch_bytes(&b), &result);
        if (status == HN_OK)
                status = torch_delete(m->s, BASE_KEY_OF(m, "d", m->mine.seq - 1), NULL);
        if (status == HN_OK)
                status = take_result(m, &result, ret);
        conn_answer_finish(&result);
        return status;
}

/* Takes one arrival back, unless the collective is complete. *ret_left: arrivals left, -1 =
 * complete. */
static hn_status withdraw_arrival(struct torch_collective *m, int64_t *ret_left)
{
        struct bytes key = BASE_KEY_OF(m, "n", 0);
        hn_status status = HN_OK;
        bool done = false;

        while (status == HN_OK && !done) {
                struct conn_answer old = CONN_ANSWER_INIT;
                struct buf less = BUF_INIT;
                int64_t n;

                status = torch_read(m->s, key, &old);
                n = old.value ? strtoll(old.value, NULL, 10) : 0;
                *ret_left = n >= complete_at(m) ? -1 : n - 1 - (complete_at(m) - m->mine.n);
                done = *ret_left < 0;
                buf_printf(&less, "%lld", (long long)n - 1);
                if (status == HN_OK && !done)
                        status = torch_replace(m->s, key, &old, &less, &done);
                buf_finish(&less);
                conn_answer_finish(&old);
        }
        return status;
}

/* True if member @i has arrived at this collective. */
static bool has_written_value(struct torch_collective *m, uint32_t i)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        bool arrived = false;

        if (torch_read(m->s, BASE_KEY_OF(m, "v", i), &a) == HN_OK && a.len >= 4) {
                struct reader r = READER_INIT(a.value, a.len);

                arrived = take_u32(&r) == m->mine.seq;
        }
        conn_answer_finish(&a);
        return arrived;
}

/* Sets the error that names the missing ranks. */
static hn_status describe_missing(struct torch_collective *m, int64_t timeout_ms)
{
        uint32_t n = 0, *missing = calloc(m->mine.n, sizeof(*missing));
        char who[RANKS_TEXT] = "ranks";

        for (uint32_t i = 0; i < m->mine.n && missing; i++)
                if (i != m->me && !has_written_value(m, i))
                        missing[n++] = torch_member_rank(m, i);
        if (missing)
                rank_list_describe(who, sizeof(who), missing, n, torch_host_of, m->s);
        set_error(HN_ERR_TIMEOUT, "%s `%s`: %s missing after %g s", store_call_name(m->req->op),
                  KEY_FORMAT(m->req->key), who, (double)deadline_span(timeout_ms) / 1000);
        if (missing)
                set_error_ranks(missing, n);
        free(missing);
        return HN_ERR_TIMEOUT;
}

/* A collective with keys of PyTorch's store alone: the last arrival writes the result, the others
 * wait for the key. A rank that gives up withdraws the arrival, unless the result has come
 * meanwhile. */
static hn_status run_collective(struct torch_collective *m, int64_t timeout_ms,
                                struct conn_answer *ret)
{
        int64_t deadline = deadline_in(timeout_ms), arrived = 0, left = 0;
        hn_status missing, status;
        bool ended = false;

        status = post_header(m, ret, &ended);
        if (status != HN_OK || ended)
                return status;
        status = count_arrival(m, &arrived);
        if (status != HN_OK)
                return status;
        if (arrived == complete_at(m))
                return complete_torch_collective(m, ret);
        status = read_result(m, deadline, ret);
        if (status != HN_ERR_NOT_FOUND)
                return status;
        /* Gives up. The missing ranks are read first: afterwards this rank is missing, too. */
        missing = describe_missing(m, timeout_ms);
        status = withdraw_arrival(m, &left);
        if (status == HN_OK && left < 0)
                return read_result(m, torch_soon(), ret);
        if (status == HN_OK)
                status = torch_delete(m->s, BASE_KEY_OF(m, "v", m->me), NULL);
        if (status == HN_OK && left == 0)
                status = torch_delete(m->s, NAME_KEY_OF(m), NULL);
        return status == HN_OK ? missing : status;
}

hn_status torch_collective_call(struct torch_store *s, const struct store_request *req,
                                int64_t timeout_ms, struct conn_answer *ret)
{
        struct torch_collective m = { .s = s, .req = req };
        uint32_t n = req->n_members ? req->n_members : s->job.world_size;
        uint32_t values = req->op == STORE_GATHER ? n : 1;

        m.mine = (struct collective_header){ .op = req->op, .n = n, .by = s->job.rank };
        m.mine.members = hash_members(&m);
        if (req->op == STORE_BROADCAST)
                m.mine.root = req->root;
        if (req->op == STORE_GATHER)
                m.mine.len = req->value.len;
        while (m.me < n && torch_member_rank(&m, m.me) != s->job.rank)
                m.me++;
        if (m.me == n)
                return set_error(HN_ERR_INVALID, "rank %u is not a member", s->job.rank);
        if (req->value.len > TORCH_VALUE_MAX / values)
                return set_error(HN_ERR_INVALID,
                                 "torchrun's store takes at most %d bytes, not %u times %zu",
                                 TORCH_VALUE_MAX, values, req->value.len);
        snprintf(m.name, sizeof(m.name), "%u/%.*s", s->generation,
                 (int)MIN(req->key.len, (size_t)255), (const char *)req->key.p);
        snprintf(m.base, sizeof(m.base), BASE_FORMAT, m.name, (unsigned long long)m.mine.members);
        pthread_mutex_lock(&s->mutex);
        m.round = find_round(s, m.base);
        pthread_mutex_unlock(&s->mutex);
        if (!m.round)
                return set_error(HN_ERR_NOMEM, "out of memory");
        m.mine.seq = m.round->ended + 1;
        return run_collective(&m, timeout_ms, ret);
}

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
#include "store/engine/key_format.h"
#include "store/engine/rank_list.h"
#include "wire/codec.h"

enum {
        NAME_MAX_BYTES = 255,
        BASE = 11 + NAME_MAX_BYTES + 1 + 16 + 1,
        RANKS_TEXT = 600,
        SENTENCE = 1000
};

struct torch_collective {
        struct torch_store *s;
        const struct store_request *req;
        struct torch_round *round;
        uint32_t n, me, seq; /* me: index in the member list */
        char base[BASE];
        struct buf header;
};

/* The fields of a header. */
struct collective_header {
        uint8_t op;
        uint32_t root, n, seq, by;
        uint64_t len, members;
};

static uint32_t torch_member_rank(const struct torch_collective *m, uint32_t i)
{
        return m->req->n_members ? m->req->members[i] : i;
}

static const char *torch_op_name(uint8_t op)
{
        return op == STORE_BARRIER ? "barrier" : op == STORE_GATHER ? "all_gather" : "broadcast";
}

/* --- names ------------------------------------------------------------------------------------ */

static struct bytes base_key(char *to, const struct torch_store *s, const char *base,
                             const char *what, uint32_t n)
{
        char name[BASE + 32];

        snprintf(name, sizeof(name), "%s/%s/%u", base, what, n);
        return torch_key(to, s, 'm', bytes_of(name));
}

#define BASE_KEY_OF(m, what, n) base_key((char[TORCH_KEY]){ 0 }, (m)->s, (m)->base, (what), (n))
#define NAME_KEY_OF(m)          name_key((char[TORCH_KEY]){ 0 }, (m))

/* FNV-1a. */
static uint64_t hash_members(const struct torch_collective *m)
{
        uint64_t h = 0xcbf29ce484222325;

        for (uint32_t i = 0; i < m->n; i++)
                for (unsigned shift = 0; shift < 32; shift += 8)
                        h = (h ^ (torch_member_rank(m, i) >> shift & 0xff)) * 0x100000001b3;
        return h;
}

static void name_base(char *to, const struct torch_collective *m, uint64_t members)
{
        snprintf(to, BASE, "%u/%.*s/%016llx", m->s->generation,
                 (int)MIN(m->req->key.len, (size_t)NAME_MAX_BYTES), (const char *)m->req->key.p,
                 (unsigned long long)members);
}

static struct bytes name_key(char *to, const struct torch_collective *m)
{
        char name[BASE];

        snprintf(name, sizeof(name), "%u/%.*s", m->s->generation,
                 (int)MIN(m->req->key.len, (size_t)NAME_MAX_BYTES), (const char *)m->req->key.p);
        return torch_key(to, m->s, 'w', bytes_of(name));
}

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

static void put_header(struct torch_collective *m, uint64_t members)
{
        put_u8(&m->header, m->req->op);
        put_u32(&m->header, m->req->op == STORE_BROADCAST ? m->req->root : 0);
        put_u64(&m->header, m->req->op == STORE_GATHER ? m->req->value.len : 0);
        put_u32(&m->header, m->n);
        put_u64(&m->header, members);
        put_u32(&m->header, m->seq);
        put_u32(&m->header, m->s->job.rank);
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

static const char *header_difference(const struct collective_header *mine,
                                     const struct collective_header *first)
{
        if (mine->op != first->op)
                return "another call";
        if (mine->n != first->n)
                return "another number of members";
        if (mine->members != first->members)
                return "other members";
        if (mine->len != first->len)
                return "another length";
        return mine->root != first->root ? "another root" : NULL;
}

/* --- the result ------------------------------------------------------------------------------- */

/*
 * Writes the result of collective @base/@seq unless there is one; @ret = the result now. The SET
 * changes nothing, but wakes the clients waiting in old servers.
 */
static hn_status write_result(struct torch_collective *m, struct bytes key, struct bytes result,
                              struct conn_answer *ret)
{
        hn_status status = torch_swap(m->s, key, (struct bytes){ 0 }, result, torch_soon(), ret);

        if (status == HN_OK)
                status = torch_set(m->s, key, (struct bytes){ ret->value, ret->len }, torch_soon());
        return status;
}

/* Turns the result into this member's answer. */
static hn_status take_result(struct torch_collective *m, struct conn_answer *result,
                             struct conn_answer *ret)
{
        const char *p = result->value;
        uint32_t rank;

        m->round->ended = m->seq;
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
static hn_status end_with_mismatch(struct torch_collective *m, const struct collective_header *mine,
                                   const struct collective_header *first, struct conn_answer *ret)
{
        struct conn_answer result = CONN_ANSWER_INIT;
        char text[SENTENCE], base[BASE];
        struct buf b = BUF_INIT;
        struct bytes key;
        hn_status status;

        snprintf(text, sizeof(text),
                 "%s `%s`: rank %u (%s) comes with %s than rank %u: %s, %zu bytes",
                 torch_op_name(first->op), KEY_FORMAT(m->req->key), m->s->job.rank,
                 torch_host_of(m->s, (int)m->s->job.rank), header_difference(mine, first),
                 first->by, torch_op_name(mine->op), m->req->value.len);
        name_base(base, m, first->members);
        key = base_key((char[TORCH_KEY]){ 0 }, m->s, base, "d", first->seq);
        put_u8(&b, STORE_MISMATCH);
        put_u32(&b, m->s->job.rank);
        buf_appends(&b, text);
        status = torch_delete(m->s, NAME_KEY_OF(m), torch_soon(), NULL);
        if (status == HN_OK)
                status = write_result(m, key, (struct bytes){ buf_data(&b), buf_len(&b) }, &result);
        /* With the same members and number, this is the answer of this rank, too. */
        if (status == HN_OK && mine->members == first->members)
                status = torch_add(m->s, BASE_KEY_OF(m, "n", 0), 1, torch_soon(), NULL);
        if (status == HN_OK && mine->members == first->members)
                status = take_result(m, &result, ret);
        else if (status == HN_OK) {
                status = set_error(HN_ERR_MISMATCH, "%s", text);
                set_error_ranks(&m->s->job.rank, 1);
        }
        conn_answer_finish(&result);
        buf_finish(&b);
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
        struct collective_header mine = { 0 }, first;
        struct bytes me = { buf_data(&m->header), buf_len(&m->header) }, stale = { 0 };
        struct conn_answer now = CONN_ANSWER_INIT;
        hn_status status;
        bool again;

        take_header(&mine, me.p, me.len);
        do {
                struct conn_answer old = now;

                now = (struct conn_answer)CONN_ANSWER_INIT;
                stale = (struct bytes){ old.value, old.len };
                status = torch_swap(m->s, NAME_KEY_OF(m), stale, me, torch_soon(), &now);
                conn_answer_finish(&old);
                if (status == HN_OK && !take_header(&first, now.value, now.len))
                        status = set_error(HN_ERR_PROTOCOL, "malformed header of a collective");
                again = status == HN_OK && first.members == mine.members && first.seq < mine.seq;
        } while (again);
        conn_answer_finish(&now);
        if (status != HN_OK || (first.members == mine.members && first.seq > mine.seq) ||
            !header_difference(&mine, &first))
                return status;
        *ended = true;
        return end_with_mismatch(m, &mine, &first, ret);
}

/* Writes the value and adds one to the count. */
static hn_status count_arrival(struct torch_collective *m, int64_t *arrived)
{
        struct buf b = BUF_INIT;
        hn_status status;

        put_u32(&b, m->seq);
        if (m->req->op == STORE_GATHER || (m->req->op == STORE_BROADCAST && m->me == m->req->root))
                buf_append(&b, m->req->value.p, m->req->value.len);
        if (buf_failed(&b))
                status = set_error(HN_ERR_NOMEM, "out of memory");
        else
                status = torch_set(m->s, BASE_KEY_OF(m, "v", m->me),
                                   (struct bytes){ buf_data(&b), buf_len(&b) }, torch_soon());
        buf_finish(&b);
        if (status == HN_OK)
                status = torch_add(m->s, BASE_KEY_OF(m, "n", 0), 1, torch_soon(), arrived);
        return status;
}

static int64_t complete_at(const struct torch_collective *m)
{
        return (int64_t)m->seq * m->n;
}

/* Appends the value of member @i. */
static hn_status append_value(struct torch_collective *m, uint32_t i, struct buf *to)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status = torch_read(m->s, BASE_KEY_OF(m, "v", i), torch_soon(), &a);

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
        struct bytes key = BASE_KEY_OF(m, "d", m->seq);
        struct conn_answer result = CONN_ANSWER_INIT;
        hn_status status = torch_fetch(m->s, key, deadline, &result);

        if (status == HN_OK)
                status = take_result(m, &result, ret);
        conn_answer_finish(&result);
        return status;
}

/* Builds the result for all members. */
static hn_status append_values(struct torch_collective *m, struct buf *to)
{
        hn_status status = HN_OK;

        put_u8(to, STORE_OK);
        if (m->req->op == STORE_BROADCAST)
                status = append_value(m, m->req->root, to);
        for (uint32_t i = 0; m->req->op == STORE_GATHER && i < m->n && status == HN_OK; i++)
                status = append_value(m, i, to);
        return status == HN_OK && buf_failed(to) ? set_error(HN_ERR_NOMEM, "out of memory")
                                                 : status;
}

/*
 * Writes the result for all members, unless the collective failed before the last arrival. The next
 * collective cannot begin earlier.
 */
static hn_status complete_torch_collective(struct torch_collective *m, struct conn_answer *ret)
{
        struct conn_answer result = CONN_ANSWER_INIT;
        struct buf b = BUF_INIT;
        struct bytes key = BASE_KEY_OF(m, "d", m->seq);
        bool over = false;
        hn_status status = torch_check(m->s, &key, 1, torch_soon(), &over);

        if (status == HN_OK && over)
                status = torch_delete(m->s, NAME_KEY_OF(m), torch_soon(), NULL);
        if (status != HN_OK || over)
                return status == HN_OK ? read_result(m, torch_soon(), ret) : status;
        status = append_values(m, &b);
        if (status == HN_OK)
                status = torch_delete(m->s, NAME_KEY_OF(m), torch_soon(), NULL);
        if (status == HN_OK)
                status = write_result(m, key, (struct bytes){ buf_data(&b), buf_len(&b) }, &result);
        if (status == HN_OK)
                status = torch_delete(m->s, BASE_KEY_OF(m, "d", m->seq - 1), torch_soon(), NULL);
        if (status == HN_OK)
                status = take_result(m, &result, ret);
        conn_answer_finish(&result);
        buf_finish(&b);
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
                struct conn_answer old = CONN_ANSWER_INIT, now = CONN_ANSWER_INIT;
                struct buf less = BUF_INIT;
                int64_t n = 0;

                status = torch_read(m->s, key, torch_soon(), &old);
                if (old.value)
                        n = strtoll(old.value, NULL, 10);
                *ret_left = n >= complete_at(m) ? -1 : n - 1 - (complete_at(m) - m->n);
                done = *ret_left < 0;
                buf_printf(&less, "%lld", (long long)n - 1);
                torch_mark(m->s, &less);
                if (status == HN_OK && !done)
                        status = torch_swap(m->s, key, (struct bytes){ old.value, old.len },
                                            (struct bytes){ buf_data(&less), buf_len(&less) },
                                            torch_soon(), &now);
                if (status == HN_OK && !done)
                        done = now.len == buf_len(&less) &&
                               memcmp(now.value, buf_data(&less), now.len) == 0;
                conn_answer_finish(&old);
                conn_answer_finish(&now);
                buf_finish(&less);
        }
        return status;
}

/* True if member @i has arrived at this collective. */
static bool has_written_value(struct torch_collective *m, uint32_t i)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        bool arrived = false;

        if (torch_read(m->s, BASE_KEY_OF(m, "v", i), torch_soon(), &a) == HN_OK && a.len >= 4) {
                struct reader r = READER_INIT(a.value, a.len);

                arrived = take_u32(&r) == m->seq;
        }
        conn_answer_finish(&a);
        return arrived;
}

/* Sets the error that names the missing ranks. */
static hn_status describe_missing(struct torch_collective *m, int64_t timeout_ms)
{
        uint32_t n = 0, *missing = calloc(m->n, sizeof(*missing));
        char who[RANKS_TEXT] = "ranks";

        for (uint32_t i = 0; i < m->n && missing; i++)
                if (i != m->me && !has_written_value(m, i))
                        missing[n++] = torch_member_rank(m, i);
        if (missing)
                rank_list_describe(who, sizeof(who), missing, n, torch_host_of, m->s);
        set_error(HN_ERR_TIMEOUT, "%s `%s`: %s missing after %g s", torch_op_name(m->req->op),
                  KEY_FORMAT(m->req->key), who, (double)deadline_span(timeout_ms) / 1000);
        if (missing)
                set_error_ranks(missing, n);
        free(missing);
        return HN_ERR_TIMEOUT;
}

/* Gives up after the deadline. The missing ranks are read first: afterwards this rank is missing,
 * too. */
static hn_status leave_collective(struct torch_collective *m, int64_t timeout_ms,
                                  struct conn_answer *ret)
{
        int64_t left = 0;
        hn_status status, told = describe_missing(m, timeout_ms);

        status = withdraw_arrival(m, &left);
        if (status == HN_OK && left < 0)
                return read_result(m, torch_soon(), ret);
        if (status == HN_OK)
                status = torch_delete(m->s, BASE_KEY_OF(m, "v", m->me), torch_soon(), NULL);
        if (status == HN_OK && left == 0)
                status = torch_delete(m->s, NAME_KEY_OF(m), torch_soon(), NULL);
        return status == HN_OK ? told : status;
}

static hn_status run_collective(struct torch_collective *m, int64_t timeout_ms,
                                struct conn_answer *ret)
{
        int64_t deadline = deadline_in(timeout_ms), arrived = 0;
        bool ended = false;
        hn_status status = post_header(m, ret, &ended);

        if (status != HN_OK || ended)
                return status;
        status = count_arrival(m, &arrived);
        if (status != HN_OK)
                return status;
        if (arrived == complete_at(m))
                return complete_torch_collective(m, ret);
        status = read_result(m, deadline, ret);
        return status == HN_ERR_NOT_FOUND ? leave_collective(m, timeout_ms, ret) : status;
}

static hn_status check_torch_collective(const struct torch_collective *m)
{
        if (m->me == m->n)
                return set_error(HN_ERR_INVALID, "rank %u is not a member", m->s->job.rank);
        if (m->req->value.len > TORCH_VALUE_MAX / (m->req->op == STORE_GATHER ? m->n : 1))
                return set_error(
                        HN_ERR_INVALID, "torchrun's store takes at most %d bytes, not %u times %zu",
                        TORCH_VALUE_MAX, m->req->op == STORE_GATHER ? m->n : 1, m->req->value.len);
        return HN_OK;
}

hn_status torch_collective_call(struct torch_store *s, const struct store_request *req,
                                int64_t timeout_ms, struct conn_answer *ret)
{
        struct torch_collective m = { .s = s, .req = req };
        uint64_t members;
        hn_status status;

        m.n = req->n_members ? req->n_members : s->job.world_size;
        while (m.me < m.n && torch_member_rank(&m, m.me) != s->job.rank)
                m.me++;
        status = check_torch_collective(&m);
        if (status != HN_OK)
                return status;
        members = hash_members(&m);
        name_base(m.base, &m, members);
        pthread_mutex_lock(&s->mutex);
        m.round = find_round(s, m.base);
        pthread_mutex_unlock(&s->mutex);
        if (!m.round)
                return set_error(HN_ERR_NOMEM, "out of memory");
        m.seq = m.round->ended + 1;
        put_header(&m, members);
        if (buf_failed(&m.header))
                status = set_error(HN_ERR_NOMEM, "out of memory");
        else
                status = run_collective(&m, timeout_ms, ret);
        buf_finish(&m.header);
        return status;
}

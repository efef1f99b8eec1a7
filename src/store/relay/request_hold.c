/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a node seldom come in one turn. So those that come to a meeting wait for the others
 * of this node, and in a tree of the nodes below, that are known and are members: the meeting
 * cannot end without them. That costs no time, because it ends when the last one comes, and that
 * one does not wait.
 *
 * But the head does not know of who waits here: whom it calls missing, or tells of a failure, must
 * not depend on somebody else being late. So it is a short wait, after which those leave who have
 * come. Who asks who is missing leaves at once, and so do large values, which have a long way.
 */
#include <utlist.h>

#include "store/relay/request_private.h"
#include "wire/codec.h"

enum { LARGE = 64 << 10 };
static const uint64_t SHORT_NS = 20 * 1000000;

/* Where the number of members stands, and they behind it. */
static struct reader members_of(const struct flight *f)
{
        struct reader r = READER_INIT(f->body + STORE_BODY_HEADER, f->len - STORE_BODY_HEADER);
        size_t len;

        take_bytes(&r, STORE_KEY_MAX, &len);
        if (f->op == STORE_BROADCAST)
                take_u32(&r);
        return r;
}

void flight_expect(const struct flights *fs, struct flight *f)
{
        struct reader r = members_of(f);
        uint32_t n = take_u32(&r);

        f->of_world = n == 0;
        f->n_expected = 0;
        for (uint32_t i = 0; i < n; i++)
                f->n_expected += locals_has(&fs->locals, take_u32(&r));
}

/* @now 0: there is no clock. */
static bool waits(const struct flights *fs, const struct flight *f, uint64_t now)
{
        uint32_t expected = f->of_world ? locals_count(&fs->locals) : f->n_expected;

        return now && f->fresh_bytes <= LARGE && flight_n_seats(f) < expected &&
               (!f->held_until || now < f->held_until);
}

static bool has_come(const void *f, uint32_t rank)
{
        return flight_has_seat(f, rank);
}

/* Who has not come in that time may never come here again: in a tree its node may be elsewhere. */
static void forget_missing(struct flights *fs, const struct flight *f)
{
        struct reader r = members_of(f);
        uint32_t n = take_u32(&r);

        if (f->of_world)
                locals_sift(&fs->locals, has_come, f);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t rank = take_u32(&r);

                if (!flight_has_seat(f, rank))
                        locals_remove(&fs->locals, rank);
        }
}

bool flight_hold(struct flights *fs, struct flight *f, uint64_t now)
{
        if (!waits(fs, f, now))
                return false;
        if (!f->held_until)
                f->held_until = now + SHORT_NS;
        DL_APPEND2(fs->held, f, due_prev, due_next);
        f->is_due = f->is_held = true;
        return true;
}

void flights_release(struct flights *fs, uint64_t now)
{
        struct flight *f, *next;

        DL_FOREACH_SAFE2(fs->held, f, next, due_next)
        {
                if (waits(fs, f, now))
                        continue;
                if (now >= f->held_until)
                        forget_missing(fs, f);
                flight_not_due(fs, f);
                flight_due(fs, f);
        }
}

/* The first that was held has been longest. */
uint64_t flights_held_until(const struct flights *fs)
{
        return fs->held ? fs->held->held_until : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a node seldom arrive in the same turn. So a collective is held until the other ranks
 * of this node (in a tree, also of the nodes below) have arrived, if known and members: all are
 * needed anyway. No time is lost, because the last arrival does not wait.
 *
 * But the head does not know the ranks waiting here, and reports of missing ranks and failures
 * must not depend on another rank being late. So the wait is short; then the ranks that have
 * arrived leave, and the others are no longer expected. A question for the missing ranks
 * leaves at once, and so do large values, which have a long way. Eight ranks of a node send 1.00
 * messages for a small collective instead of 3 (docs/performance.md).
 */
#include <utlist.h>

#include "store/relay/relay_private.h"
#include "wire/codec.h"

enum { LARGE_BYTES = 64 << 10 };
static const uint64_t HOLD_NS = 20 * 1000000;

/* Returns a reader at the number of members, followed by the members. */
static struct reader members_of(const struct request *r)
{
        struct reader body = READER_INIT(r->body + STORE_BODY_HEADER, r->len - STORE_BODY_HEADER);
        size_t len;

        take_bytes(&body, STORE_KEY_MAX, &len);
        if (r->op == STORE_BROADCAST)
                take_u32(&body);
        return body;
}

void collective_expect(const struct relay *relay, struct request *r)
{
        struct reader members = members_of(r);
        uint32_t n = take_u32(&members);

        r->collective.n_expected = n ? 0 : EXPECT_WORLD;
        for (uint32_t i = 0; i < n; i++)
                r->collective.n_expected +=
                        local_ranks_has(&relay->local_ranks, take_u32(&members));
}

static bool must_wait(const struct relay *relay, const struct request *r, uint64_t now)
{
        uint32_t expected = r->collective.n_expected;

        if (expected == EXPECT_WORLD)
                expected = relay->local_ranks.n;
        return now && r->collective.unsent_bytes <= LARGE_BYTES &&
               HASH_COUNT(r->collective.participants) < expected &&
               (!r->collective.held_until || now < r->collective.held_until);
}

static bool has_arrived(const void *r, uint32_t rank)
{
        return collective_has_rank(r, rank);
}

/* Without an arrival in time, a rank may never come here again: in a tree, the node may be
 * elsewhere by now. */
static void forget_missing(struct relay *relay, const struct request *r)
{
        struct reader members = members_of(r);
        uint32_t n = take_u32(&members);

        if (n == 0)
                local_ranks_filter(&relay->local_ranks, has_arrived, r);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t rank = take_u32(&members);

                if (!collective_has_rank(r, rank))
                        local_ranks_remove(&relay->local_ranks, rank);
        }
}

bool collective_hold(struct relay *relay, struct request *r, uint64_t now)
{
        if (!must_wait(relay, r, now))
                return false;
        if (!r->collective.held_until)
                r->collective.held_until = now + HOLD_NS;
        request_enqueue(relay, r, QUEUE_HELD);
        return true;
}

void relay_release_held(struct relay *relay, uint64_t now)
{
        struct request *r, *next;

        DL_FOREACH_SAFE2(relay->queues[QUEUE_HELD], r, next, queue_next)
        {
                if (must_wait(relay, r, now))
                        continue;
                if (now >= r->collective.held_until)
                        forget_missing(relay, r);
                request_enqueue(relay, r, QUEUE_DUE);
        }
}

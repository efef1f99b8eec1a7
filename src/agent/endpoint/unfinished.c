/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unfinished_track() follows the bytes that each connection holds of its incomplete command; their
 * sum decides whether large commands may go on. unfinished_turn(), in every turn of the loop,
 * chooses the largest above the limit and forgets it below. One timer serves both times: that of
 * the largest, which must gain PROGRESS bytes in PROGRESS_MS, and the patience with each half
 * command, whose list is in the order of their last bytes.
 */
#include "agent/endpoint/unfinished.h"

#include <utlist.h>

#include "base/log.h"

enum {
        SMALL = 4 << 10, /* a command that may go on in any case */
        PROGRESS = 1 << 20,
        PROGRESS_MS = 10000,
        LOOK_MS = 1000,
        SLEPT_MS = 5000, /* between two looks: the agent did not run */
};

void unfinished_init(struct unfinished *u, uv_loop_t *loop, const struct unfinished_ops *ops,
                     const bool *paused, uint64_t patience_ms, void *owner)
{
        *u = (struct unfinished){ .ops = ops, .paused = paused, .patience_ms = patience_ms };
        uv_timer_init(loop, &u->timer);
        u->timer.data = owner;
}

static bool is_over_limit(const struct unfinished *u)
{
        return u->held >= UNFINISHED_MAX;
}

bool unfinished_may_read(const struct unfinished *u, const struct unfinished_part *p)
{
        return !is_over_limit(u) || p == u->largest || p->held < SMALL;
}

size_t unfinished_read_size(const struct unfinished *u, const struct unfinished_part *p,
                            size_t most)
{
        return is_over_limit(u) && p != u->largest ? (size_t)SMALL : most;
}

void unfinished_add(struct unfinished *u, struct unfinished_part *p)
{
        DL_APPEND(u->parts, p);
}

/* The list @half is in the order of the last bytes: a part with a new byte goes to the end. */
void unfinished_track(struct unfinished *u, struct unfinished_part *p, size_t held, bool blocked)
{
        size_t before = p->held;
        bool half;

        p->held = held;
        p->blocked = blocked;
        u->held += held - before; /* may wrap: unsigned arithmetic takes care */
        if (u->largest == p && held < before)
                u->largest = NULL; /* the command is complete */
        half = held && !blocked && unfinished_may_read(u, p);
        /* No new byte: the patience goes on from the last one. */
        if (half && p->half && held == before)
                return;
        if (p->half)
                DL_DELETE2(u->half, p, half_link.prev, half_link.next);
        p->half = half;
        if (!half)
                return;
        p->half_since = uv_now(u->timer.loop);
        DL_APPEND2(u->half, p, half_link.prev, half_link.next);
}

void unfinished_remove(struct unfinished *u, struct unfinished_part *p)
{
        DL_DELETE(u->parts, p);
        if (p->half)
                DL_DELETE2(u->half, p, half_link.prev, half_link.next);
        if (u->largest == p)
                u->largest = NULL;
        u->held -= p->held;
        p->half = false;
        p->held = 0;
}

/* Chooses the largest if one is needed. */
static void choose_largest(struct unfinished *u)
{
        struct unfinished_part *p;
        char name[96];

        if (!is_over_limit(u) || u->largest || *u->paused)
                return;
        DL_FOREACH(u->parts, p)
        {
                if (p->held && !p->blocked && (!u->largest || p->held > u->largest->held))
                        u->largest = p;
        }
        if (!u->largest)
                return;
        u->largest_since = uv_now(u->timer.loop);
        u->largest_had = u->largest->held;
        if (!u->told) {
                u->ops->name(u->largest, name, sizeof(name));
                log_line(LOG_WARN,
                         "incomplete commands of connections to the store hold %zu MiB, the most "
                         "from %s: other large values wait",
                         u->held >> 20, name);
        }
        u->told = true;
        u->ops->steer(u->largest); /* was not read until now */
}

bool unfinished_turn(struct unfinished *u)
{
        bool was_over = u->was_over;

        u->was_over = is_over_limit(u);
        choose_largest(u);
        if (!u->was_over)
                u->largest = NULL;
        return was_over && !u->was_over;
}

/* The largest has not gone on, though it could. */
static bool is_largest_too_slow(struct unfinished *u, uint64_t now_ms)
{
        bool slow, could = !*u->paused && u->largest && !u->largest->blocked;

        if (could && now_ms - u->largest_since < PROGRESS_MS)
                return false;
        slow = could && u->largest->held < u->largest_had + PROGRESS;
        u->largest_since = now_ms;
        u->largest_had = u->largest ? u->largest->held : 0;
        return slow;
}

/* Fails the oldest half command after the patience, and the largest when others need the memory.
 * After a pause of the agent the patience begins anew. */
static void on_unfinished_timer(uv_timer_t *timer)
{
        struct unfinished *u = container_of(timer, struct unfinished, timer);
        uint64_t now_ms = uv_now(timer->loop);
        struct unfinished_part *p;

        if (now_ms - u->looked > SLEPT_MS) {
                DL_FOREACH2(u->half, p, half_link.next)
                p->half_since = now_ms;
        }
        u->looked = now_ms;
        while (u->patience_ms && u->half && now_ms - u->half->half_since >= u->patience_ms)
                u->ops->fail(u->half, "incomplete command, timed out after 30 s");
        if (is_largest_too_slow(u, now_ms))
                u->ops->fail(u->largest,
                             "incomplete command, less than 1 MiB in 10 s while others wait for "
                             "its memory");
        choose_largest(u);
        unfinished_arm(u);
}

void unfinished_arm(struct unfinished *u)
{
        bool running = uv_is_active((uv_handle_t *)&u->timer);

        if (!(u->half && u->patience_ms) && !u->largest && !u->was_over) {
                uv_timer_stop(&u->timer);
        } else if (!running) {
                u->looked = uv_now(u->timer.loop);
                uv_timer_start(&u->timer, on_unfinished_timer, LOOK_MS, LOOK_MS);
        }
}

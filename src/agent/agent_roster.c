/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_private.h"
#include "agent/roster.h"
#include "store/key_text.h"

/* The answer while it is made. */
struct answer {
        struct roster m;
        uint64_t now_ns;
};

static uint32_t age_ms(uint64_t since_ns, uint64_t now_ns)
{
        if (!since_ns)
                return ROSTER_NEVER;
        return (uint32_t)MIN((now_ns - MIN(since_ns, now_ns)) / 1000000,
                             (uint64_t)ROSTER_NEVER - 1);
}

/* --- clients ---------------------------------------------------------------------------------- */

static struct roster_wait wait_of(const struct relay_client *c, uint64_t now_ns)
{
        struct roster_wait w = { 0 };
        struct relay_pending p;
        const char *key;

        if (!relay_client_pending(c, &p))
                return w;
        snprintf(w.op, sizeof(w.op), "%s", store_op_name(p.op));
        key = KEY_TEXT_OF(p.key);
        snprintf(w.key, sizeof(w.key), "%.92s%s", key, strlen(key) > 92 ? "..." : "");
        w.n_keys = p.n_keys;
        w.ms = age_ms(p.since_ns, now_ns);
        return w;
}

/* A rank may have several connections: the longest wait is the one that matters. */
static void add_client(void *ctx, const struct relay_client *c)
{
        struct answer *a = ctx;
        int rank = relay_client_rank(c);

        for (uint32_t i = 0; rank >= 0 && i < a->m.n_ranks; i++) {
                struct roster_rank *k = &a->m.ranks[i];
                struct roster_wait w = wait_of(c, a->now_ns);

                if (k->rank != (uint32_t)rank)
                        continue;
                k->said_ms = MIN(k->said_ms, age_ms(relay_client_seen(c), a->now_ns));
                k->seen_ms = MIN(k->seen_ms, k->said_ms);
                if (*w.op && (!*k->wait.op || w.ms > k->wait.ms))
                        k->wait = w;
        }
}

/* --- ranks ------------------------------------------------------------------------------------ */

static void add_ranks(const struct agent *a, struct answer *to)
{
        struct roster_scan scan;

        roster_scan(&scan);
        to->m.n_ranks = (uint32_t)a->n_workers;
        to->m.ranks = xcalloc(a->n_workers, sizeof(*to->m.ranks));
        for (uint32_t i = 0; i < to->m.n_ranks; i++) {
                struct roster_rank *k = &to->m.ranks[i];
                const struct worker *w = a->workers[i];

                k->rank = w->rank;
                k->local_rank = i; /* the order of LAUNCH */
                k->pid = (uint32_t)w->pid;
                k->said_ms = ROSTER_NEVER;
                k->seen_ms = age_ms(worker_heard_ns(w), to->now_ns);
                if (!w->reaped)
                        roster_look(&scan, w->pid, k);
        }
        roster_scan_finish(&scan);
}

void agent_on_ask(struct agent *a, const struct frame *f)
{
        struct answer to = { .now_ns = uv_hrtime() };
        struct error err;

        if (ask_decode(&to.m.number, f, &err) < 0)
                return;
        add_ranks(a, &to);
        if (a->door)
                door_unix_each(a->door, add_client, &to);
        roster_encode(uplink_out(&a->up), &to.m);
        roster_finish(&to.m);
}

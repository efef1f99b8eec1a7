/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "agent/agent_private.h"
#include "agent/roster.h"

static uint32_t age_ms(uint64_t since_ns, uint64_t now_ns)
{
        if (!since_ns)
                return ROSTER_NEVER;
        return (uint32_t)MIN((now_ns - MIN(since_ns, now_ns)) / 1000000,
                             (uint64_t)ROSTER_NEVER - 1);
}

static void describe(const struct worker *w, const struct roster_scan *scan, uint64_t now,
                     struct roster_rank *to)
{
        to->rank = w->rank;
        to->joined_ms = ROSTER_NEVER;
        to->seen_ms = age_ms(worker_heard_ns(w), now);
        if (w->reaped)
                to->pid = (uint32_t)w->pid;
        else
                roster_look(scan, w->pid, to);
}

void agent_on_ask(struct agent *a, const struct frame *f)
{
        struct roster m = { 0 };
        struct roster_scan scan;
        struct error err;

        if (ask_decode(&m.number, f, &err) < 0)
                return;
        roster_scan(&scan);
        m.n_ranks = (uint32_t)a->n_workers;
        m.ranks = xcalloc(a->n_workers, sizeof(*m.ranks));
        for (uint32_t i = 0; i < m.n_ranks; i++) {
                m.ranks[i].local_rank = i; /* the order of LAUNCH */
                describe(a->workers[i], &scan, uv_hrtime(), &m.ranks[i]);
        }
        roster_encode(uplink_out(&a->up), &m);
        roster_finish(&m);
        roster_scan_finish(&scan);
}

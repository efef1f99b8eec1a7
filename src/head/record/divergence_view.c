/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single pass over the log, in the order of time. Each event changes the view of its rank, so
 * that at the end a view has the state at the failure: events behind the failure are left out, but
 * for waits that began before. Beside the views the pass collects usual durations of waits and the
 * acts of the failed rank.
 */
#include "head/record/divergence_private.h"

#include <string.h>

#include "wire/store_msg.h"

/* A class of processor use: stopped, in the kernel, busy, idle, or between these. The gap between
 * busy and idle keeps a rank near a limit from changing its class with each sample. */
static char classify_sample(const struct trace_event *e)
{
        if (e->more == 'T' || e->more == 't' || e->more == 'D')
                return (char)e->more;
        return e->number >= 50 ? 'B' : e->number < 10 ? 'I' : '-';
}

/* Shifts the newest class in. The time of the last change is kept, because the divergence is the
 * change and not the state. */
static void take_sample_class(struct rank_view *r, const struct trace_event *e)
{
        char now = classify_sample(e);

        if (now != r->cpu[DIVERGENCE_SECONDS - 1]) {
                r->before = r->cpu[DIVERGENCE_SECONDS - 1];
                r->changed_us = e->us;
        }
        memmove(r->cpu, r->cpu + 1, DIVERGENCE_SECONDS - 1);
        r->cpu[DIVERGENCE_SECONDS - 1] = now;
}

/* Notes an act of the failed rank. */
static void take_act(struct divergence_search *s, const struct trace_event *e)
{
        if (s->in->cause_rank >= 0 && e->rank == (uint32_t)s->in->cause_rank)
                s->acts[s->n_acts++] = e->us;
}

/* Standard error is kept apart: its bursts are last words, and standard output has a rhythm. */
static void take_output(struct rank_view *r, const struct trace_event *e)
{
        if (e->more & 1) {
                burst_add(&r->errors, e->us * 1000);
                return;
        }
        if (r->outs++)
                r->gap_us = MAX(r->gap_us, e->us - r->out_us);
        r->out_us = e->us;
}

/* A request counts from the beginning: the answer may come after the end. */
static void take_wait(struct divergence_search *s, struct rank_view *r, const struct trace_event *e)
{
        uint8_t status = (uint8_t)(e->number >> 8);
        /* A request is recorded at its end, with the time it took; a malformed time must not
         * overflow. */
        int64_t since = e->us - (int64_t)MIN(e->more, (uint64_t)INT64_MAX / 2);

        if (since > s->in->until_us || !trace_event_waits(e))
                return;
        r->wait =
                (struct rank_wait){ status != STORE_OK || e->us > s->in->until_us,
                                    status != STORE_OK && e->us <= s->in->until_us, e->key, since };
        if (r->wait.lasts)
                return;
        s->usual[s->n_usual++] = e->us - since;
        take_act(s, e);
}

/* Brings the view of a rank up to an event. Waits are taken past the failure, too: a wait is
 * recorded when over. */
static void take_trace_event(struct divergence_search *s, const struct trace_event *e)
{
        struct rank_view *r = &s->ranks[e->rank];

        if (e->kind == TRACE_OP)
                take_wait(s, r, e);
        if (e->us > s->in->until_us)
                return;
        if (e->kind == TRACE_STEP && (int64_t)e->number > r->step) {
                r->step = (int64_t)e->number;
                r->step_us = e->us;
                take_act(s, e);
        } else if (e->kind == TRACE_OUT) {
                take_output(r, e);
                if (!(e->more & 1))
                        take_act(s, e);
        } else if (e->kind == TRACE_EXIT && r->exit_us < 0) {
                r->exit_us = e->us;
                r->status = (int)e->number;
        } else if (e->kind == TRACE_SAMPLE) {
                take_sample_class(r, e);
        }
}

void divergence_view(struct divergence_search *s)
{
        const struct trace_log *log = s->in->log;

        for (size_t i = 0; i < log->n; i++)
                if (log->v[i].rank < (uint32_t)s->in->n_ranks)
                        take_trace_event(s, &log->v[i]);
}

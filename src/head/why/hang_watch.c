/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch has no timer: hang_watch_due() is called every so often, and compares the clock with
 * the last sign of life. A sign sets .alive, or raises the number of met requests; note_signs()
 * resets everything found since the sign before. So a finding of a look is valid only while .alive
 * is false and .met is unchanged.
 */
#include "head/why/hang_watch.h"

void hang_watch_begin(struct hang_watch *w, int64_t after_ms, int64_t now_ms)
{
        *w = (struct hang_watch){ .after_ms = after_ms, .gap_ms = after_ms, .alive_ms = now_ms };
}

void hang_watch_alive(struct hang_watch *w)
{
        w->alive = true;
}

void hang_watch_output(struct hang_watch *w)
{
        w->alive |= !w->dumping;
}

/* Begins anew if there was a sign of life. */
static void note_signs(struct hang_watch *w, int64_t now_ms, uint64_t met)
{
        if (!w->alive && met == w->met)
                return;
        w->met = met;
        w->alive = w->looking = w->found = w->told = false;
        w->alive_ms = now_ms;
        w->gap_ms = w->after_ms;
}

bool hang_watch_due(struct hang_watch *w, int64_t now_ms, uint64_t met)
{
        note_signs(w, now_ms, met);
        if (w->after_ms <= 0 || w->told || now_ms - w->alive_ms < w->gap_ms)
                return false;
        /* A silence that no look explains must not cost looks at the same rate for days. */
        w->gap_ms *= 2;
        w->looking = true;
        return true;
}

bool hang_watch_is_silent(const struct hang_watch *w, int64_t now_ms)
{
        return w->after_ms > 0 && !w->alive && now_ms - w->alive_ms >= w->after_ms;
}

void hang_watch_ask(struct hang_watch *w, int64_t now_ms, uint64_t met)
{
        note_signs(w, now_ms, met);
        w->looking = true;
}

bool hang_watch_stands(const struct hang_watch *w, uint64_t met)
{
        return w->found && !w->alive && met == w->met;
}

bool hang_watch_found(struct hang_watch *w, uint64_t met, bool tell)
{
        if (!w->looking || w->alive || (tell && w->told) || met != w->met)
                return false;
        w->found = true;
        w->told |= tell;
        return true;
}

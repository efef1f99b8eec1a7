/* SPDX-License-Identifier: Apache-2.0 */
#include "head/why/hang_watch.h"

void hang_watch_begin(struct hang_watch *w, int64_t after_ms, int64_t now_ms)
{
        *w = (struct hang_watch){ .after_ms = after_ms, .gap_ms = after_ms, .alive_ms = now_ms };
}

void hang_watch_alive(struct hang_watch *w)
{
        w->alive = true;
}

bool hang_watch_due(struct hang_watch *w, int64_t now_ms, uint64_t met)
{
        if (w->alive || met != w->met) {
                w->met = met;
                w->alive = w->told = false;
                w->alive_ms = now_ms;
                w->gap_ms = w->after_ms;
        }
        if (w->after_ms <= 0 || w->told || now_ms - w->alive_ms < w->gap_ms)
                return false;
        w->gap_ms *= 2;
        w->looking = true;
        return true;
}

bool hang_watch_stands(const struct hang_watch *w, uint64_t met)
{
        return w->told && !w->alive && met == w->met;
}

bool hang_watch_found(struct hang_watch *w, uint64_t met)
{
        if (!w->looking || w->alive || w->told || met != w->met)
                return false;
        w->told = true;
        return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean time of a step is taken from the first step and the greatest one, and from the times of
 * the first and the last report: ranks report the same step one after another, so single intervals
 * would tell little. A restart, or a role that counts rather than the one before, begins anew.
 */
#include "head/model/step_pace.h"

#include <string.h>

#include "base/macros.h"

/* Both must have passed without a step: a run with long steps does not stand still. */
enum { STILL_US = 10000000, STILL_STEPS = 10 };

/* The role is still to be chosen. */
static void begin_pace(struct step_pace *p)
{
        *p = (struct step_pace){ .of.main_roles = p->of.main_roles };
}

void step_pace_choose(struct step_pace *p, const char *role, int program)
{
        size_t n = p->of.main_roles ? p->of.main_roles->n : 0, place = 0;

        while (place < n && strcmp(p->of.main_roles->v[place], role) != 0)
                place++;
        /* Roles beside --main come behind, in the order of the line. */
        if (place == n)
                place += (size_t)program;
        if (p->of.role && p->of.place <= place)
                return;
        begin_pace(p);
        p->of.role = role;
        p->of.place = place;
}

void step_pace_take(struct step_pace *p, const struct event *e)
{
        if (e->kind == EVENT_RESTART)
                begin_pace(p);
        if (e->kind != EVENT_RANK_PROGRESS)
                return;
        if (!p->first_us) {
                p->first = p->most = e->value;
                p->first_us = e->us;
        }
        p->most = MAX(p->most, e->value);
        p->had_us = e->us;
}

int64_t step_pace_step_us(const struct step_pace *p)
{
        return p->most > p->first ? (p->had_us - p->first_us) / (p->most - p->first) : 0;
}

bool step_pace_is_still(int64_t silent_us, int64_t step_us)
{
        return silent_us >= STILL_US && silent_us / STILL_STEPS >= step_us;
}

int64_t step_pace_stalled_ms(const struct step_pace *p, int64_t now_us, int64_t hang_ms)
{
        int64_t silent_us = now_us - p->had_us;

        if (!p->had_us)
                return hang_ms;
        return hang_ms || step_pace_is_still(silent_us, step_pace_step_us(p)) ? silent_us / 1000
                                                                              : 0;
}

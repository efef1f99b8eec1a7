/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/clock_offset.h"

enum { DRIFT = 10000 }; /* clocks of computers run apart by less than 1 in 10,000 */

int64_t clock_offset_error(const struct clock_offset *c, int64_t now_ns)
{
        return c->error_ns + (now_ns - c->synced_ns) / DRIFT;
}

/* An estimate grows worse with age, so a longer round trip may replace an old shorter one. */
void clock_offset_hear(struct clock_offset *c, int64_t offset_ns, int64_t error_ns, int64_t now_ns)
{
        if (error_ns < clock_offset_error(c, now_ns))
                *c = (struct clock_offset){ offset_ns, error_ns, now_ns };
}

void clock_offset_pong(struct clock_offset *c, const struct ping *p, int64_t now_ns)
{
        /* The other clock was read somewhere within the round trip: the middle is wrong by half at
         * most. */
        int64_t half = (int64_t)((uint64_t)now_ns - p->head_ns) / 2;

        if (half >= 0) /* else no ping of ours is answered; the other clock may show anything */
                clock_offset_hear(c, (int64_t)(p->agent_ns - (p->head_ns + (uint64_t)half)), half,
                                  now_ns);
}

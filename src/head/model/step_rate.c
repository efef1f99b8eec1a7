/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest frames form a ring of times and steps, one for each span of GAP_US: two
 * questions in a span have the same answer. The rate is shown at whole seconds, early in a span.
 * The rate of now is taken over NOW_US and FEW_STEPS at least; a bar of the spark line stands for
 * BAR_US. A step below the last means another attempt, and begins anew.
 */
#include "head/model/step_rate.h"

#include <stdio.h>

#include "base/macros.h"

/* Spans begin at 300 and 800 ms of a second: a question that is due at a whole second falls into
 * the same span when the timer is up to 300 ms late. */
enum { GAP_US = 500000, GAP_BEGINS_US = 300000, NOW_US = 10000000, FEW_STEPS = 3 };
enum { BAR_US = 5000000, BARS_LEAST = 3 };

static size_t count_frames(const struct step_rate *r)
{
        return MIN(r->n, (size_t)STEP_RATE_FRAMES);
}

/* Returns the index of the frame that came @back frames before the newest. */
static size_t find_frame(const struct step_rate *r, size_t back)
{
        return (r->n - 1 - back) % STEP_RATE_FRAMES;
}

static int64_t find_span(int64_t us)
{
        return (us + GAP_US - GAP_BEGINS_US) / GAP_US;
}

void step_rate_add(struct step_rate *r, int64_t us, int64_t step)
{
        size_t at = r->n % STEP_RATE_FRAMES, last = r->n ? find_frame(r, 0) : 0;

        if (step < 0)
                return;
        if (r->n && step < r->step[last])
                r->n = at = 0;
        else if (r->n && find_span(us) == find_span(r->us[last]))
                return;
        r->us[at] = us;
        r->step[at] = step;
        r->n++;
}

double step_rate_now(const struct step_rate *r)
{
        size_t n = count_frames(r), newest = n ? find_frame(r, 0) : 0;
        int64_t steps = 0, us = 0;

        for (size_t back = 1; back < n && (us < NOW_US || steps < FEW_STEPS); back++) {
                size_t at = find_frame(r, back);

                steps = r->step[newest] - r->step[at];
                us = r->us[newest] - r->us[at];
        }
        /* A rate over less time would jump with each step. */
        return us >= GAP_US / 2 ? (double)steps * 1e6 / (double)us : 0;
}

/* The step at a time, between two frames in proportion. */
static double find_step_at(const struct step_rate *r, int64_t us)
{
        for (size_t back = 1; back < count_frames(r); back++) {
                size_t a = find_frame(r, back), b = find_frame(r, back - 1);

                if (r->us[a] <= us)
                        return (double)r->step[a] + (double)(r->step[b] - r->step[a]) *
                                                            (double)(us - r->us[a]) /
                                                            (double)(r->us[b] - r->us[a]);
        }
        return 0;
}

void step_rate_spark(const struct step_rate *r, char *to, size_t size)
{
        static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
        size_t n = count_frames(r), shown = 0, at = 0;
        double rates[STEP_RATE_BARS], most = 0;
        int64_t newest, oldest;

        *to = '\0';
        if (n < 2)
                return;
        newest = r->us[find_frame(r, 0)];
        oldest = r->us[find_frame(r, n - 1)];
        while (shown < STEP_RATE_BARS && newest - (int64_t)(shown + 1) * BAR_US >= oldest) {
                int64_t end = newest - (int64_t)shown * BAR_US;

                rates[shown] = find_step_at(r, end) - find_step_at(r, end - BAR_US);
                most = MAX(most, rates[shown]);
                shown++;
        }
        /* Two bars show no course, and a run without a step has no scale. */
        if (shown < BARS_LEAST || most <= 0)
                return;
        for (size_t i = shown; i-- > 0 && at < size;)
                at += (size_t)snprintf(
                        to + at, size - at, "%s",
                        bars[(size_t)(rates[i] / most * (ARRAY_SIZE(bars) - 1) + 0.5)]);
}

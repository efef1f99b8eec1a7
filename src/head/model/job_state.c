/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/job_state.h"

/* One more than the next state; 0 = the event changes nothing there. */
#define TO(state) (COURSE_##state + 1)

static const unsigned char cells[COURSE_STATES][COURSE_EVENTS] = {
        [COURSE_NEW] = { [COURSE_CONNECT] = TO(CONNECTING) },
        [COURSE_CONNECTING] = { [COURSE_ANSWERED] = TO(READY) },
        [COURSE_READY] = { [COURSE_LAUNCH] = TO(RUNNING), [COURSE_LEAVE] = TO(LEAVING) },
        [COURSE_RUNNING] = { [COURSE_STOP] = TO(STOPPING),
                             [COURSE_HURRY] = TO(KILLING),
                             [COURSE_EMPTY] = TO(OVER),
                             [COURSE_LEAVE] = TO(LEAVING) },
        [COURSE_STOPPING] = { [COURSE_HURRY] = TO(KILLING),
                              [COURSE_EMPTY] = TO(OVER),
                              [COURSE_LEAVE] = TO(LEAVING) },
        [COURSE_KILLING] = { [COURSE_EMPTY] = TO(ENDED), [COURSE_LEAVE] = TO(LEAVING) },
        [COURSE_OVER] = { [COURSE_AGAIN] = TO(READY), [COURSE_LEAVE] = TO(LEAVING) },
        [COURSE_ENDED] = { [COURSE_LEAVE] = TO(LEAVING) },
        [COURSE_LEAVING] = { [COURSE_GONE] = TO(LEFT) },
};

bool course_step(enum course *c, enum course_event e)
{
        unsigned char to = cells[*c][e];

        if (!to)
                return false;
        *c = (enum course)(to - 1);
        return true;
}

bool course_runs(enum course c)
{
        return c == COURSE_RUNNING || course_stops(c);
}

bool course_stops(enum course c)
{
        return c == COURSE_STOPPING || c == COURSE_KILLING;
}

const char *course_name(enum course c)
{
        static const char *const names[COURSE_STATES] = {
                [COURSE_NEW] = "NEW",           [COURSE_CONNECTING] = "CONNECTING",
                [COURSE_READY] = "READY",       [COURSE_RUNNING] = "RUNNING",
                [COURSE_STOPPING] = "STOPPING", [COURSE_KILLING] = "KILLING",
                [COURSE_OVER] = "OVER",         [COURSE_ENDED] = "ENDED",
                [COURSE_LEAVING] = "LEAVING",   [COURSE_LEFT] = "LEFT",
        };

        return names[c];
}

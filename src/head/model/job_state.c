/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell has the next state of an event, and an empty cell ignores it: events come from nodes,
 * timers and signals in any order, so most pairs are late news and no error.
 */
#include "head/model/job_state.h"

/* The next state plus 1; 0 = the event changes nothing in this state. */
#define TO(state) (JOB_##state + 1)

static const unsigned char cells[JOB_STATES][JOB_EV_EVENTS] = {
        [JOB_NEW] = { [JOB_EV_CONNECT] = TO(CONNECTING) },
        [JOB_CONNECTING] = { [JOB_EV_ANSWERED] = TO(READY) },
        [JOB_READY] = { [JOB_EV_LAUNCH] = TO(RUNNING), [JOB_EV_LEAVE] = TO(LEAVING) },
        [JOB_RUNNING] = { [JOB_EV_STOP] = TO(STOPPING),
                          [JOB_EV_HURRY] = TO(KILLING),
                          [JOB_EV_EMPTY] = TO(OVER),
                          [JOB_EV_LEAVE] = TO(LEAVING) },
        [JOB_STOPPING] = { [JOB_EV_HURRY] = TO(KILLING),
                           [JOB_EV_EMPTY] = TO(OVER),
                           [JOB_EV_LEAVE] = TO(LEAVING) },
        /* ENDED, not OVER: after a second order there is no other attempt. */
        [JOB_KILLING] = { [JOB_EV_EMPTY] = TO(ENDED), [JOB_EV_LEAVE] = TO(LEAVING) },
        [JOB_OVER] = { [JOB_EV_AGAIN] = TO(READY), [JOB_EV_LEAVE] = TO(LEAVING) },
        [JOB_ENDED] = { [JOB_EV_LEAVE] = TO(LEAVING) },
        [JOB_LEAVING] = { [JOB_EV_GONE] = TO(LEFT) },
};

bool job_state_step(enum job_state *c, enum job_event e)
{
        unsigned char to = cells[*c][e];

        /* Nothing changes, and the caller has nothing to do. */
        if (!to)
                return false;
        *c = (enum job_state)(to - 1);
        return true;
}

bool job_state_runs(enum job_state c)
{
        return c == JOB_RUNNING || job_state_stops(c);
}

bool job_state_stops(enum job_state c)
{
        return c == JOB_STOPPING || c == JOB_KILLING;
}

const char *job_state_name(enum job_state c)
{
        static const char *const names[JOB_STATES] = {
                [JOB_NEW] = "NEW",           [JOB_CONNECTING] = "CONNECTING",
                [JOB_READY] = "READY",       [JOB_RUNNING] = "RUNNING",
                [JOB_STOPPING] = "STOPPING", [JOB_KILLING] = "KILLING",
                [JOB_OVER] = "OVER",         [JOB_ENDED] = "ENDED",
                [JOB_LEAVING] = "LEAVING",   [JOB_LEFT] = "LEFT",
        };

        return names[c];
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job state: the phases of a job, as a table of states and events
 *
 *   NEW -> CONNECTING -> READY -> RUNNING ----> STOPPING ----> KILLING
 *                         ^          |             |              |
 *                         |          '----> OVER <-'              v
 *                         '---- AGAIN -----' |                  ENDED
 *                                            '--> LEAVING <-------'
 *                                                    v
 *                                                  LEFT
 *
 * LEAVE works in every state but NEW and CONNECTING, in which no agent waits for a goodbye. Pure:
 * the caller acts on a change (head/job/job_*.c).
 */
#pragma once

#include <stdbool.h>

enum job_state {
        JOB_NEW,
        JOB_CONNECTING,
        JOB_READY,    /* every node has answered: planning, and the store's endpoint */
        JOB_RUNNING,  /* ranks were ordered */
        JOB_STOPPING, /* TERM was sent, the grace time runs */
        JOB_KILLING,  /* KILL was sent: nothing is waited for any more */
        JOB_OVER,     /* no rank is left, all output is written: another attempt may follow */
        JOB_ENDED,    /* the same after a second order to stop: no other attempt */
        JOB_LEAVING,  /* agents were let go */
        JOB_LEFT,
        JOB_STATES,
};

enum job_event {
        JOB_EV_CONNECT,
        JOB_EV_ANSWERED, /* by all nodes, with HELLO or an error */
        JOB_EV_LAUNCH,
        JOB_EV_STOP,  /* the first failure or order */
        JOB_EV_HURRY, /* another order */
        JOB_EV_EMPTY, /* nothing runs and nothing is to be written */
        JOB_EV_AGAIN,
        JOB_EV_LEAVE,
        JOB_EV_GONE, /* the agents have left, or the wait for them is over */
        JOB_EV_EVENTS,
};

/* Applies an event; true if the state changed. Early, late and repeated events change nothing. */
bool job_state_step(enum job_state *c, enum job_event e);

/* Whether ranks of the attempt may exist: from LAUNCH to EMPTY. */
bool job_state_runs(enum job_state c);
/* Whether ranks may exist, with an order to end. */
bool job_state_stops(enum job_state c);

const char *job_state_name(enum job_state c); /* "RUNNING" */

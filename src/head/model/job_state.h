/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Course: how far a job has come, as a table of states and events
 *
 *   NEW -> CONNECTING -> READY -> RUNNING ----> STOPPING ----> KILLING
 *                         ^          |             |              |
 *                         |          '----> OVER <-'              v
 *                         '---- AGAIN -----' |                  ENDED
 *                                            '--> LEAVING <-------'
 *                                                    v
 *                                                  LEFT
 *
 * A job that is told to leave does so from every state but NEW and CONNECTING, where no agent waits
 * for a goodbye. Pure: what a change means is done by whoever steps (head/job_*.c).
 */
#pragma once

#include <stdbool.h>

enum course {
        COURSE_NEW,
        COURSE_CONNECTING,
        COURSE_READY,    /* every node has answered: planning, and the store's door */
        COURSE_RUNNING,  /* ranks were ordered */
        COURSE_STOPPING, /* TERM was sent, the grace time runs */
        COURSE_KILLING,  /* KILL was sent: nothing is waited for any more */
        COURSE_OVER,     /* no rank is left and its output is written: another attempt may follow */
        COURSE_ENDED,    /* the same, but somebody was in a hurry: no other attempt */
        COURSE_LEAVING,  /* agents were let go */
        COURSE_LEFT,
        COURSE_STATES,
};

enum course_event {
        COURSE_CONNECT,
        COURSE_ANSWERED, /* by all nodes, with HELLO or an error */
        COURSE_LAUNCH,
        COURSE_STOP,  /* the first failure or order */
        COURSE_HURRY, /* another order */
        COURSE_EMPTY, /* nothing runs and nothing is to be written */
        COURSE_AGAIN,
        COURSE_LEAVE,
        COURSE_GONE, /* the agents have left, or were waited for long enough */
        COURSE_EVENTS,
};

/* True if the state changed. What comes too early, too late or twice changes nothing. */
bool course_step(enum course *c, enum course_event e);

/* Ranks of the attempt may be there: from LAUNCH to EMPTY. */
bool course_runs(enum course c);
/* And were told to end. */
bool course_stops(enum course c);

const char *course_name(enum course c); /* "RUNNING" */

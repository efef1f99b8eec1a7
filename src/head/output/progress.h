/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress: lines about the launch on stderr
 *
 * On a terminal each phase ends with a checked line, with a live line at the bottom during a wait;
 * elsewhere a plain line per phase, no escape codes. Listens to the event stream. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <uv.h>

#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/rank_board.h"

struct progress;

struct progress_options {
        bool tty;   /* live line, ticks */
        bool color; /* escape codes for colour */
        bool utf8;
        bool quiet; /* nothing at all */
        size_t n_hosts;
        bool remote;                 /* some host is not this machine: connecting is worth a line */
        const char *run_id, *source; /* "k3f9", "hosts.txt" */
        const struct plan *plan;     /* has ranks from EVENT_RUN_START on; NULL = no roles */
};

struct progress *progress_create(struct events *es, const struct progress_options *o);
/* The nodes are those of a hold: a wait for nodes without any event is one for the hold. NULL is
 * fine. */
void progress_on_hold(struct progress *p);
/* Updates the line about connecting nodes; to be called ten times a second. NULL is fine. */
void progress_tick(struct progress *p);
/* The ranks have been ordered to start: from now on a line tells what goes on (live_line.h). Again
 * for a restart it does nothing. NULL is fine, here and below. */
void progress_run(struct progress *p, uv_loop_t *loop, struct rank_board *ranks,
                  const struct hosts *hosts);
/* Whether a live line is drawn on a terminal. */
bool progress_draws_live(const struct progress *p);
/* A rank has written. */
void progress_output(struct progress *p, int rank, uint8_t stream, const void *data, size_t len);
/* See live_line_slow(). */
void progress_slow(struct progress *p, const char *text);
/* Ends that line, after the last event and before the loop ends. */
void progress_rest(struct progress *p);
void progress_destroy(struct progress *p);

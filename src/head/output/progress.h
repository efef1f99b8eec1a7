/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress: lines about the launch on stderr
 *
 * On a terminal each phase ticks off in a line of its own, with one live line at the bottom while
 * something is being waited for; elsewhere one plain line per phase, no escape codes. Listens to
 * the event stream.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "head/model/events.h"

struct progress;

struct progress_options {
        bool tty;   /* live line, ticks */
        bool color; /* escape codes for colour */
        bool utf8;
        bool quiet; /* nothing at all */
        size_t n_hosts;
        bool remote;                 /* some host is not this machine: connecting is worth a line */
        const char *run_id, *source; /* "k3f9", "hosts.txt" */
};

struct progress *progress_create(struct events *es, const struct progress_options *o);
/* The connecting nodes' state for a person who waits; called by a timer or the loop. */
void progress_tick(struct progress *p);
void progress_destroy(struct progress *p);

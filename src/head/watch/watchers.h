/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchers: the parts that look on at a run
 *
 * A watcher has one file and one row in the table of watchers.c. The launch calls each function
 * below at the named moment, and the function calls all watchers in the order of the table;
 * watchers_close() and watchers_destroy() go backwards, since later watchers may use earlier ones.
 * Main thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "head/watch/run_view.h"

struct diags;
struct job_config;

/* NULL functions do nothing; all but create() are called only if create() has made a watcher. */
struct watcher {
        /* Before job_create(), for which it may set members of @c. Returns the watcher; NULL = the
         * run needs none. @r is lent until destroy(). */
        void *(*create)(const struct run_view *r, struct job_config *c);
        /* The job is there. 0, or the exit code with an error in @d. */
        int (*open)(void *self, struct diags *d);
        /* A rank has written to MSG_STDOUT or MSG_STDERR. */
        void (*output)(void *self, int rank, uint8_t stream, const void *data, size_t len);
        /* All attempts are over, and the agents are there. */
        void (*ending)(void *self);
        void (*close)(void *self);   /* before job_destroy() */
        void (*destroy)(void *self); /* after job_destroy() */
};

struct watchers *watchers_create(const struct run_view *r, struct job_config *c);
/* The other functions do nothing for NULL. */
int watchers_open(struct watchers *w, struct diags *d);
void watchers_output(struct watchers *w, int rank, uint8_t stream, const void *data, size_t len);
void watchers_ending(struct watchers *w);
void watchers_close(struct watchers *w);
void watchers_destroy(struct watchers *w);

/* Returns the watcher of a row; NULL = none was created. */
void *watchers_find(const struct watchers *w, const struct watcher *row);

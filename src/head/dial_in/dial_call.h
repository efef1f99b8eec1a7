/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_call: the way of a node into the job, before anything runs there; blocking
 */
#pragma once

#include "call/caller.h"
#include "head/dial_in/dial_in.h"

struct dial_call {
        struct caller c;
        bool proved; /* node 0 has proved this user, or need not */
};

/* Connects to node 0 until the welcome, and tells the obstacle once in a while. 0: WELCOME has
 * come, and @c->c is for caller_finish(). 1: the job ended, d->end has how. -ETIMEDOUT with @err:
 * node 0 was not reached in d->timeout_ms; err->code is ENOKEY when the secret did not come. -EPERM
 * with @err: the file of the secret is not safe. -ECONNREFUSED: node 0 refused the node, with the
 * exit code in d->end. */
int dial_call(struct dial_call *c, struct dial_in *d, struct error *err);

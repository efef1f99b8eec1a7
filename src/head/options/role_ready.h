/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role_ready: when a role is ready (--ready, --ready-timeout)
 */
#pragma once

#include "head/options/option_parse.h"
#include "wire/msg.h"

struct role_ready {
        enum ready_kind kind;
        char *port;         /* of tcp: and http:, a number or a name; NULL = none */
        char *text;         /* a path, the name of a key, or an expression; NULL = none */
        int64_t timeout_ms; /* or DURATION_NEVER; of READY_START without meaning */
};

enum { READY_TIMEOUT_MS = 10 * 60 * 1000 };

OPTION_PARSER(value_ready); /* struct role_ready */

/* Returns the name of the port that each instance of the role must have; NULL = none. */
const char *role_ready_port(const struct role_ready *r);
/* Fills in what the agents ask, with copies. */
void role_ready_fill(const struct role_ready *r, bool of_replicas, struct launch_ready *to);
void role_ready_finish(struct role_ready *r);

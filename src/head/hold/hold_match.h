/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold match: which runs a hold serves
 *
 * A hold serves runs with the same way to reach and start agents. The settings are an object of
 * texts, named for messages: options, and files. Main thread only.
 */
#pragma once

#include <jansson.h>

#include "head/hosts/hosts.h"
#include "head/options/options.h"

/* Returns the settings, a new reference. @agent: path of the agent's program; @container: the order
 * as of container_order_encode(), NULL = none. */
json_t *hold_match_settings(const struct options *o, const char *agent, const char *container);
/* Returns the host as USER@NAME:PORT, as far as given, malloc'ed. */
char *hold_match_host(const struct host *h);
/* Returns the name of a hold with these settings and hosts (an array), malloc'ed: the order of the
 * hosts does not count. */
char *hold_match_key(const json_t *settings, const json_t *hosts);
/* Returns the names of different settings, "--user, --jump", malloc'ed; "" = none. */
char *hold_match_difference(const json_t *a, const json_t *b);

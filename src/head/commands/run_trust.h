/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run trust: `hnlaunch trust`, new host keys for known_hosts
 */
#pragma once

#include "head/options/options.h"
#include "head/term/diag.h"

/* Fetches the keys of the hosts, prints them, asks, and stores new ones. Returns the exit code; the
 * caller prints @d, which does not have what was printed in front of the question. */
int run_trust_do(const struct options *o, struct diags *d);

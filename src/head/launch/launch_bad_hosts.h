/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch_bad_hosts: the hosts that runs have put out (head/run/bad_hosts.h), in a launch
 *
 * A launch that replaces or leaves out nodes (--restart auto, --spares, --nodes MIN:MAX) leaves
 * them out, but none that -w names, and spare hosts take their places; any other warns and uses
 * them. A file that cannot be read or written is one warning.
 */
#pragma once

#include <stdbool.h>

struct launch;
struct evidence;

/* Leaves bad hosts out of the list, or warns of them. Before the filters. An error in diags: no
 * host would be left (HN843). */
void launch_bad_hosts_apply(struct launch *l);
/* The run has put @host out: adds it to the file. */
void launch_bad_hosts_add(struct launch *l, const char *host, const char *reason,
                          const char *evidence);
/* The run knows better: removes what it has added. */
void launch_bad_hosts_acquit(struct launch *l, const char *host);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch_bad_hosts: the hosts put out by earlier runs (head/run/bad_hosts.h), in a launch
 *
 * A launch that replaces or leaves out nodes (--restart auto, --spares, --nodes MIN:MAX) leaves bad
 * hosts out, except hosts named with -w, and spare hosts take the places; any other launch warns
 * and uses the bad hosts. An unreadable or unwritable file is one warning.
 */
#pragma once

#include <stdbool.h>

struct launch;
struct evidence;

/* Leaves bad hosts out of the list, or warns of their use. Before the filters. An error in diags:
 * no host would be left (HN843). */
void launch_bad_hosts_apply(struct launch *l);
/* Adds @host, which the run has put out, to the file. */
void launch_bad_hosts_add(struct launch *l, const char *host, const char *reason,
                          const char *evidence);
/* Removes the run's own entry of @host: the host is not to blame. */
void launch_bad_hosts_acquit(struct launch *l, const char *host);

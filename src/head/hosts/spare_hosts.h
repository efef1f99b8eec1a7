/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare hosts: which hosts of the list stand by (--spares), and which of them take the places of
 * hosts that failed before the ranks started (--spares, --min-nodes)
 *
 * A host that stands by is marked spare. A host that takes a place stays where it is in the list,
 * and host.place names the place; the host that failed becomes spare. Pure.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

struct spare_rule {
        int spares; /* the last so many hosts stand by; 0 = only those marked already */
        int nodes;  /* of the others only the first so many are kept; 0 = all */
        int min;    /* so many hosts are enough to start; 0 = no less than all */
};

/* Marks and drops hosts as @r says. 0, or -EINVAL with an error in @d: there are too few hosts. */
int spare_hosts_choose(struct hosts *h, const struct spare_rule *r, struct diags *d);
/* Gives the place of each host with a true failed[i], spare hosts aside, to the first spare host
 * that has not failed and has as many slots. Places without such a host are left out if @min hosts
 * (0 = all) are still there. Returns how many places have no host: 0, unless there are too few, and
 * then @h is as it was. */
size_t spare_hosts_replace(struct hosts *h, const bool *failed, int min);

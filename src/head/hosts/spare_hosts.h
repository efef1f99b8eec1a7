/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare hosts: which hosts of the list stand by (--spares), and which of them take the places of
 * hosts that failed before the ranks started (--spares, --nodes MIN:MAX)
 *
 * Spare hosts that are connected with the others stay in the list, marked spare. A host that takes
 * a place stays where it is, and host.place names the place; the host that failed becomes spare.
 * Hosts that stand by unconnected (hosts_put_aside()) come into the list only in place of failed
 * hosts. Pure.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

enum { SPARES_AUTO = -1 };

struct spare_rule {
        int spares; /* the last so many hosts stand by; SPARES_AUTO: all beyond @nodes or @needed;
                     * 0 = only those marked already */
        int nodes;  /* of the others only the first so many are kept; 0 = all */
        int min;    /* so many hosts are enough to start; 0 = no less than all */
        size_t needed; /* hosts from the first on, for SPARES_AUTO without @nodes; 0 = all */
        bool connect;  /* hosts of SPARES_AUTO are connected with the others */
};

/* Marks, drops and puts aside hosts as @r says. 0, or -EINVAL with an error in @d: there are too
 * few hosts. */
int spare_hosts_choose(struct hosts *h, const struct spare_rule *r, struct diags *d);

enum { SPARE_NONE, SPARE_STOOD_IN, SPARE_FIRST };

/* Gives the place of each host with a true failed[i], spare hosts aside, to the first spare host
 * that has not failed and has as many slots: of the list, else of those that stand by unconnected.
 * Places without such a host are left out if @min hosts (0 = all) are still there. Returns how many
 * places have no host: 0, unless there are too few, and then @h is as it was. by[i] tells what
 * became of a failed host: SPARE_STOOD_IN, SPARE_FIRST + the host in the place, or SPARE_NONE. */
size_t spare_hosts_replace(struct hosts *h, const bool *failed, int min, size_t *by);
/* Whether spare_hosts_replace() would return 0. */
bool spare_hosts_suffice(const struct hosts *h, const bool *failed, int min);

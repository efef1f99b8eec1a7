/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter: --include, --exclude, --nodes, and -w beside -H narrow the list of hosts
 *
 *   spec = item { ( "," | "@" | blank ) item }
 *   item = gpu[01-04] [ ":" slot { "," slot } ]          slot: 0, 4-6; counted from 0 on its host
 *
 * "@" is the separator of DeepSpeed, h1:0,2@h2. A number behind a comma belongs to the slots before
 * it. Included hosts keep the order of the hostfile. A host included whole and by slots is whole.
 * Excluding comes after including, --nodes last. Slots are only noted in host.keep and host.drop:
 * the node's slots are not known yet.
 *
 * Pure. Not for two threads on one @h or @d.
 */
#pragma once

#include "base/strv.h"
#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* Narrows @h; @nodes 0 = all. 0, or -EINVAL with errors in @d (exit 64): unknown hosts, slots
 * beyond a host's slots= or gpus=, no host left, or fewer than @nodes. */
int filter_apply(struct hosts *h, const struct strv *include, const struct strv *exclude, int nodes,
                 struct diags *d);

/* Keeps the hosts named in @lists, in the order of the file: -w beside -H. `n1:2` takes the first
 * two slots of n1 and `alice@n1` logs in as alice; all else comes from the file. 0, or -EINVAL with
 * errors in @d (exit 64): hosts missing in the file, more slots than a host has. */
int filter_choose(struct hosts *h, const struct strv *lists, struct diags *d);

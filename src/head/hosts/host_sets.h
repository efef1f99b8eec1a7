/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host sets: lists of hosts as sets of names
 *
 * Names count in any case of letters. The hosts of the first list stay in order, and keep what the
 * list says of them. Pure. Not for two threads on one list.
 */
#pragma once

#include "head/hosts/hosts.h"

enum host_set_op {
        HOST_SET_UNION,
        HOST_SET_MINUS,  /* without the hosts of the other list */
        HOST_SET_COMMON, /* with the hosts of both */
};

/* Combines @h with another list. */
void host_set_apply(struct hosts *h, enum host_set_op op, struct hosts *other);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Same machine: nodes that are one machine under several names
 *
 * Each name would get the machine's slots and GPUs once more. Several names of the loopback
 * interface are accepted: they mean this machine on purpose.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* Adds an error for each machine that several hosts turned out to be, and returns the number of
 * errors. @machines: the identity of each host's machine, "" = unknown. */
size_t same_machine_find(const struct hosts *hosts, const char *const *machines, struct diags *d);

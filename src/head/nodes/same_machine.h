/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Same machine: several nodes on the same machine
 *
 * Each name would get the machine's slots and GPUs once more. Several names of the loopback
 * interface are accepted: all mean this machine on purpose.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* Adds an error for each machine with several hosts, and returns the number of errors. @machines:
 * the identity of each host's machine, "" = unknown. */
size_t same_machine_find(const struct hosts *hosts, const char *const *machines, struct diags *d);

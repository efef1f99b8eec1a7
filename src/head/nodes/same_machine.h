/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Same machine: hosts that are this machine, and hosts that are one machine
 *
 * This machine needs no ssh. Of several names of a machine, each would get the machine's slots and
 * GPUs once more. Several names of the loopback interface are accepted: all mean this machine on
 * purpose.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/nodes/transport.h"
#include "head/term/diag.h"

/* Marks hosts that are this machine under any name, unless the line or the ssh config of @login
 * gives them a login. */
void same_machine_mark_own(struct hosts *hosts, const struct ssh_options *login);
/* Adds an error for each machine with several hosts, and returns the number of errors. @machines:
 * the identity of each host's machine, "" = unknown. */
size_t same_machine_find(const struct hosts *hosts, const char *const *machines, struct diags *d);

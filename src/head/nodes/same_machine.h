/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Same machine: nodes that are one machine under several names
 *
 * Each name would get the machine's slots and GPUs once more. Names of the loopback interface mean
 * this machine on purpose, and may stand beside each other.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* Adds an error for each machine that several hosts turned out to be. @machines: what identifies
 * that of each host, "" = not known. Returns how many were added. */
size_t same_machine_find(const struct hosts *hosts, const char *const *machines, struct diags *d);

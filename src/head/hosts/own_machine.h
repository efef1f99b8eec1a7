/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own_machine: the names and addresses of the machine that hnlaunch runs on
 *
 * Its host name, what /etc/hosts says of its addresses, the addresses of its interfaces, and those
 * of the loopback network. Only a name that begins as the host name does is ever resolved, so that
 * a list of many hosts costs no look-ups.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"

struct ifaddrs;

struct own_machine {
        char *name;                 /* of gethostname(2) */
        struct strv names;          /* of /etc/hosts */
        struct ifaddrs *interfaces; /* NULL = unknown */
};

/* Reads what the machine is called. @m needs no initialization. */
void own_machine_read(struct own_machine *m);
void own_machine_finish(struct own_machine *m);
/* Tells whether @name, or a numeric address, is this machine. May resolve @name. */
bool own_machine_is(const struct own_machine *m, const char *name);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port_name: names of the TCP ports that are kept free for the ranks
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
        PORT_NAME_MAX = 32,      /* characters */
        PORT_NAMES_MAX = 64,     /* ports of a job, and of an instance of a role */
        PORT_NUMBERS_MAX = 4096, /* of a world on a node */
};

/* Whether the name is a lower-case letter, followed by lower-case letters, digits and underscores.
 */
bool port_name_is_valid(const char *name, size_t len);
/* Returns the variable of a port with a valid name, HN_PORT_ and the name in upper case; malloc'ed.
 */
char *port_name_variable(const char *name);

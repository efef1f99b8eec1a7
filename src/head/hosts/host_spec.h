/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host spec: "alice@gpu[01-04]:8", the form in which every list of hosts names machines
 *
 *   spec = [ user "@" ] ( names | "[" IPv6 "]" ) [ ":" ( slots | "auto" | "*" ) ]
 *
 * Names and users come from an allow-list: letters, digits, `.`, `_` and `-`, the first character a
 * letter, a digit or `_`. A command line or a resolver therefore never gets an option or a shell's
 * special characters from here. Pure and reentrant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "head/hosts/hosts.h"
#include "head/hosts/range.h"

enum host_attr {
        ATTR_SLOTS,
        ATTR_MAX_SLOTS,
        ATTR_GPUS,
        ATTR_PORT,
        ATTR_USER,
        ATTR_ADDR,
        ATTR_IFACE,
        ATTR_NUMA,
        ATTR_TAGS,
        HOST_ATTRS,
        ATTR_FOREIGN = HOST_ATTRS, /* a key of other launchers, without a meaning here */
        ATTR_UNKNOWN,
};

/* A line of a hostfile, or a word of a list. */
struct host_spec {
        struct strv names;                   /* without user, brackets and slots */
        struct strv addrs;                   /* addr=: none, or as many as names */
        struct host host;                    /* shared by all names: no name, address or place */
        struct text_range given[HOST_ATTRS]; /* where each is written; len 0 = not given */
};

/* Fills an empty @s with names, user and slots; host_spec_finish() in both cases. 0, or -EINVAL
 * with @e filled in. */
int host_spec_parse(struct host_spec *s, const char *text, size_t len, struct range_error *e);
void host_spec_finish(struct host_spec *s);

/* Check single values. 0, or -EINVAL with @e filled in. */
int host_spec_check_user(const char *text, size_t len, struct range_error *e);
/* A name without ranges, or a numeric address; an IPv6 address with or without brackets. */
int host_spec_check_address(const char *text, size_t len, struct range_error *e);
/* Reads a decimal number in [@low, @high]. @what names the key in messages. */
int host_spec_number(const char *text, size_t len, const char *what, int low, int high, int *ret,
                     struct range_error *e);
/* Reads a slot count, or "auto" (0). */
int host_spec_slots(const char *text, size_t len, int *ret, struct range_error *e);

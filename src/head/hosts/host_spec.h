/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host spec: "alice@gpu[01-04]:8", the form in which every list of hosts names machines
 *
 *   spec = [ user "@" ] ( names | "[" IPv6 "]" ) [ ":" ( slots | "auto" | "*" ) ]
 *
 * Names and users come from an allow-list: letters, digits, `.`, `_` and `-`, the first character a
 * letter, a digit or `_`. A command line or a resolver therefore never gets an option or a shell's
 * special characters from here. Attributes are the key=value behind the hosts of a line. Pure and
 * reentrant.
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

/* Reads a decimal number in [@low, @high]. @what names the key in messages. Returns as
 * host_spec_parse(). */
int host_spec_number(const char *text, size_t len, const char *what, int low, int high, int *ret,
                     struct range_error *e);

/* The names of our own keys, for suggestions and messages: by enum host_attr. */
extern const char *const host_attr_names[HOST_ATTRS];

/* Finds a key or a synonym; `-` counts as `_`. @name gets the key as text, cut to @size.
 * ATTR_FOREIGN for a key of other launchers, ATTR_UNKNOWN for the rest. */
enum host_attr host_attr_find(const char *text, size_t len, char *name, size_t size);

/* Reads the value of @attr < HOST_ATTRS into @s, which has names and not yet this value. Returns as
 * host_spec_parse(). */
int host_attr_take(struct host_spec *s, enum host_attr attr, const char *text, size_t len,
                   struct range_error *e);

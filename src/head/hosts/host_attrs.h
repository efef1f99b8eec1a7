/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host attrs: key=value behind the hosts of a line
 *
 * Pure and reentrant.
 */
#pragma once

#include <stddef.h>

#include "head/hosts/host_spec.h"
#include "head/hosts/range.h"

/* The names of our own keys, for suggestions and messages: by enum host_attr. */
extern const char *const host_attr_names[HOST_ATTRS];

/* Finds a key or a synonym; `-` counts as `_`. @name gets the key as text, cut to @size.
 * ATTR_FOREIGN for a key of other launchers, ATTR_UNKNOWN for the rest. */
enum host_attr host_attr_find(const char *text, size_t len, char *name, size_t size);

/* Reads the value of @attr < HOST_ATTRS into @s, which has names and not yet this value. 0, or
 * -EINVAL with @e filled in. */
int host_attrs_take(struct host_spec *s, enum host_attr attr, const char *text, size_t len,
                    struct range_error *e);

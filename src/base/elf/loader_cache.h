/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loader_cache: what /etc/ld.so.cache says of a library
 *
 * ldconfig(8) writes the file, from the folders of ld.so.conf. Pure: the bytes may be anything.
 * Source: sysdeps/generic/dl-cache.h of glibc. The format of 2.2 and newer is read, alone or behind
 * the older one; entries for special processors are left out.
 */
#pragma once

#include <stddef.h>

/* Returns the path of the library called @name, lent by @data; NULL: none is left. @at is 0 at
 * first, and leads to the next one (of another word size) afterwards. @data has @len bytes and a
 * NUL behind them. */
const char *loader_cache_find(const char *data, size_t len, const char *name, size_t *at);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parcel, inside: what packing and reading share
 */
#pragma once

#include <sys/stat.h>

#include "head/push/manifest.h"

/* An absolute path without "." ".." and doubled slashes, malloc'ed; @path may be relative. */
char *manifest_absolute(const char *cwd, const char *path);
void manifest_note(struct manifest_source *s, const struct stat *st);
/* True if the file is the one that was noted. */
bool manifest_is(const struct manifest_source *s, const struct push_entry *e,
                 const struct stat *st);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifest_private: declarations shared by packing (manifest.c) and reading (manifest_read.c)
 */
#pragma once

#include "head/push/manifest.h"

struct stat;

enum { PYC_TIME = 8 /* of a .pyc: the place of the source's time */ };

/* Returns @folder/@name, malloc'ed. Must be fast: a manifest has 20,000 paths. */
char *manifest_append_name(const char *folder, const char *name);
/* Returns the path of a source, malloc'ed; @dir is manifest.dir. */
char *manifest_source_path(const char *dir, const struct manifest_source *s, const char *place);
/* Whether @st is the file as hashed: links and rights may have changed. */
bool manifest_source_is_same(const struct manifest_source *s, const struct stat *st);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifest_private: what packing and reading share, manifest.c and manifest_read.c.
 */
#pragma once

#include "head/push/manifest.h"

struct stat;

enum { PYC_TIME = 8 /* of a .pyc: the place of the source's time */ };

/* Returns @folder/@name, malloc'ed. As fast as it can be: a manifest has 20,000 of them. */
char *manifest_append_name(const char *folder, const char *name);
/* Returns the path of a source, malloc'ed; @dir is manifest.dir. */
char *manifest_source_path(const char *dir, const struct manifest_source *s, const char *place);
/* Tells whether @st is the file as it was hashed: links and rights may have changed. */
bool manifest_source_is_same(const struct manifest_source *s, const struct stat *st);

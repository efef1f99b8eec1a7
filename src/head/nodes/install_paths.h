/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Install paths: where the other files of hnlaunch are
 *
 * The agent and the ssh module stand beside the program in a build folder, else in libexec. libexec
 * relative to the program is tried first, so that a moved installation works.
 */
#pragma once

#include "base/error.h"

/* Returns the path of the readable file @name, or of @other (NULL = none) in the same place,
 * malloc'ed. NULL with @err: -ENOENT, there is no such file; or the path of hnlaunch is unknown. */
char *install_path_find(const char *name, const char *other, struct error *err);

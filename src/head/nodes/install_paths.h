/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Install paths: finds the other files of hnlaunch
 *
 * The agent and the modules for ssh and top stand beside the program in a build folder, else in
 * libexec. libexec relative to the program is tried first, so that a moved installation works.
 */
#pragma once

#include "base/error.h"

/* Returns the path of the readable file @name, or of @other (NULL = none) in the same place,
 * malloc'ed. NULL with @err: -ENOENT, no file; or the path of hnlaunch is unknown. */
char *install_path_find(const char *name, const char *other, struct error *err);
/* Loads the shared object @name, called @what in messages, and returns a symbol of the object,
 * which stays loaded. NULL with @err, always ELIBACC. */
void *install_path_load(const char *name, const char *what, const char *symbol, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts: where the other files of hnlaunch are
 *
 * The agent and the ssh module stand beside the program in a build folder, else in libexec: seen
 * from the program first, so that an installation which was moved as a whole still works.
 */
#pragma once

#include "base/error.h"

/* A malloc'ed path of the readable file @name, or of @other (NULL = none) in the same place. NULL:
 * -ENOENT in @err, installed nowhere; or this program's own path is not known. */
char *install_path_find(const char *name, const char *other, struct error *err);

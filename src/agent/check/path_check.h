/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path_check: whether the files of the ranks are there, and their contents
 */
#pragma once

#include "wire/check_msg.h"

enum {
        /* Larger files are hashed at both ends, with their size. */
        PATH_CHECK_WHOLE = 64 << 20,
        PATH_CHECK_END = 8 << 20,
};

/* Adds a fact for each path of @o: of a folder "there", of a file "1234 bytes, 5f0c...", else the
 * fault: "missing", "no folder", "no file", "not executable", "not readable". */
void path_check(struct checked *m, const struct check_order *o);

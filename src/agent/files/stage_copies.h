/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage_copies: the folders that stay on this node for later runs
 *
 * ROOT/ID.keep describes ROOT/ID; the time of the file is the time of the last use.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/push_msg.h"

/* Writes ROOT/@id.keep. 0 or -errno. */
int stage_write_note(const char *root, const char *id, const struct push_offer *o);
/* Whether the staged folder ROOT/@id has all files: services that clean /tmp remove files not read
 * for some days. The files are counted once a day, or now with @look. */
bool stage_is_whole(const char *root, const char *id, bool look);
void stage_mark_used(const char *root, const char *id);
/* Removes unused staged folders, the longest unused first, until @need more bytes fit into the file
 * system and, with the remaining folders, into @limit (0 = any number). */
void stage_make_room(const char *root, uint64_t need, uint64_t limit);
/* Lists the folders of all places, and removes the folders named in the order. */
void stage_copies_run(const struct stage_order *o, struct staged *ret);
/* Compares the node's Python with the environment's: 0, or negative errno with @ret: -ENOPKG, no
 * such Python; -ELIBBAD, the Python differs. @root and @id of a whole folder, else NULL: a Python
 * that fitted before is not read again. */
int stage_check_python(const struct push_python *python, const char *root, const char *id,
                       struct pushed *ret);

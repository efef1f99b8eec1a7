/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage_copies: the folders that stay on this node for later runs
 *
 * ROOT/ID.keep tells of ROOT/ID what it was made of; the time of the file is that of the last use.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/push_msg.h"

/* Writes ROOT/@id.keep. 0 or -errno. */
int stage_write_note(const char *root, const char *id, const struct push_offer *o);
/* Whether no file of the staged folder ROOT/@id is missing: services that keep /tmp clean remove
 * what was not read for some days. The files are counted once a day, or now with @look. */
bool stage_is_whole(const char *root, const char *id, bool look);
void stage_mark_used(const char *root, const char *id);
/* Removes unused staged folders, the one used longest ago first, until @need more bytes fit into
 * the file system and, with those that stay, into @limit (0 = any number). */
void stage_make_room(const char *root, uint64_t need, uint64_t limit);
/* Lists the folders of all places, and removes what the order says. */
void stage_copies_run(const struct stage_order *o, struct staged *ret);
/* Compares the node's Python with that of the environment: 0, or negative errno with @ret: -ENOPKG,
 * there is none; -ELIBBAD, it differs. @root and @id of a whole folder, else NULL: a Python that
 * fitted before is not read again. */
int stage_check_python(const struct push_python *python, const char *root, const char *id,
                       struct pushed *ret);

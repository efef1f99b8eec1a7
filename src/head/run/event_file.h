/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event file: the event lines of a run, which may last for months
 *
 * Ranks report steps once a second, so their lines are nearly all of a long file.
 */
#pragma once

#include <stdint.h>

enum { EVENT_FILE_MAX = 64 << 20 }; /* bytes; a longer file is shortened */

/* Replaces the file @name in the folder @dir with at most three quarters of EVENT_FILE_MAX. Older
 * lines go: first lines of rank.progress before the last quarter of the file, then the oldest
 * lines. Returns the new file, open for writing at the end, with its bytes in *ret_bytes; or
 * -errno, and the file is unchanged. */
int event_file_shorten(int dir, const char *name, uint64_t *ret_bytes);

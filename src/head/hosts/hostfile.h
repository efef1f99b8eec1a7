/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostfile: text -> hosts, in the dialects of common launchers
 *
 *   line = [ word { key "=" value | "spare" } ] [ comment ]
 *   word = [ user "@" ] gpu[001-064,070] | [2001:db8::7]  [ ":" slots ]
 *   key  = slots | max_slots | gpus | port | user | addr | iface | numa | tags
 *
 * `slots` is also written count or cpu, `max_slots` in every way of Open MPI (slots-max,
 * max_count, ...), `user` also username and user_name. Blanks around `=` are fine. Comments begin
 * with # or // up to the end of the line, or are written as in C. slots=auto, like no slots at all,
 * means as many as the node has. A host repeated without any slots gains a slot by each line;
 * repeated with slots it is an error. `max_slots` alone sets the slots too. `numa` and `tags` are
 * for tools of the site: checked for their characters, and ignored. A byte order mark,
 * CRLF, and a missing last newline are fine.
 *
 * Each function returns 0, or -EINVAL after adding errors to @d: all errors of a file together
 * (exit 65; 66 when the file cannot be read; 64 for -w). Hosts are appended to @h, so several files
 * and lists merge; after an error @h holds the hosts of the good lines.
 *
 * Pure but for hostfile_load() and hostlist_load(). Not for two threads on one @h or @d.
 */
#pragma once

#include <stddef.h>

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* Parses a text, which needs no NUL at the end. Messages call it @file. No host at all is an error.
 */
int hostfile_parse(struct hosts *h, const char *file, const char *text, size_t len,
                   struct diags *d);

/* Reads a file, or standard input for "-", and parses it. */
int hostfile_load(struct hosts *h, const char *path, struct diags *d);

/* Parses the argument of -w: words between commas or blanks, "gpu[01-04]:8,alice@gpu7". */
int hostlist_parse(struct hosts *h, const char *text, struct diags *d);
/* Same, but the name of a hostfile is an error with -H as the next step. */
int hostlist_load(struct hosts *h, const char *text, struct diags *d);

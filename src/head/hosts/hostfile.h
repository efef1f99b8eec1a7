/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostfile: text -> hosts, in every dialect that people have
 *
 *   line = [ word { key "=" value } ] [ comment ]
 *   word = [ user "@" ] gpu[001-064,070] | [2001:db8::7]  [ ":" slots ]
 *   key  = slots | max_slots | gpus | port | user | addr | iface | numa | tags
 *
 * `slots` is also written count or cpu, `max_slots` in every way of Open MPI (slots-max,
 * max_count, ...), `user` also username and user_name. Blanks around `=` are fine. Comments are
 * # and // up to the end of the line, and those of C. slots=auto, like no slots at all, means what
 * the node has. A host repeated without any slots gains a slot by each line; repeated with slots
 * it is an error. `max_slots` alone sets the slots too. A byte order mark, CRLF, and a missing last
 * newline are fine.
 *
 * Errors are collected, all of a file in one go (exit 65; 66 when it cannot be read; 64 for -w).
 * Each function returns 0, or -EINVAL when it added errors to @d. Hosts are appended to @h, so
 * several files and lists merge; after an error @h holds the good ones.
 *
 * Pure but for hostfile_load() and hostlist_load(). Not for two threads on one @h or @d.
 */
#pragma once

#include <stddef.h>

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* @text needs no NUL at its end. @file is its name for messages. No host at all is an error. */
int hostfile_parse(struct hosts *h, const char *file, const char *text, size_t len,
                   struct diags *d);

/* Reads a file, or standard input for "-", and parses it. */
int hostfile_load(struct hosts *h, const char *path, struct diags *d);

/* The argument of -w: words with commas between them, "gpu[01-04]:8,alice@gpu7". */
int hostlist_parse(struct hosts *h, const char *text, struct diags *d);
/* That, but the name of a hostfile is an error that offers -H. */
int hostlist_load(struct hosts *h, const char *text, struct diags *d);

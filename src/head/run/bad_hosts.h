/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad hosts: the list of hosts that runs have put out, for later runs
 *
 * A file with one JSON object a line: host, reason, evidence, run, since and until (seconds of
 * time(2)). An entry ends at its time, and a later entry of the same host replaces it. A change
 * writes a new file in place of the old file, under a lock on FILE.lock, so that concurrent runs
 * lose nothing; unreadable lines stay. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { BAD_HOST_S = 24 * 60 * 60 }; /* until an entry ends */

struct bad_host {
        char *host, *reason, *evidence, *run;
        int64_t since, until;
};

struct bad_hosts {
        struct bad_host *v;
        size_t n;
        size_t broken; /* lines without an entry */
};

#define BAD_HOSTS_INIT                                                                             \
        {                                                                                          \
                0                                                                                  \
        }

void bad_hosts_finish(struct bad_hosts *b);

/* Returns the path of the file, malloc'ed: @given, or the path in the state folder. NULL = no
 * home. */
char *bad_hosts_path(const char *given);
/* Reads the entries not ended at @now; a missing file has none. 0, or -errno with @err and @b
 * empty. */
int bad_hosts_load(struct bad_hosts *b, const char *path, int64_t now, struct error *err);
/* Returns the entry of @host, in any case of letters; NULL = none. */
const struct bad_host *bad_hosts_find(const struct bad_hosts *b, const char *host);
/* Adds an entry. 0, or -errno with @err. */
int bad_hosts_add(const char *path, const struct bad_host *h, int64_t now, struct error *err);
/* Removes the entries of @host made by @run (NULL = any run). Returns their number, or -errno with
 * @err. */
int bad_hosts_remove(const char *path, const char *host, const char *run, int64_t now,
                     struct error *err);

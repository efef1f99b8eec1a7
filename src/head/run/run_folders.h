/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run folders: the folders of runs, during a run and afterwards
 *
 *   $XDG_RUNTIME_DIR/hnlaunch, else /tmp/hnlaunch-UID     a socket RUN.sock for each run that goes
 * on, and a folder holds for those of `hnlaunch hold`
 *   ${XDG_STATE_HOME:-~/.local/state}/hnlaunch/runs       a folder RUN for each of the newest runs
 *   ${XDG_STATE_HOME:-~/.local/state}/hnlaunch/dial-in    secrets of jobs that go on (--dial-in)
 *
 * All folders are made with mode 0700. The owner of the first is checked, since anybody may write
 * in its parent /tmp. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Returns the folder of the sockets, malloc'ed, and makes it with @make. NULL with @err: the folder
 * is missing, cannot be made, is no folder, or belongs to another user. */
char *run_folders_sockets(bool make, struct error *err);
/* Returns its path, malloc'ed, from the environment alone: XDG_RUNTIME_DIR may be another user's or
 * missing. */
char *run_folders_sockets_path(void);
/* Finds the folder @path, or makes it with @make, and its parent; follows no link. 0, or -errno
 * with @err: it is missing, no folder, or another user's. */
int run_folders_own(const char *path, bool make, struct error *err);
/* Returns the path of the socket of @run in @folder, malloc'ed. */
char *run_folders_socket(const char *folder, const char *run);

/* Returns the folder of the records, malloc'ed; the folder may not exist. NULL = the home does not
 * exist; a home is never made. */
char *run_folders_records(void);
/* Returns the folder of the secrets of dial-ins, malloc'ed; the folder may not exist. NULL = no
 * home. */
char *run_folders_dial_in(void);
/* Returns the path of hosts.bad (head/run/bad_hosts.h), malloc'ed; the file may not exist. NULL =
 * no home. */
char *run_folders_bad_hosts(void);
/* Makes a folder and its parents, mode 0700. 0, or -errno with @err. */
int run_folders_make(const char *path, struct error *err);

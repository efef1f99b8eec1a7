/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run folders: where runs are found, while they last and afterwards
 *
 *   $XDG_RUNTIME_DIR/hnlaunch, else /tmp/hnlaunch-UID       a socket RUN.sock for each run that
 * goes on
 *   ${XDG_STATE_HOME:-~/.local/state}/hnlaunch/runs         a folder RUN for each of the newest
 * runs
 *   ${XDG_STATE_HOME:-~/.local/state}/hnlaunch/dial-in      secrets of jobs that go on (--dial-in)
 *
 * All are made with mode 0700. In the first, whose parent may be everybody's, the owner is
 * checked. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Returns the folder of the sockets, malloc'ed; with @make it is made if needed. NULL with @err: it
 * is not there, cannot be made, is no folder, or is another user's. */
char *run_folders_sockets(bool make, struct error *err);
/* Returns the path of the socket of @run in @folder, malloc'ed. */
char *run_folders_socket(const char *folder, const char *run);

/* Returns the folder of the records, malloc'ed; it may not exist. NULL: there is no home, whose
 * folder is never made. */
char *run_folders_records(void);
/* Returns the folder of the secrets of dial-ins, malloc'ed; it may not exist. NULL: there is no
 * home. */
char *run_folders_dial_in(void);
/* Returns the path of hosts.bad (head/run/bad_hosts.h), malloc'ed; it may not exist. NULL: there is
 * no home. */
char *run_folders_bad_hosts(void);
/* Makes a folder with those above it, mode 0700. 0, or -errno with @err. */
int run_folders_make(const char *path, struct error *err);

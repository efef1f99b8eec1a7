/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child: a link that is a local process, with a socketpair as its stdin and stdout
 *
 * What transport_local and transport_command share. The process gets a session of its own, so the
 * terminal's Ctrl-C does not reach it, and nothing but its three descriptors. Its stderr goes to
 * noise(), the last lines of it into the failure's evidence. The process is never killed from
 * here: it is expected to end when its stdin ends. Main thread only.
 */
#pragma once

#include "head/nodes/transport.h"

/* Says why the process ended, after everything it wrote to stderr was read. @why has phase, cause
 * and fact set for a plain exit and the stderr as evidence; the function may improve on that. */
typedef void (*process_link_judge)(struct link *l, int status, int signal,
                                   struct link_failure *why);

/* Starts @argv (argv[0] is searched in PATH). opened() comes from the loop as soon as the process
 * runs; failed() with LINK_SPAWN when it could not be started. @what names the process in
 * messages and, like @judge, stays valid. The link ends with process_link_close(), which suits as
 * transport_ops.close. */
struct link *process_link_open(struct transport *t, uv_loop_t *loop, char *const argv[],
                               const char *what, process_link_judge judge,
                               const struct link_callbacks *cb, void *ctx);
void process_link_close(struct link *l);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process link: a link to a local process, with a socketpair as stdin and stdout
 *
 * Common to transport_local and transport_command. The process gets a session of its own, so that
 * the terminal's Ctrl-C does not reach it, and only the three standard descriptors. Stderr goes to
 * noise(), the last lines into the failure's evidence. The process is never killed from here: the
 * end of stdin is expected to end the process. Main thread only.
 */
#pragma once

#include "head/nodes/transport.h"

/* Completes @why after the process has ended and stderr was read. Phase, cause and fact are set for
 * a plain exit, the evidence is the stderr; the function may replace them. */
typedef void (*process_link_classify)(struct link *l, int status, int signal,
                                      struct link_failure *why);

/* Starts @argv (argv[0] is searched in PATH). opened() comes from the loop as soon as the process
 * runs; failed() with LINK_SPAWN if it could not be started. @name is for messages, and must stay
 * valid. To be closed with process_link_close(), which may serve as transport_ops.close. */
struct link *process_link_open(struct transport *t, uv_loop_t *loop, char *const argv[],
                               const char *name, process_link_classify classify,
                               const struct link_callbacks *cb, void *ctx);
void process_link_close(struct link *l);

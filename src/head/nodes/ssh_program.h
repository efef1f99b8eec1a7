/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh program: the site's own ssh, as the head runs it (--ssh-command) and nodes do (--tree)
 */
#pragma once

#include "head/nodes/transport.h"

/* Appends options: ask no questions, accept the same host keys as the ssh transport. */
void ssh_program_add_options(const struct ssh_options *o, struct strv *argv);

/* Sets phase, cause and fact of @why from the evidence, ssh's stderr: a failure before the remote
 * command ran, or the end of the command. @signal 0 = ssh exited with @status. */
void ssh_program_classify(int status, int signal, struct link_failure *why);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Openssh: the site's own ssh program, as the head runs it (--ssh-command) and nodes do (--tree)
 */
#pragma once

#include "head/nodes/transport.h"

/* Splits "ssh -o ..." into words as a shell would see them: blanks, quotes and backslashes,
 * nothing else. NULL is "ssh". -EINVAL: an open quote, or no word at all. */
int ssh_program_split(const char *text, struct strv *ret, struct error *err);

/* Appends what makes it ask nothing, and trust what this hnlaunch would. */
void ssh_program_careful(const struct ssh_options *o, struct strv *argv);

/* Improves on @why, which has ssh's stderr as evidence: what went wrong before the remote command
 * ran, or how that ended. @signal 0 = it exited with @status. */
void ssh_program_judge(int status, int signal, struct link_failure *why);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: options become settings, and the other words the program
 */
#pragma once

#include "head/options/options.h"

/* Reads @argv[1] and the following words into @o: the line itself, the command, settings of
 * LEVEL_LINE, the program with its arguments. Sets the places in @ignored (OPTION_FOREIGN_MAX
 * values) of options that hnlaunch takes from other launchers and does not need. 0, or -EINVAL with
 * entries in @d (exit 64): HN701 unknown option, HN702 missing or unwanted value, HN707 a letter
 * with several meanings, HN717 a wrong assignment of -o, HN725 a second program behind a colon. */
int command_line_read(struct options *o, int argc, char **argv, bool *ignored, struct diags *d);

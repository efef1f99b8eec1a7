/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Script_check: runs commands for a check, with a time limit
 *
 * All processes of a command are killed at the end. For the process of a check only, without other
 * children.
 */
#pragma once

#include <stdbool.h>

#include "wire/check_msg.h"

/* The end of a command. */
struct script_end {
        int status;                  /* as of waitpid(2) */
        bool late;                   /* killed after the limit */
        char first[CHECK_VALUE / 2]; /* lines of the output, "" = none */
        char last[CHECK_VALUE / 2];
};

/* Runs @command by sh -c in @cwd, or in / if the folder cannot be entered. False: the shell cannot
 * be started. */
bool script_run(struct script_end *ret, const char *command, const char *cwd, int limit_ms);

/* Adds the fact "run": "exit 0", or "exit 3: LAST LINE", "signal 9", "no end after 60 s". */
void script_check(struct checked *m, const struct check_order *o);

/* Adds the fact "hostname": the first address of the node's name as known here, if an address of
 * the loopback interface, else "a network address" or "none". */
void hostname_check(struct checked *m);
/* Adds a fact for each name of @o: the addresses, or "none". */
void names_check(struct checked *m, const struct check_order *o);

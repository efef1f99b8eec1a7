/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export_env: the part of this shell's environment that goes out to the ranks
 *
 * Every variable but those of a session, a host or another launcher (export_env_is_ours()), then
 * ~/.deepspeed_env (--compat deepspeed), --env-file and -x on top, --unset at last. --export NONE
 * sends only those on top, --export NAME,NAME=VALUE,.. these, and with ALL in the list both.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strv.h"
#include "head/options/options.h"
#include "head/term/diag.h"

/* Tells whether a variable must not leave this host or session. */
bool export_env_is_ours(const char *name);

/* Splits a list of --export as srun does: commas part words, but not inside of quotes, and quotes
 * around a whole word go. ALL and NONE (NIL) of any case become capitals. 0, or -EINVAL with what
 * is wrong in @err. */
int export_env_split(const char *text, struct strv *words, struct error *err);

/* Fills @env with NAME=VALUE pairs and @unset with names to be removed on the node, too. @from is
 * the environment to read (environ). 0, or -EINVAL with an entry in @diags (an unreadable file, a
 * malformed line). */
int export_env_collect(const struct options *o, char **from, struct strv *env, struct strv *unset,
                       struct diags *diags);
/* Adds the variables of the words of an -x of its own to @env: NAME, PATTERN or NAME=VALUE. */
void export_env_add(const struct options *o, const struct strv *words, char **from,
                    struct strv *env, struct diags *diags);

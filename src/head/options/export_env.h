/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment: what of this shell's environment goes out to the ranks
 *
 * Everything, minus what belongs to a session, a host or another launcher (export_env_is_ours()
 * names those), then --env-file and -x on top, --unset at last. --export NONE sends only -x and
 * --env-file; --export NAME,.. sends just these.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "head/options/options.h"
#include "head/term/diag.h"

/* True for variables that must not leave this host or session. */
bool export_env_is_ours(const char *name);

/* Fills @env with NAME=VALUE pairs and @unset with names that are removed on the node, too. @from
 * is the environment to look at (environ). 0, or -EINVAL with an entry in @diags (an unreadable
 * --env-file, a malformed line). */
int export_env_collect(const struct options *o, char **from, struct strv *env, struct strv *unset,
                       struct diags *diags);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own_login: whether the ssh config has a way of its own to this machine
 */
#pragma once

#include <stdbool.h>

#include "base/macros.h"
#include "head/nodes/transport.h"

/* See ssh_loader_leads_elsewhere(), which looks this symbol up by name. A config that cannot be
 * read leads elsewhere: the login will say what is wrong. */
PUBLIC bool own_login_leads_elsewhere(const struct ssh_options *o, const char *host,
                                      char **ret_name);

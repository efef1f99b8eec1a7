/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment: what the agent's own environment becomes before a worker gets it
 */
#pragma once

#include "base/strv.h"
#include "wire/msg.h"

/* Appends to @env: @login without the variables of a session or of another launcher and without
 * @l->unset, then @l->env laid over it. Entries that are no NAME=VALUE are left out. */
void base_env_build(struct strv *env, char *const *login, const struct launch_order *l);

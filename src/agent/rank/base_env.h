/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base_env: the environment inherited by workers from the agent
 */
#pragma once

#include "base/strv.h"
#include "wire/msg.h"

/* Appends to @env: @login without the variables of a session or of another launcher and without
 * @l->unset, then @l->env laid over that. Entries other than NAME=VALUE are left out. */
void base_env_build(struct strv *env, char *const *login, const struct launch_order *l);

/* Leads ranks to the virtual environment that HN_VENV in @env names, if any. */
void base_env_use_venv(struct strv *env);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carried_program: a program that is part of the agent, executed from memory
 *
 * Nothing is installed on the node, and no folder must allow execution.
 */
#pragma once

#include <sys/types.h>

#include "agent/core/carried_image.h"
#include "base/spawn.h"

/* Starts @image as spawn_process() does. @s.argv is one argument,
 * or NULL. @name is shown by the kernel as the file of the process. Fails also where memory may not
 * be executed. */
int carried_program_spawn(pid_t *ret_pid, const char *name, const struct carried_image *image,
                          struct spawn s, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program_output: what a short program prints
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/spawn.h"

/* Runs @argv, found in PATH, with the environment of this process and with @in as its standard
 * input (SPAWN_NULL = none), and collects its standard output, malloc'ed and ended by a NUL. 0;
 * else -errno with a sentence in @err: the program cannot be started, exits with another code than
 * 0 (-EIO, with the last line on standard error), has not ended after @timeout_ms (-ETIMEDOUT) or
 * prints more than @max bytes (-EFBIG). No process is left. Main thread only, before the first
 * other child. */
int program_output(const char *const *argv, int in, int timeout_ms, size_t max, char **ret_text,
                   size_t *ret_len, struct error *err);

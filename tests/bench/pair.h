/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair: two processes and one Unix socket per node between them
 *
 * The first takes the place of the head, the second that of all agents. Both end with the process
 * that started them, and in any case after some minutes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs both until they have ended; exits when one tells false. @first gets a socket that listens,
 * @second its abstract name, made of @word. */
void pair_run(const char *word, uint32_t n_nodes, bool (*first)(void *ctx, int listener),
              bool (*second)(void *ctx, const char *name), void *ctx);

int pair_accept(int listener);  /* non-blocking; exits when it cannot */
void *pair_memory(size_t size); /* zeroed, shared by both; exits when there is none */
void pair_files(uint32_t n);    /* room for so many descriptors; exits when there is none */

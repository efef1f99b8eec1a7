/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attach input: standard input of `hnlaunch attach` for a run, and the answer to a
 * question
 *
 * Bytes go to a connection lent by the run to the ranks (docs/protocol.md, "stdin"). A
 * terminal in the background is not read. Loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"

struct attach_input;

/* Begins to send the bytes of @fd to the run that listens at @socket, borrowed; @fd is closed in
 * the end unless @fd is a standard stream. NULL with @err: the run takes no input. */
struct attach_input *attach_input_open(uv_loop_t *loop, const char *socket, int fd,
                                       struct error *err);
/* Ends without an end for the ranks; the memory is freed when the loop turns. NULL is fine. */
void attach_input_close(struct attach_input *in);

/* Whether stdin and stderr are a terminal available to this process. */
bool attach_input_has_terminal(void);
/* Asks for a key of the terminal, which takes the place of other input meanwhile; @answer is called
 * once, with 0 if the terminal is gone. @in may be NULL. Returns NULL without a terminal. */
struct attach_question;
struct attach_question *attach_ask(uv_loop_t *loop, struct attach_input *in,
                                   void (*answer)(void *ctx, int key), void *ctx);
/* Takes the question back, with or without an answer; the memory is freed when the loop turns. NULL
 * is fine. */
void attach_ask_end(struct attach_question *q);

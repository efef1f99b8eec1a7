/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run socket: how other commands of the same user reach a run that goes on
 *
 * A request is a line of JSON, the answer another (docs/protocol.md). The socket lies in a folder
 * that only the user can enter, and the peer's uid is compared as well. On the job's loop; it does
 * not keep the loop alive.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"

struct run_socket;

struct run_socket_ops {
        json_t *(*info)(void *ctx); /* what `ps` shows; a new reference */
        /* @grace_ms -1: the grace time of the run. @pid has asked; 0 = of another namespace. */
        void (*stop)(void *ctx, int64_t grace_ms, int pid);
        void (*signal)(void *ctx, int signo); /* to all ranks */
        void (*status)(void *ctx);            /* as Ctrl-\ */
        /* The ranks of a host have @in_ms to save; then the run goes on without it. -errno with
         * @err. */
        int (*drain)(void *ctx, const char *host, int64_t in_ms, struct error *err);
        /* What comes from the stream socket @fd, which is taken over, is standard input of the
         * ranks; then its end. -errno with @err. */
        int (*lend_stdin)(void *ctx, int fd, struct error *err);
        void (*end_stdin)(void *ctx);
        void (*why)(void *ctx); /* run_socket_tell_why() follows */
        /* Another client looks on, for run_socket_tell_top(): returns its first line, malloc'ed. */
        char *(*top)(void *ctx);
        void (*top_rest)(void *ctx); /* no client looks on any longer */
};

/* Listens at @path, of run_folders_socket(). NULL with @err. */
struct run_socket *run_socket_open(uv_loop_t *loop, const char *path, struct run_socket_ops ops,
                                   void *ctx, struct error *err);
/* The run has ended: answers those who wait for that, or for the answer to why. @incomplete: what
 * its records lack, NULL = nothing. NULL @s does nothing. */
void run_socket_tell_end(struct run_socket *s, int code, const char *verdict,
                         const char *incomplete);
/* Answers the clients that ask why; unless it is the @last answer, they get more. Borrows @answer.
 * NULL does nothing. */
void run_socket_tell_why(struct run_socket *s, const json_t *answer, bool last);
/* Sends a line to the clients that look on. One that has not read the line before is left out. NULL
 * does nothing. */
void run_socket_tell_top(struct run_socket *s, const char *line);
/* Removes the socket, and its folder if that is empty then, and closes the connections; let the
 * loop turn once more. NULL is fine. */
void run_socket_close(struct run_socket *s);
/* Removes the socket of a process that cannot go on; async-signal-safe. */
void run_socket_abandon(void);

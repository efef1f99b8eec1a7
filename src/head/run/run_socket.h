/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run socket: serves other commands of the same user during the run
 *
 * A request is a line of JSON, and so is the answer (docs/protocol.md). The socket lies in a folder
 * that only the user can enter, and the peer's uid is compared as well. On the job's loop, without
 * keeping the loop alive.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"

struct run_socket;

struct run_socket_ops {
        json_t *(*info)(void *ctx); /* the run as `ps` shows it; a new reference */
        /* @grace_ms -1: the grace time of the run. @pid has asked; 0 = of another namespace. */
        void (*stop)(void *ctx, int64_t grace_ms, int pid);
        /* To all ranks, or those of @role (NAME[:N], NULL = all); process @pid has asked, 0 =
         * unknown. -errno with @err: there is no such role. */
        int (*signal)(void *ctx, int signo, const char *role, int pid, struct error *err);
        void (*status)(void *ctx); /* as Ctrl-\ */
        /* Gives the ranks of a host @in_ms to save; then the run goes on without the host. -errno
         * with @err. */
        int (*drain)(void *ctx, const char *host, int64_t in_ms, struct error *err);
        /* Takes the stream socket @fd over and passes its bytes, then its end, to the ranks as
         * standard input. -errno with @err. */
        int (*lend_stdin)(void *ctx, int fd, struct error *err);
        void (*end_stdin)(void *ctx);
        void (*why)(void *ctx); /* run_socket_tell_why() follows */
        /* Another client watches, for run_socket_tell_top(): returns the client's first line,
         * malloc'ed. */
        char *(*top)(void *ctx);
        void (*top_rest)(void *ctx); /* no client watches any longer */
};

/* Listens at @path, of run_folders_socket(). NULL with @err. */
struct run_socket *run_socket_open(uv_loop_t *loop, const char *path, struct run_socket_ops ops,
                                   void *ctx, struct error *err);
/* The run has ended: answers all clients that wait, ask why or watch. @incomplete says what the
 * records lack, NULL = nothing. NULL @s does nothing. */
void run_socket_tell_end(struct run_socket *s, int code, const char *verdict,
                         const char *incomplete);
/* Answers the clients that ask why; unless the answer is the @last, more follow. Borrows @answer.
 * NULL does nothing. */
void run_socket_tell_why(struct run_socket *s, const json_t *answer, bool last);
/* Sends a line to the watching clients, except clients that have not read the line before. NULL
 * does nothing. */
void run_socket_tell_top(struct run_socket *s, const char *line);
/* Removes the socket, and the folder if empty, and closes the connections; let the loop turn once
 * more. NULL is fine. */
void run_socket_close(struct run_socket *s);
/* Removes the socket when the process must end at once; async-signal-safe. */
void run_socket_abandon(void);

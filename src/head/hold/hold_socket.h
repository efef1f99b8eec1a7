/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold socket: the socket of a hold, and the requests of runs and commands
 *
 * A hold listens at KEY.sock (hold_match_key()) in the folder `holds` beside the sockets of runs,
 * mode 0700, for processes of the same user. A request is a line of JSON, and so is the first
 * answer (docs/protocol.md). Blocking, but for the listener.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"

/* Returns the folder, malloc'ed; it may not exist. */
char *hold_socket_folder(void);
/* Returns the path of a hold's socket, malloc'ed, and makes the folder with @make. NULL with @err:
 * the folder cannot be made, or belongs to another user. */
char *hold_socket_path(const char *key, bool make, struct error *err);
/* Lists the paths of all sockets. */
void hold_socket_list(struct strv *to);

enum { HOLD_ANSWER_MS = 5000 };

/* Sends @request, dropping the reference, and reads the first answer into @ret_answer. Further
 * bytes go to @rest, descriptors to @fds, unless NULL. Returns the connection, or -errno with @err;
 * -ENOENT and -ECONNREFUSED: no hold listens there, and a stale socket is removed. */
int hold_socket_ask(const char *path, json_t *request, json_t **ret_answer, struct buf *rest,
                    struct buf *fds, struct error *err);
/* Requests the description of the holds at @paths, all at once. Returns a malloc'ed array of
 * answers, new references; NULL in the place of a hold without an answer. */
json_t **hold_socket_describe(const struct strv *paths);
/* Writes to @err, with HN_HOLD_SILENT and the next step, that the hold at @path does not answer.
 * Returns -ETIME; 0: no process listens there any more. */
int hold_socket_tell_silent(const char *path, struct error *err);
/* Reads the bytes and descriptors (int each) received so far. Returns the number of bytes, 0 at the
 * end, or -errno. */
int hold_socket_receive(int fd, struct buf *bytes, struct buf *fds);
/* Sends a line and the descriptors, at most HOLD_FDS_MAX. 0 or -errno. */
int hold_socket_send(int fd, const char *line, const int *fds, size_t n);
enum { HOLD_FDS_MAX = 200 };

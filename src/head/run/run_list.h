/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run list: the user's runs, running or recorded
 *
 * While a run goes on it answers at its socket; an ended run has a summary among its records. A run
 * without both was killed, unless its process lives, or another machine with the same home runs it.
 * Blocking, with a deadline for each run; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/strv.h"

enum run_state {
        RUN_GOES_ON,
        RUN_SILENT, /* the process lives, but does not answer or has no socket */
        RUN_ENDED,
        RUN_ELSEWHERE, /* records without an end, of another machine */
        RUN_LOST,      /* records without an end, of this machine */
};

struct run {
        char *id;
        char *socket; /* path; NULL = none */
        enum run_state state;
        json_t *info;    /* of the socket or run.json; an object, without members if unknown */
        json_t *summary; /* of RUN_ENDED; else NULL */
};

struct run_list {
        struct run *v;
        size_t n;
};

/* Finds all runs, the newest first. */
void run_list_load(struct run_list *l);
void run_list_finish(struct run_list *l);
/* Returns the run with an id that begins with @id; NULL with the number of such runs in *ret_n: 0
 * or several. */
const struct run *run_list_find(const struct run_list *l, const char *id, size_t *ret_n);

/* Returns the start of a process, in clock ticks since the boot; 0 = the process does not live. */
int64_t run_process_start(int pid);
/* Whether the host name of a run, as in run_process_lives(), is the name of this machine or
 * container. */
bool run_is_of_here(const json_t *info);
/* Whether the process of a run lives on this machine. @info is the socket's answer or run.json. */
bool run_process_lives(const json_t *info);

/* Returns the summary among the records of the run @id, which may have ended meanwhile: a new
 * reference, NULL = none. */
json_t *run_load_summary(const char *id);

/* Sends a request to the run at @socket and waits for the answer, at most @ms; -1 = without end.
 * Returns the answer, a new reference; NULL with @err: -ECONNREFUSED or -ENOENT: no listener,
 * -ECONNRESET: the connection ended without an answer, -ETIME. Takes @request. @socket NULL:
 * -ENOENT. */
json_t *run_ask(const char *socket, json_t *request, int ms, struct error *err);
/* The same in two steps: returns the connection, to be closed by the caller, or -errno; then the
 * answer. Only for a request with a single answer. */
int run_request(const char *socket, json_t *request, struct error *err);
json_t *run_answer(int fd, int ms, struct error *err);
/* The same for a request with several answers: calls @each(@ctx) for each answer with "more", and
 * returns the last. */
json_t *run_ask_each(const char *socket, json_t *request, int ms,
                     void (*each)(void *ctx, const json_t *answer), void *ctx, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role_again: ranks that start again within an attempt (--restart-scope)
 *
 * head/model/role_order.h decides which ranks end and start together. Here are the grace time, the
 * pause before ranks that fail soon after a start, and the count of restarts, which job_restart.c
 * adds to that of attempts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/model/role_list.h"

struct cluster;
struct role_again;

/* @begin: the time is over, the ranks of @s are to be ordered. False: not in this attempt, and they
 * wait to its end. All is borrowed. */
struct role_again *role_again_create(struct cluster *c, uint32_t grace_ms,
                                     bool (*begin)(void *ctx, const struct role_span *s),
                                     void *ctx);
void role_again_close(struct role_again *a); /* role_again_free() after the loop has turned */
void role_again_free(struct role_again *a);
/* The attempt is over; the counts stay. */
void role_again_forget(struct role_again *a);

/* Ranks get TERM, and KILL when the grace time is over. */
void role_again_stop(struct role_again *a, const struct role_span *s);
/* All these ranks have ended: they are ordered at once, or after a pause. Returns its length in
 * milliseconds. */
uint64_t role_again_start(struct role_again *a, int role, const struct role_span *s);
/* Returns how many ranks are to be ordered again. */
size_t role_again_count_waiting(const struct role_again *a);

/* Counts a restart of ranks of a world. */
void role_again_count(struct role_again *a, uint32_t world);
int role_again_of_world(const struct role_again *a, uint32_t world); /* NULL is fine */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight_private: what request.c, request_collective.c and request_hold.c share
 */
#pragma once

#include "store/relay/request.h"

enum { FLIGHT_TAG_AT = 5 }; /* in a body */

/* request.c */
struct buf *flights_scratch(struct flights *fs); /* empty */
/* Lends the encoded request until the next call; no memory: p is NULL. */
struct bytes flight_encode(struct flights *fs, const struct store_request *req);
struct flight *flight_new(uint8_t op, const void *body, size_t len); /* NULL = no memory */
void flight_free(struct flight *f);
void flight_due(struct flights *fs, struct flight *f);
void flight_not_due(struct flights *fs, struct flight *f);
void flight_open_due(struct flights *fs, struct flight *f);
void flight_close(struct flights *fs, struct flight *f); /* to riders */
void flight_take_off(struct flights *fs, struct flight *f);
struct flight *flight_find_open(const struct flights *fs, uint8_t op, struct bytes body);
int flights_send(struct flights *fs, const struct store_request *req); /* -ENOMEM */
void flights_let_go(struct flights *fs); /* of the SET that is kept back */

/* request_collective.c: the same as without _meeting, for what meets. */
int flight_meeting_board(struct flights *fs, struct rider *rd, const struct store_request *req);
void flight_meeting_leave(struct flights *fs, struct rider *rd);
void flight_meeting_send(struct flights *fs, struct flight *f);
void flight_meeting_land(struct flights *fs, struct flight *f, const struct store_reply *reply);
void flight_meeting_free(struct flight *f); /* its seats */
bool flight_has_seat(const struct flight *f, uint32_t rank);
uint32_t flight_n_seats(const struct flight *f);

/* request_hold.c */
void flight_expect(const struct flights *fs, struct flight *f); /* counts who may come */
/* False: it is to leave. Else it is not due before flights_release() says so. */
bool flight_hold(struct flights *fs, struct flight *f, uint64_t now);
void flights_release(struct flights *fs, uint64_t now);

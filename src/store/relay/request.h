/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight: a request on its way to the head in the node's name, and the riders it is made for
 *
 * The inside of the relay that knows no clients: a rider is a request of one of them. One flight
 * of a kind (op and keys) is open to new riders:
 *
 *   DUE      not sent yet: anybody may come along
 *   SENT     on its way: nobody may, the next flight gathers (HELD) and becomes DUE when this one
 *            is back. A GET or WAIT may be joined, see JOIN in wire/store_msg.h.
 *
 * A WAIT that was answered because of a queue's item is for its first rider only; the others stay
 * HELD until that one's client has made its next request, as a rule the POP.
 *
 * A COUNT, which parks until others have come, closes when it is SENT: the next one is a new
 * flight. Flights with one rider that cannot be shared are SENT at once; of them a small SET is
 * DUE until something else leaves or the turn ends, and takes along who says the same meanwhile:
 * nothing comes between two of them. PASSED ones travel under their client's own number and are
 * kept for their key only.
 *
 * A flight to a meeting (request_collective.c) has seats, one for each rank, and stays open while
 * it is SENT: who comes later follows under its tag. Before anything leaves it may be held for a
 * moment, for others of the node (request_hold.c). A relay below has one rider with many seats. A
 * rank that leaves keeps its seat until the head has answered for it, as for any other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/buf.h"
#include "store/relay/local_ranks.h"
#include "store/relay/tag_table.h"
#include "wire/store_msg.h"

struct relay_client;

struct rider {
        struct rider_name {
                uint32_t client, tag;
        } name;
        struct relay_client *client;
        struct flight *flight;
        bool is_relay;  /* its client is: many may wait for the answer */
        int64_t number; /* of the request; COUNT: how many it stands for */
        int64_t sum;    /* ADD: of the flight up to this one, once sent */
        uint32_t join;  /* the JOIN that covers it; 0 = it was there from the start */
        /* JOINs of a relay below: all of them, those that are covered in any case, and the flight's
         * JOIN that covers all. */
        uint32_t joins, joins_covered, joins_by;
        struct seat *seats;  /* at a meeting, first come, first */
        uint32_t n_answered; /* of them, by the reply that is handed out */
        uint64_t since_ns;
        struct rider *prev, *next;   /* of the flight */
        struct rider *older, *newer; /* of the client */
        UT_hash_handle hh;
};

enum flight_state { FLIGHT_PASSED, FLIGHT_HELD, FLIGHT_DUE, FLIGHT_SENT, FLIGHT_LANDED };

struct flight {
        uint8_t op;
        enum flight_state state;
        bool open;            /* its table knows it: riders of the same kind find it */
        uint32_t tag;         /* while SENT */
        struct rider *riders; /* in the order in which they came */
        struct bytes first;   /* key, within body */
        uint32_t n_keys;
        struct flight *gathered, *before; /* the HELD one behind a SENT one, and back */
        struct flight *due_prev, *due_next;
        uint32_t behind;     /* HELD until this client goes on; 0 = nobody */
        bool looks;          /* GET, WAIT: cancelled already, its answer is on its way */
        bool is_due;         /* in that list: to be sent, or a JOIN for it */
        uint32_t joins;      /* JOINs that were sent */
        uint32_t n_sent;     /* ADD, COUNT: riders at take-off */
        int64_t sum;         /* ADD, COUNT: of all riders */
        struct pull *pull;   /* FETCH: its answer comes in parts; else NULL */
        bool meets;          /* to a meeting, in the node's name */
        struct seat *seats;  /* by rank */
        struct seat *fresh;  /* those that have not been sent, */
        uint32_t n_fresh;    /* ... so many */
        size_t fresh_bytes;  /* ... and what they bring */
        size_t value_len;    /* GATHER: what each brings */
        bool of_world;       /* all ranks are members */
        uint32_t n_expected; /* else: so many may come here */
        uint64_t held_until; /* others are waited for; 0 = not yet */
        bool is_held;        /* in that list */
        bool answers;        /* its riders are being told: it stays */
        UT_hash_handle hh_keys;
        size_t len;
        unsigned char body[]; /* the request, or the first key alone */
};

struct flight_ops {
        /* The body of a MSG_STORE. May not call back. */
        void (*up)(void *ctx, const void *body, size_t len);
        /* @rd has left its flight and gets @reply, whose tag is to be set; frees it. May do
         * anything to other riders. */
        void (*answer)(void *ctx, struct rider *rd, struct store_reply *reply);
        /* The same for one that stays on its flight: it waits for more. */
        void (*tell)(void *ctx, struct rider *rd, struct store_reply *reply);
};

struct flights {
        struct flight_ops ops;
        void *ctx;
        struct tags sent;
        struct flight *open[STORE_NODE_OPS]; /* by keys */
        struct flight *recent; /* one of these, which has many keys: found without encoding them */
        struct flight *due;
        struct flight *held; /* in the same links; the first one for longest */
        struct locals locals;
        struct flight *set;    /* the one that is DUE, not in that list; NULL = none */
        struct flight *behind; /* those that are HELD for a client, in the same links */
        struct buf scratch;
};

/* Puts @rd on a flight that serves @req: a shared one, one of its own, or, for what is about one
 * rank, one that passes under the rider's name; so does a meeting's that names no ranks.
 * -ENOMEM: it has none. -EINVAL: the ranks or their values make no sense. */
int flight_board(struct flights *fs, struct rider *rd, const struct store_request *req);

/* @rd gets off without an answer. A flight that is empty then is given up. */
void flight_leave(struct flights *fs, struct rider *rd);

/* GET, WAIT: @rd is asked for once more, alone and cancelled behind it, so that the head answers at
 * once with what is there. -ENOMEM: it was not, and is to leave. */
int flight_look(struct flights *fs, struct rider *rd);

/* More ranks of the relay below whose @rd waits for a meeting. -ENOMEM, -EINVAL: as above, or @req
 * is another request; then only the rider is where it was. */
int flight_board_more(struct flights *fs, struct rider *rd, const struct store_request *req);

/* These ranks of @rd (none = all) give up: the head says who was missing (@tell), or just that they
 * are out. They are answered then. */
void flight_withdraw(struct flights *fs, struct rider *rd, const uint32_t *ranks, uint32_t n,
                     bool tell);

/* A relay below has made the request of @rd in the name of one more. */
void flight_join(struct flights *fs, struct rider *rd);

/* @client has made another request, which is handed up, or is gone. */
void flights_client_went_on(struct flights *fs, uint32_t client);

/* An answer to the node: hands it out. One that nobody waits for is dropped. */
void flight_land(struct flights *fs, const struct store_reply *reply);

/* The same for one that passed: it is @rd's. */
void flight_arrive(struct flights *fs, struct rider *rd, const struct store_reply *reply);

/* Sends what is due. @now: of any clock, nanoseconds; 0 = there is none, nothing is held. */
void flights_turn(struct flights *fs, uint64_t now);
uint64_t flights_held_until(const struct flights *fs); /* 0 = nothing is held */
void flights_finish(struct flights *fs);

/* In a client's own name: @req goes up as it is. -ENOMEM. */
int flights_pass(struct flights *fs, uint32_t client, const struct store_request *req);
bool flight_passes(uint8_t op);
bool flight_meets(uint8_t op); /* BARRIER, GATHER, BROADCAST */

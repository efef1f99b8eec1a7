/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Push_msg: how a program and its files come to a node before the ranks start,
 *
 *   OFFER ->            the manifest: every folder, file (with its SHA-256) and link; or its hash
 *         <- WANT       the missing files, or the node of this run that fetches them; without
 *                       either: the manifest, which PACKs or a second OFFER bring
 *   PACK  -> ...        pieces of the missing files, one file after the other
 *         <- TAKEN ...  so many bytes of PACKs have been written: the sender's credit
 *         <- PUSHED     everything is in place and checked, or a failure
 *   LOOK  ->            look again: the other node has finished, or fetch the files here
 *
 * and how files come from a node when its ranks have ended (--pull):
 *
 *   PULL  ->              the paths
 *         <- PULLED ...   folders, files, links, and what is left there; the last one is PULL_END
 *
 * and how `hnlaunch stage` lists the folders that have stayed on a node (--stage, --venv), and
 * removes them:
 *
 *   STAGE ->              which ones to remove, if any
 *         <- STAGED       all folders, and those that were removed
 *
 * Pushed content is addressed by its hash, so PACKs may come from another sender than the OFFER: in
 * a chain each node passes the PACKs of a stream on to the next node over a connection of their
 * own,
 *
 *   CHAIN ->              listen for the node before; connect to the node behind; or neither
 *         <- CHAINED ...  the port; connected; broken; the node behind is slow
 *
 * Decoded structs own their strings and arrays; x_finish() frees them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/codec.h"
#include "wire/frame.h"

#define PUSH_NO_NODE UINT32_MAX
#define PUSH_LIST    UINT32_MAX
/* The time of all files on the nodes: 2000-01-01, which zip, make and Python's caches accept. */
#define PUSH_FILE_TIME 946684800

enum {
        PUSH_SHA = 32,                /* bytes of a SHA-256 */
        PUSH_ENTRIES_MAX = 200000,    /* of a manifest */
        PUSH_MANIFEST_MAX = 24 << 20, /* bytes of a manifest, sent in a single frame */
        PUSH_PATH_MAX = 4095,
        /* Of a PACK: the bytes of files and PUSH_PIECE_COST for each piece. Small, because each
         * node of a chain has the whole PACK before the next one gets any of it. */
        PUSH_PACK_MAX = 15 << 10,
        PUSH_PIECE_COST = 16, /* bytes of a piece beside its data */
        PUSH_CHAIN_KEY = 32,
        PUSH_CHAIN_ADDRS = 4, /* of a node that are tried */
        PUSH_RING = 512,      /* PACKs of a stream that a node keeps for the node behind */
};

enum {
        PULL_PATHS_MAX = 1024,
        PULL_PART_MAX = 128 << 10,  /* bytes of a file in a PULLED */
        PULL_ENTRIES_MAX = 1000000, /* of a node */
};

enum push_kind { PUSH_FOLDER = 1, PUSH_FILE, PUSH_LINK };

struct push_entry {
        uint8_t kind;  /* enum push_kind */
        uint32_t mode; /* permission bits */
        uint64_t size; /* of a file, bytes */
        unsigned char sha[PUSH_SHA];
        char *path;   /* relative, without "." and ".."; folders come before their contents */
        char *target; /* of a link, else NULL */
};

struct push_manifest {
        struct push_entry *v;
        uint32_t n;
};

/* Appends the bytes whose SHA-256 names the whole manifest. */
void push_manifest_put(struct buf *b, const struct push_manifest *m);
/* Decodes these bytes, the body of @f. */
int push_manifest_decode(struct push_manifest *m, const struct frame *f, struct error *err);
void push_manifest_finish(struct push_manifest *m);
/* True for a path that stays below its folder. */
bool push_path_is_safe(const char *path);

/* Uses of a manifest; a node gets one manifest of each at most. */
enum push_use {
        PUSH_RANKS, /* --push: the ranks start among the files and may write there */
        PUSH_STAGE, /* --stage: a copy that stays, for reading */
        PUSH_VENV,  /* --venv: the same, of a virtual environment */
        PUSH_USES,
};

/* The Python of an environment, which the node must have; or a relative path: it comes with the
 * environment, and the agent adds its folder to pyvenv.cfg. */
struct push_python {
        char *path; /* "" = none */
        uint64_t size;
        unsigned char sha[PUSH_SHA];
};

/* What a manifest is for. */
struct push_label {
        uint8_t use;                 /* enum push_use */
        uint64_t limit;              /* bytes of files that may stay on the node; 0 = any number */
        unsigned char sha[PUSH_SHA]; /* of the manifest */
        char *name;                  /* a path of the head, for lists */
        struct push_python python;   /* of PUSH_VENV */
};

struct push_offer {
        char run_id[64];
        uint32_t node;       /* this node's number, as in WANT.holder */
        uint32_t silence_ms; /* the head is lost after so long without a word; 0 = never */
        uint8_t keep;        /* after the job, too; staged files stay in any case */
        uint32_t later;      /* bytes of the manifest, which comes later, in PACKs or in a second
                              * OFFER, if the agent asks for it; 0 = it is here */
        struct push_label label;
        struct push_manifest manifest;
};

struct push_look {
        uint8_t take_over; /* fetch here although another node has claimed the files */
};

struct push_want {
        /* The node of this run that fetches into the same (shared) folder. PUSH_NO_NODE: send
         * @entries, or, of none, the manifest. */
        uint32_t holder;
        uint32_t *entries; /* indices into the manifest, ascending */
        uint32_t n;
};

/* Bytes of a file, at a place that the receiver does not have to be told before; or bytes of the
 * manifest. */
struct push_piece {
        uint32_t entry; /* PUSH_LIST: the manifest */
        uint64_t offset;
        uint32_t len; /* 0 only for an empty file */
};

/* The next pieces of a stream: all files that the nodes of a chain miss, in the order of the
 * manifest, or the manifest. A node skips what it has, and PACKs that it had before. */
struct push_pack {
        uint32_t stream;   /* chosen by the head, larger than those before */
        uint32_t position; /* in the stream: 0, 1, ... */
        bool deflated;     /* @data is a raw deflate stream (RFC 1951) of the bytes */
        struct push_piece *pieces;
        uint32_t n;
        const unsigned char *data; /* lent by the frame */
        size_t len;
};

enum chain_what {
        CHAIN_LISTEN = 1, /* open a port for the node before; answered by CHAINED_LISTENS */
        CHAIN_CONNECT,    /* pass on to this node; answered by CHAINED_CONNECTED or _BROKEN */
        CHAIN_LAST,       /* pass on to no node */
        CHAIN_YIELD,      /* never wait for the node behind from now on */
        CHAIN_LEAVE,      /* close the port and the connection to the node before; answered by
                             CHAINED_LISTENS without a port */
        CHAIN_END,        /* the stream is over: forget it */
        CHAIN_WHATS,
};

struct chain_order {
        uint32_t number;        /* of the order, repeated in reports about it */
        uint32_t stream, packs; /* the number of PACKs in the stream */
        uint8_t what;           /* enum chain_what */
        /* CONNECT: never wait for this node; leave it when it is too far behind */
        bool yields;
        unsigned char key[PUSH_CHAIN_KEY]; /* of LISTEN and CONNECT: for one connection */
        uint32_t port;                     /* of CONNECT */
        struct strv addrs;                 /* of CONNECT: numeric, best first */
};

enum chained_what {
        CHAINED_LISTENS = 1, /* at @port, 0 = not */
        CHAINED_CONNECTED,   /* to the node behind */
        CHAINED_BROKEN, /* no connection to the node behind, or no longer: @error; ERANGE = it is
                           so far behind that the PACKs are not kept */
        CHAINED_SLOW,   /* the node behind takes less than half of what comes */
        CHAINED_WHATS,
};

struct chain_report {
        uint32_t number; /* of the LISTEN, LEAVE or CONNECT */
        uint32_t stream;
        uint8_t what;      /* enum chained_what */
        uint32_t position; /* PACKs that this node has */
        uint32_t port, error;
};

struct pushed {
        uint32_t error; /* errno; 0 = all is in place; EBADMSG: content differs from the hash */
        uint64_t free_bytes; /* in @folder, where relevant */
        char folder[1024];   /* the place of the files, also after a failure */
        char what[256];      /* after a failure: the step that failed, with the path; may be cut */
};

struct pull_order {
        struct strv paths; /* relative ones start at the working directory of the ranks */
        struct strv
                skip; /* folders of the head that are passed over, where the node has them, too */
};

enum pull_kind {
        PULL_FOLDER = 1, /* comes before its contents */
        PULL_FILE,       /* begins a file, which PULL_FILE_END ends before anything else comes */
        PULL_BYTES,
        PULL_FILE_END, /* @error ESTALE: it became shorter while it was read */
        PULL_LINK,     /* @data: where it leads */
        PULL_LEFT,     /* stays on the node: @error, 0 = neither file nor folder nor link */
        PULL_END,
        PULL_KINDS,
};

struct pulled {
        uint8_t kind;              /* enum pull_kind */
        uint32_t item;             /* index of PULL's path */
        uint32_t mode, error;      /* permission bits; errno */
        char *path;                /* below PULL's path; "" = that path itself */
        const unsigned char *data; /* lent by the frame */
        size_t len;
};

void pull_order_encode(struct buf *b, const struct pull_order *m);
int pull_order_decode(struct pull_order *m, const struct frame *f, struct error *err);
void pull_order_finish(struct pull_order *m);
void pulled_encode(struct buf *b, const struct pulled *m);
int pulled_decode(struct pulled *m, const struct frame *f, struct error *err);
void pulled_finish(struct pulled *m);

void push_offer_encode(struct buf *b, const struct push_offer *m);
int push_offer_decode(struct push_offer *m, const struct frame *f, struct error *err);
void push_offer_finish(struct push_offer *m);
void push_look_encode(struct buf *b, const struct push_look *m);
int push_look_decode(struct push_look *m, const struct frame *f, struct error *err);
void push_want_encode(struct buf *b, const struct push_want *m);
int push_want_decode(struct push_want *m, const struct frame *f, struct error *err);
void push_want_finish(struct push_want *m);
void push_pack_encode(struct buf *b, const struct push_pack *m);
int push_pack_decode(struct push_pack *m, const struct frame *f, struct error *err);
void push_pack_finish(struct push_pack *m);
/* Returns the bytes of all pieces. */
size_t push_pack_bytes(const struct push_pack *m);
void chain_order_encode(struct buf *b, const struct chain_order *m);
int chain_order_decode(struct chain_order *m, const struct frame *f, struct error *err);
void chain_order_finish(struct chain_order *m);
void chain_report_encode(struct buf *b, const struct chain_report *m);
int chain_report_decode(struct chain_report *m, const struct frame *f, struct error *err);
void pushed_encode(struct buf *b, const struct pushed *m);
int pushed_decode(struct pushed *m, const struct frame *f, struct error *err);

enum { STAGED_MAX = 100000 }; /* folders of a node */

struct stage_order {
        uint8_t remove;     /* else only list */
        uint64_t limit;     /* remove: bytes that may stay; the oldest folders go first */
        uint64_t max_age_s; /* remove: folders not used for longer go in any case; 0 = none */
};

struct staged_copy {
        char *folder; /* the whole path on the node */
        char *name;   /* what was staged: a path of the head */
        uint8_t use;  /* enum push_use */
        uint64_t bytes, files;
        uint64_t age_s; /* since the last use began */
        uint8_t in_use, removed;
};

struct staged {
        struct staged_copy *v;
        uint32_t n;
};

void stage_order_encode(struct buf *b, const struct stage_order *m);
int stage_order_decode(struct stage_order *m, const struct frame *f, struct error *err);
void staged_encode(struct buf *b, const struct staged *m);
int staged_decode(struct staged *m, const struct frame *f, struct error *err);
void staged_finish(struct staged *m);

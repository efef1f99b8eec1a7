/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Push_msg: how a program and its files come to a node before the ranks start,
 *
 *   OFFER ->            the manifest: every folder, file (with its SHA-256) and link
 *         <- WANT       the missing files, or the node of this run that fetches them
 *   CHUNK -> ...        the missing files, one after the other
 *         <- TAKEN ...  so many bytes of files have been written: the sender's credit
 *         <- PUSHED     everything is in place and checked, or a failure
 *   LOOK  ->            look again: the other node has finished, or fetch the files here
 *
 * and how files come from a node when its ranks have ended (--pull):
 *
 *   PULL  ->              the paths
 *         <- PULLED ...   folders, files, links, and what is left there; the last one is PULL_END
 *
 * Pushed content is addressed by its hash, so CHUNKs may come from another sender than the OFFER.
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

enum {
        PUSH_SHA = 32,                /* bytes of a SHA-256 */
        PUSH_ENTRIES_MAX = 200000,    /* of a manifest */
        PUSH_MANIFEST_MAX = 24 << 20, /* bytes of a manifest, sent in a single frame */
        PUSH_PATH_MAX = 4095,
        PUSH_CHUNK_MAX = 256 << 10,          /* bytes of a CHUNK */
        PUSH_CHUNK_HEAD = FRAME_HEADER + 12, /* bytes of a CHUNK's frame before the data */
        PUSH_CHUNK_COST = 64,                /* credit taken by a CHUNK beside the data */
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
void push_manifest_finish(struct push_manifest *m);
/* True for a path that stays below its folder. */
bool push_path_is_safe(const char *path);

struct push_offer {
        char run_id[64];
        uint32_t node;       /* this node's number, as in WANT.holder */
        uint32_t silence_ms; /* the head is lost after so long without a word; 0 = never */
        uint8_t keep;        /* after the job, too */
        struct push_manifest manifest;
};

struct push_look {
        uint8_t take_over; /* fetch here although another node has claimed the files */
};

struct push_want {
        /* The node of this run that fetches into the same (shared) folder. PUSH_NO_NODE: send
         * @entries. */
        uint32_t holder;
        uint32_t *entries; /* indices into the manifest, ascending */
        uint32_t n;
};

struct push_chunk {
        uint32_t entry;
        uint64_t offset;
        const unsigned char *data; /* lent by the frame */
        size_t len;                /* 0 only for an empty file */
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
/* Appends the head of a CHUNK and space for @len bytes of data, to be filled at once; NULL: no
 * memory (remembered by @b). */
void *push_chunk_begin(struct buf *b, uint32_t entry, uint64_t offset, size_t len);
int push_chunk_decode(struct push_chunk *m, const struct frame *f, struct error *err);
void pushed_encode(struct buf *b, const struct pushed *m);
int pushed_decode(struct pushed *m, const struct frame *f, struct error *err);

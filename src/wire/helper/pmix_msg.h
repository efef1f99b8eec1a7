/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_msg: the messages between the agent and its helper hnlaunch-pmix
 *
 * Frames (wire/frame.h) on a stream socket that the helper inherits as descriptor 0:
 *
 *   JOB      ->            the job; the first message
 *            <- ENV ...    the environment of each local rank, in the order of JOB; then READY
 *            <- FAILED     instead: no libpmix could be opened, or it refused the job
 *            <- CONNECTED  a rank has called PMIx_Init; FINALIZED: it has called PMIx_Finalize
 *            <- FENCE      the data of this node for a fence of some ranks
 *   FENCED   ->            the data of all nodes, or a failure
 *            <- WANT       the data of a rank of another node (direct modex)
 *   WANTED   ->            these data, or a failure
 *   FETCH    ->            another node wants the data of a local rank
 *            <- FETCHED    these data, or a failure
 *            <- ABORT      a rank has called PMIx_Abort
 *
 * Both programs are of one build, so there is no version. The helper runs third-party code that
 * serves ranks: the agent checks what it says like any message from outside. Decoded structs own
 * their strings and arrays, but for @data; x_finish() frees them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

enum pmix_msg_type {
        /* agent -> helper */
        PMIX_MSG_JOB = 1,
        PMIX_MSG_FENCED = 2,
        PMIX_MSG_WANTED = 3,
        PMIX_MSG_FETCH = 4,
        /* helper -> agent */
        PMIX_MSG_ENV = 16,
        PMIX_MSG_READY = 17,
        PMIX_MSG_FAILED = 18,
        PMIX_MSG_CONNECTED = 19,
        PMIX_MSG_FINALIZED = 20,
        PMIX_MSG_FENCE = 21,
        PMIX_MSG_WANT = 22,
        PMIX_MSG_FETCHED = 23,
        PMIX_MSG_ABORT = 24,
};

enum {
        PMIX_ENV_MAX = 64,        /* variables of a rank */
        PMIX_RANKS_MAX = 1 << 20, /* of a fence */
        PMIX_LOCAL_MAX = 1 << 16, /* ranks of a node */
        PMIX_TEXT_MAX = 4096,     /* bytes of a variable, path or message */
        PMIX_MAP_MAX = 16 << 20,  /* bytes of a map of the job */
        PMIX_BLOB_MAX = 16 << 20, /* bytes of the data of a node, as of a value of the store */
};

struct pmix_job {
        char run_id[64];
        uint32_t restart, world_size, num_nodes, node;
        char *nodes;     /* names of all nodes, separated by commas */
        char *ranks;     /* ranks of each node: "0,1;2,3" */
        uint32_t *local; /* ranks of this node, ordered by local rank */
        uint32_t n_local;
        uint32_t *programs; /* number of the program, by local rank */
        uint32_t n_programs;
        bool oversubscribed; /* more ranks than processors here */
        char *folder;        /* private and empty; the agent removes it */
        char *program;       /* argv[0] */
        char *cwd;           /* of the ranks */
        char *prefix;        /* $PMIX_PREFIX, "" = not set */
};

struct pmix_env {
        uint32_t rank;
        struct strv vars; /* NAME=VALUE */
};

/* Every other message. */
struct pmix_note {
        uint32_t id;     /* of the request; an answer repeats it */
        uint32_t rank;   /* CONNECTED, FINALIZED, WANT, FETCH, ABORT */
        int32_t status;  /* FENCED, WANTED, FETCHED: 0 or a PMIx error; ABORT: the exit code */
        uint32_t *ranks; /* of FENCE; none = all */
        uint32_t n_ranks;
        const unsigned char
                *data; /* lent by the frame: a blob, or the text of READY, FAILED, ABORT */
        size_t len;
};

/* Encoders append a whole frame. Decoders: 0, or -EPROTO: malformed, or above a limit. */
void pmix_job_encode(struct buf *b, const struct pmix_job *m);
int pmix_job_decode(struct pmix_job *m, const struct frame *f, struct error *err);
void pmix_job_finish(struct pmix_job *m);
void pmix_env_encode(struct buf *b, const struct pmix_env *m);
int pmix_env_decode(struct pmix_env *m, const struct frame *f, struct error *err);
void pmix_env_finish(struct pmix_env *m);
void pmix_note_encode(struct buf *b, uint8_t type, const struct pmix_note *m);
int pmix_note_decode(struct pmix_note *m, const struct frame *f, struct error *err);
void pmix_note_finish(struct pmix_note *m);

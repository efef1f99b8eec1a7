/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output file: reads the output kept by the recorder (head/run/recorder.h), also during a run
 *
 * Not for two threads on one file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum output_kind {
        OUTPUT_BYTES,
        OUTPUT_GAP,      /* @len bytes were not kept; 0 = an unknown number */
        OUTPUT_DETACHED, /* the run has no terminal from here on */
};

struct output_piece {
        enum output_kind kind;
        int64_t us;     /* since the start of hnlaunch */
        int rank;       /* -1 = hnlaunch itself */
        uint8_t stream; /* MSG_STDOUT, MSG_STDERR */
        uint64_t len;
        const char *bytes; /* lent until the next piece; a NUL follows */
};

/* A reader's position. */
struct output_place {
        int64_t file; /* 1 + the time of its first piece; 0 = the beginning */
        off_t at;
};

struct output_file {
        int dir;    /* the folder of the run; borrowed */
        FILE *file; /* NULL = there is none yet */
        char *bytes;
};

/* Opens the output in the folder @dir (head/run/run_records.h) at @from, or at the beginning if
 * that place is gone. The file may still be missing. */
void output_file_open(struct output_file *f, int dir, struct output_place from);
void output_file_finish(struct output_file *f);

/* Reads the next piece. False: there is no more now. */
bool output_file_next(struct output_file *f, struct output_piece *p);
/* Whether part of a piece is left: the recorder is writing it, the disk of an ended run was full,
 * or hnlaunch was killed. */
bool output_file_is_cut(struct output_file *f);
struct output_place output_file_tell(const struct output_file *f);

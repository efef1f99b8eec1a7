/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank board: the life of each rank of the attempt, in one place
 *
 * Listens to the event stream and is told of output and steps. Every view of a rank reads the
 * board: live line, top, metrics, ps, and by head/status Ctrl-\ and `why`. Opened before other
 * listeners, so a listener of an event finds the fact of the event here. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/model/events.h"
#include "head/model/plan.h"
#include "head/model/step_pace.h"

enum rank_life {
        RANK_WAITS, /* not started */
        RANK_ALIVE,
        RANK_ENDED,
        RANK_LOST, /* with the node; no end of the rank is known */
};

struct rank_board_row {
        enum rank_life life;
        bool joined;         /* has opened libhnlaunch, or come to PyTorch's store */
        int64_t joined_ms;   /* since the launch; -1 = not known */
        bool stopped;        /* RANK_ENDED: after the job was to stop */
        int64_t exit;        /* RANK_ENDED: exit code, or -signal */
        int64_t step, total; /* the newest; -1 = none, total 0 = unknown */
        int64_t written_us;  /* the last output; -1 = none */
        uint64_t bytes[2];   /* of output, by stream */
};

struct rank_board {
        const struct events *events;
        const struct plan *plan;
        struct rank_board_row *rows; /* by rank; NULL before EVENT_RUN_START */
        int n, alive;
        int64_t attempt; /* 0 = the first */
        bool stopping;   /* the attempt is to stop */
        struct step_pace *pace;
};

/* The steps of all ranks that have told one, or in a job of roles of those of one role. */
struct rank_board_steps {
        const char *role;           /* NULL = the job has no roles */
        int told;                   /* ranks; 0: the other members mean nothing */
        int64_t least, most, total; /* least: of the living ranks, if any; total 0 = unknown */
        int slowest;                /* the lowest rank with the least step */
};

/* @plan has ranks from EVENT_RUN_START on. Both are borrowed until the last event. */
struct rank_board *rank_board_create(struct events *es, const struct plan *plan);
void rank_board_destroy(struct rank_board *b);
struct strv;

/* Steps of these roles count before those of others; borrowed as the plan. */
void rank_board_prefer(struct rank_board *b, const struct strv *main_roles);

/* A rank has written to MSG_STDOUT or MSG_STDERR. */
void rank_board_output(struct rank_board *b, int rank, uint8_t stream, size_t bytes);

/* A rank has told a step; before its event, of which there may be fewer. */
void rank_board_step(struct rank_board *b, int rank, int64_t step, int64_t total);

/* Whether a rank has ended, well or not, or is lost. */
bool rank_board_is_over(const struct rank_board_row *r);
struct rank_board_steps rank_board_steps(const struct rank_board *b);
/* Whether the steps of the rank count. */
bool rank_board_counts_steps(const struct rank_board *b, int rank);
/* Returns steps in a second up to now; 0 = not known. Live line and top call it each second.
 * @loop_ms is uv_now(): questions in one turn of the loop have one answer. */
double rank_board_rate(struct rank_board *b, uint64_t loop_ms);

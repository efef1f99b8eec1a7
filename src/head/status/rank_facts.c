/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step is told as an event at once if the last event of the rank is a second old; else the timer
 * @tell tells the newest when that second is over, so listeners are at most a second late and a
 * program may report a thousand steps in it. Steps of lines count until the rank reports one
 * itself.
 */
#include "head/status/rank_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
        STEP_GAP_MS = 1000, /* between two events about a rank's progress */
        NOTE_MAX = 80,      /* bytes; longer notes are cut */
};

#define STEP_GAP_NS (STEP_GAP_MS * INT64_C(1000000))

/* A step of a rank, whose number stands on the board. */
struct rank_step {
        int64_t told_ns; /* the last event */
        char note[NOTE_MAX + 1];
        bool untold;   /* not yet an event */
        bool reported; /* by hn_progress(): lines count no longer */
};

/* Emits an event of @rank with the name of its host. */
static void emit_rank_event(const struct rank_facts *f, int rank, struct event e)
{
        e.rank = rank;
        e.node = f->ranks->plan->ranks[rank].node;
        e.host = f->hosts->v[e.node].name;
        events_emit(f->events, e);
}

/* --- progress --- */

/* Emits the newest step, whose number is on the board. */
static void emit_rank_step(struct rank_facts *f, int rank)
{
        const struct rank_board_row *row = &f->ranks->rows[rank];
        struct rank_step *step = &f->steps[rank];

        step->told_ns = clock_ns();
        step->untold = false;
        emit_rank_event(f, rank,
                        (struct event){ .kind = EVENT_RANK_PROGRESS,
                                        .value = row->step,
                                        .count = row->total,
                                        .text = *step->note ? step->note : NULL });
}

/* Emits the reports that came within a second after an event, once that second is over. */
static void on_tell_time(uv_timer_t *t)
{
        struct rank_facts *f = t->data;
        int64_t now = clock_ns();
        bool untold = false;

        for (int i = 0; f->steps && i < f->ranks->n; i++) {
                if (f->steps[i].untold && now - f->steps[i].told_ns >= STEP_GAP_NS)
                        emit_rank_step(f, i);
                untold |= f->steps[i].untold;
        }
        if (!untold)
                uv_timer_stop(t);
}

/* Takes a step from either source; @new has the note and whether the rank reported the step itself.
 * A program may report a thousand steps a second: at most an event a second is made. */
static void take_rank_step(struct rank_facts *f, int rank, int64_t step, int64_t total,
                           const struct rank_step *new)
{
        const struct rank_board_row *row = &f->ranks->rows[rank];
        bool over = rank_board_is_over(row), first = row->step < 0;
        struct rank_step *k;

        /* Reports of a rank come before its end; lines of output may come later. */
        if (step < 0 || (over && new->reported))
                return;
        if (!f->steps)
                f->steps = xcalloc((size_t)f->ranks->n, sizeof(*f->steps));
        k = &f->steps[rank];
        if (k->reported && !new->reported)
                return;
        /* Before the event: listeners read the board. */
        rank_board_step(f->ranks, rank, step, MAX(total, 0));
        k->reported = new->reported;
        memcpy(k->note, new->note, sizeof(k->note));
        k->untold = true;
        /* The first step shows that a rank counts at all; behind the end nothing newer comes. */
        if (first || over || clock_ns() - k->told_ns >= STEP_GAP_NS)
                emit_rank_step(f, rank);
        else if (!uv_is_active((uv_handle_t *)&f->tell))
                uv_timer_start(&f->tell, on_tell_time, STEP_GAP_MS, STEP_GAP_MS);
}

void rank_facts_progress(struct rank_facts *f, int rank, int64_t step, int64_t total,
                         const char *note)
{
        struct rank_step new = { .reported = true };

        snprintf(new.note, sizeof(new.note), "%s", note);
        take_rank_step(f, rank, step, total, &new);
}

void rank_facts_line_step(struct rank_facts *f, int rank, int64_t step, int64_t total)
{
        take_rank_step(f, rank, step, total, &(struct rank_step){ 0 });
}

void rank_facts_ended(struct rank_facts *f, int rank)
{
        /* The timer would come after the end. */
        if (f->steps && f->steps[rank].untold)
                emit_rank_step(f, rank);
}

/* --- joins --- */

/* An answer of a node tells that a rank is at the store, not since when: the value is -1. */
bool rank_facts_emit_joined(struct rank_facts *f, const struct rank_table *t)
{
        bool told = false;

        for (size_t i = 0; i < t->n; i++) {
                if (f->ranks->rows[i].joined || !rank_row_joined(&t->rows[i]))
                        continue;
                told = true;
                emit_rank_event(f, (int)i,
                                (struct event){ .kind = EVENT_RANK_JOINED, .value = -1 });
        }
        return told;
}

bool rank_facts_all_told(const struct rank_facts *f)
{
        for (int i = 0; i < f->ranks->n; i++)
                if (!f->ranks->rows[i].joined && !rank_board_is_over(&f->ranks->rows[i]))
                        return false;
        return true;
}

/* The end goes last: a rank that has ended keeps its join and its steps. */
void rank_facts_fill(const struct rank_facts *f, struct rank_table *t)
{
        for (int i = 0; i < f->ranks->n; i++) {
                const struct rank_board_row *r = &f->ranks->rows[i];

                if (r->joined)
                        rank_table_joined(t, i, r->joined_ms);
                if (f->steps && r->step >= 0)
                        rank_table_progress(
                                t, i,
                                (struct rank_progress){ r->step, r->total, f->steps[i].note });
                if (r->life == RANK_ENDED)
                        rank_table_ended(t, i);
                else if (r->life == RANK_LOST)
                        rank_table_lost(t, i);
        }
}

/* --- life cycle --- */

void rank_facts_init(struct rank_facts *f, uv_loop_t *loop)
{
        uv_timer_init(loop, &f->tell);
        uv_unref((uv_handle_t *)&f->tell);
        f->tell.data = f;
}

void rank_facts_close(struct rank_facts *f)
{
        uv_close((uv_handle_t *)&f->tell, NULL);
}

void rank_facts_begin(struct rank_facts *f, struct rank_board *ranks, const struct hosts *hosts,
                      struct events *events)
{
        rank_facts_finish(f);
        f->ranks = ranks;
        f->hosts = hosts;
        f->events = events;
}

void rank_facts_finish(struct rank_facts *f)
{
        free(f->steps);
        f->steps = NULL;
}

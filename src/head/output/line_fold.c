/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held lines stand in the order of their ends; each has a place, a number that grows along the
 * list. A rank remembers the place of the rank's last line. A line joins an equal line behind the
 * place. An equal line before the place is moved to the end of the list first, if no rank of the
 * line has a later line: ranks that write "rank 0, ready" and "rank 1, ready" fold, too.
 */
#include "head/output/line_fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Lines held at once. Each new line is compared with all of them, so the number also bounds the
 * work for a line. */
enum { HELD_MAX = 256 };

struct held_line {
        struct held_line *prev, *next;
        uint64_t place; /* from 1 */
        /* When the first rank wrote the line. A line that moves keeps the time. */
        int64_t us;
        uint64_t hash;
        uint8_t kind;
        char *text;
        size_t len;
        int *ranks; /* in order of arrival, sorted at the end */
        size_t n, cap;
};

struct line_fold {
        struct held_line ends;            /* of the ring: next is the oldest */
        uint64_t places;                  /* given so far */
        uint64_t *last;                   /* by rank: the place of its last line, 0 = none yet */
        size_t n_held, n_all, bytes, max; /* @n_all: ranks whose lines come */
        line_fold_end_fn *end;
        void *ctx;
};

struct line_fold *line_fold_create(int n_ranks, int n_all, size_t max, line_fold_end_fn *end,
                                   void *ctx)
{
        struct line_fold *f = xcalloc(1, sizeof(*f));

        f->ends.next = f->ends.prev = &f->ends;
        f->last = xcalloc((size_t)n_ranks, sizeof(*f->last));
        f->n_all = (size_t)n_all;
        f->max = max;
        f->end = end;
        f->ctx = ctx;
        return f;
}

static void unlink_held(struct held_line *h)
{
        h->prev->next = h->next;
        h->next->prev = h->prev;
}

/* Puts a line at the end; its ranks have no later one. */
static void append_held(struct line_fold *f, struct held_line *h)
{
        h->place = ++f->places;
        h->prev = f->ends.prev;
        h->next = &f->ends;
        h->prev->next = h->next->prev = h;
        for (size_t i = 0; i < h->n; i++)
                f->last[h->ranks[i]] = h->place;
}

/* Frees a line that is already out of the ring. */
static void free_held(struct line_fold *f, struct held_line *h)
{
        f->bytes -= h->len;
        f->n_held--;
        free(h->text);
        free(h->ranks);
        free(h);
}

void line_fold_destroy(struct line_fold *f)
{
        struct held_line *h;

        if (!f)
                return;
        while ((h = f->ends.next) != &f->ends) {
                unlink_held(h);
                free_held(f, h);
        }
        free(f->last);
        free(f);
}

static int compare_folded_ranks(const void *a, const void *b)
{
        return *(const int *)a - *(const int *)b;
}

/* Ends the first line of the ring. The line is unlinked before the callback, which may add
 * lines. */
static void end_oldest(struct line_fold *f)
{
        struct held_line *h = f->ends.next;

        qsort(h->ranks, h->n, sizeof(*h->ranks), compare_folded_ranks);
        unlink_held(h);
        f->end(f->ctx, &(struct folded_line){ .us = h->us,
                                              .kind = h->kind,
                                              .text = h->text,
                                              .len = h->len,
                                              .ranks = { h->ranks, h->n } });
        free_held(f, h);
}

/* FNV-1a: spares the comparison of lines that differ. */
static uint64_t hash_text(const unsigned char *p, size_t len)
{
        uint64_t hash = UINT64_C(14695981039346656037);

        for (size_t i = 0; i < len; i++)
                hash = (hash ^ p[i]) * UINT64_C(1099511628211);
        return hash;
}

/* Whether the line may end behind all others: it is young, and the last one of its ranks, of which
 * @rank is none. */
static bool may_move(const struct line_fold *f, const struct held_line *h, int64_t us, int rank)
{
        if (us - h->us >= LINE_FOLD_US || f->last[rank] == h->place)
                return false;
        for (size_t i = 0; i < h->n; i++)
                if (f->last[h->ranks[i]] != h->place)
                        return false;
        return true;
}

/* Finds a line that the rank's @line may join, and moves the found line if need be. A line at or
 * before the place of the rank's last line would come too early: the order of each rank must stay.
 * NULL: none. */
static struct held_line *find_held(struct line_fold *f, const struct held_line *line, int rank)
{
        for (struct held_line *h = f->ends.next; h != &f->ends; h = h->next) {
                if (h->hash != line->hash || h->len != line->len || h->kind != line->kind ||
                    memcmp(h->text, line->text, line->len) != 0)
                        continue;
                if (h->place > f->last[rank])
                        return h;
                if (!may_move(f, h, line->us, rank))
                        continue;
                unlink_held(h);
                append_held(f, h);
                return h;
        }
        return NULL;
}

/* Copies @line to the end of the ring, yet without a rank. */
static struct held_line *hold_line(struct line_fold *f, const struct held_line *line)
{
        struct held_line *h = xcalloc(1, sizeof(*h));

        *h = *line;
        h->text = xcalloc(line->len + 1, 1);
        memcpy(h->text, line->text, line->len);
        append_held(f, h);
        f->bytes += h->len;
        f->n_held++;
        return h;
}

void line_fold_add(struct line_fold *f, int64_t us, int rank, uint8_t kind, const void *text,
                   size_t len)
{
        struct held_line line = { .us = us,
                                  .hash = hash_text(text, len),
                                  .kind = kind,
                                  .text = (char *)text,
                                  .len = len };
        struct held_line *h = find_held(f, &line, rank);

        if (!h)
                h = hold_line(f, &line);
        h->ranks = xgrow(h->ranks, h->n, &h->cap, sizeof(*h->ranks));
        h->ranks[h->n++] = rank;
        f->last[rank] = h->place;
        /* A line of all ranks cannot grow, so nothing is gained by waiting. Only the first line of
         * the ring may end, to keep the order. */
        while (f->n_held &&
               (f->n_held > HELD_MAX || f->bytes > f->max || f->ends.next->n == f->n_all))
                end_oldest(f);
}

void line_fold_end_until(struct line_fold *f, int64_t us)
{
        while (f->n_held && f->ends.next->us <= us)
                end_oldest(f);
}

void line_fold_end_rank(struct line_fold *f, int rank)
{
        while (f->n_held && f->ends.next->place <= f->last[rank])
                end_oldest(f);
}

void line_fold_end_all(struct line_fold *f)
{
        while (f->n_held)
                end_oldest(f);
}

int64_t line_fold_oldest(const struct line_fold *f)
{
        return f->n_held ? f->ends.next->us : INT64_MAX;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each update sorts the hosts and lists the rows anew: hosts, ranks of open hosts, and one row for
 * successive hosts with nothing odd. Open hosts are kept by node number, and the cursor by node and
 * rank, so both stay with the same host when the order changes. Keys change only the state; the
 * next update moves the page to the cursor.
 */
#include "head/top/top_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ALIKE_LEAST = 3 }; /* fewer hosts have rows of their own */

/* --- order ------------------------------------------------------------------------------------ */

struct top_sort_key {
        double value; /* the lower, the earlier */
        size_t host;
};

/* Returns the key of a host. Values are negated where the largest comes first; -1, not known, is
 * then last. */
static double find_sort_value(const struct top_frame_host *h, enum top_sort by)
{
        switch (by) {
        case TOP_BY_ODDITY:
                return h->odd.worst;
        case TOP_BY_LAG:
                return -(double)h->lag;
        case TOP_BY_WAIT:
                return h->longest ? -(double)h->longest->wait_ms : 1;
        case TOP_BY_CPU:
                return -h->cpu_percent;
        case TOP_BY_MEM:
                return -(double)h->memory_mib;
        case TOP_BY_GPU:
                return h->gpus.percent < 0 ? 101 : (double)h->gpus.percent; /* idle GPUs first */
        case TOP_BY_NET:
                return -(double)(h->in_kib + h->out_kib);
        case TOP_BY_OUT:
                return -(double)h->quiet_ms;
        case TOP_BY_HOST:
        case TOP_SORTS:
                break;
        }
        return 0;
}

/* Hosts with equal values stay in the order of the run: qsort() is not stable. */
static int compare_sort_keys(const void *a, const void *b)
{
        const struct top_sort_key *x = a, *y = b;

        if (x->value != y->value)
                return x->value < y->value ? -1 : 1;
        return x->host < y->host ? -1 : 1;
}

void top_view_order(const struct top_frame *f, enum top_sort by, size_t *order)
{
        struct top_sort_key *keys = xcalloc(f->n_hosts, sizeof(*keys));

        for (size_t i = 0; i < f->n_hosts; i++)
                keys[i] = (struct top_sort_key){ find_sort_value(&f->hosts[i], by), i };
        if (f->n_hosts)
                qsort(keys, f->n_hosts, sizeof(*keys), compare_sort_keys);
        for (size_t i = 0; i < f->n_hosts; i++)
                order[i] = keys[i].host;
        free(keys);
}

const char *top_view_sort_name(enum top_sort by)
{
        static const char *const names[TOP_SORTS] = { "odd", "host", "lag", "wait", "cpu",
                                                      "mem", "gpu",  "net", "out" };

        return names[by];
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Returns whether a host is open, to be read or set; valid until the next call. The array grows up
 * to the highest number of a node. */
static bool *find_open(struct top_view *v, const struct top_frame_host *h)
{
        size_t node = (size_t)h->node, n = v->n_open;

        if (node >= n) {
                v->n_open = node + 1;
                v->open = xrealloc(v->open, v->n_open, sizeof(*v->open));
                memset(v->open + n, 0, (v->n_open - n) * sizeof(*v->open));
        }
        return &v->open[node];
}

static void add_top_row(struct top_view *v, size_t host, ssize_t rank)
{
        v->rows = xgrow(v->rows, v->n_rows, &v->cap_rows, sizeof(*v->rows));
        v->rows[v->n_rows++] = (struct top_row){ host, rank, 0 };
}

/* Returns the role of the first rank of a host, "" = none. */
static const char *first_role(const struct top_frame_host *h)
{
        return h->n_ranks && h->ranks[0].role ? h->ranks[0].role : "";
}

/* Counts the hosts that one row may stand for, from place @at of the order on. The first host with
 * nothing odd of a role keeps a row of its own, as an example of the others. */
static size_t count_alike(struct top_view *v, const struct top_frame *f, size_t at)
{
        const char *role = at ? first_role(&f->hosts[v->order[at - 1]]) : "";
        size_t n = 0;

        /* Only this order has all hosts with nothing odd together at the end. */
        if (v->sort != TOP_BY_ODDITY || v->unfolded || *v->filter || !at ||
            f->hosts[v->order[at - 1]].odd.worst != ODD_NOT)
                return 0;
        while (at + n < f->n_hosts && !*find_open(v, &f->hosts[v->order[at + n]]) &&
               !strcmp(first_role(&f->hosts[v->order[at + n]]), role))
                n++;
        return n < ALIKE_LEAST ? 0 : n;
}

/* Adds the ranks of an open host; odd ranks come first if odd hosts do. */
static void add_rank_rows_of(struct top_view *v, const struct top_frame_host *h, size_t host)
{
        for (int odd = 0; odd <= ODD_NOT; odd++)
                for (size_t k = 0; k < h->n_ranks; k++)
                        if (v->sort == TOP_BY_ODDITY ? h->ranks[k].odd == (enum top_oddity)odd
                                                     : odd == ODD_NOT)
                                add_top_row(v, host, (ssize_t)k);
}

/* Moves the cursor with its row, and the page with the cursor. */
static void place_cursor(struct top_view *v, const struct top_frame *f, size_t page)
{
        size_t host = v->n_rows;

        for (size_t i = 0; i < v->n_rows && v->at_node >= 0; i++) {
                const struct top_frame_host *h = &f->hosts[v->rows[i].host];
                ssize_t k = v->rows[i].rank;

                if (k == TOP_ROW_ALIKE ? v->at_rank == k : h->node == v->at_node && k < 0)
                        host = i;
                if (h->node == v->at_node && k >= 0 && h->ranks[k].rank == v->at_rank)
                        host = i;
        }
        /* A row that is gone, as its host was closed or filtered: the cursor stays at the same
         * height. */
        v->selected = host < v->n_rows ? host : v->at_node < 0 ? 0 : v->selected;
        v->selected = MIN(v->selected, v->n_rows ? v->n_rows - 1 : 0);
        v->first = MIN(v->first, v->selected);
        if (v->selected >= v->first + page)
                v->first = v->selected - page + 1;
}

/* Lists the rows in the order of @v->order, and places the cursor. */
static void find_top_rows(struct top_view *v, const struct top_frame *f, size_t page)
{
        v->n_rows = 0;
        for (size_t i = 0; i < f->n_hosts; i++) {
                const struct top_frame_host *h = &f->hosts[v->order[i]];
                size_t alike = count_alike(v, f, i);

                if (alike) {
                        add_top_row(v, v->order[i], TOP_ROW_ALIKE);
                        v->rows[v->n_rows - 1].alike = alike;
                        i += alike - 1;
                        continue;
                }
                if (*v->filter && !strcasestr(h->name, v->filter))
                        continue;
                add_top_row(v, v->order[i], TOP_ROW_HOST);
                if (*find_open(v, h))
                        add_rank_rows_of(v, h, v->order[i]);
        }
        place_cursor(v, f, MAX(page, (size_t)1));
}

void top_view_update(struct top_view *v, const struct top_frame *f, size_t page)
{
        if (f->n_hosts && !v->begun) {
                v->begun = true;
                /* A single host shows its ranks at once. */
                *find_open(v, &f->hosts[0]) = f->n_hosts == 1;
        }
        v->order = xrealloc(v->order, f->n_hosts + 1, sizeof(*v->order));
        top_view_order(f, v->sort, v->order);
        find_top_rows(v, f, page);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Puts the cursor on a row, and notes host and rank for the next order. */
static void move_cursor(struct top_view *v, const struct top_frame *f, size_t to)
{
        const struct top_row *r = &v->rows[to];
        const struct top_frame_host *h = &f->hosts[r->host];

        v->selected = to;
        v->at_node = h->node;
        v->at_rank = r->rank < 0 ? r->rank : h->ranks[r->rank].rank;
}

/* Opens or closes the host of the cursor; a row for hosts alike opens into a row for each. */
static void open_host(struct top_view *v, const struct top_frame *f, bool open)
{
        size_t at = v->selected;
        bool *is_open = find_open(v, &f->hosts[v->rows[at].host]);

        if (v->rows[at].rank == TOP_ROW_ALIKE) {
                v->unfolded = open;
                v->at_rank = TOP_ROW_HOST;
                return;
        }
        if (!open && !*is_open) /* closed already: folds hosts with nothing odd */
                v->unfolded = false;
        *is_open = open;
        while (!open && v->rows[at].rank >= 0) /* the host stays */
                at--;
        move_cursor(v, f, at);
}

/* Opens all hosts; when all are open, closes all. */
static void toggle_all(struct top_view *v, const struct top_frame *f)
{
        bool closed = false;

        for (size_t i = 0; i < f->n_hosts; i++)
                closed |= !*find_open(v, &f->hosts[i]);
        for (size_t i = 0; i < f->n_hosts; i++)
                *find_open(v, &f->hosts[i]) = closed;
}

void top_view_key(struct top_view *v, const struct top_frame *f, enum top_key key, size_t page)
{
        size_t last = v->n_rows ? v->n_rows - 1 : 0, at = v->selected;

        if (!v->n_rows)
                return;
        switch (key) {
        case TOP_KEY_UP:
                move_cursor(v, f, at - (at > 0));
                break;
        case TOP_KEY_DOWN:
                move_cursor(v, f, MIN(at + 1, last));
                break;
        case TOP_KEY_PAGE_UP:
                move_cursor(v, f, at - MIN(at, page));
                break;
        case TOP_KEY_PAGE_DOWN:
                move_cursor(v, f, MIN(at + page, last));
                break;
        /* Follows the first row from now on, whichever host that is. */
        case TOP_KEY_FIRST:
                v->at_node = -1;
                break;
        case TOP_KEY_LAST:
                move_cursor(v, f, last);
                break;
        case TOP_KEY_TOGGLE:
                open_host(v, f, !*find_open(v, &f->hosts[v->rows[at].host]));
                break;
        case TOP_KEY_OPEN:
        case TOP_KEY_CLOSE:
                open_host(v, f, key == TOP_KEY_OPEN);
                break;
        case TOP_KEY_ALL:
                toggle_all(v, f);
                break;
        case TOP_KEY_SORT:
                v->sort = (v->sort + 1) % TOP_SORTS;
                top_view_order(f, v->sort, v->order);
                break;
        }
        find_top_rows(v, f, page);
}

/* --- life cycle ------------------------------------------------------------------------------- */

void top_view_init(struct top_view *v)
{
        *v = (struct top_view){ .at_node = -1, .at_rank = -1 };
}

void top_view_finish(struct top_view *v)
{
        free(v->open);
        free(v->order);
        free(v->rows);
        top_view_init(v);
}

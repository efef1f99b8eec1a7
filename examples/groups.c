/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups: ranks as a grid, whose rows and columns are groups, multiply two matrices
 *
 *     hnlaunch --local 6 build/examples/groups [SIZE]
 *
 * Every rank has a block of A, of B and of the product C. In each step a column of the grid passes
 * a panel of A along the rows, a row of the grid passes a panel of B along the columns, and
 * everybody multiplies what came (this is SUMMA). Rank 0 collects C and compares it with a product
 * that it makes alone; the exit code is 1 when they differ.
 */
#include <hnlaunch/comm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMEOUT_MS = 60000 };

struct grid {
        int rows, cols, row, col;        /* of ranks, and where this one is */
        hn_group *row_group, *col_group; /* in my row my rank is @col */
        hn_comm *along_row, *along_col, *all;
};

struct product {
        int n, panels;  /* the matrices are n x n */
        int high, wide; /* a block */
        double *a, *b, *c;
};

static double now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Whole numbers: their sums are exact in any order. */
static double a_at(int i, int j)
{
        return (i * 7 + j * 3) % 11 - 5;
}

static double b_at(int i, int j)
{
        return (i * 5 + j * 13) % 17 - 8;
}

static void need(hn_status status, const char *what)
{
        if (status == HN_OK)
                return;
        fprintf(stderr, "groups: %s: %s\n", what, hn_last_error());
        hn_report_error("groups", "%s: %s", what, hn_last_error());
        exit(1);
}

static double *need_memory(int high, int wide)
{
        double *p = calloc((size_t)high * (size_t)wide, sizeof(*p));

        need(p ? HN_OK : hn_set_error(HN_ERR_NOMEM, "out of memory"), "a block");
        return p;
}

/* As square as the number of ranks allows. */
static void grid_open(struct grid *g)
{
        int n = hn_world_size();

        for (int r = 1; r * r <= n; r++)
                if (n % r == 0)
                        g->rows = r;
        g->cols = n / g->rows;
        g->row = hn_rank() / g->cols;
        g->col = hn_rank() % g->cols;
        need(hn_group_split(NULL, g->row, g->col, TIMEOUT_MS, &g->row_group), "my row");
        need(hn_group_split(NULL, g->col, g->row, TIMEOUT_MS, &g->col_group), "my column");
        need(hn_comm_create(g->row_group, "gloo", TIMEOUT_MS, &g->along_row), "Gloo in my row");
        need(hn_comm_create(g->col_group, "gloo", TIMEOUT_MS, &g->along_col), "Gloo in my column");
        need(hn_comm_create(NULL, "gloo", TIMEOUT_MS, &g->all), "Gloo");
}

static void grid_close(struct grid *g)
{
        hn_comm_free(g->all);
        hn_comm_free(g->along_col);
        hn_comm_free(g->along_row);
        hn_group_free(g->col_group);
        hn_group_free(g->row_group);
}

static int common_multiple(int a, int b)
{
        int m = a;

        while (m % b)
                m += a;
        return m;
}

/* Panels end where blocks do, in both directions. */
static void product_open(struct product *p, const struct grid *g, int n)
{
        p->panels = common_multiple(g->rows, g->cols);
        p->n = (n + p->panels - 1) / p->panels * p->panels;
        p->high = p->n / g->rows;
        p->wide = p->n / g->cols;
        p->a = need_memory(p->high, p->wide);
        p->b = need_memory(p->high, p->wide);
        p->c = need_memory(p->high, p->wide);
        for (int i = 0; i < p->high; i++)
                for (int j = 0; j < p->wide; j++) {
                        p->a[i * p->wide + j] = a_at(g->row * p->high + i, g->col * p->wide + j);
                        p->b[i * p->wide + j] = b_at(g->row * p->high + i, g->col * p->wide + j);
                }
}

/* c += a b; a is @high x @deep, b is @deep x @wide. */
static void multiply(double *c, const double *a, const double *b, int high, int deep, int wide)
{
        for (int i = 0; i < high; i++)
                for (int k = 0; k < deep; k++)
                        for (int j = 0; j < wide; j++)
                                c[i * wide + j] += a[i * deep + k] * b[k * wide + j];
}

static void one_panel(struct product *p, const struct grid *g, int k, double *a, double *b)
{
        int deep = p->n / p->panels, at = k * deep;
        int col = at / p->wide, row = at / p->high; /* of the owners */

        if (g->col == col)
                for (int i = 0; i < p->high; i++)
                        memcpy(a + i * deep, p->a + i * p->wide + at % p->wide,
                               (size_t)deep * sizeof(*a));
        if (g->row == row)
                memcpy(b, p->b + (at % p->high) * p->wide,
                       (size_t)deep * (size_t)p->wide * sizeof(*b));
        need(hn_broadcast(g->along_row, a, (size_t)p->high * (size_t)deep, HN_FLOAT64, col),
             "a panel along my row");
        need(hn_broadcast(g->along_col, b, (size_t)deep * (size_t)p->wide, HN_FLOAT64, row),
             "a panel along my column");
        multiply(p->c, a, b, p->high, deep, p->wide);
}

static void product_run(struct product *p, const struct grid *g)
{
        int deep = p->n / p->panels;
        double *a = need_memory(p->high, deep), *b = need_memory(deep, p->wide);

        for (int k = 0; k < p->panels; k++)
                one_panel(p, g, k, a, b);
        free(a);
        free(b);
}

/* How many elements of @block differ from @whole, where they belong to @rank. */
static long compare(const struct product *p, const struct grid *g, const double *whole,
                    const double *block, int rank)
{
        int top = rank / g->cols * p->high, left = rank % g->cols * p->wide;
        long wrong = 0;

        for (int i = 0; i < p->high; i++)
                for (int j = 0; j < p->wide; j++)
                        wrong += whole[(top + i) * p->n + left + j] != block[i * p->wide + j];
        return wrong;
}

/* Rank 0: the product made alone, against all blocks. */
static long check(const struct product *p, const struct grid *g, double *serial_ms)
{
        double *a = need_memory(p->n, p->n), *b = need_memory(p->n, p->n);
        double *c = need_memory(p->n, p->n), *block = need_memory(p->high, p->wide);
        size_t size = (size_t)p->high * (size_t)p->wide;
        long wrong;

        for (int i = 0; i < p->n; i++)
                for (int j = 0; j < p->n; j++) {
                        a[i * p->n + j] = a_at(i, j);
                        b[i * p->n + j] = b_at(i, j);
                }
        *serial_ms = now_ms();
        multiply(c, a, b, p->n, p->n, p->n);
        *serial_ms = now_ms() - *serial_ms;
        wrong = compare(p, g, c, p->c, 0);
        for (int rank = 1; rank < hn_world_size(); rank++) {
                need(hn_recv(g->all, block, size, HN_FLOAT64, rank), "a block of C");
                wrong += compare(p, g, c, block, rank);
        }
        free(a);
        free(b);
        free(c);
        free(block);
        return wrong;
}

int main(int argc, char **argv)
{
        hn_init_opts init = { .size = sizeof(init), .flags = HN_INIT_ALLOW_SINGLETON };
        int n = argc > 1 ? atoi(argv[1]) : 240;
        struct grid g = { 0 };
        struct product p = { 0 };
        double begun, ms, serial_ms = 0;
        long wrong = 0;

        if (n < 1 || n > 8192)
                return fprintf(stderr, "usage: groups [SIZE], 1 to 8192\n"), 64;
        need(hn_init(&init), "cannot start");
        grid_open(&g);
        product_open(&p, &g, n);
        need(hn_comm_barrier(g.all), "the barrier before");
        begun = now_ms();
        product_run(&p, &g);
        need(hn_comm_barrier(g.all), "the barrier after");
        ms = now_ms() - begun;
        if (hn_rank() == 0) {
                wrong = check(&p, &g, &serial_ms);
                printf("grid of %d x %d ranks, %d x %d elements, %d panels: %s, %.1f ms (alone "
                       "%.1f ms)\n",
                       g.rows, g.cols, p.n, p.n, p.panels, wrong ? "WRONG" : "right", ms,
                       serial_ms);
        } else {
                need(hn_send(g.all, p.c, (size_t)p.high * (size_t)p.wide, HN_FLOAT64, 0), "my C");
        }
        grid_close(&g);
        free(p.a);
        free(p.b);
        free(p.c);
        hn_finalize();
        return wrong != 0;
}

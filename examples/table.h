/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table: what allreduce and alltoall have in common: sizes, repetitions, and a table with the
 * columns of nccl-tests
 *
 * algbw is bytes by time; busbw is what the slowest link carries, comparable between numbers of
 * ranks.
 */
#pragma once

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

enum { TIMEOUT_MS = 60000 };

struct table_options {
        size_t from, to; /* bytes */
        int factor, iterations, warmup;
        const char *op;
};

#define TABLE_OPTIONS_INIT                                                                         \
        {                                                                                          \
                8, 16 << 20, 2, 20, 5, "sum"                                                       \
        }

/* A device, and arrays of the largest size: on it to read and to write, here to fill and to check.
 */
struct bench {
        struct device device;
        float *host;
        void *in, *out;
        int op; /* for who reduces */
};

/* One line. */
struct table_line {
        size_t bytes, count;
        const char *op;
        double us, bus_factor;
        long wrong;
};

static inline double table_now_us(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static inline size_t table_size(const char *text)
{
        char *end;
        double v = strtod(text, &end);
        static const char units[] = "KMG";
        const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;

        for (long i = unit ? unit - units : -1; i >= 0; i--)
                v *= 1024;
        return v < 4 ? 4 : (size_t)v;
}

/* -1: usage. */
static inline int table_parse(struct table_options *o, int argc, char **argv)
{
        int c;

        while ((c = getopt(argc, argv, "b:e:f:n:w:o:h")) != -1) {
                switch (c) {
                case 'b':
                        o->from = table_size(optarg);
                        break;
                case 'e':
                        o->to = table_size(optarg);
                        break;
                case 'f':
                        o->factor = atoi(optarg);
                        break;
                case 'n':
                        o->iterations = atoi(optarg);
                        break;
                case 'w':
                        o->warmup = atoi(optarg);
                        break;
                case 'o':
                        o->op = optarg;
                        break;
                default:
                        return -1;
                }
        }
        return o->factor < 2 || o->iterations < 1 || o->warmup < 0 ? -1 : 0;
}

/* Rank 0 prints. */
static inline void table_head(const struct table_options *o)
{
        if (hn_rank() == 0)
                printf("# %d ranks on %d nodes, %d iterations after %d\n"
                       "#%11s %12s %8s %6s %10s %8s %8s %7s\n"
                       "#%11s %12s %8s %6s %10s %8s %8s\n",
                       hn_world_size(), hn_num_nodes(), o->iterations, o->warmup, "size", "count",
                       "type", "redop", "time", "algbw", "busbw", "#wrong", "(B)", "(elements)", "",
                       "", "(us)", "(GB/s)", "(GB/s)");
}

static inline void table_print(const struct table_line *l)
{
        double algbw = (double)l->bytes / l->us / 1e3;

        if (hn_rank() == 0)
                printf("%12zu %12zu %8s %6s %10.2f %8.2f %8.2f %7ld\n", l->bytes, l->count, "float",
                       l->op, l->us, algbw, algbw * l->bus_factor, l->wrong);
}

static inline hn_status bench_open(struct bench *b, size_t bytes)
{
        hn_init_opts init = { .size = sizeof(init), .flags = HN_INIT_ALLOW_SINGLETON };
        hn_status status = hn_init(&init);

        b->host = malloc(bytes);
        if (status == HN_OK && !b->host)
                status = hn_set_error(HN_ERR_NOMEM, "out of memory");
        if (status == HN_OK)
                status = device_open(&b->device, 0, 1, TIMEOUT_MS);
        if (status == HN_OK)
                status = device_alloc(&b->in, bytes);
        return status == HN_OK ? device_alloc(&b->out, bytes) : status;
}

/* @good: see device_close(). */
static inline void bench_close(struct bench *b, int good)
{
        device_free(b->in);
        device_free(b->out);
        free(b->host);
        device_close(&b->device, good);
        hn_finalize();
}

/* The mean time of @once for @n elements, after the warm-up and together with all ranks. */
static inline hn_status bench_time(struct bench *b, const struct table_options *o,
                                   hn_status (*once)(struct bench *b, size_t n), size_t n,
                                   double *us)
{
        hn_status status = HN_OK;
        double begun;

        for (int i = 0; i < o->warmup && status == HN_OK; i++)
                status = once(b, n);
        if (status == HN_OK)
                status = hn_barrier(NULL, TIMEOUT_MS);
        begun = table_now_us();
        for (int i = 0; i < o->iterations && status == HN_OK; i++)
                status = once(b, n);
        *us = (table_now_us() - begun) / o->iterations;
        return status;
}

/* Adds up everybody's @mine. */
static inline hn_status table_sum(long mine, long *all)
{
        long *each = calloc((size_t)hn_world_size(), sizeof(*each));
        hn_status status;

        if (!each)
                return hn_set_error(HN_ERR_NOMEM, "out of memory");
        status = hn_all_gather_bytes(NULL, &mine, sizeof(mine), each, TIMEOUT_MS);
        *all = 0;
        for (int i = 0; i < hn_world_size() && status == HN_OK; i++)
                *all += each[i];
        free(each);
        return status;
}

/* The exit code of a table: @wrong elements in all, below 0 an error. */
static inline int table_end(const char *program, long wrong)
{
        if (wrong < 0) {
                fprintf(stderr, "%s: %s\n", program, hn_last_error());
                hn_report_error(program, "%s", hn_last_error());
                return 1;
        }
        if (hn_rank() == 0)
                printf("# %s\n", wrong ? "WRONG RESULTS" : "all results are right");
        return wrong != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alltoall: how fast every rank gives a part of its array to every other; the columns are those of
 * nccl-tests: size is a rank's whole array, count what goes to one rank
 *
 *     hnlaunch --local 4 build/examples/alltoall -b 1K -e 16M
 *     hnlaunch -H hosts.txt build/examples/alltoall-nccl -b 1K -e 1G
 *
 * Exits with 1 when anything arrives where it should not.
 */
#include "table.h"

/* Element @i of what @from gives to @to; exact in a float. */
static float value(int from, int to, size_t i)
{
        return (float)((from * 131 + to * 17 + (int)(i % 1009)) % 65536);
}

static hn_status fill(struct bench *b, size_t n)
{
        int ranks = hn_world_size();

        for (int to = 0; to < ranks; to++)
                for (size_t i = 0; i < n; i++)
                        b->host[(size_t)to * n + i] = value(hn_rank(), to, i);
        return device_copy(b->in, b->host, n * (size_t)ranks * sizeof(float));
}

static long count_wrong(struct bench *b, size_t n)
{
        int ranks = hn_world_size();
        long wrong = 0;

        if (device_copy(b->host, b->out, n * (size_t)ranks * sizeof(float)) != HN_OK)
                return (long)n;
        for (int from = 0; from < ranks; from++)
                for (size_t i = 0; i < n; i++)
                        wrong += b->host[(size_t)from * n + i] != value(from, hn_rank(), i);
        return wrong;
}

static hn_status swap_once(struct bench *b, size_t n)
{
        hn_status status = device_all_to_all(&b->device, b->in, b->out, n, TIMEOUT_MS);

        return status == HN_OK ? device_wait(&b->device, TIMEOUT_MS) : status;
}

/* @n floats to each rank. Returns wrong elements in all ranks, or an error below 0. */
static long measure(struct bench *b, size_t n, const struct table_options *o)
{
        int ranks = hn_world_size();
        struct table_line line = { .bytes = n * (size_t)ranks * sizeof(float),
                                   .count = n,
                                   .op = "none",
                                   .bus_factor = (double)(ranks - 1) / ranks };
        hn_status status = fill(b, n);

        if (status == HN_OK)
                status = bench_time(b, o, swap_once, n, &line.us);
        if (status == HN_OK)
                status = table_sum(count_wrong(b, n), &line.wrong);
        if (status == HN_OK)
                table_print(&line);
        return status == HN_OK ? line.wrong : status;
}

static long run(struct bench *b, const struct table_options *o)
{
        size_t row = sizeof(float) * (size_t)hn_world_size();
        long wrong = 0, sum = 0;

        table_head(o);
        for (size_t size = o->from; size <= o->to && wrong >= 0; size *= (size_t)o->factor) {
                if (size < row)
                        continue; /* not one float for each */
                wrong = measure(b, size / row, o);
                sum += wrong;
        }
        return wrong < 0 ? wrong : sum;
}

int main(int argc, char **argv)
{
        struct table_options o = TABLE_OPTIONS_INIT;
        struct bench b = { 0 };
        int code;

        if (table_parse(&o, argc, argv) < 0)
                return fprintf(stderr, "usage: alltoall [-b FROM] [-e TO] [-f FACTOR] "
                                       "[-n ITERATIONS] [-w WARMUP]\n"),
                       64;
        if (bench_open(&b, o.to) != HN_OK)
                return table_end("alltoall", -1);
        code = table_end("alltoall", run(&b, &o));
        bench_close(&b, code == 0);
        return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allreduce: how fast the ranks add up arrays of floats; the columns are those of nccl-tests
 *
 *     hnlaunch --local 4 build/examples/allreduce -b 8 -e 16M
 *     hnlaunch -H hosts.txt build/examples/allreduce-nccl -b 8 -e 1G
 *
 * Exits with 1 when a sum is wrong.
 */
#include "table.h"

static const struct {
        const char *name;
        int op;
} ops[] = {
        { "sum", DEVICE_SUM }, { "prod", DEVICE_PROD }, { "min", DEVICE_MIN }, { "max", DEVICE_MAX }
};

/* Small whole numbers: exact in a float, different by rank and place. */
static float value(int rank, size_t i)
{
        return (float)(1 + ((size_t)rank + i) % 3);
}

static float expected(int op, size_t i, int ranks)
{
        float v = value(0, i), next;

        for (int r = 1; r < ranks; r++) {
                next = value(r, i);
                switch (op) {
                case 0:
                        v += next;
                        break;
                case 1:
                        v *= next;
                        break;
                case 2:
                        v = next < v ? next : v;
                        break;
                default:
                        v = next > v ? next : v;
                }
        }
        return v;
}

static long count_wrong(struct bench *b, size_t n)
{
        long wrong = 0;

        if (device_copy(b->host, b->out, n * sizeof(float)) != HN_OK)
                return (long)n;
        for (size_t i = 0; i < n; i++) {
                float want = expected(b->op, i, hn_world_size());
                float off = b->host[i] - want;

                /* Products of many ranks round; the rest must be exact. */
                if (off > 1e-5f * want || -off > 1e-5f * want)
                        wrong++;
        }
        return wrong;
}

static hn_status reduce_once(struct bench *b, size_t n)
{
        hn_status status =
                device_all_reduce(&b->device, b->in, b->out, n, ops[b->op].op, TIMEOUT_MS);

        return status == HN_OK ? device_wait(&b->device, TIMEOUT_MS) : status;
}

/* One line of the table. Returns wrong elements in all ranks, or an error below 0. */
static long measure(struct bench *b, size_t n, const struct table_options *o)
{
        int ranks = hn_world_size();
        struct table_line line = { .bytes = n * sizeof(float),
                                   .count = n,
                                   .op = ops[b->op].name,
                                   .bus_factor = 2.0 * (ranks - 1) / ranks };
        hn_status status;

        for (size_t i = 0; i < n; i++)
                b->host[i] = value(hn_rank(), i);
        status = device_copy(b->in, b->host, n * sizeof(float));
        if (status == HN_OK)
                status = bench_time(b, o, reduce_once, n, &line.us);
        if (status == HN_OK)
                status = table_sum(count_wrong(b, n), &line.wrong);
        if (status == HN_OK)
                table_print(&line);
        return status == HN_OK ? line.wrong : status;
}

static long run(struct bench *b, const struct table_options *o)
{
        long wrong = 0, sum = 0;

        table_head(o);
        for (size_t size = o->from; size <= o->to && wrong >= 0; size *= (size_t)o->factor) {
                wrong = measure(b, size / sizeof(float), o);
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
                return fprintf(stderr, "usage: allreduce [-b FROM] [-e TO] [-f FACTOR] "
                                       "[-n ITERATIONS] [-w WARMUP] [-o sum|prod|min|max]\n"),
                       64;
        while (b.op < 4 && strcmp(ops[b.op].name, o.op) != 0)
                b.op++;
        if (b.op == 4)
                return fprintf(stderr, "allreduce: -o is sum, prod, min or max\n"), 64;
        if (bench_open(&b, o.to) != HN_OK)
                return table_end("allreduce", -1);
        code = table_end("allreduce", run(&b, &o));
        bench_close(&b, code == 0);
        return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allreduce: how fast the ranks add up arrays of floats; the columns are those of nccl-tests
 *
 *     hnlaunch --local 4 build/examples/allreduce -b 8 -e 16M
 *     hnlaunch -H hosts.txt build/examples/allreduce-nccl -b 8 -e 1G
 *
 * Exits with 1 when a sum is wrong.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

enum { TIMEOUT_MS = 60000 };

struct options {
        size_t from, to; /* bytes */
        int factor, iterations, warmup;
        const char *op;
};

static const struct {
        const char *name;
        int op;
} ops[] = {
        { "sum", DEVICE_SUM }, { "prod", DEVICE_PROD }, { "min", DEVICE_MIN }, { "max", DEVICE_MAX }
};

/* What every rank needs for one size. */
struct bench {
        struct device device;
        float *host;
        void *in, *out;
        int op; /* index into ops */
};

static double now_us(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static size_t parse_size(const char *text)
{
        char *end;
        double v = strtod(text, &end);
        static const char units[] = "KMG";
        const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;

        for (long i = unit ? unit - units : -1; i >= 0; i--)
                v *= 1024;
        return v < 4 ? 4 : (size_t)v;
}

static int parse(struct options *o, int argc, char **argv)
{
        int c;

        while ((c = getopt(argc, argv, "b:e:f:n:w:o:h")) != -1) {
                switch (c) {
                case 'b':
                        o->from = parse_size(optarg);
                        break;
                case 'e':
                        o->to = parse_size(optarg);
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
static long measure(struct bench *b, size_t n, const struct options *o)
{
        double begun, us, algbw;
        long wrong, all = 0, *each;
        hn_status status;
        int ranks = hn_world_size();

        for (size_t i = 0; i < n; i++)
                b->host[i] = value(hn_rank(), i);
        status = device_copy(b->in, b->host, n * sizeof(float));
        for (int i = 0; i < o->warmup && status == HN_OK; i++)
                status = reduce_once(b, n);
        if (status == HN_OK)
                status = hn_barrier(NULL, TIMEOUT_MS);
        begun = now_us();
        for (int i = 0; i < o->iterations && status == HN_OK; i++)
                status = reduce_once(b, n);
        us = (now_us() - begun) / o->iterations;
        if (status != HN_OK)
                return status;
        wrong = count_wrong(b, n);
        each = calloc((size_t)ranks, sizeof(*each));
        if (!each)
                return HN_ERR_NOMEM;
        status = hn_all_gather_bytes(NULL, &wrong, sizeof(wrong), each, TIMEOUT_MS);
        for (int i = 0; i < ranks; i++)
                all += each[i];
        free(each);
        algbw = (double)(n * sizeof(float)) / us / 1e3;
        if (hn_rank() == 0 && status == HN_OK)
                printf("%12zu %12zu %8s %6s %10.2f %8.2f %8.2f %7ld\n", n * sizeof(float), n,
                       "float", ops[b->op].name, us, algbw, algbw * 2 * (ranks - 1) / ranks, all);
        return status == HN_OK ? all : status;
}

static long run(struct bench *b, const struct options *o)
{
        long wrong = 0, sum = 0;

        if (hn_rank() == 0)
                printf("# %d ranks on %d nodes, %d iterations after %d\n"
                       "#%11s %12s %8s %6s %10s %8s %8s %7s\n"
                       "#%11s %12s %8s %6s %10s %8s %8s\n",
                       hn_world_size(), hn_num_nodes(), o->iterations, o->warmup, "size", "count",
                       "type", "redop", "time", "algbw", "busbw", "#wrong", "(B)", "(elements)", "",
                       "", "(us)", "(GB/s)", "(GB/s)");
        for (size_t size = o->from; size <= o->to && wrong >= 0; size *= (size_t)o->factor) {
                wrong = measure(b, size / sizeof(float), o);
                sum += wrong;
        }
        return wrong < 0 ? wrong : sum;
}

static int fail(const char *what)
{
        fprintf(stderr, "allreduce: %s: %s\n", what, hn_last_error());
        hn_report_error("allreduce", "%s: %s", what, hn_last_error());
        return 1;
}

int main(int argc, char **argv)
{
        struct options o = {
                .from = 8, .to = 16 << 20, .factor = 2, .iterations = 20, .warmup = 5, .op = "sum"
        };
        hn_init_opts init = { .size = sizeof(init), .flags = HN_INIT_ALLOW_SINGLETON };
        struct bench b = { 0 };
        long wrong;

        if (parse(&o, argc, argv) < 0)
                return fprintf(stderr, "usage: allreduce [-b FROM] [-e TO] [-f FACTOR] "
                                       "[-n ITERATIONS] [-w WARMUP] [-o sum|prod|min|max]\n"),
                       64;
        while (b.op < 4 && strcmp(ops[b.op].name, o.op) != 0)
                b.op++;
        if (b.op == 4)
                return fprintf(stderr, "allreduce: -o is sum, prod, min or max\n"), 64;
        b.host = malloc(o.to);
        if (!b.host || hn_init(&init) != HN_OK)
                return fail("cannot start");
        if (device_open(&b.device, TIMEOUT_MS) != HN_OK || device_alloc(&b.in, o.to) != HN_OK ||
            device_alloc(&b.out, o.to) != HN_OK)
                return fail("cannot start");
        wrong = run(&b, &o);
        if (wrong < 0)
                return fail("failed");
        if (hn_rank() == 0)
                printf("# %s\n", wrong ? "WRONG RESULTS" : "all results are right");
        device_free(b.in);
        device_free(b.out);
        free(b.host);
        device_close(&b.device, 1);
        hn_finalize();
        return wrong != 0;
}

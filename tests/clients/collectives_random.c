/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective, type and operation on random data, compared with a sum that each rank computes
 * alone, in the world and in groups. Prints the number of compared arrays in rank 0.
 *
 *     collectives_random [SEED [BACKEND]]    SEED 0: the time; with the backend nccl, on GPUs
 *     collectives_random SEED BACKEND open   only opens it: "ok", or the error and exit code 3
 */
#include <hnlaunch/comm.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "claim.h"
#include "lent.h"

static const size_t lengths[] = { 1, 37, 3000 };

static uint64_t seed, turn; /* equal in all members */
static long compared;
static const char *backend = "gloo";

/* The communicator under test. */
struct trial {
        hn_comm *comm;
        hn_dtype type;
        hn_op op;
        size_t n;
        int ranks, me;
};

static uint64_t noise(int rank, size_t i)
{
        uint64_t z = seed + turn * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xd1342543de82ef95u +
                     (i + 1) * 0xbf58476d1ce4e5b9u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static int is_float(hn_dtype type)
{
        return type == HN_FLOAT16 || type == HN_BFLOAT16 || type == HN_FLOAT32 ||
               type == HN_FLOAT64;
}

/* Of the last place of a 1. */
static double precision(hn_dtype type)
{
        return ldexp(1, type == HN_FLOAT16    ? -10
                        : type == HN_BFLOAT16 ? -7
                        : type == HN_FLOAT32  ? -23
                                              : -52);
}

static double half_to_double(uint16_t h)
{
        int exponent = h >> 10 & 31, fraction = h & 1023;
        double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);

        return h & 0x8000 ? -v : v;
}

/* Only for values that need no rounding. */
static uint16_t double_to_half(double v)
{
        int exponent = 0;
        double m = frexp(fabs(v), &exponent);
        uint16_t sign = v < 0 ? 0x8000 : 0;

        if (v == 0)
                return 0;
        return (uint16_t)(sign | (exponent + 14) << 10 | (int)((2 * m - 1) * 1024));
}

static double get_float(const void *array, hn_dtype type, size_t i)
{
        const uint16_t *half = array;
        uint32_t wide;
        float f;

        switch (type) {
        case HN_FLOAT16:
                return half_to_double(half[i]);
        case HN_BFLOAT16:
                wide = (uint32_t)half[i] << 16;
                memcpy(&f, &wide, sizeof(f));
                return (double)f;
        case HN_FLOAT32:
                return (double)((const float *)array)[i];
        default:
                return ((const double *)array)[i];
        }
}

/* -2 to 2; the 16-bit types have these without rounding. */
static void put_float(void *array, hn_dtype type, size_t i, uint64_t z)
{
        double coarse = (double)((int)(z % 257) - 128) / 64, fine = (double)(int64_t)z / 0x1p62;
        float f = (float)coarse;
        uint32_t wide;

        memcpy(&wide, &f, sizeof(f));
        if (type == HN_FLOAT16)
                ((uint16_t *)array)[i] = double_to_half(coarse);
        else if (type == HN_BFLOAT16)
                ((uint16_t *)array)[i] = (uint16_t)(wide >> 16);
        else if (type == HN_FLOAT32)
                ((float *)array)[i] = (float)fine;
        else
                ((double *)array)[i] = fine;
}

/* Cuts to the width of the type, with the sign: the expected value wraps around, too. */
static int64_t as_integer(hn_dtype type, uint64_t v)
{
        return type == HN_UINT8 ? (uint8_t)v : type == HN_INT32 ? (int32_t)v : (int64_t)v;
}

static int64_t get_integer(const void *array, hn_dtype type, size_t i)
{
        return type == HN_UINT8   ? ((const uint8_t *)array)[i]
               : type == HN_INT32 ? ((const int32_t *)array)[i]
                                  : ((const int64_t *)array)[i];
}

static void put_integer(void *array, hn_dtype type, size_t i, uint64_t z)
{
        if (type == HN_UINT8)
                ((uint8_t *)array)[i] = (uint8_t)z;
        else if (type == HN_INT32)
                ((int32_t *)array)[i] = (int32_t)z;
        else
                ((int64_t *)array)[i] = (int64_t)z;
}

/* --- arrays ----------------------------------------------------------------------------------- */

/* The input of @rank in this turn. */
static void fill(void *array, hn_dtype type, size_t n, int rank)
{
        for (size_t i = 0; i < n; i++)
                (is_float(type) ? put_float : put_integer)(array, type, i, noise(rank, i));
}

static void *array_of(hn_dtype type, size_t n, int rank)
{
        void *array = calloc(n, hn_dtype_size(type));

        CLAIM(array);
        fill(array, type, n, rank);
        return array;
}

static void wrong(const struct trial *t, const char *what, size_t i, double got, double want)
{
        fprintf(stderr,
                "rank %d of %d: %s, type %d, op %d, %zu elements, seed %llu, turn %llu: "
                "element %zu is %.17g, not %.17g\n",
                t->me, t->ranks, what, (int)t->type, (int)t->op, t->n, (unsigned long long)seed,
                (unsigned long long)turn, i, got, want);
        exit(1);
}

/* --- the sum made alone ------------------------------------------------------------------------
 */

static double fold_floats(const struct trial *t, void *const *of_rank, size_t i, double *slack)
{
        double v = get_float(of_rank[0], t->type, i), size = fabs(v), next;

        for (int r = 1; r < t->ranks; r++) {
                next = get_float(of_rank[r], t->type, i);
                size = t->op == HN_PROD ? size * fabs(next) : size + fabs(next);
                v = t->op == HN_PROD  ? v * next
                    : t->op == HN_MIN ? fmin(v, next)
                    : t->op == HN_MAX ? fmax(v, next)
                                      : v + next;
        }
        *slack = t->op == HN_MIN || t->op == HN_MAX
                         ? 0
                         : (t->ranks + 1) * precision(t->type) * (size + 1e-3);
        return t->op == HN_AVG ? v / t->ranks : v;
}

static int64_t fold_integers(const struct trial *t, void *const *of_rank, size_t i)
{
        int64_t v = get_integer(of_rank[0], t->type, i), next;

        for (int r = 1; r < t->ranks; r++) {
                next = get_integer(of_rank[r], t->type, i);
                v = t->op == HN_MIN    ? (next < v ? next : v)
                    : t->op == HN_MAX  ? (next > v ? next : v)
                    : t->op == HN_PROD ? as_integer(t->type, (uint64_t)v * (uint64_t)next)
                                       : as_integer(t->type, (uint64_t)v + (uint64_t)next);
        }
        return t->op == HN_AVG ? v / t->ranks : v;
}

/* @out holds the result over all ranks' arrays from element @from on. */
static void compare(const struct trial *t, const char *what, const void *out, size_t from,
                    void *const *of_rank)
{
        double slack, want;

        for (size_t i = 0; i < t->n; i++) {
                if (is_float(t->type)) {
                        want = fold_floats(t, of_rank, from + i, &slack);
                        if (!(fabs(get_float(out, t->type, i) - want) <= slack))
                                wrong(t, what, i, get_float(out, t->type, i), want);
                } else if (get_integer(out, t->type, i) != fold_integers(t, of_rank, from + i)) {
                        wrong(t, what, i, (double)get_integer(out, t->type, i),
                              (double)fold_integers(t, of_rank, from + i));
                }
        }
        compared++;
}

static void compare_bytes(const struct trial *t, const char *what, const void *got,
                          const void *want, size_t n)
{
        if (memcmp(got, want, n * hn_dtype_size(t->type)) != 0)
                wrong(t, what, 0, 0, 0);
        compared++;
}

/* --- the calls -------------------------------------------------------------------------------- */

/* Each call with the arrays where the backend needs them; arrays that must not be written to are
 * copied back as well, and compared by the tests that check this. */

static void all_reduce(const struct trial *t, void *in, void *out)
{
        size_t bytes = t->n * hn_dtype_size(t->type);
        void *from = lent_out(in, bytes), *to = in == out ? from : lent_out(out, bytes);

        CLAIM(hn_all_reduce(t->comm, from, to, t->n, t->type, t->op) == HN_OK);
        if (in != out)
                lent_back(out, to, bytes);
        lent_back(in, from, bytes);
}

static void reduce_scatter(const struct trial *t, void *in, void *out)
{
        size_t bytes = t->n * hn_dtype_size(t->type), whole = bytes * (size_t)t->ranks;
        void *from = lent_out(in, whole), *to = lent_out(out, bytes);

        CLAIM(hn_reduce_scatter(t->comm, from, to, t->n, t->type, t->op) == HN_OK);
        lent_back(out, to, bytes);
        lent_back(in, from, whole);
}

static void reduce(const struct trial *t, void *in, void *out, int root)
{
        size_t bytes = t->n * hn_dtype_size(t->type);
        void *from = lent_out(in, bytes), *to = lent_out(out, bytes);

        CLAIM(hn_reduce(t->comm, from, to, t->n, t->type, t->op, root) == HN_OK);
        if (out)
                lent_back(out, to, bytes);
        lent_back(in, from, bytes);
}

static void all_gather(const struct trial *t, void *in, void *out)
{
        size_t bytes = t->n * hn_dtype_size(t->type), whole = bytes * (size_t)t->ranks;
        void *from = lent_out(in, bytes), *to = lent_out(out, whole);

        CLAIM(hn_all_gather(t->comm, from, to, t->n, t->type) == HN_OK);
        lent_back(out, to, whole);
        lent_back(in, from, bytes);
}

static void all_to_all(const struct trial *t, void *in, void *out)
{
        size_t whole = t->n * hn_dtype_size(t->type) * (size_t)t->ranks;
        void *from = lent_out(in, whole), *to = lent_out(out, whole);

        CLAIM(hn_all_to_all(t->comm, from, to, t->n, t->type) == HN_OK);
        lent_back(out, to, whole);
        lent_back(in, from, whole);
}

static void broadcast(const struct trial *t, void *buf, int root)
{
        size_t bytes = t->n * hn_dtype_size(t->type);
        void *at = lent_out(buf, bytes);

        CLAIM(hn_broadcast(t->comm, at, t->n, t->type, root) == HN_OK);
        lent_back(buf, at, bytes);
}

static void send(const struct trial *t, void *in, int to)
{
        size_t bytes = t->n * hn_dtype_size(t->type);
        void *at = lent_out(in, bytes);

        CLAIM(hn_send(t->comm, at, t->n, t->type, to) == HN_OK);
        lent_back(in, at, bytes);
}

static void receive(const struct trial *t, void *out, int from)
{
        size_t bytes = t->n * hn_dtype_size(t->type);
        void *at = lent_out(out, bytes);

        CLAIM(hn_recv(t->comm, at, t->n, t->type, from) == HN_OK);
        lent_back(out, at, bytes);
}

static void send_receive(const struct trial *t, void *in, int next, void *out, int last)
{
        size_t bytes = t->n * hn_dtype_size(t->type);
        void *from = lent_out(in, bytes), *to = lent_out(out, bytes);

        CLAIM(hn_send_recv(t->comm, from, next, to, last, t->n, t->type) == HN_OK);
        lent_back(out, to, bytes);
        lent_back(in, from, bytes);
}

static void try_reductions(struct trial *t)
{
        size_t whole = t->n * (size_t)t->ranks;
        void **of_rank = calloc((size_t)t->ranks, sizeof(*of_rank)), *out, *mine;
        int root = (int)(turn % (uint64_t)t->ranks);

        CLAIM(of_rank);
        for (int r = 0; r < t->ranks; r++)
                of_rank[r] = array_of(t->type, whole, r);
        mine = array_of(t->type, whole, t->me);
        out = array_of(t->type, t->n, 1000);
        all_reduce(t, mine, out);
        compare(t, "all_reduce", out, 0, of_rank);
        reduce_scatter(t, mine, out);
        compare(t, "reduce_scatter", out, (size_t)t->me * t->n, of_rank);
        reduce(t, mine, t->me == root ? out : NULL, root);
        if (t->me == root)
                compare(t, "reduce", out, 0, of_rank);
        compare_bytes(t, "an input", mine, of_rank[t->me], whole);
        all_reduce(t, mine, mine);
        compare(t, "all_reduce in place", mine, 0, of_rank);
        for (int r = 0; r < t->ranks; r++)
                free(of_rank[r]);
        free(of_rank);
        free(mine);
        free(out);
}

/* Around the ring in both directions: to the next rank, from the one before, and in turns. */
static void try_ring(struct trial *t, void *mine, void *out)
{
        int next = (t->me + 1) % t->ranks, last = (t->me + t->ranks - 1) % t->ranks;
        void *want = array_of(t->type, t->n, last);

        send_receive(t, mine, next, out, last);
        compare_bytes(t, "send_recv", out, want, t->n);
        memset(out, 0, t->n * hn_dtype_size(t->type));
        if (t->me == 0)
                send(t, mine, next);
        receive(t, out, last);
        if (t->me != 0)
                send(t, mine, next);
        compare_bytes(t, "send and recv", out, want, t->n);
        free(want);
}

static void try_moves(struct trial *t)
{
        size_t size = hn_dtype_size(t->type), whole = t->n * (size_t)t->ranks;
        char *mine = array_of(t->type, whole, t->me), *out = array_of(t->type, whole, 1000);
        int root = (int)(turn % (uint64_t)t->ranks);
        char *theirs;

        all_gather(t, mine, out);
        for (int r = 0; r < t->ranks; r++) {
                theirs = array_of(t->type, t->n, r);
                compare_bytes(t, "all_gather", out + (size_t)r * t->n * size, theirs, t->n);
                free(theirs);
        }
        all_to_all(t, mine, out);
        for (int r = 0; r < t->ranks; r++) {
                theirs = array_of(t->type, whole, r);
                compare_bytes(t, "all_to_all", out + (size_t)r * t->n * size,
                              theirs + (size_t)t->me * t->n * size, t->n);
                free(theirs);
        }
        theirs = array_of(t->type, t->n, root);
        memcpy(out, mine, t->n * size);
        broadcast(t, out, root);
        compare_bytes(t, "broadcast", out, theirs, t->n);
        if (t->ranks > 1)
                try_ring(t, mine, out);
        CLAIM(hn_comm_barrier(t->comm) == HN_OK);
        free(theirs);
        free(mine);
        free(out);
}

static void try_refusals(hn_comm *comm, int ranks, int me)
{
        char a[8] = { 0 }, b[8] = { 0 };

        CLAIM(hn_send(comm, a, 1, HN_UINT8, me) == HN_ERR_INVALID);
        CLAIM(hn_recv(comm, a, 1, HN_UINT8, ranks) == HN_ERR_INVALID);
        CLAIM(hn_send_recv(comm, a, -1, b, me, 1, HN_UINT8) == HN_ERR_INVALID);
        CLAIM(hn_reduce(comm, a, b, 1, HN_UINT8, HN_SUM, ranks) == HN_ERR_INVALID);
        CLAIM(hn_broadcast(comm, a, 1, HN_UINT8, -1) == HN_ERR_INVALID);
        CLAIM(hn_all_to_all(comm, a, a, 1, HN_UINT8) == HN_ERR_INVALID);
        CLAIM(hn_all_reduce(comm, a, b, 1, (hn_dtype)99, HN_SUM) == HN_ERR_INVALID);
        CLAIM(hn_all_reduce(comm, a, b, 1, HN_UINT8, (hn_op)5) == HN_ERR_INVALID);
        CLAIM(hn_all_reduce(comm, a, b, 0, HN_UINT8, HN_SUM) == HN_OK);
        if (lent_to_gpu) /* and afterwards the communicator still works */
                CLAIM(hn_all_reduce(comm, a, b, 1, HN_UINT8, HN_SUM) == HN_ERR_INVALID);
}

static void try_group(hn_group *group)
{
        struct trial t = { .ranks = hn_get_world_size(group), .me = hn_get_rank(group) };

        CLAIM(hn_comm_create(group, backend, PATIENCE_MS, &t.comm) == HN_OK);
        CLAIM(hn_comm_rank(t.comm) == t.me && hn_comm_size(t.comm) == t.ranks);
        for (t.type = HN_FLOAT32; t.type <= HN_BFLOAT16; t.type = (hn_dtype)(t.type + 1))
                for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
                        t.n = lengths[k];
                        for (t.op = HN_SUM; t.op <= HN_AVG; t.op = (hn_op)(t.op + 1)) {
                                turn++;
                                try_reductions(&t);
                        }
                        t.op = HN_SUM;
                        try_moves(&t);
                }
        try_refusals(t.comm, t.ranks, t.me);
        hn_comm_free(t.comm);
}

static int only_open(void)
{
        hn_comm *comm = NULL;
        hn_status status = hn_comm_create(NULL, backend, PATIENCE_MS, &comm);

        if (status == HN_OK)
                puts("ok");
        else
                printf("%s: %s\n", hn_status_name(status), hn_last_error());
        hn_comm_free(comm);
        fflush(stdout);
        hn_barrier(NULL, PATIENCE_MS); /* the first to leave would silence the others */
        hn_finalize();
        return status == HN_OK ? 0 : 3;
}

int main(int argc, char **argv)
{
        hn_group *g;
        size_t keys = 0, later = 0;

        CLAIM(hn_init(NULL) == HN_OK);
        seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
        seed = seed ? seed : (uint64_t)time(NULL);
        backend = argc > 2 ? argv[2] : backend;
        if (argc > 3)
                return only_open();
        if (strcmp(backend, "nccl") == 0)
                lent_open(hn_local_rank());
        CLAIM(hn_broadcast_bytes(NULL, &seed, sizeof(seed), 0, PATIENCE_MS) == HN_OK);
        try_group(NULL);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_num_keys(hn_store_default(), &keys) == HN_OK);
        CLAIM(hn_group_split(NULL, hn_rank() % 2, -hn_rank(), PATIENCE_MS, &g) == HN_OK);
        try_group(g);
        hn_group_free(g);
        CLAIM(hn_group_split(NULL, hn_rank() != 1 ? 0 : -1, 0, PATIENCE_MS, &g) == HN_OK);
        if (g)
                try_group(g);
        hn_group_free(g);
        CLAIM(hn_group_split(NULL, hn_rank(), 0, PATIENCE_MS, &g) == HN_OK);
        try_group(g);
        hn_group_free(g);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_num_keys(hn_store_default(), &later) == HN_OK && later == keys);
        if (hn_rank() == 0)
                printf("%ld\n", compared);
        return hn_finalize();
}

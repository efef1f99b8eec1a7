/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matchings of a round-robin tournament (circle method): with an even number of places, one
 * place empty if need be, place M-1 stays and the others turn. In round r the places a and b meet
 * if a + b = r modulo M-1. All M-1 rounds hold every pair once. The chosen rounds lie far apart, so
 * near and distant nodes meet.
 */
#include "head/check/pair_rounds.h"

#include <stdlib.h>

#include "base/macros.h"
#include "base/memory.h"

static size_t log2_above(size_t n)
{
        size_t bits = 0;

        while (((size_t)1 << bits) < n)
                bits++;
        return bits;
}

/* A number of the sequence splitmix64, below @n. */
static size_t random_below(uint64_t *seed, size_t n)
{
        uint64_t z = *seed += 0x9E3779B97F4A7C15;

        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return (size_t)((z ^ z >> 31) % n);
}

static size_t *shuffle_numbers(size_t from, size_t n, uint64_t *seed)
{
        size_t *v = xcalloc(MAX(n, (size_t)1), sizeof(*v));

        for (size_t i = 0; i < n; i++) {
                size_t k = random_below(seed, i + 1);

                v[i] = v[k];
                v[k] = from + i;
        }
        return v;
}

struct check_pair *pair_ring(const size_t *nodes, size_t n, uint64_t seed, size_t *ret_n)
{
        size_t *order = shuffle_numbers(0, n, &seed), *steps, n_steps;
        struct check_pair *pairs;

        *ret_n = 0;
        if (n < 2) {
                free(order);
                return NULL;
        }
        /* The steps 2 ... n-1 along the ring, of which log2 n are taken. */
        steps = shuffle_numbers(2, n - 2, &seed);
        n_steps = MIN(log2_above(n), n - 2);
        pairs = xcalloc(n * (1 + n_steps), sizeof(*pairs));
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k <= n_steps; k++) {
                        struct check_pair *p = &pairs[(*ret_n)++];

                        p->from = nodes[order[i]];
                        p->to = nodes[order[(i + (k ? steps[k - 1] : 1)) % n]];
                }
        free(order);
        free(steps);
        return pairs;
}

static size_t count_places(size_t n)
{
        return n + n % 2;
}

size_t pair_rounds(size_t n)
{
        return n < 2 ? 0 : MIN(log2_above(n) + n % 2, count_places(n) - 1);
}

size_t pair_round(const size_t *nodes, size_t n, size_t round, struct check_pair *to)
{
        size_t m = count_places(n) - 1, rounds = pair_rounds(n), n_pairs = 0;
        size_t sum = round * m / rounds;

        for (size_t a = 0; a < m; a++) {
                size_t b = (sum + m - a) % m;

                if (b == a)
                        b = m; /* the place that does not turn */
                if (b < a || b >= n)
                        continue;
                to[n_pairs++] = (struct check_pair){ .from = nodes[a], .to = nodes[b] };
        }
        return n_pairs;
}

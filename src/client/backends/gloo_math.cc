/* SPDX-License-Identifier: Apache-2.0 */
#include "client/backends/gloo_math.h"

#include <gloo/math.h>
#include <gloo/types.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace
{

/* The upper half of a float. */
struct BFloat16 {
        uint16_t bits;

        operator float() const
        {
                uint32_t wide = uint32_t(bits) << 16;
                float f;

                memcpy(&f, &wide, sizeof(f));
                return f;
        }

        BFloat16() = default;

        /* To the nearest, to even when in between. A NaN must not become infinite. */
        explicit BFloat16(float f)
        {
                uint32_t wide;

                memcpy(&wide, &f, sizeof(wide));
                if (std::isnan(f))
                        bits = uint16_t(wide >> 16 | 0x40);
                else
                        bits = uint16_t((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
        }
};

template <typename T, T (*combine)(float, float)>
void each(void *c, const void *a, const void *b, size_t n)
{
        for (size_t i = 0; i < n; i++)
                static_cast<T *>(c)[i] =
                        combine(static_cast<const T *>(a)[i], static_cast<const T *>(b)[i]);
}

BFloat16 add(float a, float b)
{
        return BFloat16(a + b);
}

BFloat16 multiply(float a, float b)
{
        return BFloat16(a * b);
}

BFloat16 lower(float a, float b)
{
        return BFloat16(b < a ? b : a);
}

BFloat16 higher(float a, float b)
{
        return BFloat16(a < b ? b : a);
}

/* @U does the arithmetic, @T the comparing. */
template <typename T, typename U = T> GlooReduce reduction(hn_op op)
{
        switch (op) {
        case HN_SUM:
        case HN_AVG:
                return static_cast<GlooReduce>(gloo::sum<U>);
        case HN_PROD:
                return static_cast<GlooReduce>(gloo::product<U>);
        case HN_MIN:
                return static_cast<GlooReduce>(gloo::min<T>);
        case HN_MAX:
                return static_cast<GlooReduce>(gloo::max<T>);
        }
        throw std::invalid_argument("no such operation");
}

GlooReduce bfloat16_reduction(hn_op op)
{
        switch (op) {
        case HN_SUM:
        case HN_AVG:
                return each<BFloat16, add>;
        case HN_PROD:
                return each<BFloat16, multiply>;
        case HN_MIN:
                return each<BFloat16, lower>;
        case HN_MAX:
                return each<BFloat16, higher>;
        }
        throw std::invalid_argument("no such operation");
}

template <typename T> void divide(void *array, size_t n, T by)
{
        for (size_t i = 0; i < n; i++)
                static_cast<T *>(array)[i] = static_cast<T *>(array)[i] / by;
}

void divide_half(void *array, size_t n, int by)
{
        auto p = static_cast<gloo::float16 *>(array);

        for (size_t i = 0; i < n; i++)
                p[i] = gloo::cpu_float2half_rn(gloo::cpu_half2float(p[i]) / float(by));
}

void divide_bfloat16(void *array, size_t n, int by)
{
        auto p = static_cast<BFloat16 *>(array);

        for (size_t i = 0; i < n; i++)
                p[i] = BFloat16(float(p[i]) / float(by));
}

/* A byte cannot hold the number of ranks. */
void divide_bytes(void *array, size_t n, int by)
{
        auto p = static_cast<uint8_t *>(array);

        for (size_t i = 0; i < n; i++)
                p[i] = uint8_t(p[i] / by);
}

} // namespace

GlooReduce gloo_reduction(hn_dtype type, hn_op op)
{
        switch (type) {
        case HN_FLOAT32:
                return reduction<float>(op);
        case HN_FLOAT64:
                return reduction<double>(op);
        case HN_INT32:
                return reduction<int32_t, uint32_t>(op);
        case HN_INT64:
                return reduction<int64_t, uint64_t>(op);
        case HN_UINT8:
                return reduction<uint8_t>(op);
        case HN_FLOAT16:
                return reduction<gloo::float16>(op);
        case HN_BFLOAT16:
                return bfloat16_reduction(op);
        }
        throw std::invalid_argument("no such type");
}

void gloo_finish(hn_dtype type, hn_op op, void *array, size_t n, int ranks)
{
        if (op != HN_AVG)
                return;
        switch (type) {
        case HN_FLOAT32:
                return divide<float>(array, n, float(ranks));
        case HN_FLOAT64:
                return divide<double>(array, n, ranks);
        case HN_INT32:
                return divide<int32_t>(array, n, ranks);
        case HN_INT64:
                return divide<int64_t>(array, n, ranks);
        case HN_UINT8:
                return divide_bytes(array, n, ranks);
        case HN_FLOAT16:
                return divide_half(array, n, ranks);
        case HN_BFLOAT16:
                return divide_bfloat16(array, n, ranks);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lent: arrays of the host where the backend wants them: on the GPU for `nccl`, else where they are
 *
 *     void *at = lent_out(array, bytes);      the array, or a copy on the GPU
 *     hn_all_reduce(comm, at, at, ...);
 *     lent_back(array, at, bytes);            copies it home, and frees the copy
 *
 * Needs the CUDA driver at run time, and nothing to be built.
 */
#pragma once

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "claim.h"

static bool lent_to_gpu;

static struct {
        int (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*retain)(void **, int);
        int (*set)(void *), (*alloc)(void **, size_t), (*release)(void *);
        int (*to)(void *, const void *, size_t), (*from)(void *, const void *, size_t);
} lent;

static inline void *lent_symbol(const char *name)
{
        static void *driver;
        void *symbol;

        if (!driver)
                driver = dlopen("libcuda.so.1", RTLD_NOW);
        CLAIM(driver);
        symbol = dlsym(driver, name);
        CLAIM(symbol);
        return symbol;
}

#define LENT_TAKE(field, name)                                                                     \
        do {                                                                                       \
                void *symbol = lent_symbol(name);                                                  \
                memcpy(&lent.field, &symbol, sizeof(symbol));                                      \
        } while (0)

/* Before the first array: this rank's device is chosen as hn_comm_create() would. */
static inline void lent_open(int local_rank)
{
        void *context;
        int n, device;

        LENT_TAKE(init, "cuInit");
        LENT_TAKE(count, "cuDeviceGetCount");
        LENT_TAKE(get, "cuDeviceGet");
        LENT_TAKE(retain, "cuDevicePrimaryCtxRetain");
        LENT_TAKE(set, "cuCtxSetCurrent");
        LENT_TAKE(alloc, "cuMemAlloc_v2");
        LENT_TAKE(release, "cuMemFree_v2");
        LENT_TAKE(to, "cuMemcpyHtoD_v2");
        LENT_TAKE(from, "cuMemcpyDtoH_v2");
        CLAIM(lent.init(0) == 0 && lent.count(&n) == 0 && n > 0);
        CLAIM(lent.get(&device, local_rank % n) == 0 && lent.retain(&context, device) == 0);
        CLAIM(lent.set(context) == 0);
        lent_to_gpu = true;
}

static inline void *lent_out(const void *array, size_t bytes)
{
        void *copy;

        if (!lent_to_gpu || !array)
                return (void *)(size_t)array;
        CLAIM(lent.alloc(&copy, bytes) == 0);
        CLAIM(lent.to(copy, array, bytes) == 0);
        return copy;
}

static inline void lent_back(void *array, void *at, size_t bytes)
{
        if (at == array)
                return;
        CLAIM(lent.from(array, at, bytes) == 0);
        CLAIM(lent.release(at) == 0);
}

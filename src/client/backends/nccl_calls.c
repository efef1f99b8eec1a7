/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries are searched once per process (pthread_once()), with the first communicator.
 * Addresses go into `nccl` and `cuda`; the reason of a failure stays in `trouble` for every later
 * call. A library once opened is never closed, because the program may use NCCL, too.
 */
#include "client/backends/nccl_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"

struct nccl_calls nccl;
struct cuda_calls cuda;

/* A symbol and the place for its address. */
struct wanted_symbol {
        const char *symbol;
        void *to;
};

#define NCCL_WANTED(result, name, arguments)         { "nccl" #name, &nccl.name },
#define CUDA_WANTED(result, name, symbol, arguments) { symbol, &cuda.name },

static const struct wanted_symbol nccl_wanted[] = { NCCL_CALLS(NCCL_WANTED) };
static const struct wanted_symbol nccl_new[] = { NCCL_NEW_CALLS(NCCL_WANTED) };
static const struct wanted_symbol cuda_wanted[] = { CUDA_CALLS(CUDA_WANTED) };

static char trouble[600]; /* "" = both were found */

/* Returns the first symbol missing from @library, or NULL. */
static const char *load_symbols(void *library, const struct wanted_symbol *list, size_t n)
{
        const char *lacks = NULL;
        void *address;

        for (size_t i = 0; i < n; i++) {
                address = dlsym(library, list[i].symbol);
                /* ISO C converts no object pointer to a function pointer, so the bits are
                 * copied. */
                memcpy(list[i].to, &address, sizeof(address));
                if (!address && !lacks)
                        lacks = list[i].symbol;
        }
        return lacks;
}

/* The program's own NCCL comes first: PyTorch brings one outside of the search path, and a program
 * may be linked with NCCL statically. */
static void find_nccl(void)
{
        /* RTLD_NOLOAD finds a library that is loaded, and loads none. */
        void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
        const char *lacks;

        if (!library && dlsym(RTLD_DEFAULT, "ncclGetUniqueId"))
                library = dlopen(NULL, RTLD_NOW);
        if (!library)
                library = dlopen("libnccl.so.2", RTLD_NOW);
        if (!library) {
                snprintf(trouble, sizeof(trouble),
                         "there is no NCCL here (%s): install it, or name its folder: "
                         "hnlaunch -x LD_LIBRARY_PATH=...",
                         dlerror());
                return;
        }
        lacks = load_symbols(library, nccl_wanted, ARRAY_SIZE(nccl_wanted));
        load_symbols(library, nccl_new, ARRAY_SIZE(nccl_new)); /* NULL in an older NCCL */
        if (lacks)
                snprintf(trouble, sizeof(trouble),
                         "the NCCL here has no %s: it must be 2.14 or newer", lacks);
}

/* Loads the driver once; a failure is kept as text for each later call. */
static void find_cuda(void)
{
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        const char *lacks;

        if (!library) {
                snprintf(trouble, sizeof(trouble),
                         "there is no NVIDIA driver here (%s): programs without GPUs take the "
                         "backend `gloo`",
                         dlerror());
                return;
        }
        lacks = load_symbols(library, cuda_wanted, ARRAY_SIZE(cuda_wanted));
        if (lacks)
                snprintf(trouble, sizeof(trouble),
                         "the NVIDIA driver here has no %s: it is too old", lacks);
}

static void find_both(void)
{
        find_nccl();
        if (!*trouble)
                find_cuda();
}

hn_status nccl_calls_find(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, find_both);
        return *trouble ? hn_set_error(HN_ERR_UNSUPPORTED, "%s", trouble) : HN_OK;
}

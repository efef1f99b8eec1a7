/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backend: the interface of a collectives plug-in
 *
 * hn_backend_NAME.so exports one symbol, `hn_backend`, a struct backend. On failure its functions
 * leave a sentence with hn_set_error(); no C++ exception gets out. HN_ERR_INVALID says that nothing
 * was begun; after any other error the communicator is only destroyed. The caller has checked the
 * arguments, and counts are above 0.
 */
#pragma once

#include <hnlaunch/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BACKEND_ABI = 3 };

struct backend {
        int abi; /* BACKEND_ABI */
        const char *name;
        /* Called by all members of @group (NULL = the world). @store is a prefix for this
         * communicator, lent until destroy; the group is lent for this call. */
        hn_status (*create)(hn_group *group, hn_store *store, int64_t timeout_ms, void **ret);
        void (*destroy)(void *self);
        hn_status (*all_reduce)(void *self, const void *in, void *out, size_t n, hn_dtype type,
                                hn_op op);
        hn_status (*reduce)(void *self, const void *in, void *out, size_t n, hn_dtype type,
                            hn_op op, int root);
        hn_status (*reduce_scatter)(void *self, const void *in, void *out, size_t n, hn_dtype type,
                                    hn_op op);
        hn_status (*broadcast)(void *self, void *buf, size_t bytes, int root);
        hn_status (*all_gather)(void *self, const void *in, void *out, size_t bytes);
        /* @bytes to and from each rank. */
        hn_status (*all_to_all)(void *self, const void *in, void *out, size_t bytes);
        /* @in NULL = only receives, @out NULL = only sends. */
        hn_status (*exchange)(void *self, const void *in, int to, void *out, int from,
                              size_t bytes);
        hn_status (*barrier)(void *self);
};

#ifdef __cplusplus
}
#endif

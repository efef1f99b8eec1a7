/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_abi: the part of PMIx's server interface that the helper uses
 *
 * Written by hand from the PMIx standard and OpenPMIx's headers, because the helper is built
 * without these headers and meets any libpmix.so.2 at run time (OpenPMIx 3.2 to 6.1). The layouts
 * of these structures did not change between these versions. The module of callbacks only grew at
 * the end: the helper passes a larger module and leaves the rest zero. Functions of the library
 * that fill structures are avoided, since some are macros in old versions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
        PMIX_SUCCESS = 0,
        PMIX_ERROR = -1,
        PMIX_ERR_NOT_FOUND = -46,
        PMIX_ERR_NOT_SUPPORTED = -47,
        PMIX_ERR_LOST_CONNECTION = -61,
        PMIX_OPERATION_SUCCEEDED = -157,
};

#define PMIX_RANK_WILDCARD (UINT32_MAX - 1)

/* pmix_data_type_t */
enum {
        PMIX_BOOL = 1,
        PMIX_STRING = 3,
        PMIX_UINT16 = 13,
        PMIX_UINT32 = 14,
        PMIX_INFO = 24,
        PMIX_DATA_ARRAY = 39,
        PMIX_PROC_RANK = 40,
};

struct pmix_proc {
        char nspace[256];
        uint32_t rank;
};

struct pmix_data_array {
        uint16_t type;
        size_t size;
        void *array;
};

struct pmix_value {
        uint16_t type;
        union {
                bool flag;
                char *string;
                uint16_t uint16;
                uint32_t uint32;
                struct pmix_data_array *darray;
                unsigned char space[24];
                void *align;
        } data;
};

struct pmix_info {
        char key[512];
        uint32_t flags;
        struct pmix_value value;
};

_Static_assert(sizeof(struct pmix_proc) == 260, "as in PMIx");
_Static_assert(sizeof(void *) != 8 || sizeof(struct pmix_value) == 32, "as in PMIx");
_Static_assert(sizeof(void *) != 8 || sizeof(struct pmix_info) == 552, "as in PMIx");

typedef void pmix_op_fn(int status, void *cbdata);
typedef void pmix_release_fn(void *cbdata);
typedef void pmix_modex_fn(int status, const char *data, size_t n, void *cbdata,
                           pmix_release_fn *release, void *release_cbdata);
typedef void pmix_dmodex_fn(int status, char *data, size_t n, void *cbdata);

/* Callbacks of the host, called on libpmix's own thread. NULL: "not supported". */
struct pmix_module {
        int (*client_connected)(const struct pmix_proc *p, void *object, pmix_op_fn *fn,
                                void *cbdata);
        int (*client_finalized)(const struct pmix_proc *p, void *object, pmix_op_fn *fn,
                                void *cbdata);
        int (*abort)(const struct pmix_proc *p, void *object, int status, const char *text,
                     struct pmix_proc *procs, size_t n_procs, pmix_op_fn *fn, void *cbdata);
        int (*fence)(const struct pmix_proc *procs, size_t n_procs, const struct pmix_info *info,
                     size_t n_info, char *data, size_t n, pmix_modex_fn *fn, void *cbdata);
        int (*direct_modex)(const struct pmix_proc *p, const struct pmix_info *info, size_t n_info,
                            pmix_modex_fn *fn, void *cbdata);
        void *rest[59];
};

/* The functions of the library, by their names. */
struct pmix_functions {
        const char *(*get_version)(void);
        const char *(*error_string)(int status);
        int (*server_init)(struct pmix_module *m, struct pmix_info *info, size_t n);
        int (*server_finalize)(void);
        int (*register_nspace)(const char *nspace, int n_local, struct pmix_info *info, size_t n,
                               pmix_op_fn *fn, void *cbdata);
        int (*register_client)(const struct pmix_proc *p, uid_t uid, gid_t gid, void *object,
                               pmix_op_fn *fn, void *cbdata);
        int (*setup_fork)(const struct pmix_proc *p, char ***env);
        int (*dmodex_request)(const struct pmix_proc *p, pmix_dmodex_fn *fn, void *cbdata);
};

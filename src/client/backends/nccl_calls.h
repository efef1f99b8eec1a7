/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nccl_calls: NCCL and the CUDA driver for a plug-in built without their headers
 *
 * Both are found when the first communicator is made: an NCCL already loaded by the program, else
 * libnccl.so.2 from the dynamic linker. So hnlaunch is built without CUDA, and there are never two
 * NCCLs in one process. Names and numbers are from nccl.h, unchanged since NCCL 2.14;
 * tests/clients/nccl_numbers.h compares them with the real header. With them hnlaunch/nccl.h
 * compiles as for any program; the config is the one of 2.14, accepted by every newer NCCL.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>

#define NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
/* Covers the calls below; older releases lack some of them, which is found out at run time. */
#define NCCL_VERSION_CODE NCCL_VERSION(2, 23, 0)

#define NCCL_UNIQUE_ID_BYTES  128
#define NCCL_CONFIG_UNDEF_INT ((int)0x80000000)
#define NCCL_CONFIG_INITIALIZER                                                                    \
        {                                                                                          \
                sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION(2, 14, 0), NCCL_CONFIG_UNDEF_INT    \
        }

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUctx_st *cuda_context;

typedef struct ncclUniqueId {
        char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef struct ncclConfig_v21400 {
        size_t size;
        unsigned int magic, version;
        int blocking;
} ncclConfig_t;

typedef enum { ncclSuccess = 0, ncclInProgress = 7 } ncclResult_t;
typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;
typedef enum {
        ncclUint8 = 1,
        ncclInt32 = 2,
        ncclInt64 = 4,
        ncclFloat16 = 6,
        ncclFloat32 = 7,
        ncclFloat64 = 8,
        ncclBfloat16 = 9
} ncclDataType_t;

/* RESULT, name without "nccl", arguments. */
#define NCCL_CALLS(X)                                                                              \
        X(ncclResult_t, GetVersion, (int *version))                                                \
        X(ncclResult_t, GetUniqueId, (ncclUniqueId * id))                                          \
        X(const char *, GetErrorString, (ncclResult_t result))                                     \
        X(const char *, GetLastError, (ncclComm_t comm))                                           \
        X(ncclResult_t, CommInitRankConfig,                                                        \
          (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config))         \
        X(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t * state))                \
        X(ncclResult_t, CommCount, (ncclComm_t comm, int *ranks))                                  \
        X(ncclResult_t, CommFinalize, (ncclComm_t comm))                                           \
        X(ncclResult_t, CommDestroy, (ncclComm_t comm))                                            \
        X(ncclResult_t, CommAbort, (ncclComm_t comm))                                              \
        X(ncclResult_t, AllReduce,                                                                 \
          (const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op,               \
           ncclComm_t comm, cudaStream_t stream))                                                  \
        X(ncclResult_t, Reduce,                                                                    \
          (const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,     \
           ncclComm_t comm, cudaStream_t stream))                                                  \
        X(ncclResult_t, ReduceScatter,                                                             \
          (const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op,               \
           ncclComm_t comm, cudaStream_t stream))                                                  \
        X(ncclResult_t, Broadcast,                                                                 \
          (const void *in, void *out, size_t n, ncclDataType_t type, int root, ncclComm_t comm,    \
           cudaStream_t stream))                                                                   \
        X(ncclResult_t, AllGather,                                                                 \
          (const void *in, void *out, size_t n, ncclDataType_t type, ncclComm_t comm,              \
           cudaStream_t stream))                                                                   \
        X(ncclResult_t, Send,                                                                      \
          (const void *in, size_t n, ncclDataType_t type, int to, ncclComm_t comm,                 \
           cudaStream_t stream))                                                                   \
        X(ncclResult_t, Recv,                                                                      \
          (void *out, size_t n, ncclDataType_t type, int from, ncclComm_t comm,                    \
           cudaStream_t stream))                                                                   \
        X(ncclResult_t, GroupStart, (void))                                                        \
        X(ncclResult_t, GroupEnd, (void))

/* Not in every supported NCCL. */
#define NCCL_NEW_CALLS(X)                                                                          \
        X(ncclResult_t, CommSplit,                                                                 \
          (ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config))          \
        X(ncclResult_t, CommInitRankScalable,                                                      \
          (ncclComm_t * comm, int ranks, int rank, int n_ids, ncclUniqueId *ids,                   \
           ncclConfig_t *config))

/* int is a CUresult, 0 = good. A device's memory is an address in CUDA's unified space. */
#define CUDA_CALLS(X)                                                                              \
        X(int, Init, "cuInit", (unsigned flags))                                                   \
        X(int, GetErrorString, "cuGetErrorString", (int error, const char **text))                 \
        X(int, DeviceGetCount, "cuDeviceGetCount", (int *n))                                       \
        X(int, DeviceGet, "cuDeviceGet", (int *device, int index))                                 \
        X(int, DeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *to, int size, int device))         \
        X(int, CtxGetCurrent, "cuCtxGetCurrent", (cuda_context * context))                         \
        X(int, CtxGetDevice, "cuCtxGetDevice", (int *device))                                      \
        X(int, CtxPush, "cuCtxPushCurrent_v2", (cuda_context context))                             \
        X(int, CtxPop, "cuCtxPopCurrent_v2", (cuda_context * context))                             \
        X(int, CtxRetain, "cuDevicePrimaryCtxRetain", (cuda_context * context, int device))        \
        X(int, CtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                           \
        X(int, StreamCreate, "cuStreamCreate", (cudaStream_t * stream, unsigned flags))            \
        X(int, StreamDestroy, "cuStreamDestroy_v2", (cudaStream_t stream))                         \
        X(int, StreamQuery, "cuStreamQuery", (cudaStream_t stream))                                \
        X(int, MemAlloc, "cuMemAlloc_v2", (void **memory, size_t bytes))                           \
        X(int, MemFree, "cuMemFree_v2", (void *memory))                                            \
        X(int, PointerGetAttribute, "cuPointerGetAttribute",                                       \
          (void *to, int attribute, const void *pointer))

enum { CUDA_SUCCESS = 0, CUDA_ERROR_NOT_READY = 600, CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2 };

#define NCCL_FIELD(result, name, arguments)         result(*name) arguments;
#define CUDA_FIELD(result, name, symbol, arguments) result(*name) arguments;

struct nccl_calls {
        NCCL_CALLS(NCCL_FIELD)
        NCCL_NEW_CALLS(NCCL_FIELD) /* NULL = not there */
};

struct cuda_calls {
        CUDA_CALLS(CUDA_FIELD)
};

extern struct nccl_calls nccl;
extern struct cuda_calls cuda;

/* Finds both; later calls cost nothing. HN_ERR_UNSUPPORTED: no NCCL from 2.14 on, or no driver;
 * hn_last_error() says which. */
hn_status nccl_calls_find(void);

#define NCCL_SPLIT_NOCOLOR       (-1)
#define ncclGetVersion           nccl.GetVersion
#define ncclGetUniqueId          nccl.GetUniqueId
#define ncclGetErrorString       nccl.GetErrorString
#define ncclGetLastError         nccl.GetLastError
#define ncclCommInitRankConfig   nccl.CommInitRankConfig
#define ncclCommInitRankScalable nccl.CommInitRankScalable
#define ncclCommSplit            nccl.CommSplit
#define ncclCommGetAsyncError    nccl.CommGetAsyncError
#define ncclCommCount            nccl.CommCount
#define ncclCommFinalize         nccl.CommFinalize
#define ncclCommDestroy          nccl.CommDestroy
#define ncclCommAbort            nccl.CommAbort

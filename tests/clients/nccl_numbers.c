/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assumptions of the NCCL plug-in about NCCL and the CUDA driver, checked by the compiler: with
 * -DPLUGIN after the plug-in's own declarations, without after the real nccl.h and cuda.h.
 * Compiling is the test.
 */
#ifdef PLUGIN
#include "client/backends/nccl_calls.h"
#define NCCL_TYPE(name) __typeof__(nccl.name)
#else
#include <cuda.h>
#include <nccl.h>
#define NCCL_TYPE(name) __typeof__(&nccl##name)
#endif

#include <assert.h>
#include <stddef.h>

#define TAKES(name, ...)                                                                           \
        static_assert(__builtin_types_compatible_p(NCCL_TYPE(name), ncclResult_t(*)(__VA_ARGS__)), \
                      #name)

static_assert(sizeof(ncclUniqueId) == 128, "an id");
static_assert(sizeof(ncclResult_t) == 4 && ncclSuccess == 0 && ncclInProgress == 7, "results");
static_assert(sizeof(ncclRedOp_t) == 4 && ncclSum == 0 && ncclProd == 1 && ncclMax == 2 &&
                      ncclMin == 3 && ncclAvg == 4,
              "operations");
static_assert(sizeof(ncclDataType_t) == 4 && ncclUint8 == 1 && ncclInt32 == 2 && ncclInt64 == 4 &&
                      ncclFloat16 == 6 && ncclFloat32 == 7 && ncclFloat64 == 8,
              "types");
#if defined(PLUGIN) || NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
static_assert(ncclBfloat16 == 9, "a type that older headers have for C++ only");
#endif

static_assert(offsetof(ncclConfig_t, size) == 0 && sizeof(((ncclConfig_t *)0)->size) == 8,
              "a config's size");
static_assert(offsetof(ncclConfig_t, magic) == 8 && offsetof(ncclConfig_t, version) == 12,
              "a config's version");
static_assert(offsetof(ncclConfig_t, blocking) == 16 && sizeof(ncclConfig_t) >= 24,
              "a config's blocking");
#ifdef NCCL_CONFIG_UNDEF_INT
static_assert(NCCL_CONFIG_UNDEF_INT == (int)0x80000000, "what is left to NCCL");
#endif

TAKES(GetVersion, int *);
TAKES(GetUniqueId, ncclUniqueId *);
TAKES(CommInitRankConfig, ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);
TAKES(CommGetAsyncError, ncclComm_t, ncclResult_t *);
TAKES(CommFinalize, ncclComm_t);
TAKES(CommDestroy, ncclComm_t);
TAKES(CommAbort, ncclComm_t);
TAKES(AllReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
      cudaStream_t);
TAKES(Reduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
      cudaStream_t);
TAKES(ReduceScatter, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
      cudaStream_t);
TAKES(Broadcast, const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
TAKES(AllGather, const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
TAKES(Send, const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
TAKES(Recv, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
TAKES(GroupStart, void);
TAKES(GroupEnd, void);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
TAKES(CommSplit, ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *);
static_assert(NCCL_SPLIT_NOCOLOR == -1, "no child");
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
TAKES(CommInitRankScalable, ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *);
#endif

static_assert(CUDA_SUCCESS == 0 && CUDA_ERROR_NOT_READY == 600 &&
                      CU_POINTER_ATTRIBUTE_MEMORY_TYPE == 2,
              "the driver");
#ifndef PLUGIN
static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUdevice) == sizeof(int) &&
                      sizeof(CUdeviceptr) == sizeof(void *) && sizeof(CUcontext) == sizeof(void *),
              "the driver's types");
#endif

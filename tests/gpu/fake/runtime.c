/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime: the calls of libcudart that NCCL and the tests make. Those that are not for us
 * (graphs, memory of other processes) give cudaErrorNotSupported.
 */
#define _GNU_SOURCE
#include "fakegpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread cudaError_t last_error;

static cudaError_t set_error(cudaError_t error)
{
        if (error != cudaSuccess && error != cudaErrorNotReady)
                last_error = error;
        return error;
}

/* --- kernels ---------------------------------------------------------------------------------- */

struct CUfunc_st {
        struct CUfunc_st *next;
        const void *stub;
        const char *name;
};

static struct CUfunc_st *functions;

static struct CUfunc_st *function_of(const void *stub)
{
        struct CUfunc_st *f = functions;

        while (f && f->stub != stub)
                f = f->next;
        return f;
}

void launch_kernel(const struct CUfunc_st *f, CUstream s)
{
        char text[200];

        snprintf(text, sizeof(text), "kernel %s", f ? f->name : "?");
        enter_call(text);
        fakegpu_enqueue(s, NULL, NULL);
}

/* --- what nvcc's host code calls -------------------------------------------------------------- */

/* Before main(): no setting is read. */
API void **__cudaRegisterFatBinary(void *image)
{
        return calloc(1, sizeof(image));
}

API void __cudaRegisterFatBinaryEnd(void **handle)
{
}

API void __cudaUnregisterFatBinary(void **handle)
{
        free(handle);
}

API char __cudaInitModule(void **handle)
{
        return 1;
}

API void __cudaRegisterFunction(void **handle, const char *stub, char *fun, const char *name,
                                int limit, void *tid, void *bid, void *block, void *grid, int *size)
{
        struct CUfunc_st *f = calloc(1, sizeof(*f));

        *f = (struct CUfunc_st){ functions, stub, name };
        functions = f;
}

API void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext,
                           size_t size, int constant, int global)
{
}

API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
        *grid = *block = (dim3){ 1, 1, 1 };
        *shared = 0;
        *(void **)stream = NULL;
        return cudaSuccess;
}

/* --- devices ---------------------------------------------------------------------------------- */

API cudaError_t cudaDriverGetVersion(int *v)
{
        CALL;
        *v = CUDA_LEVEL;
        return cudaSuccess;
}

API cudaError_t cudaRuntimeGetVersion(int *v)
{
        CALL;
        *v = CUDA_LEVEL;
        return cudaSuccess;
}

API cudaError_t cudaPeekAtLastError(void)
{
        return last_error;
}

API cudaError_t cudaGetLastError(void)
{
        cudaError_t error = last_error;

        last_error = cudaSuccess;
        return error;
}

const char *error_text(int error)
{
        switch (error) {
        case 0:
                return "no error";
        case cudaErrorInvalidValue:
                return "invalid argument";
        case cudaErrorMemoryAllocation:
                return "out of memory";
        case cudaErrorNoDevice:
                return "no CUDA-capable device is detected";
        case cudaErrorInvalidDevice:
                return "invalid device ordinal";
        case cudaErrorNotReady:
                return "device not ready";
        case cudaErrorNotSupported:
                return "operation not supported";
        default:
                return "some error of fakegpu";
        }
}

API const char *cudaGetErrorString(cudaError_t error)
{
        return error_text((int)error);
}

API const char *cudaGetErrorName(cudaError_t error)
{
        return error_text((int)error);
}

API cudaError_t cudaGetDeviceCount(int *n)
{
        CALL;
        *n = machine.n;
        return machine.n ? cudaSuccess : set_error(cudaErrorNoDevice);
}

API cudaError_t cudaGetDevice(int *device)
{
        CALL;
        *device = current_device();
        return machine.n ? cudaSuccess : set_error(cudaErrorNoDevice);
}

API cudaError_t cudaSetDevice(int device)
{
        CALL;
        if (!is_device(device))
                return set_error(cudaErrorInvalidDevice);
        set_context(context_of(device));
        return cudaSuccess;
}

API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device)
{
        CALL;
        if (!is_device(device))
                return set_error(cudaErrorInvalidDevice);
        *value = attribute_of((int)which, device);
        return cudaSuccess;
}

API cudaError_t cudaDeviceGetPCIBusId(char *to, int size, int device)
{
        CALL;
        if (!is_device(device))
                return set_error(cudaErrorInvalidDevice);
        write_bus_id(device, to, (size_t)size);
        return cudaSuccess;
}

API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
        CALL;
        *device = device_at_bus(text);
        return *device < 0 ? set_error(cudaErrorInvalidDevice) : cudaSuccess;
}

API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
        CALL;
        if (!is_device(device))
                return set_error(cudaErrorInvalidDevice);
        memset(p, 0, sizeof(*p));
        snprintf(p->name, sizeof(p->name), "fakegpu");
        p->major = CC_MAJOR;
        p->minor = CC_MINOR;
        p->multiProcessorCount = 16;
        p->totalGlobalMem = machine.memory;
        p->pciBusID = 1 + machine.visible[device];
        return cudaSuccess;
}

API cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b)
{
        CALL;
        *can = 0;
        return cudaSuccess;
}

API cudaError_t cudaDeviceEnablePeerAccess(int a, unsigned f)
{
        CALL;
        return set_error(cudaErrorNotSupported);
}

API cudaError_t cudaDeviceSetLimit(enum cudaLimit l, size_t n)
{
        CALL;
        return cudaSuccess;
}

API cudaError_t cudaDeviceSynchronize(void)
{
        CALL;
        wait_device(current_device());
        return cudaSuccess;
}

API cudaError_t cudaGetDriverEntryPoint(const char *name, void **fn, unsigned long long flags,
                                        enum cudaDriverEntryPointQueryResult *result)
{
        static const char *const ends[] = { "_v2", "" };
        char text[128];

        *fn = NULL;
        for (int i = 0; i < 2 && !*fn; i++) {
                snprintf(text, sizeof(text), "%s%s", name, ends[i]);
                *fn = dlsym(RTLD_DEFAULT, text);
        }
        snprintf(text, sizeof(text), "%s %s%s", __func__, name, *fn ? "" : ": none");
        enter_call(text);
        if (result)
                *result = *fn ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
        return cudaSuccess;
}

/* --- memory ----------------------------------------------------------------------------------- */

API cudaError_t cudaMalloc(void **at, size_t n)
{
        CALL;
        return set_error(allocate_block(at, n, DEVICE_MEMORY, NULL));
}

API cudaError_t cudaFree(void *at)
{
        CALL;
        cudaDeviceSynchronize();
        return set_error(release_block(at));
}

API cudaError_t cudaHostAlloc(void **at, size_t n, unsigned f)
{
        CALL;
        return set_error(allocate_block(at, n, PINNED_MEMORY, NULL));
}

API cudaError_t cudaMallocHost(void **at, size_t n)
{
        CALL;
        return set_error(allocate_block(at, n, PINNED_MEMORY, NULL));
}

API cudaError_t cudaFreeHost(void *at)
{
        CALL;
        return set_error(release_block(at));
}

API cudaError_t cudaHostUnregister(void *at)
{
        CALL;
        return set_error(release_block(at));
}

API cudaError_t cudaMallocAsync(void **at, size_t n, cudaStream_t s)
{
        CALL;
        return set_error(allocate_block(at, n, DEVICE_MEMORY, NULL));
}

API cudaError_t cudaMallocFromPoolAsync(void **at, size_t n, cudaMemPool_t pool, cudaStream_t s)
{
        CALL;
        return set_error(allocate_block(at, n, DEVICE_MEMORY, NULL));
}

static void run_free(void *at)
{
        release_block(at);
}

API cudaError_t cudaFreeAsync(void *at, cudaStream_t s)
{
        CALL;
        fakegpu_enqueue(s, run_free, at);
        return cudaSuccess;
}

API cudaError_t cudaHostRegister(void *at, size_t n, unsigned flags)
{
        void *same;

        CALL;
        return set_error(allocate_block(&same, n, REGISTERED_MEMORY, at));
}

API cudaError_t cudaHostGetDevicePointer(void **to, void *at, unsigned flags)
{
        CALL;
        *to = at;
        return cudaSuccess;
}

API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *at)
{
        struct block b;

        CALL;
        memset(a, 0, sizeof(*a));
        a->type = cudaMemoryTypeUnregistered;
        a->device = -2;
        if (!find_block(at, &b))
                return cudaSuccess;
        a->type = b.kind == DEVICE_MEMORY ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
        a->device = b.device;
        a->devicePointer = (void *)at;
        a->hostPointer = b.kind != DEVICE_MEMORY ? (void *)at : NULL;
        return cudaSuccess;
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind k)
{
        CALL;
        return move_memory(to, from, 0, n, NULL, true);
}

API cudaError_t cudaMemcpyPeer(void *to, int a, const void *from, int b, size_t n)
{
        CALL;
        return move_memory(to, from, 0, n, NULL, true);
}

API cudaError_t cudaMemset(void *to, int v, size_t n)
{
        CALL;
        return move_memory(to, NULL, v, n, NULL, true);
}

API cudaError_t cudaMemsetAsync(void *to, int v, size_t n, cudaStream_t s)
{
        CALL;
        return move_memory(to, NULL, v, n, s, false);
}

API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind k,
                                cudaStream_t s)
{
        CALL;
        return move_memory(to, from, 0, n, s, false);
}

API cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
        CALL;
        *total = machine.memory;
        *left = machine.memory - context_of(current_device())->used;
        return cudaSuccess;
}

API cudaError_t cudaMemPoolCreate(cudaMemPool_t *p, const struct cudaMemPoolProps *props)
{
        CALL;
        *p = malloc(1);
        return cudaSuccess;
}

API cudaError_t cudaMemPoolDestroy(cudaMemPool_t p)
{
        CALL;
        free(p);
        return cudaSuccess;
}

API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void *v)
{
        CALL;
        return cudaSuccess;
}

/* --- streams, events, launches ---------------------------------------------------------------- */

API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
        CALL;
        *s = create_stream(flags, current_device());
        return cudaSuccess;
}

API cudaError_t cudaStreamCreate(cudaStream_t *s)
{
        CALL;
        *s = create_stream(0, current_device());
        return cudaSuccess;
}

API cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
        CALL;
        wait_stream(s);
        return cudaSuccess;
}

API cudaError_t cudaStreamDestroy(cudaStream_t s)
{
        CALL;
        end_stream(s);
        return cudaSuccess;
}

API cudaError_t cudaStreamQuery(cudaStream_t s)
{
        return query_stream(s);
}

API cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
        CALL;
        stream_wait_event(s, e);
        return cudaSuccess;
}

API cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id)
{
        CALL;
        *id = (uintptr_t)s;
        return cudaSuccess;
}

API cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *c)
{
        CALL;
        *c = cudaStreamCaptureStatusNone;
        return cudaSuccess;
}

API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *m)
{
        return cudaSuccess;
}

API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status,
                                         unsigned long long *id, cudaGraph_t *graph,
                                         const cudaGraphNode_t **deps, size_t *n)
{
        CALL;
        *status = cudaStreamCaptureStatusNone;
        if (id)
                *id = 0;
        if (n)
                *n = 0;
        return cudaSuccess;
}

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
        CALL;
        *e = calloc(1, sizeof(**e));
        return cudaSuccess;
}

#undef cudaEventCreate
API cudaError_t cudaEventCreate(cudaEvent_t *e)
{
        return cudaEventCreateWithFlags(e, 0);
}

API cudaError_t cudaEventDestroy(cudaEvent_t e)
{
        CALL;
        free(e);
        return cudaSuccess;
}

API cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
        CALL;
        record_event(e, s);
        return cudaSuccess;
}

API cudaError_t cudaEventQuery(cudaEvent_t e)
{
        CALL;
        return query_event(e);
}

API cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
        CALL;
        wait_event(e);
        return cudaSuccess;
}

struct call {
        cudaHostFn_t fn;
        void *arg;
};

static void run_call(void *arg)
{
        struct call c = *(struct call *)arg;

        free(arg);
        c.fn(c.arg);
}

API cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
        struct call *c = malloc(sizeof(*c));

        CALL;
        *c = (struct call){ fn, arg };
        fakegpu_enqueue(s, run_call, c);
        return cudaSuccess;
}

API cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args,
                                 size_t shared, cudaStream_t s)
{
        launch_kernel(function_of(stub), s);
        return cudaSuccess;
}

API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *stub)
{
        CALL;
        memset(a, 0, sizeof(*a));
        a->maxThreadsPerBlock = 640;
        a->binaryVersion = a->ptxVersion = 10 * CC_MAJOR + CC_MINOR;
        return function_of(stub) ? cudaSuccess : set_error(cudaErrorInvalidDeviceFunction);
}

API cudaError_t cudaFuncSetAttribute(const void *stub, enum cudaFuncAttribute a, int v)
{
        return cudaSuccess;
}

API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *f, const void *stub)
{
        *f = function_of(stub);
        return *f ? cudaSuccess : set_error(cudaErrorInvalidDeviceFunction);
}

/* Graphs, and memory of other processes. */
#define NOT_THERE(name, symbol)                                                                    \
        API cudaError_t name(void) __asm__(symbol);                                                \
        API cudaError_t name(void)                                                                 \
        {                                                                                          \
                CALL;                                                                              \
                return set_error(cudaErrorNotSupported);                                           \
        }
NOT_THERE(no_update, "cudaStreamUpdateCaptureDependencies")
NOT_THERE(no_update_2, "cudaStreamUpdateCaptureDependencies_v2")
NOT_THERE(no_capture_3, "cudaStreamGetCaptureInfo_v3")
NOT_THERE(no_add, "cudaGraphAddDependencies")
NOT_THERE(no_add_2, "cudaGraphAddDependencies_v2")
NOT_THERE(no_record_node, "cudaGraphAddEventRecordNode")
NOT_THERE(no_wait_node, "cudaGraphAddEventWaitNode")
NOT_THERE(no_host_node, "cudaGraphAddHostNode")
NOT_THERE(no_kernel_node, "cudaGraphAddKernelNode")

API cudaError_t cudaUserObjectCreate(cudaUserObject_t *o, void *p, cudaHostFn_t d, unsigned n,
                                     unsigned f)
{
        CALL;
        return set_error(cudaErrorNotSupported);
}

API cudaError_t cudaGraphRetainUserObject(cudaGraph_t g, cudaUserObject_t o, unsigned n, unsigned f)
{
        CALL;
        return set_error(cudaErrorNotSupported);
}

API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *h, void *at)
{
        CALL;
        return set_error(cudaErrorNotSupported);
}

API cudaError_t cudaIpcOpenMemHandle(void **at, cudaIpcMemHandle_t h, unsigned f)
{
        CALL;
        return set_error(cudaErrorNotSupported);
}

API cudaError_t cudaIpcCloseMemHandle(void *at)
{
        CALL;
        return set_error(cudaErrorNotSupported);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver and NVML: the calls that NCCL and hnlaunch make, most of them by those of the
 * runtime.
 */
#include "fakegpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the driver ------------------------------------------------------------------------------- */

/* The numbers are the same. */
static CUresult driver_error(cudaError_t error)
{
        return (CUresult)error;
}

API CUresult cuInit(unsigned flags)
{
        CALL;
        return machine.n ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

API CUresult cuDriverGetVersion(int *v)
{
        CALL;
        *v = CUDA_LEVEL;
        return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *n)
{
        CALL;
        *n = machine.n;
        return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *d, int i)
{
        CALL;
        *d = i;
        return is_device(i) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

API CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
        CALL;
        *v = attribute_of((int)a, d);
        return CUDA_SUCCESS;
}

API CUresult cuDeviceGetPCIBusId(char *to, int size, CUdevice d)
{
        return driver_error(cudaDeviceGetPCIBusId(to, size, d));
}

API CUresult cuDeviceTotalMem(size_t *n, CUdevice d)
{
        CALL;
        *n = machine.memory;
        return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *to, int size, CUdevice d)
{
        CALL;
        snprintf(to, (size_t)size, "fakegpu");
        return CUDA_SUCCESS;
}

/* The headers call it cuDeviceGetUuid_v2. */
API CUresult cuDeviceGetUuid(CUuuid *u, CUdevice d)
{
        CALL;
        memset(u, 0, sizeof(*u));
        u->bytes[0] = (char)machine.visible[d];
        memcpy(u->bytes + 1, UUID_BYTES, strlen(UUID_BYTES));
        return CUDA_SUCCESS;
}

API CUresult cuGetErrorString(CUresult error, const char **text)
{
        *text = error_text((int)error);
        return CUDA_SUCCESS;
}

API CUresult cuGetErrorName(CUresult error, const char **text)
{
        *text = error_text((int)error);
        return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
        CALL;
        *c = context_of(d);
        (*c)->retained++;
        return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice d)
{
        CALL;
        context_of(d)->retained--;
        return CUDA_SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *c)
{
        CALL;
        *c = current_context();
        return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *d)
{
        CALL;
        *d = current_device();
        return current_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

API CUresult cuCtxCreate(CUcontext *c, unsigned flags, CUdevice d)
{
        CALL;
        *c = context_of(d);
        return CUDA_SUCCESS;
}

API CUresult cuCtxDestroy(CUcontext c)
{
        CALL;
        return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext c)
{
        CALL;
        set_context(c);
        return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent(CUcontext c)
{
        CALL;
        return push_context(c) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuCtxPopCurrent(CUcontext *c)
{
        CALL;
        return pop_context(c) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

API CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
        CALL;
        *s = create_stream(flags, current_device());
        return CUDA_SUCCESS;
}

API CUresult cuStreamDestroy(CUstream s)
{
        return driver_error(cudaStreamDestroy(s));
}

API CUresult cuStreamQuery(CUstream s)
{
        return driver_error(cudaStreamQuery(s));
}

API CUresult cuStreamSynchronize(CUstream s)
{
        return driver_error(cudaStreamSynchronize(s));
}

API CUresult cuMemAlloc(CUdeviceptr *at, size_t n)
{
        return driver_error(cudaMalloc((void **)at, n));
}

API CUresult cuMemFree(CUdeviceptr at)
{
        return driver_error(cudaFree((void *)at));
}

API CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t n)
{
        return driver_error(cudaMemcpy((void *)to, from, n, cudaMemcpyDefault));
}

API CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t n)
{
        return driver_error(cudaMemcpy(to, (void *)from, n, cudaMemcpyDefault));
}

API CUresult cuMemGetAddressRange(CUdeviceptr *at, size_t *size, CUdeviceptr p)
{
        struct block b;

        CALL;
        if (!find_block((void *)p, &b))
                return CUDA_ERROR_INVALID_VALUE;
        if (at)
                *at = (CUdeviceptr)b.at;
        if (size)
                *size = b.size;
        return CUDA_SUCCESS;
}

API CUresult cuPointerGetAttribute(void *to, CUpointer_attribute which, CUdeviceptr at)
{
        struct block b;

        CALL;
        if (!find_block((void *)at, &b))
                return CUDA_ERROR_INVALID_VALUE;
        if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
                *(unsigned *)to =
                        b.kind == DEVICE_MEMORY ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        else if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                *(int *)to = b.device;
        else
                return CUDA_ERROR_NOT_SUPPORTED;
        return CUDA_SUCCESS;
}

API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **args, void **extra)
{
        launch_kernel(f, config->hStream);
        return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream s, void **args,
                            void **extra)
{
        launch_kernel(f, s);
        return CUDA_SUCCESS;
}

/* --- NVML ------------------------------------------------------------------------------------- */

enum { NVML_SUCCESS = 0, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6 };

/* NVML does not know CUDA_VISIBLE_DEVICES; for NCCL it is enough to know those that are seen. */
#define NVML(name, ...)                                                                            \
        API int name(__VA_ARGS__);                                                                 \
        API int name(__VA_ARGS__)

NVML(nvmlInit_v2, void)
{
        CALL;
        return NVML_SUCCESS;
}

NVML(nvmlShutdown, void)
{
        return NVML_SUCCESS;
}

NVML(nvmlDeviceGetCount_v2, unsigned *n)
{
        CALL;
        *n = (unsigned)machine.n;
        return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByIndex, unsigned i, void **d)
{
        CALL;
        *d = context_of((int)i);
        return NVML_SUCCESS;
}

NVML(nvmlDeviceGetIndex, void *d, unsigned *i)
{
        CALL;
        *i = (unsigned)((CUcontext)d)->device;
        return NVML_SUCCESS;
}

NVML(nvmlDeviceGetCudaComputeCapability, void *d, int *major, int *minor)
{
        CALL;
        *major = CC_MAJOR;
        *minor = CC_MINOR;
        return NVML_SUCCESS;
}

NVML(nvmlDeviceGetNvLinkState, void *d, unsigned link, int *on)
{
        CALL;
        *on = 0;
        return NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetNvLinkRemotePciInfo, void *d, unsigned link, void *pci)
{
        CALL;
        return NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetNvLinkCapability, void *d, unsigned link, int which, unsigned *can)
{
        CALL;
        *can = 0;
        return NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetP2PStatus, void *a, void *b, int which, int *status)
{
        CALL;
        *status = 1;
        return NVML_SUCCESS;
}

NVML(nvmlDeviceGetFieldValues, void *d, int n, void *values)
{
        CALL;
        return NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetHandleByPciBusId, const char *text, void **d)
{
        int i = device_at_bus(text);

        CALL;
        *d = i < 0 ? NULL : context_of(i);
        return i < 0 ? NVML_NOT_FOUND : NVML_SUCCESS;
}

API const char *nvmlErrorString(int error);
API const char *nvmlErrorString(int error)
{
        return error ? "an error of fakegpu" : "Success";
}

/* --- what code that was built for glibc 2.38 asks of an older one ----------------------------- */

#if !__GLIBC_PREREQ(2, 38)
API long __isoc23_strtol(const char *s, char **e, int b)
{
        return strtol(s, e, b);
}

API long long __isoc23_strtoll(const char *s, char **e, int b)
{
        return strtoll(s, e, b);
}

API unsigned long __isoc23_strtoul(const char *s, char **e, int b)
{
        return strtoul(s, e, b);
}

API unsigned long long __isoc23_strtoull(const char *s, char **e, int b)
{
        return strtoull(s, e, b);
}

API int __isoc23_sscanf(const char *s, const char *f, ...)
{
        va_list args;
        int n;

        va_start(args, f);
        n = vsscanf(s, f, args);
        va_end(args);
        return n;
}

API int __isoc23_fscanf(FILE *s, const char *f, ...)
{
        va_list args;
        int n;

        va_start(args, f);
        n = vfscanf(s, f, args);
        va_end(args);
        return n;
}
#endif

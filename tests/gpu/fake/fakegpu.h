/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fakegpu: CUDA's runtime and driver, and NVML, as far as NCCL and hnlaunch call them, without a
 * GPU
 *
 * One library with the names libcuda.so.1, libcudart.so.12 and libnvidia-ml.so.1. A device is a
 * number and its memory is the host's, a stream is a queue with a thread, an event is a position in
 * a queue. A kernel does nothing: fakenccl.c does what NCCL's would do. Only public interfaces are
 * here; a runtime of NVIDIA's own does not take this for a driver, and is not meant to.
 *
 *   machine.c   settings, devices, contexts, memory       runtime.c   the calls of libcudart
 *   streams.c   streams, events, copies                   driver.c    those of libcuda and NVML
 *
 *   FAKEGPU_COUNT=N          devices (default 4)
 *   FAKEGPU_MEMORY=BYTES     memory of each (default 16 GiB)
 *   FAKEGPU_DIE=FUNCTION[:N]   the first, or the Nth, call of that function kills the process
 *   FAKEGPU_HANG=FUNCTION[:N]  ... never returns, and says so; nor do later ones
 *   FAKEGPU_LOG=FILE         gets a line "PID FUNCTION" for each call
 *   CUDA_VISIBLE_DEVICES     numbers or UUIDs, as usual
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#define API __attribute__((visibility("default")))

/* What cuDeviceGetUuid() gives, as text. */
#define UUID_BYTES "fakegpu"
#define UUID_TEXT  "GPU-%02x66616b-6567-7075-0000-000000000000"

enum { MAX_DEVICES = 16, CUDA_LEVEL = 12040, CC_MAJOR = 8, CC_MINOR = 0 };

/* --- machine.c -------------------------------------------------------------------------------- */

struct CUctx_st { /* a device has one */
        int device, retained;
        size_t used;
};

struct machine {
        int n, visible[MAX_DEVICES];
        size_t memory;
};

extern struct machine machine;

/* Logs a call and carries out the fault that was asked for. Every call of the API begins with it;
 * the first one reads the settings. */
void enter_call(const char *what);
#define CALL enter_call(__func__)

CUcontext context_of(int device);
bool is_device(int device);
/* Writes the PCI address of @device. */
void write_bus_id(int device, char *to, size_t size);
/* Returns the device with that PCI address, or -1. */
int device_at_bus(const char *text);
/* Answers cudaDeviceGetAttribute() and its like. */
int attribute_of(int which, int device);

/* The stack of contexts of this thread. */
int current_device(void);
CUcontext current_context(void);
void set_context(CUcontext context);
bool push_context(CUcontext context);
bool pop_context(CUcontext *ret);

enum memory_kind { DEVICE_MEMORY = 1, PINNED_MEMORY, REGISTERED_MEMORY };

struct block {
        struct block *next;
        char *at;
        size_t size, mapped;
        enum memory_kind kind;
        int device;
};

/* Makes a block, or registers memory that is @given. */
cudaError_t allocate_block(void **ret, size_t size, enum memory_kind kind, void *given);
cudaError_t release_block(void *at);
/* Copies what is known of the block that @at lies in. Returns false when there is none. */
bool find_block(const void *at, struct block *ret);

/* --- streams.c -------------------------------------------------------------------------------- */

struct position {
        struct CUstream_st *stream;
        unsigned long long turn;
};

struct CUevent_st {
        struct position at;
};

/* Runs @run(@arg) when all that came before in a stream is done. */
API void fakegpu_enqueue(void *stream, void (*run)(void *), void *arg);

CUstream create_stream(unsigned flags, int device);
void end_stream(CUstream s);
cudaError_t query_stream(CUstream s);
void wait_stream(CUstream s);
void wait_device(int device);
void stream_wait_event(CUstream s, const struct CUevent_st *e);
void record_event(struct CUevent_st *e, CUstream s);
cudaError_t query_event(const struct CUevent_st *e);
void wait_event(const struct CUevent_st *e);

/* Copies @size bytes in the order of @s, or fills them with @value when @from is NULL. */
cudaError_t move_memory(void *to, const void *from, int value, size_t size, CUstream s, bool wait);

/* --- runtime.c -------------------------------------------------------------------------------- */

const char *error_text(int error);
/* A kernel does nothing, in the order of its stream. */
void launch_kernel(const struct CUfunc_st *f, CUstream s);

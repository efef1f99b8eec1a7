/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine: the devices and their memory
 *
 * Memory is mapped from the host and kept in one list; an address is a device's when it lies in a
 * block of that list.
 */
#include "fakegpu.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- settings --------------------------------------------------------------------------------- */

struct fault { /* in a call of a function, counted from 1 */
        const char *function;
        long call;
        _Atomic long seen;
};

struct machine machine;
static FILE *call_log;
static struct fault death, hang;

static long setting(const char *name, long otherwise)
{
        const char *text = getenv(name);

        return text && *text ? strtol(text, NULL, 0) : otherwise;
}

/* Returns the device that an entry of CUDA_VISIBLE_DEVICES names, by number or by the beginning of
 * its UUID, or -1. */
static long find_entry(const char *text, size_t len, int count)
{
        char uuid[64], *end;
        long index = strtol(text, &end, 10);

        if (end == text + len)
                return index < count ? index : -1;
        for (int i = 0; i < count; i++) {
                snprintf(uuid, sizeof(uuid), UUID_TEXT, i);
                if (len > 4 && strncmp(uuid, text, len) == 0)
                        return i;
        }
        return -1;
}

/* As CUDA does: the first bad entry ends the list. */
static void read_visible(const char *list, int count)
{
        while (*list && machine.n < MAX_DEVICES) {
                size_t len = strcspn(list, ",");
                long i = find_entry(list, len, count);

                if (i < 0)
                        return;
                machine.visible[machine.n++] = (int)i;
                list += len + (list[len] == ',');
        }
}

/* "FUNCTION" or "FUNCTION:CALL". */
static void read_fault(const char *name, struct fault *f)
{
        char *text = getenv(name), *colon;

        if (!text)
                return;
        text = strdup(text);
        colon = strchr(text, ':');
        f->call = colon ? strtol(colon + 1, NULL, 10) : 1;
        if (colon)
                *colon = '\0';
        f->function = text;
}

static void read_settings(void)
{
        const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *path = getenv("FAKEGPU_LOG");
        int count = (int)setting("FAKEGPU_COUNT", 4);

        count = count > MAX_DEVICES ? MAX_DEVICES : count;
        machine.memory = (size_t)setting("FAKEGPU_MEMORY", 1L << 34);
        read_fault("FAKEGPU_DIE", &death);
        read_fault("FAKEGPU_HANG", &hang);
        call_log = path ? fopen(path, "a") : NULL;
        if (call_log)
                setvbuf(call_log, NULL, _IOLBF, 0);
        for (int i = 0; i < count && !visible; i++)
                machine.visible[machine.n++] = i;
        if (visible)
                read_visible(visible, count);
}

/* Returns whether the fault happens in this call of @what, whose first word is the function. */
static bool is_faulty(struct fault *f, const char *what)
{
        size_t len = strcspn(what, " ");

        return f->function && strlen(f->function) == len && strncmp(f->function, what, len) == 0 &&
               ++f->seen >= f->call;
}

void enter_call(const char *what)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, read_settings);
        if (call_log)
                fprintf(call_log, "%d %s\n", (int)getpid(), what);
        if (is_faulty(&death, what))
                raise(SIGKILL);
        if (is_faulty(&hang, what)) {
                fprintf(stderr, "fakegpu: hangs in %s\n", what);
                for (;;)
                        pause();
        }
}

/* --- devices and contexts --------------------------------------------------------------------- */

static struct CUctx_st contexts[MAX_DEVICES];
static __thread CUcontext stack[32];
static __thread int depth;

CUcontext context_of(int device)
{
        contexts[device].device = device;
        return &contexts[device];
}

bool is_device(int device)
{
        return device >= 0 && device < machine.n;
}

CUcontext current_context(void)
{
        return depth ? stack[depth - 1] : NULL;
}

int current_device(void)
{
        CUcontext context = current_context();

        return context ? context->device : 0;
}

void set_context(CUcontext context)
{
        depth = depth ? depth : 1;
        stack[depth - 1] = context;
}

bool push_context(CUcontext context)
{
        if (!context || depth == sizeof(stack) / sizeof(*stack))
                return false;
        stack[depth++] = context;
        return true;
}

bool pop_context(CUcontext *ret)
{
        if (!depth)
                return false;
        depth--;
        if (ret)
                *ret = stack[depth];
        return true;
}

void write_bus_id(int device, char *to, size_t size)
{
        snprintf(to, size, "0000:%02X:00.0", 1 + machine.visible[device]);
}

int device_at_bus(const char *text)
{
        char own[16];

        for (int i = 0; i < machine.n; i++) {
                write_bus_id(i, own, sizeof(own));
                /* NVML writes a domain of eight digits. */
                if (strcasecmp(text + (strlen(text) > 12 ? strlen(text) - 12 : 0), own) == 0)
                        return i;
        }
        return -1;
}

/* What NCCL asks; everything else is 0: no cuMem, no peers, no multicast, no DMA-BUF, no GDR. */
int attribute_of(int which, int device)
{
        switch (which) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
                return CC_MAJOR;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
                return CC_MINOR;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
                return 16;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
                return 163840;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
                return 1024;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
                return 32;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
                return 1;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
                return 1 + machine.visible[device];
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
                return 1000000;
        default:
                return 0;
        }
}

/* --- memory ----------------------------------------------------------------------------------- */

static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool find_block(const void *at, struct block *ret)
{
        const char *p = at;
        struct block *b;

        pthread_mutex_lock(&lock);
        b = blocks;
        while (b && (p < b->at || p >= b->at + b->size))
                b = b->next;
        if (b)
                *ret = *b;
        pthread_mutex_unlock(&lock);
        return b;
}

/* Maps whole pages. Small ones are filled, so that no program takes them for zeros. */
static void map_block(struct block *b)
{
        size_t page = 1 << 16;

        b->mapped = (b->size + page - 1) & ~(page - 1);
        b->at = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b->at == MAP_FAILED)
                abort();
        if (b->kind == DEVICE_MEMORY && b->size < 1 << 20)
                memset(b->at, 0xa5, b->size);
}

static bool take_memory(CUcontext context, size_t size)
{
        if (context->used + size > machine.memory)
                return false;
        context->used += size;
        return true;
}

cudaError_t allocate_block(void **ret, size_t size, enum memory_kind kind, void *given)
{
        CUcontext context = context_of(current_device());
        struct block *b;
        bool fits;

        *ret = NULL;
        if (!size)
                return cudaSuccess;
        b = calloc(1, sizeof(*b));
        if (!b)
                return cudaErrorMemoryAllocation;
        *b = (struct block){ .at = given, .size = size, .kind = kind, .device = context->device };
        pthread_mutex_lock(&lock);
        fits = kind != DEVICE_MEMORY || take_memory(context, size);
        if (fits) {
                if (!given)
                        map_block(b);
                b->next = blocks;
                blocks = b;
                *ret = b->at;
        }
        pthread_mutex_unlock(&lock);
        if (!fits)
                free(b);
        return fits ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t release_block(void *at)
{
        struct block **p = &blocks, *b;

        if (!at)
                return cudaSuccess;
        pthread_mutex_lock(&lock);
        while (*p && (*p)->at != at)
                p = &(*p)->next;
        b = *p;
        if (b) {
                *p = b->next;
                if (b->kind == DEVICE_MEMORY)
                        contexts[b->device].used -= b->size;
        }
        pthread_mutex_unlock(&lock);
        if (!b)
                return cudaErrorInvalidValue;
        if (b->mapped)
                munmap(b->at, b->mapped);
        free(b);
        return cudaSuccess;
}

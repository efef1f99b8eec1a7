/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 without GPUs: $FAKE_NVML_GPUS of them, and trouble on order
 *
 * Each call reads a word from the file $FAKE_NVML: one that do_as_told() knows, or another. Names,
 * signatures and units are NVML's; -DWITHOUT_COUNT and -DWITHOUT_POWER leave a function out.
 * Figures differ from GPU to GPU. Processes with memory are in $FAKE_NVML.processes, a line
 * "GPU PID MIB" each, uncorrected ECC errors of all GPUs in $FAKE_NVML.ecc, bits of the NUMA nodes
 * near each GPU in $FAKE_NVML.near, its own node in $FAKE_NVML.node; who asks for those of GPU 0
 * adds a line to $FAKE_NVML.asked. $FAKE_NVML.remap has "PENDING FAILED" of GPU 1, the others have
 * no such rows. Where all GPUs are in a fabric is a line of $FAKE_NVML.fabric, "CLUSTER CLIQUE
 * STATE STATUS HEALTH", the first in 32 hexadecimal digits; without the file they have none.
 * -DWITHOUT_FABRIC leaves the function out, -DOLD_FABRIC has that of old drivers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
        SUCCESS = 0,
        NOT_SUPPORTED = 3,
        DRIVER_NOT_LOADED = 9,
        GPU_IS_LOST = 15,
        WRONG_VERSION = 25
};

struct use {
        unsigned gpu, memory;
};

struct memory {
        unsigned long long total, free, used;
};

struct process {
        unsigned pid;
        unsigned long long used;
        unsigned instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu);
int nvmlDeviceGetUtilizationRates(void *gpu, struct use *to);
int nvmlDeviceGetMemoryInfo(void *gpu, struct memory *to);
int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *to);
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *to);
int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned *n, struct process *to);
int nvmlDeviceGetTotalEccErrors(void *gpu, int kind, int counter, unsigned long long *to);
int nvmlDeviceGetRemappedRows(void *gpu, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *pending, unsigned *failed);

struct fabric_old {
        unsigned char cluster[16];
        int status;
        unsigned clique;
        unsigned char state;
};

struct fabric {
        unsigned version;
        unsigned char cluster[16];
        int status;
        unsigned clique;
        unsigned char state;
        unsigned health;
};

int nvmlDeviceGetGpuFabricInfoV(void *gpu, struct fabric *to);
int nvmlDeviceGetGpuFabricInfo(void *gpu, struct fabric_old *to);
int nvmlDeviceGetMemoryAffinity(void *gpu, unsigned words, unsigned long *set, unsigned scope);
int nvmlDeviceGetNumaNodeId(void *gpu, unsigned *node);

static void burn_ms(long ms)
{
        clock_t end = clock() + ms * CLOCKS_PER_SEC / 1000;

        while (clock() < end)
                ;
}

static FILE *open_file(const char *suffix, const char *mode)
{
        char path[4096];

        snprintf(path, sizeof(path), "%s.%s", getenv("FAKE_NVML"), suffix);
        return fopen(path, mode);
}

/* Notes the time of a call in $FAKE_NVML.SUFFIX, in milliseconds. */
static void note_time(const char *suffix)
{
        struct timespec t;
        FILE *f = open_file(suffix, "a");

        clock_gettime(CLOCK_MONOTONIC, &t);
        if (f) {
                fprintf(f, "%ld\n", t.tv_sec * 1000 + t.tv_nsec / 1000000);
                fclose(f);
        }
}

static int do_as_told(void)
{
        FILE *f = fopen(getenv("FAKE_NVML"), "r");
        char word[32] = "";

        if (!f || fscanf(f, "%31s", word) != 1)
                abort();
        fclose(f);
        if (!strcmp(word, "refuse"))
                return DRIVER_NOT_LOADED;
        if (!strcmp(word, "hang"))
                for (;;)
                        pause();
        if (!strcmp(word, "crash"))
                abort();
        if (!strcmp(word, "print")) {
                puts("the driver talks");
                fflush(stdout);
                fputs("the driver talks\n", stderr);
        }
        if (!strcmp(word, "burn"))
                burn_ms(1);
        return !strcmp(word, "lost") ? GPU_IS_LOST : SUCCESS;
}

static char gpus[256];

static unsigned index_of(void *gpu)
{
        return (unsigned)((char *)gpu - gpus);
}

int nvmlInit_v2(void)
{
        return do_as_told();
}

#ifndef WITHOUT_COUNT
int nvmlDeviceGetCount_v2(unsigned *n)
{
        *n = (unsigned)atoi(getenv("FAKE_NVML_GPUS"));
        return SUCCESS;
}
#endif

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu)
{
        *gpu = &gpus[index];
        return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *gpu, struct use *to)
{
        if (!index_of(gpu))
                note_time("times");
        *to = (struct use){ 90 + index_of(gpu), 7 };
        return do_as_told();
}

int nvmlDeviceGetMemoryInfo(void *gpu, struct memory *to)
{
        to->total = 81559ULL << 20;
        to->used = (70000ULL + index_of(gpu)) << 20;
        to->free = to->total - to->used;
        return do_as_told();
}

int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *to)
{
        *to = sensor ? 999 : 60 + index_of(gpu);
        return do_as_told();
}

#ifndef WITHOUT_POWER
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *to)
{
        *to = 650500 + 1000 * index_of(gpu);
        return do_as_told();
}
#endif

int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned *n, struct process *to)
{
        FILE *f = open_file("processes", "r");
        unsigned index, pid, mib, max = *n;

        if (!index_of(gpu))
                note_time("asked");
        *n = 0;
        while (f && *n < max && fscanf(f, "%u %u %u", &index, &pid, &mib) == 3)
                if (index == index_of(gpu))
                        to[(*n)++] = (struct process){ .pid = pid,
                                                       .used = (unsigned long long)mib << 20 };
        if (f)
                fclose(f);
        return do_as_told();
}

int nvmlDeviceGetTotalEccErrors(void *gpu, int kind, int counter, unsigned long long *to)
{
        FILE *f = open_file("ecc", "r");

        *to = 0;
        if (f && kind == 1 && counter == 0 && fscanf(f, "%llu", to) == 1)
                *to += index_of(gpu);
        if (f)
                fclose(f);
        return do_as_told();
}

int nvmlDeviceGetRemappedRows(void *gpu, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *pending, unsigned *failed)
{
        FILE *f = open_file("remap", "r");

        *correctable = *uncorrectable = *pending = *failed = 0;
        if (f && index_of(gpu) == 1 && fscanf(f, "%u %u", pending, failed) != 2)
                abort();
        if (f)
                fclose(f);
        return do_as_told();
}

#ifndef WITHOUT_FABRIC
static int read_fabric(struct fabric *to)
{
        FILE *f = open_file("fabric", "r");
        unsigned byte, state = 0;

        if (!f)
                return NOT_SUPPORTED;
        for (int i = 0; i < 16 && fscanf(f, "%2x", &byte) == 1; i++)
                to->cluster[i] = (unsigned char)byte;
        if (fscanf(f, "%u %u %d %i", &to->clique, &state, &to->status, (int *)&to->health) != 4)
                abort();
        to->state = (unsigned char)state;
        fclose(f);
        return do_as_told();
}

#ifdef OLD_FABRIC
int nvmlDeviceGetGpuFabricInfo(void *gpu, struct fabric_old *to)
{
        struct fabric now = { 0 };
        int r = read_fabric(&now);

        (void)gpu;
        memcpy(to->cluster, now.cluster, sizeof(to->cluster));
        to->status = now.status;
        to->clique = now.clique;
        to->state = now.state;
        return r;
}
#else
int nvmlDeviceGetGpuFabricInfoV(void *gpu, struct fabric *to)
{
        (void)gpu;
        return to->version == (sizeof(*to) | 2U << 24) ? read_fabric(to) : WRONG_VERSION;
}
#endif
#endif
/* Reads the number of the GPU in a file with one for each. */
static int read_number(const char *suffix, void *gpu, unsigned *to)
{
        FILE *f = open_file(suffix, "r");
        int found = f != NULL;

        for (unsigned i = 0; found && i <= index_of(gpu); i++)
                found = fscanf(f, "%u", to) == 1;
        if (f)
                fclose(f);
        return found ? do_as_told() : NOT_SUPPORTED;
}

int nvmlDeviceGetMemoryAffinity(void *gpu, unsigned words, unsigned long *set, unsigned scope)
{
        unsigned bits;
        int r = scope ? NOT_SUPPORTED : read_number("near", gpu, &bits);

        memset(set, 0, words * sizeof(*set));
        if (r == SUCCESS)
                *set = bits;
        return r;
}

int nvmlDeviceGetNumaNodeId(void *gpu, unsigned *node)
{
        return read_number("node", gpu, node);
}

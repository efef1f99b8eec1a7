/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch-nvml: what the node's NVIDIA GPUs do, started by the agent
 *
 * A dynamic program, because libnvidia-ml belongs to the node's driver and no static program can
 * load a library; and a separate process, because a call into a driver in trouble may not return.
 * It writes a record about once a second to descriptor 0, which is a pipe to the agent: the library
 * may print to the others. The helper ends with the reader of the pipe. With an argument the helper
 * writes once which processes hold memory of the GPUs, the health of that memory, the NUMA nodes of
 * the GPUs, and where these are in the NVLink fabric.
 *
 * Names, signatures and units of NVML are written by hand from NVIDIA's reference of the API. A
 * library that lacks the function of a figure gives the others.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/loader/old_glibc.h"
#include "base/macros.h"
#include "wire/helper/gpu_record.h"

enum {
        AGENT = 0,
        NVML_TEMPERATURE_GPU = 0,
        NVML_UNCORRECTED = 1,
        NVML_VOLATILE = 0,
        NVML_OF_NODE = 0, /* not of the socket */
        NODE_WORDS = 16,  /* 1024 nodes, as the kernel has at most */
        CPU_SHARE = 250,  /* a record takes a 250th of the interval at most: 0.4 % of a core */
};

struct nvml_use {
        unsigned gpu, memory; /* percent of the time of the driver's last sample */
};

struct nvml_memory {
        unsigned long long total, free, used; /* bytes; .used has what the driver reserves */
};

struct nvml_process {
        unsigned pid;
        unsigned long long used;             /* bytes */
        unsigned instance, compute_instance; /* of a part of a GPU */
};

/* nvmlGpuFabricInfo_t, of drivers before 550. */
struct nvml_fabric_old {
        unsigned char cluster[16];
        int status;
        unsigned clique;
        unsigned char state;
};

/* nvmlGpuFabricInfo_v2_t. */
struct nvml_fabric {
        unsigned version;
        unsigned char cluster[16];
        int status;
        unsigned clique;
        unsigned char state;
        unsigned health;
};

/* Each returns 0 for success. */
static struct {
        int (*init)(void);
        int (*get_count)(unsigned *n);
        int (*get_gpu)(unsigned index, void **gpu);
        int (*get_use)(void *gpu, struct nvml_use *use);
        int (*get_memory)(void *gpu, struct nvml_memory *memory);
        int (*get_temperature)(void *gpu, int sensor, unsigned *celsius);
        int (*get_power)(void *gpu, unsigned *milliwatts);
        int (*get_ecc)(void *gpu, int kind, int counter, unsigned long long *n);
        int (*get_processes)(void *gpu, unsigned *n, struct nvml_process *v);
        int (*get_remap)(void *gpu, unsigned *correctable, unsigned *uncorrectable,
                         unsigned *pending, unsigned *failed);
        int (*get_fabric)(void *gpu, struct nvml_fabric *fabric);
        int (*get_fabric_old)(void *gpu, struct nvml_fabric_old *fabric);
        int (*get_memory_nodes)(void *gpu, unsigned words, unsigned long *set, unsigned of);
        int (*get_node)(void *gpu, unsigned *node);
} nvml;

/* False: there is no library, or it lacks what no figure can do without. */
static bool open_nvml(void)
{
        const struct {
                const char *name;
                void *to;
        } table[] = {
                { "nvmlInit_v2", &nvml.init },
                { "nvmlDeviceGetCount_v2", &nvml.get_count },
                { "nvmlDeviceGetHandleByIndex_v2", &nvml.get_gpu },
                { "nvmlDeviceGetUtilizationRates", &nvml.get_use },
                { "nvmlDeviceGetMemoryInfo", &nvml.get_memory },
                { "nvmlDeviceGetTemperature", &nvml.get_temperature },
                { "nvmlDeviceGetPowerUsage", &nvml.get_power },
                { "nvmlDeviceGetTotalEccErrors", &nvml.get_ecc },
                { "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.get_processes },
                { "nvmlDeviceGetRemappedRows", &nvml.get_remap },
                { "nvmlDeviceGetGpuFabricInfoV", &nvml.get_fabric },
                { "nvmlDeviceGetGpuFabricInfo", &nvml.get_fabric_old },
                { "nvmlDeviceGetMemoryAffinity", &nvml.get_memory_nodes },
                { "nvmlDeviceGetNumaNodeId", &nvml.get_node },
        };
        void *library = library_open("libnvidia-ml.so.1", RTLD_NOW), *function;

        for (size_t i = 0; library && i < ARRAY_SIZE(table); i++) {
                function = library_symbol(library, table[i].name);
                memcpy(table[i].to, &function, sizeof(function));
        }
        return nvml.init && nvml.get_count && nvml.get_gpu;
}

/* Returns the number of GPUs. */
static uint32_t open_gpus(void *gpus[GPU_RECORD_GPUS])
{
        unsigned n;

        if (nvml.get_count(&n) != 0)
                _exit(GPU_RECORD_NO_DRIVER);
        n = MIN(n, (unsigned)GPU_RECORD_GPUS);
        for (unsigned i = 0; i < n; i++)
                if (nvml.get_gpu(i, &gpus[i]) != 0)
                        gpus[i] = NULL; /* the place stays */
        return n;
}

static uint32_t get_mib(unsigned long long bytes)
{
        return (uint32_t)MIN(bytes >> 20, (unsigned long long)GPU_RECORD_UNKNOWN);
}

/* GPU_RECORD_UNKNOWN also for GPUs without ECC, or with ECC switched off. */
static uint32_t get_ecc_errors(void *gpu)
{
        unsigned long long n;

        if (!gpu || !nvml.get_ecc || nvml.get_ecc(gpu, NVML_UNCORRECTED, NVML_VOLATILE, &n) != 0)
                return GPU_RECORD_UNKNOWN;
        return (uint32_t)MIN(n, (unsigned long long)GPU_RECORD_UNKNOWN);
}

static void read_gpu_figures(struct gpu_figures *to, void *gpu)
{
        struct nvml_memory memory;
        struct nvml_use use;
        unsigned number;

        memset(to, 0xff, sizeof(*to)); /* GPU_RECORD_UNKNOWN */
        if (!gpu)
                return;
        if (nvml.get_use && nvml.get_use(gpu, &use) == 0)
                to->use_percent = use.gpu;
        if (nvml.get_memory && nvml.get_memory(gpu, &memory) == 0) {
                to->memory_mib = get_mib(memory.used);
                to->memory_total_mib = get_mib(memory.total);
        }
        if (nvml.get_temperature && nvml.get_temperature(gpu, NVML_TEMPERATURE_GPU, &number) == 0)
                to->celsius = number;
        if (nvml.get_power && nvml.get_power(gpu, &number) == 0)
                to->watts = number / 1000 + (number % 1000 >= 500);
        to->ecc = get_ecc_errors(gpu);
}

/* A full list drops the rest: the record must fit into PIPE_BUF. */
static void add_holders(struct gpu_holders *to, uint32_t index, void *gpu)
{
        static struct nvml_process v[GPU_RECORD_HOLDERS];
        unsigned n = GPU_RECORD_HOLDERS;

        if (!gpu || !nvml.get_processes || nvml.get_processes(gpu, &n, v) != 0)
                return;
        for (unsigned i = 0; i < n && to->n < GPU_RECORD_HOLDERS; i++)
                to->v[to->n++] = (struct gpu_holder){ index, v[i].pid, get_mib(v[i].used) };
}

static uint8_t get_remap_state(void *gpu)
{
        unsigned correctable, uncorrectable, pending = 0, failed = 0;

        if (!gpu || !nvml.get_remap ||
            nvml.get_remap(gpu, &correctable, &uncorrectable, &pending, &failed) != 0)
                return GPU_HEALTH_UNKNOWN;
        return failed ? GPU_REMAP_FAILED : pending ? GPU_REMAP_PENDING : GPU_REMAP_NONE;
}

static void read_fabric(struct gpu_fabric *to, void *gpu)
{
        /* NVML_STRUCT_VERSION(GpuFabricInfo, 2) */
        struct nvml_fabric now = { .version = (unsigned)sizeof(now) | 2U << 24 };
        struct nvml_fabric_old old = { .state = GPU_FABRIC_NONE };

        memset(to, 0, sizeof(*to));
        to->state = to->health = GPU_RECORD_UNKNOWN;
        /* An older driver refuses the version of the struct, and is asked by the older function. */
        if (gpu && nvml.get_fabric && nvml.get_fabric(gpu, &now) == 0) {
                to->health = now.health;
        } else if (gpu && nvml.get_fabric_old && nvml.get_fabric_old(gpu, &old) == 0) {
                memcpy(now.cluster, old.cluster, sizeof(now.cluster));
                now.status = old.status;
                now.clique = old.clique;
                now.state = old.state;
        } else {
                return;
        }
        memcpy(to->cluster, now.cluster, sizeof(to->cluster));
        to->clique = now.clique;
        to->state = now.state;
        to->status = (uint32_t)now.status;
}

/* Returns the NUMA node nearest to the GPU, else the node of the GPU's own memory. */
static uint32_t get_numa_node(void *gpu)
{
        unsigned long set[NODE_WORDS] = { 0 };
        unsigned node = 0, found = 0, own;

        if (gpu && nvml.get_memory_nodes &&
            nvml.get_memory_nodes(gpu, NODE_WORDS, set, NVML_OF_NODE) == 0)
                for (unsigned i = 0; i < NODE_WORDS * 64; i++)
                        if (set[i / 64] >> i % 64 & 1) {
                                node = i;
                                found++;
                        }
        if (found == 1)
                return node;
        if (gpu && !found && nvml.get_node && nvml.get_node(gpu, &own) == 0)
                return own;
        return GPU_RECORD_UNKNOWN;
}

static _Noreturn void tell_holders(void *const *gpus, uint32_t n)
{
        static struct gpu_holders holders = { .mark = GPU_RECORD_MARK };

        memset(holders.ecc, 0xff, sizeof(holders.ecc)); /* GPU_RECORD_UNKNOWN */
        memset(holders.remap, 0xff, sizeof(holders.remap));
        memset(holders.node, 0xff, sizeof(holders.node));
        for (uint32_t i = 0; i < n; i++) {
                add_holders(&holders, i, gpus[i]);
                holders.ecc[i] = get_ecc_errors(gpus[i]);
                holders.node[i] = get_numa_node(gpus[i]);
                holders.remap[i] = get_remap_state(gpus[i]);
        }
        for (uint32_t i = 0; i < GPU_RECORD_GPUS; i++)
                read_fabric(&holders.fabric[i], i < n ? gpus[i] : NULL);
        _exit(write(AGENT, &holders, sizeof(holders)) != sizeof(holders));
}

static int64_t get_cpu_us(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Sleeps for a second, or longer after a record that took much processor time. Ends with the
 * agent. */
static void pause_after(int64_t cpu_us)
{
        struct pollfd agent = { .fd = AGENT };
        int64_t ms = MAX(cpu_us * CPU_SHARE / 1000, (int64_t)GPU_RECORD_PAUSE_MS);

        /* Without events poll() tells only of an error: the reader is gone. */
        if (poll(&agent, 1, (int)MIN(ms, (int64_t)GPU_RECORD_PAUSE_MAX_MS)) > 0)
                _exit(0);
}

int main(int argc, char **argv UNUSED)
{
        static struct gpu_record record = { .mark = GPU_RECORD_MARK };
        static void *gpus[GPU_RECORD_GPUS];
        int64_t begun_us;

        /* The program is executed from memory, and would have the number of a descriptor as its
         * name. */
        prctl(PR_SET_NAME, "hnlaunch-nvml");
        if (!open_nvml())
                _exit(GPU_RECORD_NO_LIBRARY);
        if (nvml.init() != 0)
                _exit(GPU_RECORD_NO_DRIVER);
        record.n = open_gpus(gpus);
        if (argc > 1)
                tell_holders(gpus, record.n);
        for (;;) {
                begun_us = get_cpu_us();
                for (uint32_t i = 0; i < record.n; i++)
                        read_gpu_figures(&record.gpus[i], gpus[i]);
                if (write(AGENT, &record, sizeof(record)) != sizeof(record))
                        _exit(0);
                pause_after(get_cpu_us() - begun_us);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory_take() calls one reader per kind of fact, which fills a part of HELLO and leaves the
 * rest untouched on failure. GPUs come from /proc/driver/nvidia/gpus, or from counting device nodes
 * in containers without that folder, or else from the nodes of AMD's KFD; CUDA_VISIBLE_DEVICES then
 * selects among them.
 */
#include "agent/core/inventory.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "wire/env/gpu_list.h"

/* MAX_CPUS is above NR_CPUS of the kernels of distributions (8192). */
enum {
        MAX_CPUS = 16384,
        MAX_MINORS = 256,
        FILE_MAX = 64 << 10,
};

/* Truncates a long text. */
static void copy_inventory_text(char *to, size_t size, const char *from)
{
        size_t len = strnlen(from ? from : "", size - 1);

        memcpy(to, from ? from : "", len);
        to[len] = '\0';
}

/* A container with a network of its own counts as a machine of its own. */
static void read_identity(struct hello *h)
{
        struct stat net;
        char *boot;

        if (stat("/proc/self/ns/net", &net) < 0 ||
            fd_read_file("/proc/sys/kernel/random/boot_id", FILE_MAX, &boot, NULL) < 0)
                return;
        boot[strcspn(boot, "\n")] = '\0';
        snprintf(h->machine, sizeof(h->machine), "%.40s/%ju", boot, (uintmax_t)net.st_ino);
        free(boot);
}

/* Entries of sysfs are links, so only names with a dot in front are left out. */
uint32_t inventory_count_devices(const char *folder)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        uint32_t n = 0;

        while (dir && (entry = readdir(dir)))
                n += entry->d_name[0] != '.';
        if (dir)
                closedir(dir);
        return n;
}

/* Fills in the facts of system calls: type, name, memory, limits and processors. Failures leave a
 * fact unknown. */
static void read_machine(struct hello *h)
{
        /* A plain cpu_set_t has room for 1024 processors, and sched_getaffinity() fails on larger
         * machines. */
        cpu_set_t *cpus = CPU_ALLOC(MAX_CPUS);
        size_t size = CPU_ALLOC_SIZE(MAX_CPUS);
        struct utsname name;
        struct sysinfo memory;
        struct rlimit limit;

        if (uname(&name) == 0)
                copy_inventory_text(h->arch, sizeof(h->arch), name.machine);
        if (gethostname(h->host, sizeof(h->host) - 1) < 0)
                h->host[0] = '\0';
        if (sysinfo(&memory) == 0)
                h->memory = (uint64_t)memory.totalram * memory.mem_unit;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                /* The hard limit: the agent raises its own soft limit. */
                h->nofile = limit.rlim_max;
        h->locking.memlock = UINT64_MAX;
        if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_max != RLIM_INFINITY)
                h->locking.memlock = limit.rlim_max;
        h->locking.infiniband = inventory_count_devices("/sys/class/infiniband");
        if (cpus && sched_getaffinity(0, size, cpus) == 0)
                h->cores = (uint32_t)CPU_COUNT_S(size, cpus);
        h->cores = MAX(h->cores, 1U);
        CPU_FREE(cpus);
}

/* Only a login by ssh has the variable: an agent started another way tells no address. */
static void read_session(struct hello *h)
{
        const char *ssh = getenv("SSH_CONNECTION");

        h->pid = (uint32_t)getpid();
        h->uid = getuid();
        /* client address, client port, server address, server port */
        for (int i = 0; i < 2 && ssh; i++) {
                ssh = strchr(ssh, ' ');
                ssh = ssh ? ssh + 1 : NULL;
        }
        copy_inventory_text(h->ssh_addr, sizeof(h->ssh_addr), ssh);
        h->ssh_addr[strcspn(h->ssh_addr, " %")] = '\0'; /* a scope means nothing elsewhere */
}

/* --- addresses -------------------------------------------------------------------------------- */

/* False for addresses that another node cannot use. */
static bool read_addr(struct msg_addr *to, const struct ifaddrs *from)
{
        int family = from->ifa_addr ? from->ifa_addr->sa_family : AF_UNSPEC;
        bool four = family == AF_INET;
        size_t len = four ? 4 : 16, at = four ? offsetof(struct sockaddr_in, sin_addr)
                                              : offsetof(struct sockaddr_in6, sin6_addr);
        const unsigned char *addr = (const void *)from->ifa_addr,
                            *mask = (const void *)from->ifa_netmask;

        if ((!four && family != AF_INET6) || !mask || !(from->ifa_flags & IFF_UP) ||
            (from->ifa_flags & IFF_LOOPBACK))
                return false;
        if (!four && IN6_IS_ADDR_LINKLOCAL((const void *)(addr + at)))
                return false;
        copy_inventory_text(to->iface, sizeof(to->iface), from->ifa_name);
        inet_ntop(family, addr + at, to->addr, sizeof(to->addr));
        to->prefix = 0;
        for (size_t i = 0; i < len; i++)
                /* The mask has the same type as the address, so its bytes are at the same place. */
                to->prefix += (uint32_t)__builtin_popcount(mask[at + i]);
        return true;
}

/* Lists the addresses that other nodes may use, in the kernel's order. */
static void read_addrs(struct hello *h)
{
        struct ifaddrs *all;
        struct msg_addr addr;

        if (getifaddrs(&all) < 0)
                return;
        for (struct ifaddrs *i = all; i; i = i->ifa_next) {
                if (!read_addr(&addr, i))
                        continue;
                h->addrs = xrealloc(h->addrs, h->n_addrs + 1, sizeof(*h->addrs));
                h->addrs[h->n_addrs++] = addr;
        }
        freeifaddrs(all);
}

/* --- GPUs ------------------------------------------------------------------------------------- */

/* "Model: \t\t NVIDIA H100" to "NVIDIA H100"; "" when @key is missing. */
static void read_field(char *to, size_t size, const char *text, const char *key)
{
        const char *line = strstr(text, key);

        if (line) {
                line += strlen(key);
                line += strspn(line, " \t");
        }
        copy_inventory_text(to, size, line);
        to[strcspn(to, "\n")] = '\0';
}

/* Adds a GPU from the driver's text file about the device: a static agent cannot load the driver's
 * library. */
static void read_gpu(struct gpu_list *to, const char *path, const char *address, const char *nodes)
{
        struct msg_gpu gpu = { .index = to->n };
        char minor[16], *node, *text = NULL;

        if (fd_read_file(path, FILE_MAX, &text, NULL) < 0)
                return;
        copy_inventory_text(gpu.address, sizeof(gpu.address), address);
        read_field(gpu.name, sizeof(gpu.name), text, "Model:");
        read_field(gpu.uuid, sizeof(gpu.uuid), text, "GPU UUID:");
        read_field(minor, sizeof(minor), text, "Device Minor:");
        if (strchr(gpu.uuid, '?')) /* the driver has not woken the device up yet */
                gpu.uuid[0] = '\0';
        node = xasprintf("%s%s", nodes, minor);
        /* A container may have only some of the devices that the driver lists. */
        if (access(node, F_OK) == 0)
                gpu_list_push(to, &gpu);
        free(node);
        free(text);
}

/* Returns the index of the GPU whose address begins with @address (NULL = none is looked for). */
static uint32_t read_gpu_folder(struct gpu_list *to, const char *folder, const char *nodes,
                                const char *address)
{
        struct dirent **entries;
        int n = scandir(folder, &entries, NULL, alphasort);
        uint32_t found = UINT32_MAX, before;
        char *path;

        for (int i = 0; i < n; i++) {
                path = xasprintf("%s/%s/information", folder, entries[i]->d_name);
                before = to->n;
                if (entries[i]->d_name[0] != '.')
                        read_gpu(to, path, entries[i]->d_name, nodes);
                if (to->n > before && address &&
                    !strncmp(entries[i]->d_name, address, strlen(address)))
                        found = before;
                free(path);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
        return found;
}

void inventory_read_gpus(struct gpu_list *to, const char *folder, const char *nodes)
{
        read_gpu_folder(to, folder, nodes, NULL);
}

uint32_t inventory_find_gpu(const char *folder, const char *nodes, const char *address)
{
        struct gpu_list all = { 0 };
        uint32_t found = read_gpu_folder(&all, folder, nodes, address);

        free(all.v);
        return found;
}

/* Returns the number behind @key in a file of lines "key number"; 0 = there is none. */
static unsigned long long read_kfd_number(const char *text, const char *key)
{
        size_t len = strlen(key);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (!strncmp(line, key, len) && line[len] == ' ')
                        return strtoull(line + len, NULL, 10);
        }
        return 0;
}

/* Adds a GPU from the properties of a node of the KFD. Nodes of processors have no SIMD units. */
static void read_amd_gpu(struct gpu_list *to, const char *path, const char *nodes)
{
        CLEANUP(free_textp) char *text = NULL, *node = NULL;
        struct msg_gpu gpu = { .index = to->n };
        unsigned long long place, version, id;

        if (fd_read_file(path, FILE_MAX, &text, NULL) < 0 || !read_kfd_number(text, "simd_count"))
                return;
        node = xasprintf("%s%llu", nodes, read_kfd_number(text, "drm_render_minor"));
        if (access(node, F_OK) < 0)
                return;
        place = read_kfd_number(text, "location_id");
        version = read_kfd_number(text, "gfx_target_version");
        id = read_kfd_number(text, "unique_id");
        snprintf(gpu.address, sizeof(gpu.address), "%04llx:%02llx:%02llx.%llx",
                 read_kfd_number(text, "domain") & 0xffffffff, place >> 8 & 0xff, place >> 3 & 0x1f,
                 place & 7);
        snprintf(gpu.name, sizeof(gpu.name), "AMD gfx%llu%llx%llx", version / 10000 % 100,
                 version / 100 % 100, version % 100);
        if (id)
                snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%016llx", id);
        gpu_list_push(to, &gpu);
}

void inventory_read_amd_gpus(struct gpu_list *to, const char *folder, const char *nodes)
{
        struct dirent **entries;
        int n = scandir(folder, &entries, NULL, versionsort);

        for (int i = 0; i < n; i++) {
                CLEANUP(free_textp)
                char *path = xasprintf("%s/%s/properties", folder, entries[i]->d_name);

                if (entries[i]->d_name[0] != '.')
                        read_amd_gpu(to, path, nodes);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
}

/* Splits the GPUs of the node into those that CUDA_VISIBLE_DEVICES shows and the others. */
static void split_gpus(struct hello *h, struct gpu_list *all, const char *visible)
{
        struct gpu_list shown = { 0 }, hidden = { 0 };
        bool is_shown;

        gpu_list_choose(&shown, all, visible);
        for (uint32_t i = 0; i < all->n; i++) {
                is_shown = false;
                for (uint32_t k = 0; k < shown.n; k++)
                        is_shown |= shown.v[k].index == all->v[i].index;
                if (!is_shown)
                        gpu_list_push(&hidden, &all->v[i]);
        }
        free(all->v);
        h->gpus_chosen = true;
        h->gpus = shown.v;
        h->n_gpus = shown.n;
        h->hidden = hidden.v;
        h->n_hidden = hidden.n;
}

/* Fills in the GPUs, the visible GPUs first, see split_gpus(). */
static void read_gpus(struct hello *h)
{
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        struct gpu_list all = { 0 };
        char path[64];

        inventory_read_gpus(&all, "/proc/driver/nvidia/gpus", "/dev/nvidia");
        if (access("/dev/nvidiactl", F_OK) == 0 && !all.n) {
                /* In some containers there are only the device nodes. */
                for (int minor = 0; minor < MAX_MINORS; minor++) {
                        snprintf(path, sizeof(path), "/dev/nvidia%d", minor);
                        if (access(path, F_OK) == 0)
                                gpu_list_push(&all, &(struct msg_gpu){ .index = all.n });
                }
        }
        /* A renumbering variable of HIP or ROCm makes the indexes of KFD wrong, so no GPU is
         * listed. */
        if (!all.n && !getenv("HIP_VISIBLE_DEVICES") && !getenv("ROCR_VISIBLE_DEVICES") &&
            !getenv("GPU_DEVICE_ORDINAL"))
                inventory_read_amd_gpus(&all, "/sys/class/kfd/kfd/topology/nodes",
                                        "/dev/dri/renderD");
        if (visible) {
                split_gpus(h, &all, visible);
        } else {
                h->gpus = all.v;
                h->n_gpus = all.n;
        }
}

void inventory_take(struct hello *h)
{
        *h = (struct hello){ .version = MSG_VERSION };
        read_machine(h);
        read_identity(h);
        read_session(h);
        read_addrs(h);
        read_gpus(h);
}

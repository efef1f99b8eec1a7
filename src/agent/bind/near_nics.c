/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class/infiniband has a folder for each device, also of RoCE: ports/N/state is "4: ACTIVE" for a
 * port with a link, and `device` links to the PCI device. The real path of a PCI device has the
 * host bridge and each bridge above the device, as in pci0000:16/0000:16:01.0/0000:17:00.0: the
 * more of the GPU's path a port shares, the nearer it is.
 */
#include "agent/bind/near_nics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bind/topology.h"
#include "base/error_number.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"

enum {
        PORT_FILE_MAX = 4096,
        SAME_NODE = 1, /* how near; more = the same host bridge, and bridges below */
};

struct nic_port {
        char *name;   /* "mlx5_0:1" */
        char *path;   /* of the PCI device */
        int32_t node; /* NUMA_UNKNOWN */
};

struct nic_ports {
        struct nic_port *v;
        size_t n;
};

/* Returns the names in a folder, 2 before 10; malloc'ed. */
static struct strv list_folder(const char *folder)
{
        struct strv names = STRV_INIT;
        struct dirent **entries;
        int n = scandir(folder, &entries, NULL, versionsort);

        for (int i = 0; i < n; i++) {
                if (entries[i]->d_name[0] != '.')
                        strv_push(&names, entries[i]->d_name);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
        return names;
}

/* "5: ACTIVE_DEFER" is a port whose link has failed and may still recover. */
static bool is_active_port(const char *device, const char *port)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/ports/%s/state", device, port);
        CLEANUP(free_textp) char *text = NULL;

        return fd_read_file(path, PORT_FILE_MAX, &text, NULL) == 0 && strstr(text, "ACTIVE") &&
               !strstr(text, "DEFER");
}

/* Adds the active ports of a device. */
static void add_nic_ports(struct nic_ports *to, const struct cpu_topology *t, const char *folder,
                          const char *name)
{
        CLEANUP(free_textp) char *device = xasprintf("%s/%s", folder, name);
        CLEANUP(free_textp) char *link = xasprintf("%s/device", device);
        CLEANUP(free_textp) char *ports = xasprintf("%s/ports", device);
        CLEANUP(free_textp) char *path = realpath(link, NULL);
        CLEANUP(strv_finish) struct strv numbers = STRV_INIT;

        if (!path)
                return;
        numbers = list_folder(ports);
        for (size_t i = 0; i < numbers.n; i++) {
                if (!is_active_port(device, numbers.v[i]))
                        continue;
                to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));
                to->v[to->n++] = (struct nic_port){
                        .name = xasprintf("%s:%s", name, numbers.v[i]),
                        .path = xstrdup(path),
                        .node = cpu_topology_find_device(t, strrchr(path, '/') + 1),
                };
        }
}

/* A machine without the folder has no ports. The caller calls finish_nic_ports(). */
static struct nic_ports read_nic_ports(const struct cpu_topology *t)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/class/infiniband", t->root);
        CLEANUP(strv_finish) struct strv names = list_folder(folder);
        struct nic_ports ports = { NULL, 0 };

        for (size_t i = 0; i < names.n; i++)
                add_nic_ports(&ports, t, folder, names.v[i]);
        return ports;
}

static void finish_nic_ports(struct nic_ports *p)
{
        for (size_t i = 0; i < p->n; i++) {
                free(p->v[i].name);
                free(p->v[i].path);
        }
        free(p->v);
}

/* Counts the host bridge and the bridges that two PCI devices have in common. */
static unsigned count_common_bridges(const char *a, const char *b)
{
        const char *root = strstr(a, "/pci");
        unsigned n = 0;
        size_t len;

        /* 0 = other host bridges, or a path without PCI, such as that of a virtual device. The last
         * part of a path is the device itself, which two devices never share. */
        if (!root || strncmp(a, b, (size_t)(root - a)) != 0)
                return 0;
        b += root - a;
        for (a = root; *a == '/' && *b == '/'; a += len, b += len, n++) {
                len = 1 + strcspn(a + 1, "/");
                if (len != 1 + strcspn(b + 1, "/") || strncmp(a, b, len) != 0)
                        break;
        }
        return n;
}

/* Marks the ports nearest to a GPU. */
static void mark_near_ports(bool *near, const struct nic_ports *ports, const struct cpu_topology *t,
                            const char *address)
{
        CLEANUP(free_textp) char *link = xasprintf("%s/bus/pci/devices/%s", t->root, address);
        CLEANUP(free_textp) char *path = *address ? realpath(link, NULL) : NULL;
        int32_t node = cpu_topology_find_device(t, address);
        unsigned *score, best = 0;

        /* A GPU without an address, or unknown to sysfs, is near no port. */
        if (!path)
                return;
        score = xcalloc(ports->n, sizeof(*score));
        for (size_t i = 0; i < ports->n; i++) {
                unsigned common = count_common_bridges(path, ports->v[i].path);

                if (common)
                        score[i] = SAME_NODE + common;
                else if (node != NUMA_UNKNOWN && ports->v[i].node == node)
                        score[i] = SAME_NODE;
                best = MAX(best, score[i]);
        }
        for (size_t i = 0; i < ports->n; i++)
                /* Several GPUs of a rank add up: each adds its own nearest ports. */
                near[i] |= best && score[i] == best;
        free(score);
}

/* Lists the marked ports, from one of them on: the @turn'th. */
static char *list_near_ports(const bool *near, const struct nic_ports *ports, size_t turn)
{
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        struct buf list = BUF_INIT;
        char *text;

        for (size_t i = 0; i < ports->n; i++)
                if (near[i])
                        strv_push(&names, ports->v[i].name);
        for (size_t i = 0; i < names.n; i++)
                buf_printf(&list, "%s%s", i ? "," : "", names.v[(turn + i) % names.n]);
        text = xstrndup((const char *)buf_data(&list), buf_len(&list));
        buf_finish(&list);
        return text;
}

/* @near has a row of ports for each rank. A rank begins with the port behind those of earlier ranks
 * with an equal row, so ranks with the same ports do not all load the first one. */
static void find_ports(struct near_nics *n, const struct bind_query *q, const struct strv *gpus,
                       const struct cpu_topology *t, const struct nic_ports *ports)
{
        bool *near = xcalloc(ports->n * q->n_ranks, sizeof(*near));

        for (uint32_t i = 0; i < q->n_ranks; i++) {
                const struct bind_query_rank *r = &q->ranks[i];
                bool *own = near + i * ports->n;
                size_t turn = 0;
                char *list;

                for (uint32_t k = 0; k < r->n_gpus; k++)
                        if (r->gpus[k] < gpus->n)
                                mark_near_ports(own, ports, t, gpus->v[r->gpus[k]]);
                for (uint32_t k = 0; k < i; k++)
                        turn += !memcmp(near + k * ports->n, own, ports->n * sizeof(*own));
                list = list_near_ports(own, ports, turn);
                strv_push(&n->ports, list);
                free(list);
        }
        free(near);
}

void near_nics_find(struct near_nics *n, const struct bind_query *q, const struct strv *gpus,
                    const char *sys)
{
        struct nic_ports ports;
        struct cpu_topology t;
        struct cpu_mask all;

        *n = (struct near_nics){ .ports = STRV_INIT };
        if (!q->near_nic || !q->n_ranks)
                return;
        /* The place of a device counts here, whatever processors the agent may use. */
        memset(&all, 0xff, sizeof(all));
        cpu_topology_read(&t, sys, &all);
        ports = read_nic_ports(&t);
        n->has_active = ports.n > 0;
        if (ports.n)
                find_ports(n, q, gpus, &t, &ports);
        finish_nic_ports(&ports);
        cpu_topology_finish(&t);
}

void near_nics_tell(const struct near_nics *n, const struct bind_query *q, bool *warned)
{
        bool has_gpus = false;

        for (uint32_t i = 0; i < q->n_ranks && q->near_nic; i++) {
                has_gpus |= q->ranks[i].n_gpus > 0;
                if (i < n->ports.n && *n->ports.v[i])
                        log_line(LOG_INFO, "rank %u: NICs %s", q->ranks[i].rank, n->ports.v[i]);
                else if (n->has_active)
                        log_line(LOG_INFO, "rank %u: --nic near finds no NIC near its GPUs",
                                 q->ranks[i].rank);
        }
        if (!has_gpus || n->has_active || *warned)
                return;
        log_warning(HN_NO_NIC,
                    "--nic near sets no NICs: no port of InfiniBand or RoCE is active here");
        *warned = true;
}

/* NCCL takes a name as a prefix, unless "=" stands before the list; UCX takes exact names. */
void near_nics_add_env(const struct near_nics *n, uint32_t i, struct strv *env)
{
        CLEANUP(free_textp) char *exact = NULL; /* mlx5_1 alone would mean mlx5_10, too */

        if (i >= n->ports.n || !*n->ports.v[i])
                return;
        exact = xasprintf("=%s", n->ports.v[i]);
        if (!strv_env_get(env, "NCCL_IB_HCA"))
                strv_env_set(env, "NCCL_IB_HCA", exact);
        if (!strv_env_get(env, "UCX_NET_DEVICES"))
                strv_env_set(env, "UCX_NET_DEVICES", n->ports.v[i]);
}

void near_nics_finish(struct near_nics *n)
{
        strv_finish(&n->ports);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broken GPU is known from its configuration space, which reads as ones when the GPU has fallen
 * off the bus, and from the Xid messages of NVIDIA's driver in the kernel log. /dev/kmsg is read
 * where the user may; else a file of a syslog daemon, if the administrator lets the user read one.
 * The time of a message is that of the kernel's log clock, which is CLOCK_MONOTONIC but for
 * adjustments of the latter.
 *
 * Memory of a GPU that a process leaves behind is known from the driver, which lists the process
 * until it has freed the memory. The driver's numbers are those of the machine's first process
 * namespace: in another one nothing is known.
 */
#include "agent/inspect/node_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/core/carried_image.h"
#include "agent/core/inventory.h"
#include "agent/inspect/nvml_image.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

enum {
        LOG_TAIL = 1 << 20,        /* read of a file */
        READ = 8192,               /* a record of /dev/kmsg is not longer */
        OUT_OF_ORDER_US = 1000000, /* lines of several processors */
        BOOT_ID_MAX = 64,
        HELPER_MS = 4000, /* for the driver */
};

/* The kernel's PROC_PID_INIT_INO: the number of the first process namespace. */
#define FIRST_PIDS 0xeffffffcU

static const char driver_folder[] = "/proc/driver/nvidia/gpus", device_nodes[] = "/dev/nvidia";

/* --- file systems ----------------------------------------------------------------------------- */

uint64_t node_facts_mix_id(uint64_t type, uint64_t id, const char *machine)
{
        uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

        if (!id || !node_facts_is_local(type))
                return id;
        for (const char *p = machine; *p; p++)
                hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
        return *machine ? id ^ hash : 0;
}

/* Sets the id as the kernel has it. */
static void set_fs_id(struct node_facts *m, uint64_t id)
{
        CLEANUP(free_textp) char *boot = NULL;

        if (fd_read_file("/proc/sys/kernel/random/boot_id", BOOT_ID_MAX, &boot, NULL) < 0)
                boot = NULL;
        m->fs_id = node_facts_mix_id(m->fs_type, id, boot ? boot : "");
}

void node_facts_read_path(struct node_facts *m, const char *path)
{
        CLEANUP(free_textp) char *folder = xstrdup(path);
        char *slash = strrchr(folder, '/');
        struct statfs fs;
        uint32_t id[2];

        if (!slash)
                return;
        slash[slash == folder] = '\0';
        /* A file that is not written yet gets the file system of the folder. */
        if (statfs(path, &fs) < 0 && statfs(folder, &fs) < 0)
                return;
        memcpy(id, &fs.f_fsid, sizeof(id));
        m->fs_type = (uint64_t)fs.f_type & UINT32_MAX;
        set_fs_id(m, (uint64_t)id[1] << 32 | id[0]);
}

/* --- the kernel log --------------------------------------------------------------------------- */

/* Xids of broken hardware and firmware. Others follow from errors of programs (13, 31, 43, 45), or
 * are no failures. Source: NVIDIA's Xid catalog. */
static const char *explain_xid(unsigned number)
{
        static const struct {
                unsigned number;
                const char *words;
        } table[] = {
                { 48, "double-bit ECC error" },
                { 62, "micro-controller halted" },
                { 64, "row remapping failed" },
                { 74, "NVLink error" },
                { 79, "fallen off the bus" },
                { 94, "contained ECC error" },
                { 95, "uncontained ECC error" },
                { 119, "GSP does not answer" },
                { 120, "GSP error" },
                { 121, "C2C link error" },
                { 140, "unrecovered ECC error" },
                { 143, "initialization failed" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].number == number)
                        return table[i].words;
        return NULL;
}

/* Returns the message of a line, and its time; NULL = the line is not the kernel's, or has none. */
static const char *read_log_time(const char *line, uint64_t *ret_us)
{
        unsigned priority, seconds, micros;
        unsigned long long us;
        const char *at;
        int len = 0;

        if (sscanf(line, "%u,%*u,%llu,%*[^;];%n", &priority, &us, &len) == 2 && len) {
                *ret_us = us;
                return priority >> 3 ? NULL : line + len; /* the kernel's facility is 0 */
        }
        at = strstr(line, " kernel: [");
        if (!at || sscanf(at, " kernel: [ %u.%6u] %n", &seconds, &micros, &len) != 2 || !len)
                return NULL;
        *ret_us = (uint64_t)seconds * 1000000 + micros;
        return at + len;
}

bool node_facts_read_line(struct xid *ret, const char *line, uint64_t since_us)
{
        uint64_t us;
        const char *text = read_log_time(line, &us);

        if (!text || us < since_us || strncmp(text, "NVRM: Xid (", 11) != 0)
                return false;
        text += 11;
        text += strncmp(text, "PCI:", 4) ? 0 : 4;
        if (sscanf(text, "%15[0-9a-fA-F:.]): %u", ret->address, &ret->number) != 2)
                return false;
        ret->words = explain_xid(ret->number);
        return ret->words;
}

/* -1 = the user may read neither the kernel's log nor a file. A file is read from its last LOG_TAIL
 * bytes on; /dev/kmsg from its oldest record. */
static int open_log(void)
{
        static const char *const files[] = { "/var/log/kern.log", "/var/log/messages",
                                             "/var/log/syslog" };
        int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

        for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(files); i++) {
                fd = open(files[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
                /* Fails for a file that is shorter than the tail. */
                if (fd >= 0 && lseek(fd, -LOG_TAIL, SEEK_END) < 0)
                        lseek(fd, 0, SEEK_SET);
        }
        return fd;
}

/* --- GPUs ------------------------------------------------------------------------------------- */

/* The driver's messages have a PCI address, the order has indexes. */
static bool is_of_ranks(const struct inspect_order *o, const char *address)
{
        uint32_t gpu = inventory_find_gpu(driver_folder, device_nodes, address);

        for (uint32_t i = 0; i < o->n_gpus; i++)
                if (gpu != UINT32_MAX && o->gpus[i] == gpu)
                        return true;
        return false;
}

/* A search for messages of broken GPUs; the newest counts. */
struct xid_search {
        const struct inspect_order *o; /* with the GPUs that count; NULL = any */
        uint64_t since_us;
        uint64_t last_us; /* the time of the line before */
        bool found;
        struct xid xid;
};

/* A file has lines of earlier boots, too, whose clock began anew: what follows the last of them
 * counts. */
static void forget_earlier_boot(struct xid_search *s, const char *line)
{
        uint64_t us;

        if (!read_log_time(line, &us))
                return;
        if (us + OUT_OF_ORDER_US < s->last_us)
                s->found = false;
        s->last_us = us;
}

static void take_lines(struct xid_search *s, struct buf *lines)
{
        const unsigned char *begin, *end;
        struct xid xid;

        while ((begin = buf_data(lines)) && (end = memchr(begin, '\n', buf_len(lines)))) {
                CLEANUP(free_textp) char *line = xasprintf("%.*s", (int)(end - begin), begin);

                forget_earlier_boot(s, line);
                if (node_facts_read_line(&xid, line, s->since_us) &&
                    (!s->o || is_of_ranks(s->o, xid.address))) {
                        s->found = true;
                        s->xid = xid;
                }
                buf_consume(lines, (size_t)(end + 1 - begin));
        }
}

/* Reads the kernel's log. False: it may not be read. */
static bool search_log(struct xid_search *s, uint64_t age_us)
{
        CLEANUP(buf_finish) struct buf lines = BUF_INIT;
        CLEANUP(fd_closep) int fd = open_log();
        uint64_t now_us = (uint64_t)clock_ns() / 1000;
        ssize_t n;
        void *room;

        s->since_us = now_us - MIN(age_us, now_us);
        while (fd >= 0 && (room = buf_reserve(&lines, READ))) {
                n = read(fd, room, READ);
                if (!n || (n < 0 && errno != EPIPE && errno != EINTR))
                        break; /* EPIPE: a record of /dev/kmsg was overwritten */
                buf_advance(&lines, (size_t)MAX(n, (ssize_t)0));
                take_lines(s, &lines);
        }
        return fd >= 0;
}

/* Reads the kernel's log for errors of the ranks' GPUs, no older than the order says. */
static void read_log(struct node_facts *m, const struct inspect_order *o)
{
        struct xid_search s = { .o = o };

        search_log(&s, (uint64_t)o->limit_ms * 1000);
        if (s.found)
                snprintf(m->gpu, sizeof(m->gpu), "Xid %u (%s) of GPU %s", s.xid.number, s.xid.words,
                         s.xid.address);
}

int node_facts_find_xid(struct xid *ret, uint64_t age_us)
{
        struct xid_search s = { .o = NULL };

        if (!search_log(&s, age_us))
                return -EACCES;
        *ret = s.xid;
        return s.found;
}

static void look_at_gpu(struct node_facts *m, const struct inspect_order *o, const char *address)
{
        CLEANUP(free_textp) char *path = xasprintf("/sys/bus/pci/devices/%s/config", address);
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        uint32_t ids;

        if (fd >= 0 && read(fd, &ids, sizeof(ids)) == sizeof(ids) && ids == UINT32_MAX &&
            is_of_ranks(o, address))
                snprintf(m->gpu, sizeof(m->gpu), "GPU %.15s has fallen off the bus", address);
}

static void look_at_gpus(struct node_facts *m, const struct inspect_order *o)
{
        DIR *folder = opendir(driver_folder);
        struct dirent *entry;

        while (folder && (entry = readdir(folder)) && !*m->gpu)
                if (*entry->d_name != '.')
                        look_at_gpu(m, o, entry->d_name);
        if (folder)
                closedir(folder);
}

/* --- the driver --------------------------------------------------------------------------- */

bool node_facts_in_first_pids(void)
{
        struct stat st;

        return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PIDS;
}

bool node_facts_ask_holders(struct gpu_holders *ret)
{
        struct spawn s = { .argv = (char *[]){ (char *)"holders" },
                           .cwd = "/",
                           .fds = { -1, SPAWN_NULL, SPAWN_NULL } };
        struct pollfd answer = { .events = POLLIN };
        struct error err;
        ssize_t n = 0;
        pid_t pid;
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return false;
        s.fds[0] = fds[1];
        if (carried_image_spawn(&pid, "hnlaunch-nvml", &nvml_image, s, &err) == 0) {
                /* Without this end the read returns as soon as the helper is gone. */
                fds[1] = fd_close(fds[1]);
                answer.fd = fds[0];
                if (poll(&answer, 1, HELPER_MS) > 0)
                        n = read(fds[0], ret, sizeof(*ret));
                /* The helper may hang in the driver, and is not waited for: the caller reaps
                 * children by and by. */
                kill(pid, SIGKILL);
        }
        fd_close(fds[1]);
        fd_close(fds[0]);
        return n == sizeof(*ret) && ret->mark == GPU_RECORD_MARK && ret->n <= GPU_RECORD_HOLDERS;
}

static const struct inspector_rank *find_ended(const struct inspector_rank *ended, size_t n,
                                               pid_t pid)
{
        for (size_t i = 0; i < n; i++)
                if (ended[i].pid == pid)
                        return &ended[i];
        return NULL;
}

void node_facts_read_holders(struct node_facts *m, const struct gpu_holders *h,
                             const struct inspector_rank *ended, size_t n)
{
        for (uint32_t i = 0; i < h->n && !*m->held; i++) {
                const struct gpu_holder *v = &h->v[i];
                const struct inspector_rank *r = find_ended(ended, n, (pid_t)v->pid);
                char mib[32] = "some memory";

                /* A process that still lives, or a new one with the number, holds its memory by
                 * right. */
                if (!r || kill(r->pid, 0) == 0 || errno != ESRCH)
                        continue;
                if (v->memory_mib != GPU_RECORD_UNKNOWN)
                        snprintf(mib, sizeof(mib), "%u MiB", v->memory_mib);
                snprintf(m->held, sizeof(m->held), "%s of GPU %u, of rank %u (pid %d)", mib, v->gpu,
                         r->rank, (int)r->pid);
        }
}

void node_facts_compare_ecc(struct node_facts *m, const struct inspect_order *o,
                            const struct gpu_record *first, const struct gpu_holders *now)
{
        for (uint32_t i = 0; i < o->n_gpus && !*m->gpu; i++) {
                uint32_t gpu = o->gpus[i], was, is;

                if (gpu >= first->n)
                        continue;
                was = first->gpus[gpu].ecc;
                is = now->ecc[gpu];
                if (is == GPU_RECORD_UNKNOWN || is <= was) /* also where the first is not known */
                        continue;
                snprintf(m->gpu, sizeof(m->gpu), "%u uncorrected ECC error%s of GPU %u", is - was,
                         is - was == 1 ? "" : "s", gpu);
        }
}

static void ask_driver(struct node_facts *m, const struct inspect_order *o,
                       const struct inspector_rank *ended, size_t n, const struct gpu_record *first)
{
        struct gpu_holders holders;

        if ((!n && !first) || !node_facts_ask_holders(&holders))
                return;
        if (first && !*m->gpu)
                node_facts_compare_ecc(m, o, first, &holders);
        if (node_facts_in_first_pids())
                node_facts_read_holders(m, &holders, ended, n);
}

/* ---------------------------------------------------------------------------------------------- */

void node_facts_run(const struct inspect_order *o, const struct inspector_rank *ended, size_t n,
                    const struct gpu_record *first, int to)
{
        struct node_facts m = { .number = o->number };
        struct buf b = BUF_INIT;

        node_facts_read_path(&m, o->path);
        if (o->n_gpus)
                read_log(&m, o);
        if (o->n_gpus && !*m.gpu)
                look_at_gpus(&m, o);
        if (o->n_gpus)
                ask_driver(&m, o, ended, n, first);
        node_facts_encode(&b, &m);
        fd_write_all(to, buf_data(&b), buf_len(&b));
        buf_finish(&b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function per kind of fact. Each adds a value, or the problem in the way of a value; the head
 * decides about the meaning. Limits are hard limits: ranks have the same. A quota is the least of
 * the own control group and the groups above; /proc/self/cgroup names the group of version 2 in the
 * line "0::", groups of version 1 by their controllers. In a container the named folder may be out
 * of sight: then the folders above count.
 */
#include "agent/check/machine_check.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/memory.h"

enum { FILE_LIMIT = 1 << 20 };

/* Returns the text of a file below @root without a newline at the end, malloc'ed; NULL with
 * errno. */
static char *read_below(const char *root, const char *path)
{
        CLEANUP(free_textp) char *file = xasprintf("%s%s", root, path);
        char *text = NULL;
        int r = fd_read_file(file, FILE_LIMIT, &text, NULL);

        if (r < 0) {
                errno = -r;
                return NULL;
        }
        text[strcspn(text, "\n")] = '\0';
        return text;
}

static void add_unread(struct checked *m, const char *name, const char *path, int error)
{
        char why[CHECK_PROBLEM];

        snprintf(why, sizeof(why), "cannot read %.80s: %s", path, strerror(error));
        checked_add(m, name, "", why);
}

static void add_fact_number(struct checked *m, const char *name, uint64_t n)
{
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, n);
        checked_add(m, name, text, "");
}

/* --- limits and quotas ------------------------------------------------------------------------ */

/* Returns the hard limit; UINT64_MAX = none. */
static uint64_t read_limit(int resource)
{
        struct rlimit limit;

        if (getrlimit(resource, &limit) < 0 || limit.rlim_max == RLIM_INFINITY)
                return UINT64_MAX;
        return limit.rlim_max;
}

static void add_limit(struct checked *m, const char *name, uint64_t n)
{
        if (n == UINT64_MAX)
                checked_add(m, name, "unlimited", "");
        else
                add_fact_number(m, name, n);
}

/* A control of a group: the files and the meaning of the lines. */
struct cgroup_control {
        const char *controller;   /* of version 1 */
        const char *file, *file1; /* of version 2 and 1 */
        const char *period1; /* of version 1: the number of @file1 counts per this; NULL = as is */
        bool per_period;     /* the line of version 2 has a period behind the number */
};

/* Reads the quota of a folder; INFINITY = none. */
static double read_quota(const char *root, const char *folder, bool first,
                         const struct cgroup_control *k)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", folder, first ? k->file1 : k->file);
        CLEANUP(free_textp) char *text = read_below(root, path);
        CLEANUP(free_textp) char *period = NULL;
        double n, per = 1;

        if (!text || !strcmp(text, "max") || !strncmp(text, "max ", 4) || *text == '-')
                return INFINITY;
        n = strtod(text, NULL);
        if (first && k->period1) {
                CLEANUP(free_textp) char *other = xasprintf("%s/%s", folder, k->period1);

                period = read_below(root, other);
                per = period ? strtod(period, NULL) : 0;
        } else if (!first && k->per_period) {
                per = strchr(text, ' ') ? strtod(strchr(text, ' '), NULL) : 0;
        }
        /* Version 1 writes a number near 2^63 for no limit. */
        return per > 0 && n / per < 9e18 ? n / per : INFINITY;
}

/* Returns the least quota of the folders from @path up to the mount. */
static double find_least_quota(const char *root, const char *mount, const char *path, bool first,
                               const struct cgroup_control *k)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s%s", mount, strcmp(path, "/") ? path : "");
        double least = INFINITY;

        for (;;) {
                double own = read_quota(root, folder, first, k);
                char *slash;

                least = MIN(least, own);
                slash = strrchr(folder, '/');
                if (strlen(folder) <= strlen(mount) || !slash)
                        return least;
                *slash = '\0';
        }
}

/* Whether the comma list @controllers, of @len bytes, has @name. */
static bool has_controller(const char *controllers, size_t len, const char *name)
{
        const char *end = controllers + len;

        while (controllers < end) {
                size_t n = strcspn(controllers, ",:");

                if (n == strlen(name) && !strncmp(controllers, name, n))
                        return true;
                controllers += n + 1;
        }
        return false;
}

/* Returns the quota of this process; INFINITY = none. */
static double find_quota(const char *root, const char *groups, const struct cgroup_control *k)
{
        CLEANUP(free_textp) char *copy = xstrdup(groups);
        double least = INFINITY;
        char *rest = copy, *line;

        while ((line = strsep(&rest, "\n"))) {
                char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
                CLEANUP(free_textp) char *mount = NULL;
                double own;
                size_t len;

                if (!path)
                        continue;
                len = (size_t)(path - ++names);
                path++;
                if (len && !has_controller(names, len, k->controller))
                        continue;
                mount = len ? xasprintf("/sys/fs/cgroup/%.*s", (int)len, names)
                            : xstrdup("/sys/fs/cgroup");
                own = find_least_quota(root, mount, path, len, k);
                least = MIN(least, own);
        }
        return least;
}

/* Parts of a processor are usual in containers, so a quota may have a fraction. */
static void add_quota(struct checked *m, const char *name, double n)
{
        char text[48];

        if (isinf(n)) {
                checked_add(m, name, "none", "");
                return;
        }
        snprintf(text, sizeof(text), n == (double)(int64_t)n ? "%.0f" : "%.2f", n);
        checked_add(m, name, text, "");
}

/* The number of processes has two limits, of the user and of the control group: the smaller
 * counts. */
static void check_quotas(struct checked *m, const char *root)
{
        static const struct cgroup_control cpu = { "cpu", "cpu.max", "cpu.cfs_quota_us",
                                                   "cpu.cfs_period_us", true },
                                           memory = { "memory", "memory.max",
                                                      "memory.limit_in_bytes", NULL, false },
                                           pids = { "pids", "pids.max", "pids.max", NULL, false };
        CLEANUP(free_textp) char *path = xasprintf("%s/proc/self/cgroup", root);
        CLEANUP(free_textp) char *groups = NULL;
        uint64_t limit = read_limit(RLIMIT_NPROC);
        int r = fd_read_file(path, FILE_LIMIT, &groups, NULL);
        double n;

        if (r < 0) {
                groups = NULL;
                add_unread(m, "cpu.quota", "/proc/self/cgroup", -r);
                add_unread(m, "memory.quota", "/proc/self/cgroup", -r);
        } else {
                add_quota(m, "cpu.quota", find_quota(root, groups, &cpu));
                add_quota(m, "memory.quota", find_quota(root, groups, &memory));
                n = find_quota(root, groups, &pids);
                limit = n < (double)limit ? (uint64_t)n : limit;
        }
        add_limit(m, "limit.processes", limit);
}

static void check_total_memory(struct checked *m)
{
        struct sysinfo info;

        if (sysinfo(&info) == 0)
                add_fact_number(m, "memory", (uint64_t)info.totalram * info.mem_unit);
}

/* --- file systems ----------------------------------------------------------------------------- */

/* @size may be NULL: only the free bytes are wanted. A folder without the right to write has no
 * room for the ranks, whatever is free there. */
static void check_room(struct checked *m, const char *root, const char *path, const char *size,
                       const char *room)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s%s", root, path);
        struct statvfs fs;

        if (statvfs(folder, &fs) < 0) {
                if (size)
                        add_unread(m, size, path, errno);
                add_unread(m, room, path, errno);
                return;
        }
        if (size)
                add_fact_number(m, size, (uint64_t)fs.f_blocks * fs.f_frsize);
        if (access(folder, W_OK | X_OK) < 0)
                add_fact_number(m, room, 0);
        else
                add_fact_number(m, room, (uint64_t)fs.f_bavail * fs.f_frsize);
}

/* --- kernel ----------------------------------------------------------------------------------- */

static void check_kernel(struct checked *m)
{
        struct utsname name;

        if (uname(&name) == 0)
                checked_add(m, "kernel", name.release, "");
}

/* Reads "HugePages_Total: 16" of meminfo. False: no such line. */
static bool read_meminfo(const char *root, const char *key, uint64_t *ret)
{
        CLEANUP(free_textp) char *file = xasprintf("%s/proc/meminfo", root);
        CLEANUP(free_textp) char *value = proc_line(file, key);

        return value && proc_number(value, 0, ret);
}

static void check_pages(struct checked *m, const char *root)
{
        static const char thp[] = "/sys/kernel/mm/transparent_hugepage/enabled";
        CLEANUP(free_textp) char *text = read_below(root, thp);
        uint64_t n, kib;
        char *from;

        if (!text)
                add_unread(m, "thp", thp, errno);
        else if ((from = strchr(text, '[')) && strchr(from, ']')) {
                *strchr(from, ']') = '\0'; /* "always [madvise] never" */
                checked_add(m, "thp", from + 1, "");
        }
        if (read_meminfo(root, "HugePages_Total:", &n) && read_meminfo(root, "Hugepagesize:", &kib))
                add_fact_number(m, "hugepages", n * kib * 1024);
        else
                checked_add(m, "hugepages", "", "the kernel has no huge pages");
}

/* --- InfiniBand ------------------------------------------------------------------------------- */

/* Sums over all ports of the node. @worst names the counter with the most errors. */
struct ib_state {
        unsigned ports, active;
        char rate[64]; /* of active ports; "different rates" */
        uint64_t errors;
        bool counted; /* a counter could be read */
        char worst[96];
        uint64_t worst_errors;
};

/* A working link has some errors, too. */
static const char *const ib_counters[] = {
        "symbol_error",    "link_error_recovery",         "link_downed",
        "port_rcv_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors"
};

/* Adds the counters of a port. Counters run since the start of the machine, and a missing counter
 * is 0. */
static void read_ib_counters(struct ib_state *s, const char *root, const char *port,
                             const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(ib_counters); i++) {
                CLEANUP(free_textp) char *path = xasprintf("%s/counters/%s", port, ib_counters[i]);
                CLEANUP(free_textp) char *text = read_below(root, path);
                uint64_t n = text ? strtoull(text, NULL, 10) : 0;

                s->counted |= text != NULL;
                s->errors += n;
                if (n > s->worst_errors) {
                        s->worst_errors = n;
                        snprintf(s->worst, sizeof(s->worst), "%s of %s", ib_counters[i], name);
                }
        }
}

/* Ports of RoCE are listed in the same way, at the speed of the Ethernet link. */
static void read_ib_port(struct ib_state *s, const char *root, const char *port, const char *name)
{
        CLEANUP(free_textp) char *state_file = xasprintf("%s/state", port);
        CLEANUP(free_textp) char *rate_file = xasprintf("%s/rate", port);
        CLEANUP(free_textp) char *state = read_below(root, state_file);
        CLEANUP(free_textp) char *rate = read_below(root, rate_file);

        s->ports++;
        if (state && strstr(state, "ACTIVE")) { /* "4: ACTIVE" */
                if (rate && !s->active)
                        snprintf(s->rate, sizeof(s->rate), "%s", rate);
                else if (rate && strcmp(s->rate, rate) != 0)
                        snprintf(s->rate, sizeof(s->rate), "different rates");
                s->active++;
        }
        read_ib_counters(s, root, port, name);
}

/* Calls @fn for each entry of a folder below @root. */
static void each_entry(const char *root, const char *folder,
                       void (*fn)(struct ib_state *s, const char *root, const char *folder,
                                  const char *name),
                       struct ib_state *s)
{
        CLEANUP(free_textp) char *path = xasprintf("%s%s", root, folder);
        DIR *dir = opendir(path);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        fn(s, root, folder, entry->d_name);
        if (dir)
                closedir(dir);
}

static void add_ib_port(struct ib_state *s, const char *root, const char *ports, const char *name)
{
        CLEANUP(free_textp) char *port = xasprintf("%s/%s", ports, name);
        /* "/sys/class/infiniband/mlx5_0/ports" and "1" make "mlx5_0/1". */
        const char *device = ports + strlen("/sys/class/infiniband/");
        CLEANUP(free_textp)
        char *label = xasprintf("%.*s/%s", (int)strcspn(device, "/"), device, name);

        read_ib_port(s, root, port, label);
}

static void add_ib_device(struct ib_state *s, const char *root, const char *folder,
                          const char *name)
{
        CLEANUP(free_textp) char *ports = xasprintf("%s/%s/ports", folder, name);

        each_entry(root, ports, add_ib_port, s);
}

/* Whether inactive ports are a fault depends on the other nodes, so both numbers go to the head. */
static void check_infiniband(struct checked *m, const char *root)
{
        struct ib_state s = { 0 };
        char text[CHECK_VALUE];

        each_entry(root, "/sys/class/infiniband", add_ib_device, &s);
        if (!s.ports) {
                checked_add(m, "ib.ports", "none", "");
                checked_add(m, "ib.errors", "", "no InfiniBand or RoCE device");
                return;
        }
        snprintf(text, sizeof(text), "%u of %u active%s%s", s.active, s.ports, *s.rate ? ", " : "",
                 s.rate);
        checked_add(m, "ib.ports", text, "");
        snprintf(text, sizeof(text), s.worst_errors ? "%" PRIu64 " (%s)" : "%" PRIu64, s.errors,
                 s.worst);
        if (s.counted)
                checked_add(m, "ib.errors", text, "");
        else
                checked_add(m, "ib.errors", "", "the devices have no counters of errors");
}

/* ---------------------------------------------------------------------------------------------- */

void machine_check(struct checked *m, const char *root)
{
        add_limit(m, "limit.files", read_limit(RLIMIT_NOFILE));
        add_limit(m, "limit.memlock", read_limit(RLIMIT_MEMLOCK));
        check_quotas(m, root);
        check_total_memory(m);
        check_room(m, root, "/dev/shm", "shm.size", "shm.free");
        check_room(m, root, "/tmp", NULL, "tmp.free");
        check_kernel(m);
        check_pages(m, root);
        check_infiniband(m, root);
}

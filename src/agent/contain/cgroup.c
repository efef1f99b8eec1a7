/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The group's path is <mount point of version 2> + <path in /proc/self/cgroup> + a random name.
 * Creation is tried in full, down to opening cgroup.procs and cgroup.kill for writing, because a
 * new folder may still be of no use (no delegation, old kernel). A group is removed with all
 * subgroups, deepest first.
 */
#include "agent/contain/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/memory.h"

enum { FILE_MAX = 1 << 20, DEPTH_MAX = 16 };

/* Finds the mount point of version 2: line "... <mount point> <options> - cgroup2 ..." of
 * mountinfo. Only a mount of the whole tree counts, because paths in /proc/self/cgroup begin at the
 * root. */
static char *find_cgroup_mount(void)
{
        char *text, *rest, *line, *found = NULL;
        const char *root, *at;

        if (fd_read_file("/proc/self/mountinfo", FILE_MAX, &text, NULL) < 0)
                return NULL;
        for (rest = text; !found && (line = strsep(&rest, "\n"));)
                if (strstr(line, " - cgroup2 ") && (root = proc_word(line, 3)) &&
                    strncmp(root, "/ ", 2) == 0 && (at = proc_word(line, 4)))
                        found = xasprintf("%.*s", (int)strcspn(at, " "), at);
        free(text);
        return found;
}

static int open_cgroup_file(const char *path, const char *name, int flags)
{
        char *file = xasprintf("%s/%s", path, name);
        int fd = open(file, flags | O_CLOEXEC);

        fd = fd < 0 ? -errno : fd;
        free(file);
        return fd;
}

/* The name is random: containers may share the tree but not the process numbers. */
static char *make_cgroup(void)
{
        char *mount = find_cgroup_mount(), *own = proc_line("/proc/self/cgroup", "0::");
        char *path = NULL;
        uint64_t name = 0;

        errno = ENOENT;
        if (mount && own && getrandom(&name, sizeof(name), 0) == sizeof(name))
                path = xasprintf("%s%s/hnlaunch-%d-%012llx", mount, own[1] ? own : "",
                                 (int)getpid(), (unsigned long long)name & 0xffffffffffff);
        if (path && mkdir(path, 0755) < 0) {
                free(path);
                path = NULL;
        }
        free(mount);
        free(own);
        return path;
}

int cgroup_create(struct cgroup *g, struct error *err)
{
        int kill_fd, proc_fd, worst;

        g->path = make_cgroup();
        if (!g->path)
                return err_set(err, errno, "no control group: %s",
                               errno == ENOENT ? "no version 2 here" : strerror(errno));
        g->folder = open_cgroup_file(g->path, ".", O_PATH | O_DIRECTORY);
        proc_fd = open_cgroup_file(g->path, "cgroup.procs", O_WRONLY);
        /* Kernels before 5.14 have no cgroup.kill, without which a group is of little use. */
        kill_fd = open_cgroup_file(g->path, "cgroup.kill", O_WRONLY);
        fd_close(kill_fd);
        fd_close(proc_fd);
        worst = MIN(g->folder, MIN(proc_fd, kill_fd));
        if (worst >= 0)
                return 0;
        err_set(err, -worst, "no control group: %s", strerror(-worst));
        cgroup_remove(g);
        return -err->code;
}

bool cgroup_populated(const struct cgroup *g)
{
        char *file, *text = NULL;
        bool yes;

        if (!g->path)
                return false;
        file = xasprintf("%s/cgroup.events", g->path);
        yes = fd_read_file(file, FILE_MAX, &text, NULL) == 0 && strstr(text, "populated 1");
        free(text);
        free(file);
        return yes;
}

void cgroup_kill(const struct cgroup *g)
{
        int fd = g->path ? open_cgroup_file(g->path, "cgroup.kill", O_WRONLY) : -1;

        /* A failure is not handled here: the caller looks whether any process is left. */
        if (fd >= 0 && write(fd, "1", 1) < 0)
                errno = 0;
        fd_close(fd);
}

/* Removes a control group with those that ranks have made below, the innermost first, as rmdir()
 * wants. */
static void remove_cgroup_tree(const char *path, int depth)
{
        DIR *dir = opendir(path);
        struct dirent *entry;
        char *below;

        while (dir && depth && (entry = readdir(dir))) {
                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                below = xasprintf("%s/%s", path, entry->d_name);
                remove_cgroup_tree(below, depth - 1);
                free(below);
        }
        if (dir)
                closedir(dir);
        /* Fails while a process is left in the group. */
        rmdir(path);
}

void cgroup_remove(struct cgroup *g)
{
        if (!g->path)
                return;
        g->folder = fd_close(g->folder);
        remove_cgroup_tree(g->path, DEPTH_MAX);
        free(g->path);
        g->path = NULL;
}

/* The line "oom_kill N" of a file. */
static bool read_oom_count(struct oom *to, const char *file)
{
        char *count = proc_line(file, "oom_kill ");
        bool found = count && proc_number(count, 0, &to->kills);

        free(count);
        if (found)
                snprintf(to->where, sizeof(to->where), "%s", file);
        return found;
}

/* Reads the count of the agent's own group: the line of /proc/self/cgroup with @hierarchy ends with
 * the group's path below @mount. */
static bool read_own_oom_count(struct oom *to, const char *hierarchy, const char *mount,
                               const char *file)
{
        char *group = proc_line("/proc/self/cgroup", hierarchy);
        char *path = group ? xasprintf("%s%s/%s", mount, group, file) : NULL;
        bool found = path && read_oom_count(to, path);

        free(path);
        free(group);
        return found;
}

void oom_read(struct oom *to, const char *cgroup)
{
        char *file = cgroup ? xasprintf("%s/memory.events", cgroup) : NULL;
        bool found = file && read_oom_count(to, file);

        free(file);
        if (found || read_own_oom_count(to, "0::", "/sys/fs/cgroup", "memory.events") ||
            read_own_oom_count(to, ":memory:", "/sys/fs/cgroup/memory", "memory.oom_control") ||
            read_oom_count(to, "/proc/vmstat"))
                return;
        *to = (struct oom){ 0 };
}

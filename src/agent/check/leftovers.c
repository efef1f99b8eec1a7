/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each job has a folder hnlaunch-XXXXXX on the node with the socket "store", where the agent
 * listens to the end; processes of the job have the socket's path in HN_STORE. A socket that
 * refuses a connection, or is gone, has no agent any more. The kernel's list of sockets is read
 * first, so living jobs get no connection. A process in a container names the socket by the
 * container's own files: /proc/PID/root leads there.
 */
#include "agent/check/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/env_names.h"

enum { SOCKETS_MAX = 8 << 20, ENVIRON_MAX = 128 << 10 };

/* Whether the kernel lists @socket among the sockets of this network namespace. */
static bool is_listed_socket(const char *socket)
{
        char *text = NULL, *at;
        size_t len = strlen(socket);
        bool found = false;

        if (fd_read_file("/proc/net/unix", SOCKETS_MAX, &text, NULL) < 0)
                return false;
        for (at = text; !found && (at = strstr(at, socket)); at += len)
                found = at > text && at[-1] == ' ' && (at[len] == '\n' || !at[len]);
        free(text);
        return found;
}

bool leftovers_is_served(const char *socket_path)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        bool refused;
        int fd;

        /* Doubt counts as served: a false alarm would have the user end a living job. */
        if (is_listed_socket(socket_path) || strlen(socket_path) >= sizeof(addr.sun_path))
                return true;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return true;
        memcpy(addr.sun_path, socket_path, strlen(socket_path) + 1);
        refused = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 &&
                  (errno == ECONNREFUSED || errno == ENOENT);
        fd_close(fd);
        return !refused;
}

/* --- folders ---------------------------------------------------------------------------------- */

/* Whether the folder of a job has sockets of this user, all without an agent. */
static bool is_leftover(const char *folder)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        bool any = false, served = false;

        while (dir && !served && (entry = readdir(dir))) {
                CLEANUP(free_textp) char *socket = xasprintf("%s/%s", folder, entry->d_name);
                struct stat st;

                /* "store", and "store-N" of further worlds. Before the agent listens there is no
                 * socket. */
                if (strncmp(entry->d_name, "store", 5) != 0 || lstat(socket, &st) < 0 ||
                    !S_ISSOCK(st.st_mode) || st.st_uid != getuid())
                        continue;
                any = true;
                served = leftovers_is_served(socket);
        }
        if (dir)
                closedir(dir);
        return any && !served;
}

/* The name has the 6 letters of mkdtemp(3). */
size_t leftovers_count_folders(const char *folder)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        size_t n = 0;

        while (dir && (entry = readdir(dir))) {
                CLEANUP(free_textp) char *path = NULL;

                if (strncmp(entry->d_name, "hnlaunch-", 9) != 0 || strlen(entry->d_name) != 15)
                        continue;
                path = xasprintf("%s/%s", folder, entry->d_name);
                n += is_leftover(path);
        }
        if (dir)
                closedir(dir);
        return n;
}

/* --- processes -------------------------------------------------------------------------------- */

struct leftover_processes {
        size_t n;
        pid_t first;
        char *environ; /* room for the environment of a process */
};

/* Returns the value of HN_STORE in an environment of @len bytes with a NUL behind; NULL = not
 * set. */
static const char *find_store(const char *environ, size_t len)
{
        for (const char *at = environ; at < environ + len; at += strlen(at) + 1)
                if (!strncmp(at, HN_STORE "=", sizeof(HN_STORE)))
                        return at + sizeof(HN_STORE);
        return NULL;
}

/* Counts a process whose HN_STORE names a socket without an agent. The environment of processes of
 * other users cannot be read. */
static void count_leftover(void *ctx, pid_t pid)
{
        struct leftover_processes *p = ctx;
        char path[64], socket[256];
        struct proc_stat st;
        const char *store;
        size_t len;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
        f = fopen(path, "re");
        if (!f)
                return;
        len = fread(p->environ, 1, ENVIRON_MAX - 1, f);
        fclose(f);
        p->environ[len] = '\0';
        store = find_store(p->environ, len);
        if (!store || *store != '/')
                return;
        /* A path cut here is too long for a socket anyway, and counts as served. */
        snprintf(socket, sizeof(socket), "/proc/%d/root%s", (int)pid, store);
        if (is_listed_socket(store) || leftovers_is_served(socket) || !proc_read_stat(&st, pid) ||
            st.state == 'Z')
                return;
        p->first = p->n++ ? p->first : pid;
}

/* ---------------------------------------------------------------------------------------------- */

/* The folders in which an agent may make the folder of a job: XDG_RUNTIME_DIR, then /dev/shm and
 * /tmp. */
void leftovers_check(struct checked *m)
{
        const char *own = getenv("XDG_RUNTIME_DIR"), *folders[] = { "/dev/shm", "/tmp" };
        struct leftover_processes p = { .environ = xcalloc(1, ENVIRON_MAX) };
        size_t n = own && *own == '/' ? leftovers_count_folders(own) : 0;
        char name[64] = "", text[CHECK_VALUE];

        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                if (!own || strcmp(own, folders[i]) != 0)
                        n += leftovers_count_folders(folders[i]);
        proc_each(count_leftover, &p);
        if (p.n)
                proc_program(p.first, name, sizeof(name));
        if (p.n)
                snprintf(text, sizeof(text), "%zu process%s (pid %d%s%s), %zu folder%s", p.n,
                         p.n == 1 ? "" : "es", (int)p.first, *name ? " " : "", name, n,
                         n == 1 ? "" : "s");
        else if (n)
                snprintf(text, sizeof(text), "%zu folder%s", n, n == 1 ? "" : "s");
        else
                snprintf(text, sizeof(text), "none");
        checked_add(m, "leftovers", text, "");
        free(p.environ);
}

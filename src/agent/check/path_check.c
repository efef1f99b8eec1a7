/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs are found as execvp(3) does. Contents are compared by the beginning of a hash (BLAKE2b
 * of libsodium); of a large file both ends are read.
 */
#include "agent/check/path_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

/* HASH_SIZE is the least of BLAKE2b in libsodium. SHOWN bytes of the hash distinguish the files of
 * some thousand nodes, and fit into a line. */
enum { READ_SIZE = 256 << 10, HASH_SIZE = 16, SHOWN = 6 };

/* Adds @len bytes from @at on to the hash. False with errno. */
static bool hash_part(crypto_generichash_state *s, int fd, uint64_t at, uint64_t len)
{
        CLEANUP(free_textp) char *block = xcalloc(1, READ_SIZE);

        while (len) {
                ssize_t n = pread(fd, block, MIN(len, (uint64_t)READ_SIZE), (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n == 0; /* the file became shorter */
                crypto_generichash_update(s, (unsigned char *)block, (unsigned long long)n);
                at += (uint64_t)n;
                len -= (uint64_t)n;
        }
        return true;
}

/* Hashes the file of @size bytes, or both ends of a large file. False with errno: a read failed. */
static bool hash_path(int fd, uint64_t size, unsigned char *hash)
{
        crypto_generichash_state s;
        bool whole = size <= PATH_CHECK_WHOLE;

        crypto_generichash_init(&s, NULL, 0, HASH_SIZE);
        if (!hash_part(&s, fd, 0, whole ? size : PATH_CHECK_END) ||
            (!whole && !hash_part(&s, fd, size - PATH_CHECK_END, PATH_CHECK_END)))
                return false;
        crypto_generichash_final(&s, hash, HASH_SIZE);
        return true;
}

/* Returns @path from @cwd on, malloc'ed. */
static char *resolve_ranks_path(const char *cwd, const char *path)
{
        return *path == '/' || !*cwd ? xstrdup(path) : xasprintf("%s/%s", cwd, path);
}

/* Folders have the x bit, too, so the kind of the file counts. */
static bool is_executable(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* An empty element of the search path is the current folder, as POSIX wants. A program with a slash
 * is not searched, and the returned file need not exist. */
char *path_check_search(const char *program, const char *cwd, const char *search)
{
        CLEANUP(free_textp) char *folders = xstrdup(search ? search : "/usr/bin:/bin");
        char *rest = folders, *folder;

        if (strchr(program, '/'))
                return resolve_ranks_path(cwd, program);
        while ((folder = strsep(&rest, ":"))) {
                CLEANUP(free_textp) char *from = resolve_ranks_path(cwd, *folder ? folder : ".");
                CLEANUP(free_textp) char *file = resolve_ranks_path(from, program);

                if (is_executable(file))
                        return STEAL(&file);
        }
        return NULL;
}

/* An order without a search path leaves the search to the agent's own environment. */
static char *find_searched(const struct check_path *p)
{
        return path_check_search(p->path, p->cwd, *p->search ? p->search : getenv("PATH"));
}

/* A program needs the right to execute, any other file the right to read. Links are followed. */
static void describe_ranks_file(char to[CHECK_VALUE], const char *path, bool program)
{
        unsigned char hash[HASH_SIZE];
        char hex[2 * HASH_SIZE + 1];
        struct stat st;
        int fd;

        if (stat(path, &st) < 0) {
                snprintf(to, CHECK_VALUE, errno == ENOENT ? "missing" : "missing (%s)",
                         strerror(errno));
                return;
        }
        if (!S_ISREG(st.st_mode) || (program && access(path, X_OK) < 0)) {
                snprintf(to, CHECK_VALUE, S_ISREG(st.st_mode) ? "not executable" : "no file");
                return;
        }
        /* The path may have become a FIFO since stat(): O_NONBLOCK lets the open return. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 && hash_path(fd, (uint64_t)st.st_size, hash)) {
                sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
                snprintf(to, CHECK_VALUE, "%" PRIu64 " bytes, %.*s", (uint64_t)st.st_size,
                         2 * SHOWN, hex);
        } else if (program) {
                /* Execution needs no right to read: only the size shows. */
                snprintf(to, CHECK_VALUE, "%" PRIu64 " bytes", (uint64_t)st.st_size);
        } else {
                snprintf(to, CHECK_VALUE, "not readable");
        }
        fd_close(fd);
}

void path_check_file(char *to, size_t size, const char *path)
{
        char text[CHECK_VALUE];

        describe_ranks_file(text, path, false);
        snprintf(to, size, "%s", text);
}

/* The x bit of a folder lets a rank enter; the list of names is not needed. */
static void describe_ranks_folder(char to[CHECK_VALUE], const char *path)
{
        struct stat st;

        if (stat(path, &st) < 0)
                snprintf(to, CHECK_VALUE, errno == ENOENT ? "missing" : "missing (%s)",
                         strerror(errno));
        else if (!S_ISDIR(st.st_mode))
                snprintf(to, CHECK_VALUE, "no folder");
        else
                snprintf(to, CHECK_VALUE, access(path, X_OK) == 0 ? "there" : "not accessible");
}

void path_check(struct checked *m, const struct check_order *o)
{
        for (uint32_t i = 0; i < o->n_paths; i++) {
                const struct check_path *p = &o->paths[i];
                CLEANUP(free_textp)
                char *path = p->kind == CHECK_PROGRAM ? find_searched(p)
                                                      : resolve_ranks_path(p->cwd, p->path);
                char value[CHECK_VALUE] = "missing";

                if (path && p->kind == CHECK_FOLDER)
                        describe_ranks_folder(value, path);
                else if (path)
                        describe_ranks_file(value, path, p->kind == CHECK_PROGRAM);
                checked_add(m, p->name, value, "");
        }
}

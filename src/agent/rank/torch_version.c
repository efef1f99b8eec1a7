/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank/torch_version.h"

#include <ctype.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/rank/python_path.h"
#include "base/macros.h"
#include "wire/env/nccl_env.h"

enum { HEAD_BYTES = 1024 };

/* Reads the version in FOLDER/torch/version.py into the unsigned @ctx. */
static bool read_version(void *ctx, const char *folder)
{
        char path[PATH_MAX], head[HEAD_BYTES], *p, *minor;
        unsigned *version = ctx;
        unsigned long n;

        if (snprintf(path, sizeof(path), "%s/torch/version.py", folder) >= PATH_MAX ||
            !python_read_head(path, head, sizeof(head)))
                return false;
        p = strstr(head, "__version__ = '");
        if (!p)
                return false;
        n = strtoul(p + strlen("__version__ = '"), &minor, 10);
        if (!n || n > 99 || *minor != '.' || !isdigit((unsigned char)minor[1]))
                return false;
        *version = TORCH_VERSION((unsigned)n, (unsigned)MIN(strtoul(minor + 1, NULL, 10), 99ul));
        return true;
}

unsigned torch_version_find(char *const *argv, char *const *env, const char *cwd)
{
        struct python_place place;
        unsigned version = 0;

        if (python_find(&place, argv[0], env, cwd))
                python_each_folder(&place, env, cwd, read_version, &version);
        return version;
}

/* --- the note --------------------------------------------------------------------------------- */

struct torch_note *torch_note_map(void)
{
        void *n = mmap(NULL, sizeof(struct torch_note), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return n == MAP_FAILED ? NULL : n;
}

void torch_note_wait(const struct torch_note *n, int ms)
{
        struct timespec limit = { ms / 1000, ms % 1000 * 1000000L };

        /* Once: a spurious wakeup costs the next ranks a look of their own. */
        if (n && !__atomic_load_n(&n->state, __ATOMIC_ACQUIRE))
                syscall(SYS_futex, &n->state, FUTEX_WAIT, 0, &limit, NULL, 0);
}

void torch_note_unmap(struct torch_note *n)
{
        if (n)
                munmap(n, sizeof(*n));
}

unsigned torch_note_find(struct torch_note *n, char *const *argv, char *const *env, const char *cwd)
{
        uint32_t state = n ? __atomic_load_n(&n->state, __ATOMIC_ACQUIRE) : 0;
        unsigned version;

        if (state)
                return state - 1;
        version = torch_version_find(argv, env, cwd);
        if (n) {
                /* Several children may write the note at once: all have found the same. */
                __atomic_store_n(&n->state, version + 1, __ATOMIC_RELEASE);
                syscall(SYS_futex, &n->state, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
        return version;
}

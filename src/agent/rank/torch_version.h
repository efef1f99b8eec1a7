/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torch_version: which PyTorch a program will import
 *
 * Python is not run: torch/version.py is read, which PyTorch's build writes: __version__ =
 * '2.6.0+cu124'. rank/python_path.h tells where.
 */
#pragma once

#include <stdint.h>

/*
 * Returns TORCH_VERSION() of wire/env/nccl_env.h, 206 for 2.6; 0 = not known.
 *
 * Relative paths count from @cwd, NULL or "" = the current folder. Async-signal-safe; blocks as
 * long as the file system does, so it is called in a child process. Any file may stand at the path:
 * only the first KiB of regular files is read.
 */
unsigned torch_version_find(char *const *argv, char *const *env, const char *cwd);

/*
 * A note shared by processes: the ranks of a node import the same PyTorch, and the files may be far
 * away. The child of the first rank finds the version, the children of later ranks read the note.
 */
struct torch_note {
        uint32_t state; /* a futex: the version + 1, 0 = not known yet */
};

struct torch_note *torch_note_map(void); /* NULL: no memory; each rank looks then */
/* In the agent, after the first fork: waits until the version is there, at most @ms. */
void torch_note_wait(const struct torch_note *n, int ms);
void torch_note_unmap(struct torch_note *n); /* NULL is fine; children have their own mapping */

/* torch_version_find() through @n, NULL = without. In a child, async-signal-safe. */
unsigned torch_note_find(struct torch_note *n, char *const *argv, char *const *env,
                         const char *cwd);

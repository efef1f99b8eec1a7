/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torch_version: which PyTorch a program will import
 *
 * Python is not run: its files are looked for where an interpreter would look (PEP 405, CPython's
 * Modules/getpath.py and Lib/site.py), and torch/version.py is read, which PyTorch's build writes:
 * __version__ = '2.6.0+cu124'. A PyTorch that comes into sys.path another way, such as a .pth file,
 * is not found.
 */
#pragma once

/*
 * Returns TORCH_VERSION() of wire/env/nccl_env.h, 206 for 2.6; 0 = not known.
 *
 * The interpreter is @argv[0] if its name begins with "python", else that of the script's first
 * line, else python3 of the PATH in @env, because shells and profilers start Python from there;
 * for programs that start containers it is not known. Relative paths count from @cwd, NULL or "" =
 * the current folder. Async-signal-safe; blocks as long as the file system does, so it is called in
 * a child process. What it reads may be any file: only the first KiB of regular files is read.
 */
unsigned torch_version_find(char *const *argv, char *const *env, const char *cwd);

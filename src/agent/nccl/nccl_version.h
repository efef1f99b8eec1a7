/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nccl_version: which NCCL a rank has loaded
 *
 * The rank is not asked: /proc/PID/maps names the library, and the file has the version in the name
 * (libnccl.so.2.28.9) or as the text "NCCL version 2.28.9+cuda13.0" (NCCL's src/init.cc), which
 * stands before the kernels, in the first MiB. A statically linked library is not found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads "2.28.9..." as NCCL_VERSION_CODE: 22809. 0 = no version. */
uint32_t nccl_version_parse(const char *text);
/* Finds the library in the text of a maps file. False: none is mapped, or the path is longer. */
bool nccl_version_find_path(const char *maps, char *to, size_t size);
/* Returns the version of the library at @path, which may be any file; 0 = unknown. Blocks as long
 * as the file system does. */
uint32_t nccl_version_of_file(const char *path);

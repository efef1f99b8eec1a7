/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version_check: the versions that a program would load, read from files
 *
 * No program is executed and no library loaded. Python and packages are found as in
 * rank/python_path.h, and libraries as the loader would (base/elf/elf_closure.h). NCCL is the
 * library of libtorch_cuda.so, else of the package nvidia-nccl; for other programs the library
 * needed by the program.
 */
#pragma once

#include "wire/check_msg.h"

/* Adds the facts "python", "torch", "cuda", "nccl" and "nccl.plugin" of each program of @o, with
 * ".1" and so on for all programs but the first; "none" if the program does not load the
 * library. */
void version_check(struct checked *m, const struct check_order *o);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version_check: the versions that a program would load, read from files
 *
 * Nothing is executed or loaded. Python and its packages are found as rank/python_path.h tells, and
 * libraries as the loader would (base/elf/elf_closure.h): NCCL is that of libtorch_cuda.so, else
 * that of the package nvidia-nccl; of other programs the one that the program asks for.
 */
#pragma once

#include "wire/check_msg.h"

/* Adds the facts "python", "torch", "cuda", "nccl" and "nccl.plugin" of each program of @o, with
 * ".1" and so on for those behind the first; "none" of what it does not load. */
void version_check(struct checked *m, const struct check_order *o);

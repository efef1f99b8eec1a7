/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gpu_list: CUDA_VISIBLE_DEVICES as NVIDIA's driver reads it
 *
 * Words between commas: numbers, where text behind the digits is ignored, or beginnings of UUIDs,
 * which must fit a single GPU. The list ends at the first other word, such as -1 or NoDevFiles; a
 * GPU named twice empties the list.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strv.h"

/* A part of a GPU (MIG) has no number and is told by its place in the list: this number and more.
 */
enum { GPU_BY_PLACE = 100000 };

struct msg_gpu;

struct gpu_list {
        struct msg_gpu *v; /* the caller frees it */
        uint32_t n;
};

void gpu_list_push(struct gpu_list *to, const struct msg_gpu *gpu);
/* Appends the GPUs of @all named by @visible, in the order of the list. @all NULL: the GPUs are
 * unknown, and each number and each UUID counts as a GPU. */
void gpu_list_choose(struct gpu_list *to, const struct gpu_list *all, const char *visible);
/* Writes the word for a GPU: its number, or the word at its place in CUDA_VISIBLE_DEVICES of @env.
 */
char *gpu_list_word(const struct strv *env, uint32_t gpu);

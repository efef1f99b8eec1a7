/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of CUDA_VISIBLE_DEVICES are taken in turn until the first that names no GPU, as the
 * driver does. A MIG device is known by the place in the list only.
 */
#include "wire/env/gpu_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/msg.h"

enum { GPUS_MAX = 256 }; /* far above any node; the list comes from a variable */

/* Devices beyond GPUS_MAX are left out without an error. */
void gpu_list_push(struct gpu_list *to, const struct msg_gpu *gpu)
{
        if (to->n == GPUS_MAX)
                return;
        to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));
        to->v[to->n++] = *gpu;
}

/* Cuts the next word off @rest, without blanks around it. */
static char *next_gpu_word(char **rest)
{
        char *word = strsep(rest, ",");

        if (!word)
                return NULL;
        word += strspn(word, " \t");
        word[strcspn(word, " \t")] = '\0';
        return word;
}

/* Returns the only GPU whose UUID begins so. A beginning of "GPU-" alone fits all. */
static const struct msg_gpu *find_by_uuid(const struct gpu_list *all, const char *word)
{
        const struct msg_gpu *found = NULL;
        size_t len = strlen(word);

        for (uint32_t i = 0; len > 4 && i < all->n; i++) {
                if (strncmp(all->v[i].uuid, word, len))
                        continue;
                if (found)
                        return NULL;
                found = &all->v[i];
        }
        return found;
}

/* Finds the GPU of the word at @place. False: there is none. */
static bool find_gpu(const struct gpu_list *all, const char *word, uint32_t place,
                     struct msg_gpu *ret)
{
        const bool is_number = isdigit((unsigned char)*word);
        const unsigned long index = is_number ? strtoul(word, NULL, 10) : 0;
        const struct msg_gpu *gpu = NULL;

        *ret = (struct msg_gpu){ .index = GPU_BY_PLACE + place };
        snprintf(ret->uuid, sizeof(ret->uuid), "%s", word);
        /* A part of a GPU is not in @all, and exists as long as there is a GPU at all. */
        if (!strncmp(word, "MIG-", 4))
                return word[4] && (!all || all->n);
        if (!all && is_number && index < GPU_BY_PLACE) {
                *ret = (struct msg_gpu){ .index = (uint32_t)index };
                return true;
        }
        if (!all)
                return !strncmp(word, "GPU-", 4) && word[4];
        for (uint32_t i = 0; is_number && i < all->n && !gpu; i++)
                if (all->v[i].index == index)
                        gpu = &all->v[i];
        if (!is_number)
                gpu = find_by_uuid(all, word);
        if (gpu)
                *ret = *gpu;
        return gpu;
}

static bool is_same_gpu(const struct msg_gpu *a, const struct msg_gpu *b)
{
        /* Parts of GPUs have no number to compare. */
        return a->index < GPU_BY_PLACE ? a->index == b->index
                                       : b->index >= GPU_BY_PLACE && !strcmp(a->uuid, b->uuid);
}

void gpu_list_choose(struct gpu_list *to, const struct gpu_list *all, const char *visible)
{
        CLEANUP(free_textp) char *words = xstrdup(visible);
        char *rest = words, *word;
        const uint32_t first = to->n;
        struct msg_gpu gpu;

        while ((word = next_gpu_word(&rest)) && find_gpu(all, word, to->n - first, &gpu)) {
                for (uint32_t i = first; i < to->n; i++) {
                        if (is_same_gpu(&to->v[i], &gpu)) {
                                to->n = first; /* as the driver: a repeated GPU hides all */
                                return;
                        }
                }
                gpu_list_push(to, &gpu);
        }
}

char *gpu_list_word(const struct strv *env, uint32_t gpu)
{
        const char *visible = strv_env_get(env, "CUDA_VISIBLE_DEVICES");
        CLEANUP(free_textp) char *words = xstrdup(visible ? visible : "");
        char *rest = words, *word = NULL;

        if (gpu < GPU_BY_PLACE)
                return xasprintf("%u", gpu);
        /* The number counts the words. A shorter list leaves no word. */
        for (uint32_t i = GPU_BY_PLACE; i <= gpu; i++)
                word = next_gpu_word(&rest);
        return xstrdup(word ? word : "");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bind_policy: what --bind says, as a struct
 *
 * Pure. The head checks the text with it, the agent obeys it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/cpu_mask.h"

#define BIND_WORDS "auto|none|numa|socket|core:N|exclusive|list:CPUS[;CPUS]..."

enum bind_kind {
        BIND_AUTO, /* at the GPUs, where that is certain */
        BIND_NO,
        BIND_NUMA,
        BIND_SOCKET,
        BIND_CORES,     /* so many cores for each rank */
        BIND_EXCLUSIVE, /* all cores, divided between the ranks */
        BIND_LIST,
};

enum { BIND_TEXT_MAX = 64 << 10 };

struct bind_policy {
        enum bind_kind kind;
        uint32_t cores;         /* BIND_CORES */
        struct cpu_mask *masks; /* BIND_LIST: by local rank, and again from the first on */
        size_t n_masks;
};

/* Reads the text of --bind; words of other launchers for the same things are fine. "" is none. 0,
 * or -EINVAL with @err. */
int bind_policy_parse(struct bind_policy *p, const char *text, struct error *err);
void bind_policy_finish(struct bind_policy *p);

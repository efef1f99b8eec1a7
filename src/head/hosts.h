/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts: the list of machines of a launch, in the order of their node ranks
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"

/* A list of device or rank numbers, ordered as given. */
struct intlist {
        int *v;
        size_t n;
};

struct host {
        char *name; /* as written: alias for ssh */
        char *user; /* NULL = not given */
        char *addr; /* NULL; numeric or name: the data address, addr= */
        char *iface, *numa, *tags;
        int port;            /* 0 = not given */
        int slots;           /* 0 = not given: what the node has */
        int max_slots;       /* 0 = not given */
        bool has_gpus;       /* gpus= was given */
        struct intlist gpus; /* device indices, gpus= or a filter */
        bool filtered;       /* --include/--exclude narrowed slots or gpus by index: see @keep */
        struct intlist keep; /* slot indices that the filters left, when @filtered */
        struct intlist drop; /* slot indices excluded by index (needs the inventory) */
        bool local;          /* localhost: no ssh */
        char *file;          /* where it came from: "hosts.txt", "-w" */
        int line, col;
};

struct hosts {
        struct host *v;
        size_t n;
};

#define HOSTS_INIT                                                                                 \
        {                                                                                          \
                0                                                                                  \
        }

void hosts_finish(struct hosts *h);
struct host *hosts_add(struct hosts *h); /* a zeroed one at the end; valid until the next add */
const struct host *hosts_find(const struct hosts *h, const char *name);
/* "gpu[001-004,070]" of the given host indices, for messages; malloc'ed. */
char *hosts_fold(const struct hosts *h, const size_t *index, size_t n);
void intlist_add(struct intlist *l, int v);
bool intlist_has(const struct intlist *l, int v);
void intlist_finish(struct intlist *l);

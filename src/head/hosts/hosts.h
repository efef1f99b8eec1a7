/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts: the list of machines of a launch, in the order of their node ranks
 *
 * Filled by head/hosts/hostfile.h, narrowed by head/hosts/filter.h, read by everyone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/intlist.h"
#include "base/strv.h"

struct host {
        char *name; /* as written: alias for ssh */
        char *user; /* NULL = not given */
        char *addr; /* NULL; numeric or name: the data address, addr= */
        char *iface, *numa, *tags;
        int port;      /* 0 = not given */
        int slots;     /* 0 = not given: what the node has */
        int max_slots; /* 0 = not given */
        /* slots=, max_slots= or host:N was written, or "auto"; else @slots counts repeated lines.
         */
        bool slots_given;
        bool has_gpus;       /* gpus= was given */
        struct intlist gpus; /* device indices, gpus= or a filter */
        bool filtered;       /* --include/--exclude narrowed slots or gpus by index: see @keep */
        struct intlist keep; /* slot indices that the filters left, when @filtered */
        struct intlist drop; /* slot indices excluded by index (needs the inventory) */
        bool spare;          /* takes the place of a node that is lost; has no ranks before */
        bool local;          /* localhost, 127.0.0.1 or ::1, without port and user: no ssh */
        char *file;          /* where it came from: "hosts.txt", "-w" */
        int line, col;       /* 1-based, of the first line that names it */
};

struct host_index;

struct hosts {
        struct host *v;
        size_t n;
        struct host_index *index; /* positions by name, private to hosts.c */
};

enum {
        HOSTS_MAX = 65536, /* in one launch */
        SLOTS_MAX = 1024,  /* of one host */
};

#define HOSTS_INIT                                                                                 \
        {                                                                                          \
                0                                                                                  \
        }

void hosts_finish(struct hosts *h);
struct host *hosts_add(struct hosts *h); /* a zeroed one at the end; valid until the next add */
/* By name, in any case of letters; the first one, NULL = none. Constant time; not for two threads
 * at once (the index grows). Names must not change after the first look-up. */
const struct host *hosts_find(const struct hosts *h, const char *name);
/* Drops every host whose keep[i] is false; the others stay in order. */
void hosts_retain(struct hosts *h, const bool *keep);
/* "gpu[001-004,070]" of the given host indices, for messages; malloc'ed. Each name once, sorted
 * within a range; what it gives can be used with -w. */
char *hosts_fold(const struct hosts *h, const size_t *index, size_t n);

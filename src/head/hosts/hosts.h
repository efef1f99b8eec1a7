/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts: the list of machines of a launch, in the order of their node ranks
 *
 * Filled by head/hosts/hostfile.h, narrowed by head/hosts/filter.h, then only read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/intlist.h"
#include "base/strv.h"

/* Where a host stands in the network, for --order topology. Texts are owned; NULL = not known. */
struct host_site {
        char *domain;   /* of NVLink, "CLUSTER.CLIQUE", as the driver tells it */
        char *group;    /* block, or else leaf switch */
        char *path;     /* switches from the top, "core/leaf1" */
        int number;     /* of the leaf switch, counted through the network; -1 = not known */
        size_t turn;    /* 1 + its place in the order of the job; 0 = that of the list */
        bool asked;     /* its agent has told .domain and .path, or has not answered */
        bool stands_by; /* is spare by the host list, and not chosen for ranks */
};

struct host {
        char *name;    /* as written: alias for ssh */
        char *user;    /* NULL = not given */
        char *addr;    /* NULL; numeric or name: the data address, addr= */
        char *iface;   /* NULL; iface= */
        int port;      /* 0 = not given */
        int slots;     /* 0 = not given: as many as the node has */
        int max_slots; /* 0 = not given */
        /* slots=, max_slots= or host:N is given, or "auto"; else @slots counts repeated lines. */
        bool slots_given;
        bool has_gpus;          /* gpus= was given */
        struct intlist gpus;    /* device indices, gpus= or a filter */
        bool filtered;          /* --include/--exclude narrowed slots or gpus by index: see @keep */
        struct intlist keep;    /* slot indices left by the filters, when @filtered */
        struct intlist drop;    /* slot indices excluded by index (needs the inventory) */
        bool spare;             /* has no ranks until a node is lost */
        size_t place;           /* 1 + the failed host in whose place it runs; 0 = its own place */
        bool local;             /* this machine, without port and user: no ssh */
        char *file;             /* "hosts.txt", "<stdin>", "-w" */
        int line, col;          /* 1-based, of the first line with this name */
        struct host_site *site; /* NULL = not asked for */
};

struct name_entry;

struct hosts {
        struct host *v;
        size_t n;
        /* Positions by name, private to hosts.c: hosts [0, indexed) have an entry. */
        struct name_entry *by_name;
        size_t indexed;
        /* Of an allocation (head/alloc/alloc.h), else NULL: "Slurm job 4711", and the variable that
         * gives the slots, "" = none. */
        char *source, *slots_source;
        /* Hosts that stand by unconnected. The first @stood_in have been exchanged for hosts of the
         * list, which failed. NULL = none. */
        struct hosts *aside;
        size_t stood_in;
};

enum {
        HOSTS_MAX = 65536, /* in a launch */
        SLOTS_MAX = 1024,  /* of a host */
};

#define HOSTS_INIT                                                                                 \
        {                                                                                          \
                0                                                                                  \
        }

void host_finish(struct host *host);
void hosts_finish(struct hosts *h);
/* Appends a zeroed host; the pointer is valid until the next add. */
struct host *hosts_add(struct hosts *h);
/* Appends a deep copy of @like; valid until the next add. */
struct host *hosts_add_like(struct hosts *h, const struct host *like);
/* Finds the first host named @name, in any case of letters; NULL = none. Constant time; not for
 * two threads at once (the index grows). Names must not change after the first look-up. */
struct host *hosts_find(struct hosts *h, const char *name);
/* Returns the site of a host, new ones with nothing known. */
struct host_site *host_site_of(struct host *host);
/* Returns what a segment lies within, lent: the NVLink domain, else the block or leaf switch.
 * NULL = not known. */
const char *host_domain(const struct host *host);
/* Whether both are in one domain, which is known. */
bool host_shares_domain(const struct host *a, const struct host *b);
/* Puts the hosts in the order of the indices. */
void hosts_arrange(struct hosts *h, const size_t *order);
/* Drops every host with a false keep[i]; the others stay in order. */
void hosts_retain(struct hosts *h, const bool *keep);
/* Moves every host with a true out[i] to those that stand by; the others stay in order. */
void hosts_put_aside(struct hosts *h, const bool *out);
/* Returns how many stand by. */
size_t hosts_aside(const struct hosts *h);
/* Drops the host @name from those that stand by. False: it is none of them. */
bool hosts_drop_aside(struct hosts *h, const char *name);
/* Exchanges host @i for the first host that stands by and has as many slots, of the same domain if
 * there is one, and returns the host
 * that has left the list, valid until hosts_finish(). NULL: there is none. */
const struct host *hosts_stand_in(struct hosts *h, size_t i);
/* Writes the hosts of the given indices as "gpu[001-004,070]", for messages and as an argument of
 * -w: each name once, sorted within a range. malloc'ed. */
char *hosts_fold(const struct hosts *h, const size_t *index, size_t n);
/* Writes where the hosts of the given indices stand: "hosts.txt:1-4,7, more.txt:2". Options and
 * variables have no lines: "-w". malloc'ed. */
char *hosts_places(const struct hosts *h, const size_t *index, size_t n);
/* Writes the hosts with their places, "gpu[001-064]  (hosts.txt:1-64)"; without places when an
 * option names them all. malloc'ed. */
char *hosts_locate(const struct hosts *h, const size_t *index, size_t n);

/* Groups of hosts with equal failures, or equal in another respect, for a message or row each.
 * Groups and the hosts in a group keep the order in which they are added. The search is linear:
 * hosts fail in a few ways. */

/* At least one host. */
struct host_group {
        size_t *hosts, n; /* indices into struct hosts */
};

struct host_groups {
        struct host_group *v;
        size_t n;
};

/* Whether hosts @a and @b belong to the same group. */
typedef bool (*host_equal)(const void *ctx, size_t a, size_t b);

/* Adds @host to the group whose first host is @equal to it, else to a new group. */
void host_groups_add(struct host_groups *g, size_t host, host_equal equal, const void *ctx);
void host_groups_finish(struct host_groups *g);

/* Appends @host. */
void host_group_add(struct host_group *g, size_t host);
void host_group_finish(struct host_group *g);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status_msg: the state of an agent's ranks at one moment: joined or not, and their open requests
 *
 * Sent only when the head asks (STATUS_REQUEST carries a number that the STATUS repeats), so
 * nothing is spent while all is well. Times are ages in milliseconds, so no clocks are compared.
 *
 * INSPECT asks for what costs more, for `hnlaunch why`: the processor time of a second, or the
 * stacks of some ranks. Each rank is answered by an INSPECTED of its own as soon as it is known. Or
 * it asks what NCCL's RAS says, twice, answered by a RAS each; or for dumps of PyTorch's flight
 * recorder, answered by DUMPs. Of a rank that has crashed it asks for the stack in its core
 * file. After a failure it asks for facts of the node, answered by FACTS.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "wire/frame.h"

#define STATUS_NEVER UINT32_MAX /* age of an event that has not happened */

/* A request without an answer yet. */
struct node_status_wait {
        char op[16];  /* "WAIT"; "" = there is none */
        char key[96]; /* the first key, printable, cut */
        uint32_t n_keys;
        uint32_t ms; /* age of the request */
};

enum { STATUS_PORTS = 4 };

struct node_status_rank {
        uint32_t rank, local_rank, pid;
        uint8_t state; /* the letter of /proc/pid/stat: R S D T Z; 0 = the process has ended */
        uint32_t started_ms;
        uint32_t said_ms; /* since libhnlaunch's last message to the store; NEVER = not joined */
        uint32_t seen_ms; /* since the last output, or command to the node's own endpoint */
        uint32_t cpu_percent;         /* of a core since the start */
        char channel[32];             /* kernel wait channel, "" = none or not readable */
        struct node_status_wait wait; /* through libhnlaunch */
        /* Local ports of the rank's connections to the TCP endpoint, on any node. */
        uint32_t ports[STATUS_PORTS], n_ports;
};

/* A connection to this agent's TCP endpoint. Only the node of the process knows the rank: the one
 * with @port in its list, on the node with address @addr. */
struct node_status_conn {
        char addr[64];
        uint32_t port;
        uint32_t seen_ms; /* since the last command */
        struct node_status_wait wait;
};

/* A process that a rank has started, with another MASTER_PORT in its environment than the ranks: it
 * looks for a store of its own, which may not exist. */
struct node_status_other {
        uint32_t pid; /* 0 = none was found, or looked for */
        uint32_t rank, port;
        char name[16]; /* of the program, as in /proc/pid/comm */
};

struct node_status {
        uint32_t number;
        uint32_t rejected; /* rejected connections to the TCP endpoint */
        struct node_status_rank *ranks;
        uint32_t n_ranks;
        struct node_status_conn *conns;
        uint32_t n_conns;
        struct node_status_other other; /* looked for while no rank of the node has joined */
};

enum inspect_what {
        INSPECT_CPU,    /* all ranks of the node, for a second */
        INSPECT_STACKS, /* the named ranks */
        INSPECT_RAS,    /* NCCL's RAS of the job, at its address on this node */
        INSPECT_FLIGHT, /* the flight recorders of the node, through their FIFOs */
        INSPECT_CORE,   /* the core file of a rank that has crashed, also after GONE */
        INSPECT_FACTS,  /* what the node tells of a failure, also after GONE */
        INSPECT_WHATS,
};

struct inspect_order {
        uint32_t number;   /* for the answers */
        uint8_t what;      /* enum inspect_what */
        uint32_t limit_ms; /* of INSPECT_CORE: 0 = only where the file is; of INSPECT_FACTS: what is
                            * older does not count */
        uint32_t *ranks;   /* of INSPECT_STACKS, the most important first; of INSPECT_CORE; of
                            * INSPECT_RAS: of one world, none = of all */
        uint32_t n_ranks;
        /* Of INSPECT_CORE: the rank's process, and whether the kernel says that it dumped core. */
        uint32_t pid;
        bool dumped;
        /* Of INSPECT_FACTS: what could not be written, "" = nothing; the GPUs of the ranks. */
        char path[256];
        uint32_t *gpus;
        uint32_t n_gpus;
};

enum { INSPECT_STACK_MAX = 32 << 10 };

/* The rank is Python, and another tool has shown its frames of C. */
#define INSPECT_NO_PYTHON "no frames of Python, not installed: py-spy"

struct inspected {
        uint32_t number;
        uint32_t left; /* answers to this order that are still to come */
        uint32_t rank; /* UINT32_MAX: none, the order is done */
        uint32_t pid;  /* of the process that was looked at: the rank's, or the one it waits for */
        uint8_t state; /* its letter, as in struct node_status_rank; 0 = it has ended */
        uint32_t cpu_permille; /* of a core, in that second; STATUS_NEVER = not measured */
        uint32_t io_kib;       /* read and written in that second, by system calls and to disks */
        char name[16];         /* of its program, as in /proc/pid/comm */
        char channel[32];
        char blocked[160]; /* by which file: "read /tmp/fifo"; "" = by none, or not known.
                            * Of INSPECT_CORE: the core file, "" = there is none */
        char source[16];   /* the tool that printed the stack: "py-spy"; "" = there is no stack */
        char problem[200]; /* why there is none (of INSPECT_CORE: no file), or INSPECT_NO_PYTHON */
        char *stack;
};

/* What a node tells of a failure; what it does not know is 0 or "". */
struct node_facts {
        uint32_t number; /* of the INSPECT */
        /* Of the file system of the path: f_type and f_fsid of statfs(2). Of a local type the id
         * has that of the machine in it: disks made from one image have the same f_fsid. */
        uint64_t fs_type, fs_id;
        char gpu[120];  /* "Xid 79 (fallen off the bus) of GPU 0000:18:00"; "" = none is broken */
        char held[120]; /* "71680 MiB of GPU 0, of rank 3 (pid 4711)", which has ended; "" = GPUs
                         * hold no memory of the last attempt */
};

/* Whether a file system of this type is of one machine. FUSE and what is not listed may be a
 * network's. */
bool node_facts_is_local(uint64_t type);

void node_facts_encode(struct buf *b, const struct node_facts *m);
int node_facts_decode(struct node_facts *m, const struct frame *f, struct error *err);

enum { RAS_TEXT_MAX = 512 << 10 };

/* What NCCL's RAS has answered. Neither a problem nor a text: there is none on this node. */
struct ras_reply {
        uint32_t number; /* of the INSPECT */
        uint8_t look;    /* 0, and 1 some time later; after a failure of the first none follows */
        char problem[200];
        char *text; /* JSON, or what older releases print; NULL = none */
};

void ras_reply_encode(struct buf *b, const struct ras_reply *m);
int ras_reply_decode(struct ras_reply *m, const struct frame *f, struct error *err);
void ras_reply_finish(struct ras_reply *m);

void inspect_order_encode(struct buf *b, const struct inspect_order *m);
int inspect_order_decode(struct inspect_order *m, const struct frame *f, struct error *err);
void inspect_order_finish(struct inspect_order *m);
void inspected_encode(struct buf *b, const struct inspected *m);
int inspected_decode(struct inspected *m, const struct frame *f, struct error *err);
void inspected_finish(struct inspected *m);

void node_status_encode(struct buf *b, const struct node_status *m);
int node_status_decode(struct node_status *m, const struct frame *f, struct error *err);
void node_status_finish(struct node_status *m);

/* --- SAMPLE, SAMPLED -------------------------------------------------------------------------- */

/* What a node and its ranks do, about once a second, while the head has ordered it with MSG_SAMPLE:
 * a number of milliseconds between two samples, 0 = no more. Numbers have as many bytes as they
 * need: a sample of a node with eight ranks and eight GPUs has at most 210 bytes. */

struct sample_rank {
        uint64_t rank;
        uint8_t state;        /* the letter of /proc/pid/stat: R S D T Z; 0 = the rank has ended */
        uint64_t cpu_percent; /* of a core, of the rank's session, since the sample before */
        uint64_t memory_mib;  /* resident, of the session; a shared page counts in each process */
        uint64_t quiet_ds;    /* tenths of seconds since its last output, and 1; 0 = none yet */
        uint8_t wait_op;      /* enum store_op of the oldest request without an answer; 0 = none */
        uint64_t wait_ds;     /* its age in tenths of seconds */
        /* Percent of the time since the sample before in which it did not wait for others, with
         * SAMPLE_GUESSED if that is by what the kernel says of its process; SAMPLE_USE_UNKNOWN =
         * there were no looks. */
        uint8_t busy;
};

/* The driver does not tell, as for a GPU that is divided (MIG): one byte, and no percentage. */
enum { SAMPLE_USE_UNKNOWN = 127, SAMPLE_GUESSED = 128 };

/* In the order of the driver; the first has index 0. A number that the driver does not tell is 0,
 * but use_percent is SAMPLE_USE_UNKNOWN then. */
struct sample_gpu {
        uint64_t use_percent, memory_mib, memory_total_gib, celsius, watts;
};

struct sample {
        uint64_t mono_ms;      /* the node's CLOCK_MONOTONIC */
        uint64_t interval_ms;  /* since the sample before; 0 = this is the first, without rates */
        uint64_t cpu_permille; /* of all cores of the machine */
        uint64_t memory_mib;   /* of the machine, in use: its total less what is available */
        uint64_t in_kib, out_kib;  /* per second, of all network interfaces but loopback */
        struct sample_rank *ranks; /* in the order of LAUNCH */
        uint32_t n_ranks;
        struct sample_gpu *gpus;
        uint32_t n_gpus;
};

void sample_encode(struct buf *b, const struct sample *m);
int sample_decode(struct sample *m, const struct frame *f, struct error *err);
void sample_finish(struct sample *m);

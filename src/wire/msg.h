/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Msg: the messages between head and agent
 *
 * The agent greets with MSG_MAGIC, then both sides exchange frames. Every message is a struct with
 * an encoder (appends a whole frame to a buffer) and a decoder (reads a frame's body; -EPROTO on
 * malformed bytes). Decoded structs own their strings and arrays; x_finish() frees them.
 * docs/protocol.md draws the layouts. A release that changes a layout has a new MSG_VERSION.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"
#include "wire/msg_type.h"
#include "wire/node_map.h"
#include "wire/port_name.h"

#define MSG_VERSION    8
#define MSG_NO_RANK    UINT32_MAX
#define MSG_EVERY_RANK (UINT32_MAX - 1)   /* all ranks of the node */
#define MSG_MAGIC      "HNLAUNCH-AGENT\n" /* found by the head among the other output of a login */

enum {
        MSG_STDOUT = 1, /* stream numbers */
        MSG_STDERR = 2,
        /* Output of one stream under way without a MSG_CREDIT. */
        MSG_WINDOW = 512 << 10,
        MSG_LOST_GRACE_MS = 2000,  /* from TERM to KILL by an agent that has lost the head */
        MSG_OUTPUT_MAX = 64 << 10, /* bytes of a MSG_OUTPUT */
        MSG_MAX_WORLDS = 4096,
        MSG_MAX_STRINGS = 1 << 20, /* entries of argv or the environment; Linux executes fewer */
        MSG_MAX_STRING = 4 << 20,  /* bytes of one entry */
        MSG_DUMP_PART = 64 << 10,  /* bytes of each MSG_DUMP of a file but the last */
        MSG_MAX_DUMP = 32 << 20,   /* bytes of one dump */
        MSG_MAX_DUMPS = 128,       /* dumps of a node in an attempt */
};

/* --- HELLO ------------------------------------------------------------------------------------ */

struct msg_addr {
        char iface[16];
        char addr[64];   /* numeric, no scope */
        uint32_t prefix; /* bits of the netmask */
};

struct msg_gpu {
        uint32_t index;
        char uuid[48]; /* "" when the driver does not tell */
        char name[64];
        char address[24]; /* of PCI, "" = not known; of the agent alone, not sent */
};

/* What RDMA needs of the node. */
struct msg_locking {
        uint64_t memlock;    /* RLIMIT_MEMLOCK, hard, in bytes; UINT64_MAX = unlimited */
        uint32_t infiniband; /* devices of InfiniBand or RoCE */
};

struct hello {
        uint32_t version; /* MSG_VERSION of the agent */
        uint32_t pid, uid, cores;
        char arch[16], host[256];
        /* Boot and network namespace, equal on two nodes of the same machine; "" = unknown. */
        char machine[80];
        uint64_t memory;    /* bytes of RAM */
        uint64_t nofile;    /* RLIMIT_NOFILE, hard */
        uint64_t mono_ns;   /* the agent's CLOCK_MONOTONIC at the time of writing */
        uint32_t free_port; /* a TCP port held bound by the agent for MASTER_PORT, 0 = none */
        char ssh_addr[64];  /* this node's address in $SSH_CONNECTION, "" = none */
        struct msg_locking locking;
        struct msg_gpu *gpus, *hidden; /* @hidden: left out by CUDA_VISIBLE_DEVICES there */
        uint32_t n_gpus, n_hidden;
        bool gpus_chosen;       /* CUDA_VISIBLE_DEVICES is set there */
        struct msg_addr *addrs; /* up, not loopback, kernel order */
        uint32_t n_addrs;
};

void hello_encode(struct buf *b, const struct hello *m);
int hello_decode(struct hello *m, const struct frame *f, struct error *err);
void hello_finish(struct hello *m);

/* --- COMMON and LAUNCH ------------------------------------------------------------------------ */

/* One order in two messages: COMMON has the large part, equal on every node, so that in a tree the
 * head sends it once and parents repeat it (TUNNEL_COMMON). */

struct launch_rank {
        uint32_t rank, local_rank;
        uint32_t *gpus; /* device indices this rank may use; empty = not assigned */
        uint32_t n_gpus;
        uint32_t program; /* index into launch_order.programs */
};

/* A TCP port with a name: HN_PORT_NAME. */
struct launch_port {
        char name[PORT_NAME_MAX + 1];
        uint32_t number;
};

/* The ports of the instance of a role that a rank is, or belongs to. */
struct launch_rank_ports {
        struct launch_port *v;
        uint32_t n;
};

/* What the ranks of all nodes are told about rank 0's node. */
struct launch_first_node {
        char addr[64];             /* HN_MASTER_ADDR: on the network of the ranks; "" = not known */
        struct launch_port *ports; /* of that node, the same in all ranks */
        uint32_t n_ports;
};

enum { LOCAL_RANK_OPTION_MAX = 64 };

/* How the arguments of ranks differ from argv, see wire/env/subst.h. */
struct launch_arguments {
        bool subst;                                 /* place-holders are replaced */
        char local_rank[LOCAL_RANK_OPTION_MAX + 1]; /* an option to append with =N; "" = none */
        struct strv wrap; /* words in front of argv (--wrap), always with place-holders replaced */
};

/* How a role becomes ready (--ready). */
enum ready_kind {
        READY_START, /* with the start of its ranks */
        READY_TCP,   /* the agent asks a port of the rank */
        READY_HTTP,
        READY_FILE, /* ... or for a file */
        READY_KEY,  /* the head finds out itself */
        READY_LINE,
};

enum { READY_PATH_MAX = 4096 };

/* What the agent asks of the ranks of a program until each is ready, see agent/ready. */
struct launch_ready {
        uint8_t kind;       /* enum ready_kind; up to READY_FILE */
        bool is_first_only; /* of rank 0 of the world only */
        char *port; /* a number, or the name of a port of the rank: HN_PORT_NAME; "" = none */
        char *path; /* of HTTP, or of a file; "" = none */
};

/* A program of the job, which some or all ranks run. */
struct launch_program {
        struct strv argv; /* argv[0] is looked up in the worker's PATH without a slash */
        struct strv env;  /* NAME=VALUE laid over launch_order.env */
        char *cwd;        /* "" = launch_order.cwd */
        char *role;       /* "" = none */
        struct launch_arguments arguments;
        struct launch_ready ready;
};

/* The way a node's processes are kept together, see agent/contain/contain.h. */
enum contain_level { CONTAIN_AUTO, CONTAIN_TREE, CONTAIN_CGROUP, CONTAIN_PIDNS };

/* The launcher whose variables ranks get on top of the usual ones, see wire/env/compat_env.h. */
enum compat_family {
        COMPAT_NONE,
        COMPAT_OMPI,
        COMPAT_SLURM,
        COMPAT_MPICH,
        COMPAT_HOROVOD,
        COMPAT_DEEPSPEED,
        COMPAT_FAMILIES
};

struct compat_node {
        char *name;
        uint32_t n_ranks;
};

struct launch_compat {
        uint8_t family;            /* enum compat_family */
        struct compat_node *nodes; /* by node rank; none where the family does not need them */
        uint32_t n_nodes;
};

/* How MPI programs find each other. */
enum mpi_kind {
        MPI_AUTO, /* PMI, of the version that the program asks for */
        MPI_NONE,
        MPI_PMI1,
        MPI_PMI2,
        MPI_PMIX,     /* the node's own libpmix: Open MPI */
        MPI_PMI_PORT, /* PMI-1 at a port of the node, not over an inherited descriptor */
        MPI_KINDS
};

struct mpi_order {
        uint8_t kind;        /* enum mpi_kind */
        struct node_map map; /* of all ranks; empty with MPI_NONE */
};

/* The rank that has a terminal in place of its pipes (--pty), MSG_NO_RANK = none. */
struct launch_terminal {
        uint32_t rank, rows, columns;
        char term[64]; /* TERM of the rank; empty in RESIZE */
};

/* The world of an order: its ranks meet each other, with the numbers 0 to world_size - 1. All other
 * messages between head and agents give a rank the number that is unique in the job. */
struct launch_world {
        uint32_t number; /* 0 in a job without roles */
        uint32_t first;  /* number in the job of rank 0 of the world */
        uint32_t index;  /* of the replica of a role */
};

enum { WORLD_NAME_MAX = 80 };

/* The node's ranks of other worlds that divide its cores with those of the order. */
struct launch_other {
        uint32_t rank; /* in the job */
        uint32_t program;
        uint32_t *gpus;
        uint32_t n_gpus;
};
struct launch_others {
        struct launch_other *v; /* ordered by rank; with --bind exclusive only */
        uint32_t n;
};

struct launch_order {
        struct { /* of COMMON */
                char run_id[64];
                struct launch_world world;
                uint32_t world_size, num_nodes, restart, max_restarts;
                uint32_t grace_ms;
                uint32_t window; /* output of a stream under way without a CREDIT; 0 = MSG_WINDOW */
                uint8_t contain; /* enum contain_level wanted */
                bool gpu_visibility_own; /* CUDA_VISIBLE_DEVICES = own GPUs instead of the node's */
                char *bind;              /* --bind, see wire/bind_policy.h; "" = none */
                struct strv env;         /* NAME=VALUE laid over the node's login environment */
                struct strv unset;       /* names removed first; a trailing * is a prefix */
                /* The rank with MSG_STDIN, MSG_EVERY_RANK or MSG_NO_RANK; other ranks read
                 * /dev/null. */
                uint32_t stdin_rank;
                struct launch_terminal terminal;
                struct launch_compat compat;
                struct launch_first_node first_node;
                struct mpi_order mpi;
                struct launch_program *programs; /* one world for all */
                uint32_t n_programs;
        };
        struct { /* of LAUNCH */
                uint32_t node_rank;
                char master_addr[64];
                uint32_t master_port;
                uint32_t silence_ms; /* the head is lost after so long without a word; 0 = never */
                bool agent_store;    /* the store is served by an agent, not by a worker */
                bool per_node;       /* the ranks start ranks of their own (--per-node) */
                char host[256];      /* the node's name in the list of hosts */
                char iface[16];      /* this node's interface towards MASTER_ADDR, "" = not known */
                bool set_visible;    /* set CUDA_VISIBLE_DEVICES: a part of the GPUs */
                bool keep_dumps;     /* send the content of dumps, too */
                bool more_orders;    /* of other worlds follow: the attempt does not end before */
                bool near_nic;       /* --nic near */
                char *cwd;           /* "" = the login directory, or the container's */
                bool cwd_optional;   /* if it does not exist: as "" */
                struct strv names;   /* by program: replaces argv[0]; "" or missing = argv[0] */
                struct launch_rank *ranks; /* ordered by local rank */
                uint32_t n_ranks;
                struct launch_rank_ports *rank_ports; /* in this order; none = no rank has any */
                uint32_t n_rank_ports;
                struct launch_others others;
        };
};

/* Each encoder writes one half of @m. The decoder fills the half that the type of @f names; before,
 * @m is zeroed or has the other half. A failed decode finishes @m, so another launch_order_finish()
 * is harmless. */
void common_encode(struct buf *b, const struct launch_order *m);
void launch_order_encode(struct buf *b, const struct launch_order *m);
int launch_order_decode(struct launch_order *m, const struct frame *f, struct error *err);
void launch_order_finish(struct launch_order *m);
/* Writes the name by which MPI knows the world: the run, and behind it the number of a world other
 * than 0. */
void launch_order_world_name(const struct launch_order *m, char to[WORLD_NAME_MAX]);
/* Returns the ports of @r, one of m->ranks; lent. NULL = @m has none. */
const struct launch_rank_ports *launch_order_rank_ports(const struct launch_order *m,
                                                        const struct launch_rank *r);
/* Returns the terminal of the rank with this number in the job; lent. NULL = @m gives it pipes. */
const struct launch_terminal *launch_order_terminal(const struct launch_order *m, uint32_t rank);
void launch_compat_finish(struct launch_compat *m);
void launch_order_drop_rank_ports(struct launch_order *m);
void launch_order_drop_programs(struct launch_order *m);

/* --- WORLD ------------------------------------------------------------------------------------ */

/* The messages about the store of a world other than 0 travel inside of a WORLD. What is appended
 * to @b between world_begin() and world_end() is one frame for @world; for world 0 nothing is added
 * to that frame. @more bytes of the frame follow, but not through @b. */
size_t world_begin(struct buf *b, uint32_t world);
void world_end(struct buf *b, size_t mark, size_t more);
/* Takes the frame out of @f, a WORLD. The result is lent by @f. 0, or -EPROTO with @err. */
int world_decode(uint32_t *ret_world, struct frame *ret_inner, const struct frame *f,
                 struct error *err);

/* --- short messages --------------------------------------------------------------------------- */

enum refusal {
        REFUSED_EXEC = 1,  /* the program could not be executed: error is exec's errno */
        REFUSED_CWD = 2,   /* the working directory does not exist */
        REFUSED_FORK = 3,  /* out of processes, memory, descriptors */
        REFUSED_ORDER = 4, /* the order is invalid */
        REFUSED_PMIX = 5,  /* the node has no libpmix, or it does not serve */
};

/* What a rank did with PMI or PMIx, which MPI_Init() begins and MPI_Finalize() finalizes. */
enum rank_mpi {
        RANK_MPI_UNUSED,
        RANK_MPI_UNFINALIZED,
        RANK_MPI_FINALIZED,
        RANK_MPI_UNUSED_OPEN_MPI, /* but it had loaded the library of Open MPI */
        RANK_MPI_UNUSED_MPICH,    /* or one of MPICH's ABI */
        RANK_MPI_ALONE_OPEN_MPI,  /* but its MPI_Init() had begun: a world of one */
        RANK_MPI_ALONE_MPICH,     /* or MPICH's */
        RANK_MPI_STATES,
};

struct started {
        uint32_t rank, pid;
};
struct refused {
        uint32_t rank, why, error; /* enum refusal, errno */
        char text[512];            /* the sentence, with the program or the folder */
};
struct exited {
        uint32_t rank, pid, status; /* as from waitpid() */
        uint64_t mono_ns;           /* when the agent reaped the process, its CLOCK_MONOTONIC */
        uint8_t stopped;            /* the agent had sent a stop signal before */
        uint8_t killed;             /* ... and had to use KILL */
        /* Where the out-of-memory killer was counted since the ranks started; "" = nowhere. */
        char oom[160];
        uint64_t oom_before, oom_after;
        uint8_t mpi; /* enum rank_mpi */
};
struct output {
        uint32_t rank;
        uint8_t stream;
        const unsigned char *data; /* lent by the frame */
        size_t len;                /* 0 = end of file */
};
/* A part of a dump of PyTorch's flight recorder. Dumps are sent in order, one after the other:
 * whole parts of MSG_DUMP_PART, the last one shorter. A dump that is not kept, or is too large, is
 * one message without data at 0. */
struct dump {
        uint32_t number; /* of the INSPECT; 0 = at the end of the attempt, after all EXITED */
        /* Answers to the INSPECT that are still to come, this one not counted with its last part.
         */
        uint32_t left;
        uint32_t rank;             /* in PyTorch; UINT32_MAX: the node has no recorder to INSPECT */
        char problem[120];         /* of an INSPECT: why there is no dump */
        uint64_t size, at;         /* bytes of the file, and of those before @data */
        const unsigned char *data; /* lent by the frame */
        size_t len;
};
struct nccl_report {
        uint32_t version; /* NCCL_VERSION_CODE: 22809 = 2.28.9 */
        char path[256];   /* of the library, as the rank sees it */
};
struct credit {
        uint32_t rank;
        uint8_t stream;
        uint32_t bytes;
};
/* A signal for the ranks @first to @first + @n - 1 of the job. */
struct ranks_signal {
        uint32_t signo, first, n;
        uint8_t ends; /* an order to end: these ranks count as stopped */
};
struct ping {
        uint64_t head_ns;  /* echoed; 0 = the head suspends on purpose: ignore its silence */
        uint64_t agent_ns; /* filled by the agent in PONG */
};
struct logline {
        uint8_t level; /* enum log_level of base/log.h */
        uint32_t id;   /* number of a warning, for hnlaunch explain; 0 = none */
        char text[512];
};

void launch_terminal_encode(struct buf *b, const struct launch_terminal *m);
int launch_terminal_decode(struct launch_terminal *m, const struct frame *f, struct error *err);
void started_encode(struct buf *b, const struct started *m);
int started_decode(struct started *m, const struct frame *f, struct error *err);
void refused_encode(struct buf *b, const struct refused *m);
int refused_decode(struct refused *m, const struct frame *f, struct error *err);
void exited_encode(struct buf *b, const struct exited *m);
int exited_decode(struct exited *m, const struct frame *f, struct error *err);
void output_encode(struct buf *b, const struct output *m);
/* The same for bytes read directly into @b. output_begin() writes @m without data and reserves @max
 * bytes (NULL: no memory); output_end() gets the number of bytes read, 0 = drop the message, not an
 * end of file. */
void *output_begin(struct buf *b, const struct output *m, size_t max, size_t *ret_mark);
void output_end(struct buf *b, size_t mark, size_t len);
int output_decode(struct output *m, const struct frame *f, struct error *err);
void dump_encode(struct buf *b, const struct dump *m);
int dump_decode(struct dump *m, const struct frame *f, struct error *err);
void nccl_report_encode(struct buf *b, const struct nccl_report *m);
int nccl_report_decode(struct nccl_report *m, const struct frame *f, struct error *err);
void credit_encode(struct buf *b, const struct credit *m);
int credit_decode(struct credit *m, const struct frame *f, struct error *err);
void ranks_signal_encode(struct buf *b, const struct ranks_signal *m);
int ranks_signal_decode(struct ranks_signal *m, const struct frame *f, struct error *err);
void ping_encode(struct buf *b, uint8_t type, const struct ping *m); /* PING or PONG */
int ping_decode(struct ping *m, const struct frame *f, struct error *err);
void logline_encode(struct buf *b, const struct logline *m);
int logline_decode(struct logline *m, const struct frame *f, struct error *err);
void leaving_encode(struct buf *b, const char *why);
int leaving_decode(char why[128], const struct frame *f, struct error *err);
/* STDIN, or REPORT with the file's text. Decoded: data lent by the frame, stream 0. */
void rank_bytes_encode(struct buf *b, uint8_t type, uint32_t rank, const void *data, size_t len);
int rank_bytes_decode(struct output *m, const struct frame *f, struct error *err);
/* SIGNAL with the signal's number, STOP with the milliseconds of grace (0 = KILL at once),
 * STATUS_REQUEST with a number for the answer, PRUNE with the number of the child, TAKEN with the
 * bytes, PORTS with how many. */
void number_encode(struct buf *b, uint8_t type, uint32_t v);
int number_decode(uint32_t *ret, const struct frame *f, struct error *err);
void empty_encode(struct buf *b, uint8_t type);                 /* BYE, GONE, PING_REQUEST */
void store_encode(struct buf *b, const void *body, size_t len); /* MSG_STORE */
/* The same for a body whose last @more bytes are sent separately. */
void store_encode_head(struct buf *b, const void *head, size_t len, size_t more);

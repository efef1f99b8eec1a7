/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Msg_type: the messages between head and agent, one line each
 *
 * Number, name, direction, and the states of its node in which the head accepts a message from an
 * agent. The head's table of handlers (job_dispatch.c), the agent's (agent.c) and the tables of
 * docs/protocol.md are compared with this one by tests/lib/protocol.py. The structs and layouts are
 * in the headers msg, status_msg, bind_msg, check_msg, measure_msg, endpoint_msg, push_msg,
 * tree_msg, warm_msg and store_msg of this folder.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(NAME, number, HEAD, AGENT or BOTH may send it, states). NONE: what only the head sends, and
 * HELLO, which comes before all states. */
/* clang-format off */
#define MSG_TYPES(X)                                                                               \
        /* head -> agent */                                                                        \
        X(LAUNCH, 1, HEAD, NONE)           /* start these ranks; after a COMMON */                 \
        X(SIGNAL, 2, BOTH, ANY)            /* for all ranks; or one that the agent got */          \
        X(STOP, 3, HEAD, NONE)             /* TERM, grace, KILL */                                 \
        X(CREDIT, 4, BOTH, RUNNING)        /* so many bytes are written; of input: read */         \
        X(STDIN, 5, HEAD, NONE)            /* standard input of a rank, empty = its end */         \
        X(PING, 6, HEAD, NONE)             /* answered by PONG */                                  \
        X(BYE, 7, HEAD, NONE)              /* no more orders: leave once the node is empty */      \
        X(ENDPOINT, 8, HEAD, NONE)         /* open or close the TCP endpoint */                    \
        X(PROBE, 9, HEAD, NONE)            /* try to reach an endpoint; answered by PROBED */      \
        X(STATUS_REQUEST, 10, HEAD, NONE)  /* the state of the ranks: answered by STATUS */        \
        X(CHILD_AGENT, 11, HEAD, NONE)     /* open ssh to another node */                          \
        X(PRUNE, 12, HEAD, NONE)           /* end a child agent */                                 \
        X(OFFER, 13, HEAD, NONE)           /* a manifest; answered by WANT or PUSHED */            \
        X(PACK, 14, HEAD, NONE)            /* pieces of missing files; answered by TAKEN */        \
        X(LOOK, 15, HEAD, NONE)            /* as OFFER, for the manifest sent before */            \
        X(COMMON, 16, HEAD, NONE)          /* what the LAUNCHes of all nodes share */              \
        X(PORTS, 17, HEAD, NONE)           /* hold so many free ports until the ranks start */     \
        X(INSPECT, 18, HEAD, NONE)         /* look closer at ranks */                              \
        X(PULL, 19, HEAD, NONE)            /* send files of ended ranks */                         \
        X(SAMPLE, 20, HEAD, NONE)          /* milliseconds between SAMPLEDs, 0 = none */           \
        X(RECORD, 21, HEAD, NONE)          /* send so many pieces of the node's trace */           \
        X(RESIZE, 22, HEAD, NONE)          /* the terminal of a rank has another size */           \
        X(SIGNAL_RANKS, 23, HEAD, NONE)    /* for some ranks */                                    \
        X(BIND, 24, HEAD, NONE)            /* how ranks would be bound; answered by BOUND */       \
        X(CHECK, 25, HEAD, NONE)           /* tell the state of the node; answered by CHECKED */   \
        X(MEASURE, 26, HEAD, NONE)         /* try connections; answered by MEASURED */             \
        X(CHAIN, 72, HEAD, NONE)           /* take PACKs from a node, pass them on to one */       \
        X(WARM, 79, HEAD, NONE)            /* prepare interpreters; answered by WARMED */          \
        X(STAGE, 30, HEAD, NONE)           /* list staged folders; answered by STAGED */           \
        /* agent -> head */                                                                        \
        X(HELLO, 32, AGENT, NONE)          /* inventory: the first frame, and never again */       \
        X(STARTED, 33, AGENT, RUNNING)     /* a rank runs */                                       \
        X(REFUSED, 34, AGENT, RUNNING)     /* a rank or the whole order could not be started */    \
        X(OUTPUT, 35, AGENT, RUNNING)      /* of a rank's stdout or stderr, empty = its end */     \
        X(EXITED, 36, AGENT, RUNNING)      /* a rank's process ended */                            \
        X(GONE, 37, AGENT, RUNNING)        /* nothing of the job is left on this node */           \
        X(PONG, 38, AGENT, ANY)            /* of a PING */                                         \
        X(LOG, 39, AGENT, ANY)             /* a line for the head's log */                         \
        X(ENDPOINT_OPENED, 40, AGENT, ANY) /* its port */                                          \
        X(PROBED, 41, AGENT, ANY)          /* what became of each address */                       \
        X(STATUS, 42, AGENT, ANY)          /* answers STATUS_REQUEST */                            \
        X(LEAVING, 43, AGENT, ANY)         /* the agent was ended on its node, by whom */          \
        X(REPORT, 44, AGENT, RUNNING)      /* a TORCHELASTIC_ERROR_FILE; before EXITED */          \
        X(WANT, 45, AGENT, READY)          /* missing files, or the node that fetches them */      \
        X(TAKEN, 46, AGENT, ANY)           /* bytes of PACKs that are stored and passed on */      \
        X(PUSHED, 47, AGENT, ANY)          /* the files are in place, or the failure */            \
        X(PING_REQUEST, 48, AGENT, ANY)    /* for a PING of the head or of the parent */           \
        X(PORTS_HELD, 49, AGENT, ANY)      /* or why there are none */                             \
        X(INSPECTED, 50, AGENT, ANY)       /* one of the ranks */                                  \
        X(SAMPLED, 51, AGENT, ANY)         /* what the node and its ranks do */                    \
        X(RECORDED, 52, AGENT, ANY)        /* a piece of the trace */                              \
        X(RAS, 53, AGENT, ANY)             /* what NCCL's RAS says */                              \
        X(FACTS, 54, AGENT, ANY)           /* of a node, about a failure */                        \
        X(RANK_READY, 55, AGENT, RUNNING)  /* a rank answers, as its role's --ready wants */       \
        X(BOUND, 56, AGENT, ANY)           /* the processors of each rank, for a plan */           \
        X(CHECKED, 57, AGENT, ANY)         /* facts of the node */                                 \
        X(MEASURED, 58, AGENT, ANY)        /* connections to other nodes */                        \
        X(WARMED, 80, AGENT, ANY)          /* interpreters that are ready */                       \
        X(STAGED, 59, AGENT, ANY)          /* the folders of the node */                           \
        X(DUMP, 60, AGENT, ANY)            /* part of a dump of PyTorch's flight recorder */       \
        X(NCCL, 61, AGENT, RUNNING)        /* the NCCL of a rank; once for an attempt */           \
        X(PULLED, 62, AGENT, ANY)          /* a part of the files that PULL asks for */            \
        X(CHAINED, 63, AGENT, ANY)         /* the connections that CHAIN asks for */               \
        /* both ways */                                                                            \
        X(STORE, 64, BOTH, ANY)            /* opaque here, see wire/store_msg.h */                 \
        X(TUNNEL, 65, BOTH, ANY)           /* bytes to or from a child agent */                    \
        X(OWNERS_REQUEST, 66, BOTH, ANY)   /* who owns connections to the TCP endpoint */          \
        X(OWNERS, 67, BOTH, ANY)           /* from the node of the other ends, and back */         \
        X(WORLD, 68, BOTH, ANY)            /* one of the five above or 8, 9, 17 for a world */

/* clang-format on */

enum msg_type {
#define MSG_NUMBER(name, number, from, states) MSG_##name = (number),
        MSG_TYPES(MSG_NUMBER)
#undef MSG_NUMBER
};

enum msg_from { MSG_FROM_HEAD = 1, MSG_FROM_AGENT = 2, MSG_FROM_BOTH = 3 };

/* States of a node, as bits: from HELLO, and between two attempts; from LAUNCH; from GONE. */
enum msg_states {
        MSG_IN_NONE = 0,
        MSG_IN_READY = 1,
        MSG_IN_RUNNING = 2,
        MSG_IN_GONE = 4,
        MSG_IN_ANY = MSG_IN_READY | MSG_IN_RUNNING | MSG_IN_GONE,
};

/* Of a number without a message: "?", which neither side sends. */
const char *msg_name(uint8_t type); /* "LAUNCH" */
bool msg_comes_from(uint8_t type, enum msg_from from);
bool msg_comes_in(uint8_t type, enum msg_states state);

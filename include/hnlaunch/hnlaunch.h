/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch: the library of programs that hnlaunch starts
 *
 *     hn_init(NULL);
 *     printf("rank %d of %d\n", hn_rank(), hn_world_size());
 *     hn_barrier(hn_world(), HN_DEFAULT_TIMEOUT);
 *     hn_finalize();
 *
 * A worker learns its rank, shares small values with the other workers through a key-value store,
 * joins them in barriers and gathers, and hears from the launcher about failures. This is all
 * a program needs to start NCCL (hnlaunch/nccl.h), Gloo (hnlaunch/comm.h) or anything else.
 *
 * Results: HN_OK is 0, errors are negative; other results come last in the arguments and are
 * untouched when a call fails. After an error hn_last_error() returns a sentence about the failure.
 * The library never prints, never ends the process and starts no thread.
 *
 * Timeouts are in milliseconds: 0 tries once, HN_DEFAULT_TIMEOUT (-1) is 300 s, HN_NO_TIMEOUT (-2)
 * waits for ever. A wait ends with HN_ERR_TIMEOUT, and the sentence names the missing ranks; when a
 * worker or a node has failed the wait ends at once with HN_ERR_PEER.
 *
 * Threads: every call may be made from any thread at any time between hn_init() and hn_finalize(),
 * unless said otherwise; waits of one thread do not hold up other threads. Not for signal handlers.
 * A child process must exec before using the library.
 *
 * The same binary runs under torchrun (TORCHELASTIC_RUN_ID is set and HN_RANK is not) as a client
 * of the store in torchrun's agent (PyTorch 1.13 to 2.15). Different there: values and gathers have
 * at most 8,000,000 bytes; hn_store_num_keys() needs PyTorch 2.10; there are no news, so when a
 * worker fails a wait ends only when torchrun stops this one; hn_hostname_of() is the machine's own
 * name; hn_abort() and hn_report_error() leave their text for torchrun to show, and the caller of
 * hn_abort() has to exit.
 *
 * Link with -lhnlaunch (pkg-config hnlaunch). The library needs nothing but libc.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HN_API            __attribute__((visibility("default")))
#define HN_PRINTF(fmt, n) __attribute__((format(printf, fmt, n)))
#else
#define HN_API
#define HN_PRINTF(fmt, n)
#endif

/* A call defined in its header. */
#define HN_INLINE static inline

/* major * 10000 + minor * 100 + patch, compare with hn_version(). */
#define HN_VERSION_NUM 100

#define HN_DEFAULT_TIMEOUT ((int64_t)-1)
#define HN_NO_TIMEOUT      ((int64_t)-2)

/* --- status ----------------------------------------------------------------------------------- */

typedef enum hn_status {
        HN_OK = 0,
        HN_ERR_INVALID = -1,      /* an argument is invalid or above a limit */
        HN_ERR_NOMEM = -2,        /* out of memory, here or in the store */
        HN_ERR_SYSTEM = -3,       /* a system call failed */
        HN_ERR_NOT_LAUNCHED = -4, /* not started by hnlaunch, or hn_init() was not called */
        HN_ERR_TIMEOUT = -5,      /* hn_last_error_ranks() returns the missing ranks */
        HN_ERR_NOT_FOUND = -6,    /* no such key (timeout 0 only) */
        HN_ERR_TRUNCATED = -7,    /* the buffer is too small; the needed size is returned */
        HN_ERR_PEER = -8,         /* another worker failed or has left; hn_last_error_ranks() */
        HN_ERR_ABORTED = -9,      /* the launcher is gone or ends the job */
        HN_ERR_AUTH = -10,        /* the node's agent belongs to another user */
        HN_ERR_PROTOCOL = -11,    /* malformed data from the other side */
        HN_ERR_NOT_MEMBER = -12,  /* this rank is not in the group */
        HN_ERR_MISMATCH = -13,    /* the members of a group disagree */
        HN_ERR_BACKEND = -14,     /* NCCL or Gloo failed */
        HN_ERR_UNSUPPORTED = -15, /* not available here */
        HN_ERR_NO_SPACE = -16     /* the store of the job is full; hnlaunch --store-size */
} hn_status;

HN_API const char *hn_strerror(hn_status status);    /* constant text */
HN_API const char *hn_status_name(hn_status status); /* "HN_ERR_TIMEOUT" */

/* Describes the last failed call of this thread: "barrier `world`: ranks 2,3 (node002) missing
 * after 5 s". Never NULL; lent until this thread's next call. A successful call leaves the text as
 * it is. */
HN_API const char *hn_last_error(void);

/* World ranks missing or failed in the last failed call: writes at most @cap, returns how many
 * are known, 256 at most. */
HN_API int hn_last_error_ranks(int *ranks, int cap);

/* For code built on this library (plug-ins, the NCCL glue): sets this thread's sentence, returns
 * @status. */
HN_API hn_status hn_set_error(hn_status status, const char *fmt, ...) HN_PRINTF(2, 3);

HN_API int hn_version(void); /* of the library at run time */

/* --- life cycle ------------------------------------------------------------------------------- */

/* HN_INIT_ALLOW_SINGLETON: without a launcher, be a world of one with a private store. */
#define HN_INIT_ALLOW_SINGLETON 0x1u

typedef struct hn_init_opts {
        size_t size; /* sizeof(hn_init_opts) */
        uint32_t flags;
        int64_t timeout_ms; /* 0 = the default */
} hn_init_opts;

/*
 * Reads the launcher's environment and connects to the node's agent. @opts may be NULL.
 * A second call does nothing. HN_ERR_NOT_LAUNCHED when the program was started by hand and
 * singletons are not allowed; HN_ERR_INVALID when @opts has unknown flags; HN_ERR_AUTH,
 * HN_ERR_SYSTEM, HN_ERR_TIMEOUT when the agent cannot be reached; HN_ERR_UNSUPPORTED when
 * torchrun's agent serves no store: up to PyTorch 2.4 with any rendezvous but static, --standalone
 * included. Not while another thread is in hn_init() or hn_finalize().
 */
HN_API hn_status hn_init(const hn_init_opts *opts);
HN_API int hn_is_initialized(void);

/* Closes the connection; afterwards handles of groups and stores may only be freed. No other thread
 * may be in a call. Does not wait for other ranks. */
HN_API hn_status hn_finalize(void);

/* Asks the launcher to end the whole job with this exit code (1..255) and to show the text. Returns
 * when the launcher has taken note; the caller then should exit or wait to be stopped. */
HN_API hn_status hn_abort(int code, const char *fmt, ...) HN_PRINTF(2, 3);

/* --- identity --------------------------------------------------------------------------------- */

/* The numbers of this process. All return HN_ERR_NOT_LAUNCHED (-4) before hn_init(). */
HN_API int hn_rank(void);
HN_API int hn_world_size(void);
HN_API int hn_local_rank(void); /* among the ranks of this node */
HN_API int hn_local_world_size(void);
HN_API int hn_node_rank(void);
HN_API int hn_num_nodes(void);
HN_API int hn_restart_count(void); /* 0 in the first attempt */

/* The node of any rank. The first call asks the launcher. HN_ERR_INVALID: no such rank. */
HN_API int hn_node_of(int world_rank);
/* The name from the hostfile; lent until hn_finalize(). NULL: failed. */
HN_API const char *hn_hostname_of(int world_rank);

/* The name of this program's role in a job of several (hnlaunch --role NAME); lent until
 * hn_finalize(). NULL: before hn_init(), in a job without roles, under torchrun, or alone. */
HN_API const char *hn_role(void);
/* The number of this replica of the role (hnlaunch --replicas), from 0; 0 in a job without roles.
 * HN_ERR_NOT_LAUNCHED before hn_init(). */
HN_API int hn_role_index(void);

/* --- groups ----------------------------------------------------------------------------------- */

typedef struct hn_group hn_group;

/* All ranks. Never to be freed; NULL before hn_init(). Where a group is wanted NULL means the
 * world. */
HN_API hn_group *hn_world(void);

/*
 * Makes a group of some ranks, in this order. Called by its members only, as a collective:
 * HN_ERR_MISMATCH when members pass different lists under one name, and the sentence names the
 * differing rank and both lists. HN_ERR_NOT_MEMBER: the list lacks the caller. @backend is a note
 * for hn_get_backend(), NULL = none. The name is at most 200 bytes; two handles with one name and
 * list are the same group, so their collectives are in one order, too.
 */
HN_API hn_status hn_group_create(const char *name, const int *world_ranks, int n,
                                 const char *backend, int64_t timeout_ms, hn_group **out);

/* Called by all members of @parent: ranks with the same @color >= 0 become a group, ordered by
 * @key, then by rank in the parent. A negative color gets no group: *out = NULL. */
HN_API hn_status hn_group_split(hn_group *parent, int color, int key, int64_t timeout_ms,
                                hn_group **out);

/* The ranks of this node. Called by all of them. */
HN_API hn_status hn_group_local(hn_group **out);

/* The lowest rank of each node, in the order of the nodes. Other ranks need not call, and get
 * *out = NULL. */
HN_API hn_status hn_group_leaders(hn_group **out);

/*
 * The ranks of a role of this world, in the order of the world; NULL = of this program's role.
 * Roles share a world by hnlaunch --world NAME. Called by all ranks of the role, as a collective; a
 * second call returns another handle of the same group. Ranks of other roles need not call, and get
 * *out = NULL. HN_ERR_INVALID: no role of this world has the name, and the sentence lists those
 * that it has; HN_ERR_UNSUPPORTED: the job has no roles, or is not of hnlaunch. Waits, and fails,
 * as hn_group_create().
 */
HN_API hn_status hn_role_group(const char *role, int64_t timeout_ms, hn_group **out);

HN_API const char *hn_get_name(const hn_group *group);
HN_API int hn_get_rank(const hn_group *group); /* this process's rank in the group */
HN_API int hn_get_world_size(const hn_group *group);
HN_API const char *hn_get_backend(const hn_group *group); /* "nccl", "gloo", "none" ... */
HN_API int hn_get_global_rank(const hn_group *group, int group_rank); /* or HN_ERR_INVALID */
HN_API int hn_get_group_rank(const hn_group *group, int world_rank);  /* or HN_ERR_NOT_MEMBER */
/* Writes at most @cap world ranks, returns how many there are. */
HN_API int hn_get_group_ranks(const hn_group *group, int *out, int cap);

/* Frees a handle, NULL and the world are fine. The handles of other members stay valid. */
HN_API void hn_group_free(hn_group *group);

/* --- store ------------------------------------------------------------------------------------ */

/* Keys are 1 to 1024 bytes (with prefix), values 0 to 16 MiB; above that HN_ERR_INVALID. */
#define HN_KEY_MAX   1024
#define HN_VALUE_MAX (16 * 1024 * 1024)

typedef struct hn_store hn_store;

HN_API hn_store *hn_store_default(void); /* NULL before hn_init(); never to be closed */
/* The same store, seen through "prefix/". */
HN_API hn_status hn_store_prefix(hn_store *store, const char *prefix, hn_store **out);
HN_API void hn_store_close(hn_store *store); /* frees a prefix; the default is left alone */

/* Writes a key, over an earlier value, and wakes all waiting calls. */
HN_API hn_status hn_store_set(hn_store *store, const char *key, const void *value, size_t len);
/* Waits for the key. *len is the size of @buf and becomes the size of the value; HN_ERR_TRUNCATED
 * when @buf is too small: *len is the needed size and @buf is untouched. */
HN_API hn_status hn_store_get(hn_store *store, const char *key, void *buf, size_t *len,
                              int64_t timeout_ms);
/* The same into new memory, with a NUL after the value; free with hn_free(). */
HN_API hn_status hn_store_get_alloc(hn_store *store, const char *key, void **value, size_t *len,
                                    int64_t timeout_ms);
/* Adds to a counter stored as decimal text; a missing counter is 0. *now (may be NULL) is the sum.
 * HN_ERR_INVALID when the value is no number or would overflow. */
HN_API hn_status hn_store_add(hn_store *store, const char *key, int64_t delta, int64_t *now);
/* Adds bytes to the end of a value; a missing value is empty. */
HN_API hn_status hn_store_append(hn_store *store, const char *key, const void *value, size_t len);
/* Writes @desired if the value is @expected; a missing key equals an @expected of 0 bytes. *swapped
 * (may be NULL) tells. */
HN_API hn_status hn_store_compare_set(hn_store *store, const char *key, const void *expected,
                                      size_t expected_len, const void *desired, size_t desired_len,
                                      int *swapped);
/* Waits until all @n keys exist. */
HN_API hn_status hn_store_wait(hn_store *store, const char *const *keys, size_t n,
                               int64_t timeout_ms);
/* Checks whether all @n keys exist now: 1 or 0. */
HN_API hn_status hn_store_check(hn_store *store, const char *const *keys, size_t n,
                                int *all_present);
/* Deletes a key; *existed (may be NULL) = 1 when there was one. */
HN_API hn_status hn_store_delete(hn_store *store, const char *key, int *existed);
/* Counts the keys below the prefix. */
HN_API hn_status hn_store_num_keys(hn_store *store, size_t *n);
/* Frees a value of hn_store_get_alloc(); NULL is fine. */
HN_API void hn_free(void *memory);

/* --- small collectives over the store: bytes, not tensors --------------------------------------
 */

/* Every member must call, one collective of a group at a time, in the same order. All of them are
 * barriers: no member returns before the last has arrived. HN_ERR_MISMATCH: members called
 * different collectives or with different lengths; HN_ERR_PEER: a member has failed or exited. */
HN_API hn_status hn_barrier(hn_group *group, int64_t timeout_ms);
/* Copies @buf of rank @root of the group to @buf of all members; their @len must equal the root's.
 * Otherwise as hn_barrier(). */
HN_API hn_status hn_broadcast_bytes(hn_group *group, void *buf, size_t len, int root,
                                    int64_t timeout_ms);
/* Sends @len bytes of each member to all members: @recv holds all in rank order, at most 16 MiB.
 * Otherwise as hn_barrier(). */
HN_API hn_status hn_all_gather_bytes(hn_group *group, const void *send, size_t len, void *recv,
                                     int64_t timeout_ms);

/* --- news from the launcher ------------------------------------------------------------------- */

typedef enum hn_event_kind {
        HN_EVENT_NONE = 0,
        HN_EVENT_RANK_FAILED = 1,
        HN_EVENT_NODE_LOST = 2,
        HN_EVENT_STOP_REQUESTED = 3
} hn_event_kind;

typedef struct hn_event {
        size_t size; /* sizeof(hn_event), set by the caller */
        hn_event_kind kind;
        int rank, node; /* -1 = none */
        char text[192];
} hn_event;

/* The oldest event not yet seen. HN_ERR_TIMEOUT and HN_EVENT_NONE when there is none. The library
 * keeps the last 64. */
HN_API hn_status hn_event_poll(hn_event *event, int64_t timeout_ms);

/* HN_ERR_PEER as soon as the launcher reports, or has ever reported, a failed worker or node; HN_OK
 * when there is no such report within the timeout. Takes no event away: for loops that wait for
 * something else. */
HN_API hn_status hn_health(int64_t timeout_ms);

/* --- news to the launcher --------------------------------------------------------------------- */

/* Shown by the launcher as the reason when this rank fails: kind is a short word ("cuda", "data").
 * Texts are cut at 4 KiB. */
HN_API hn_status hn_report_error(const char *kind, const char *fmt, ...) HN_PRINTF(2, 3);
/* Reports the progress of this rank: @step (0 or more) of @total, 0 = unknown; @note (may be NULL)
 * is cut at 80 bytes. Ctrl-\ shows the report, and --json and --log-dir have an event
 * rank.progress. May be called for every step. HN_OK says that the report is on its way. Dropped
 * under torchrun. */
HN_API hn_status hn_progress(int64_t step, int64_t total, const char *note);

/* --- hosts that leave --------------------------------------------------------------------------
 */

/* 1 when a host of the job is to leave (hnlaunch drain), also that of another rank: save, and exit
 * with 0 or call hn_drained(). 0 = none is; below 0: an hn_status. One request to the store; ranks
 * do not see it in the same moment, so those that save together agree first, for example by
 * hn_broadcast_bytes(). Always 0 under torchrun. */
HN_API int hn_draining(void);
/* Tells the launcher that this rank has saved. When all ranks have, or have exited, the launcher
 * ends them by SIGTERM, and starts the job again without the host. A call before a host
 * is to leave does not count. */
HN_API hn_status hn_drained(void);

#ifdef __cplusplus
}
#endif

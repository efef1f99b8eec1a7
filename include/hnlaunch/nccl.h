/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl: NCCL communicators for the ranks that hnlaunch started
 *
 * Header only: calls the NCCL that the program is built and linked with, so there is no second one
 * to clash with. NCCL 2.14 or newer. RCCL has the same names: include <rccl/rccl.h> before. Choose
 * the device (cudaSetDevice(hn_local_rank())) before hn_nccl_comm_init().
 *
 *     ncclComm_t comm;
 *     if (hn_nccl_comm_init(NULL, NULL, HN_DEFAULT_TIMEOUT, &comm) != HN_OK)
 *             errx(1, "%s", hn_last_error());
 *
 * Keep the group as long as the communicator, which shares its name (NCCL 2.27). Communicators are
 * non-blocking unless the given config says otherwise: a call may return ncclInProgress, then
 * hn_nccl_wait() waits for the end with a deadline and ends when a worker has failed. Errors are
 * HN_ERR_PEER when a worker has failed, whatever NCCL returned, else HN_ERR_BACKEND with NCCL's own
 * words in hn_last_error(). With glibc before 2.34 link with -pthread.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <hnlaunch/nccl_rules.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef NCCL_VERSION_CODE /* a program that has included RCCL's header, or a copy, keeps that */
#include <nccl.h>
#endif

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 14, 0)
#error "hnlaunch/nccl.h needs NCCL 2.14 or newer"
#endif

/* The runtime below NCCL: CUDA's or, with the same calls, HIP's. */
#if defined(CUDART_VERSION)
#define HN_GPU(name) cuda##name
#elif defined(HIP_VERSION)
#define HN_GPU(name) hip##name
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline hn_status hn_nccl_failed(const char *what, ncclResult_t result)
{
        const char *more = ncclGetLastError(NULL);

        return hn_set_error(HN_ERR_BACKEND, "%s: %s%s%s", what, ncclGetErrorString(result),
                            more && *more ? ": " : "", more ? more : "");
}

/* NCCL may notice a death before the launcher's message about it arrives: the time to wait for the
 * message. */
#ifndef HN_NCCL_NEWS_MS
#define HN_NCCL_NEWS_MS 1000
#endif

/* Turns an error of NCCL on a communicator into a status: HN_ERR_PEER when a worker has failed, or
 * fails within HN_NCCL_NEWS_MS, else HN_ERR_BACKEND with NCCL's own words. */
static inline hn_status hn_nccl_explain(const char *what, ncclResult_t result)
{
        hn_status status = hn_health(HN_NCCL_NEWS_MS);

        return status == HN_OK ? hn_nccl_failed(what, result) : status;
}

/* Now in milliseconds, for deadlines. */
static inline int64_t hn_nccl_now(void)
{
        struct timespec t;

#ifdef CLOCK_MONOTONIC
        clock_gettime(CLOCK_MONOTONIC, &t);
#else
        timespec_get(&t, TIME_UTC); /* strict C has no other clock */
#endif
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The rest of @timeout_ms for the next step of an operation begun at @begun. */
static inline int64_t hn_nccl_rest(int64_t begun, int64_t timeout_ms)
{
        int64_t span = timeout_ms == HN_DEFAULT_TIMEOUT ? 300000 : timeout_ms;
        int64_t gone = hn_nccl_now() - begun;

        if (span < 0)
                return span;
        return gone < span ? span - gone : 0;
}

/* NCCL before 2.27 leaves the thread that did the last work on @comm, with its stack, when the
 * calling thread begins work on another communicator; any call on @comm joins it. A driver that
 * hangs in this thread's last call holds the caller, as it does in each other call on @comm. */
static inline void hn_nccl_join_thread(ncclComm_t comm)
{
        int version, ranks;

        if (ncclGetVersion(&version) == ncclSuccess && version < NCCL_VERSION(2, 27, 0))
                ncclCommCount(comm, &ranks);
}

/*
 * Waits until nothing is in progress on @comm. HN_ERR_PEER when a worker failed meanwhile,
 * HN_ERR_TIMEOUT, HN_ERR_BACKEND: then call ncclCommAbort(). Limits the enqueueing and set-up calls
 * of NCCL; for kernels on a stream, poll the stream, too.
 */
HN_INLINE hn_status hn_nccl_wait(ncclComm_t comm, int64_t timeout_ms)
{
        int64_t span = timeout_ms == HN_DEFAULT_TIMEOUT ? 300000 : timeout_ms;
        int64_t begun = hn_nccl_now();
        int64_t pause = 1;
        ncclResult_t state = ncclSuccess;
        hn_status status;

        for (;;) {
                ncclResult_t asked = ncclCommGetAsyncError(comm, &state);

                if (asked != ncclSuccess)
                        return hn_nccl_explain("ncclCommGetAsyncError", asked);
                if (state == ncclSuccess) {
                        hn_nccl_join_thread(comm);
                        return HN_OK;
                }
                if (state != ncclInProgress)
                        return hn_nccl_explain("NCCL", state);
                if (span >= 0 && hn_nccl_now() - begun >= span)
                        return hn_set_error(HN_ERR_TIMEOUT, "NCCL is still busy after %g s",
                                            (double)span / 1000.0);
                /* Sleeps, and wakes at once when the launcher tells of a failure. */
                status = hn_health(pause);
                if (status != HN_OK)
                        return status;
                pause = pause < 10 ? pause + 1 : 10;
        }
}

/* Takes NCCL's answer to a call on a non-blocking communicator: waits while the call is in
 * progress. Errors as in hn_nccl_wait(), with @what before NCCL's own words. ncclCommSplit() needs
 * hn_nccl_comm_split() instead: its ncclSuccess does not mean that the child exists. */
HN_INLINE hn_status hn_nccl_done(const char *what, ncclResult_t result, ncclComm_t comm,
                                 int64_t timeout_ms)
{
        if (result == ncclSuccess)
                return HN_OK;
        return result == ncclInProgress ? hn_nccl_wait(comm, timeout_ms)
                                        : hn_nccl_explain(what, result);
}

/* The longest wait for an abort. */
#define HN_NCCL_ABORT_MS 1000

/* State shared by an aborting thread and the thread waiting for the abort; the last of the two
 * frees it. */
typedef struct hn_nccl_abort_job {
        ncclComm_t comm;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int done, left; /* the abort has ended; the caller waits no longer */
} hn_nccl_abort_job;

static inline void hn_nccl_free_abort(hn_nccl_abort_job *job)
{
        pthread_cond_destroy(&job->changed);
        pthread_mutex_destroy(&job->lock);
        free(job);
}

static inline void *hn_nccl_run_abort(void *arg)
{
        hn_nccl_abort_job *job = (hn_nccl_abort_job *)arg;
        int left;

        ncclCommAbort(job->comm);
        pthread_mutex_lock(&job->lock);
        job->done = 1;
        left = job->left;
        pthread_cond_signal(&job->changed);
        pthread_mutex_unlock(&job->lock);
        if (left)
                hn_nccl_free_abort(job);
        return NULL;
}

/* The wall clock in @ms milliseconds, as condition variables need it. */
static inline struct timespec hn_nccl_clock_in(int64_t ms)
{
        struct timespec t;

#ifdef CLOCK_REALTIME
        clock_gettime(CLOCK_REALTIME, &t);
#else
        timespec_get(&t, TIME_UTC);
#endif
        ms += t.tv_nsec / 1000000;
        t.tv_sec += (time_t)(ms / 1000);
        t.tv_nsec = (long)(ms % 1000) * 1000000 + t.tv_nsec % 1000000;
        return t;
}

/*
 * Calls ncclCommAbort(@comm) and waits at most HN_NCCL_ABORT_MS for the end: an abort joins NCCL's
 * own threads, and a thread that connects to a dead rank may take long (some 20 s with NCCL 2.22).
 * Returns 1 when all is undone, 0 when a separate thread still aborts: memory given to NCCL by
 * address must stay valid then.
 */
static inline int hn_nccl_undo(ncclComm_t comm)
{
        hn_nccl_abort_job *job = (hn_nccl_abort_job *)calloc(1, sizeof(*job));
        struct timespec until = hn_nccl_clock_in(HN_NCCL_ABORT_MS);
        pthread_t thread;
        int done;

        if (!job)
                return ncclCommAbort(comm), 1;
        job->comm = comm;
        pthread_mutex_init(&job->lock, NULL);
        pthread_cond_init(&job->changed, NULL);
        if (pthread_create(&thread, NULL, hn_nccl_run_abort, job) != 0) {
                hn_nccl_free_abort(job);
                return ncclCommAbort(comm), 1;
        }
        pthread_detach(thread);
        pthread_mutex_lock(&job->lock);
        while (!job->done && pthread_cond_timedwait(&job->changed, &job->lock, &until) == 0)
                ;
        done = job->done;
        job->left = 1;
        pthread_mutex_unlock(&job->lock);
        if (done)
                hn_nccl_free_abort(job);
        return done;
}

/* For repeated calls beside long work: aborts @comm when a worker has failed, which ends the
 * kernels waiting for that worker. HN_OK: no failure. After HN_ERR_PEER the communicator is gone.
 */
HN_INLINE hn_status hn_nccl_abort_on_failure(ncclComm_t comm)
{
        hn_status status = hn_health(0);

        if (status != HN_OK)
                ncclCommAbort(comm);
        return status;
}

/* Queries between two looks at the launcher's news: a look takes longer than most kernels. */
#define HN_NCCL_GLANCE 4096

/* Checks whether a wait for a kernel since @begun may go on. */
static inline hn_status hn_nccl_watch(ncclComm_t comm, int64_t begun, int64_t timeout_ms)
{
        hn_status status = hn_nccl_wait(comm, hn_nccl_rest(begun, timeout_ms));

        if (status == HN_OK)
                status = hn_health(0);
        if (status == HN_OK && hn_nccl_rest(begun, timeout_ms) == 0)
                status = hn_set_error(HN_ERR_TIMEOUT, "the stream is still busy");
        return status;
}

#ifdef HN_GPU
/*
 * Waits until all work on @stream is done. The kernels of a communicator with a lost member
 * never end: HN_ERR_PEER when a worker failed meanwhile, HN_ERR_TIMEOUT, HN_ERR_BACKEND: then
 * call ncclCommAbort() on @comm, which ends the kernels.
 */
HN_INLINE hn_status hn_nccl_wait_stream(ncclComm_t comm, HN_GPU(Stream_t) stream,
                                        int64_t timeout_ms)
{
        int64_t begun = hn_nccl_now();
        HN_GPU(Error_t) state;

        for (unsigned turns = 1; (state = HN_GPU(StreamQuery)(stream)) == HN_GPU(ErrorNotReady);
             turns++) {
                hn_status status =
                        turns % HN_NCCL_GLANCE ? HN_OK : hn_nccl_watch(comm, begun, timeout_ms);

                if (status != HN_OK)
                        return status;
        }
        return state == HN_GPU(Success) ? HN_OK
                                        : hn_set_error(HN_ERR_BACKEND, "the stream: %s",
                                                       HN_GPU(GetErrorString)(state));
}
#endif

static inline void hn_nccl_fill_card(hn_nccl_card *card)
{
        const char *shared = getenv("NCCL_MULTI_RANK_GPU_ENABLE");

        memset(card, 0, sizeof(*card));
        ncclGetVersion(&card->version);
        card->node = hn_node_rank();
        card->device = -1;
        /* Ranks with different host ids are on different machines for NCCL. */
        card->may_share = getenv("NCCL_HOSTID") || (shared && strcmp(shared, "1") == 0);
#ifdef HN_GPU
        if (HN_GPU(GetDevice)(&card->device) != HN_GPU(Success))
                card->device = -1;
        else if (HN_GPU(DeviceGetPCIBusId)(card->address, (int)sizeof(card->address),
                                           card->device) != HN_GPU(Success))
                card->address[0] = '\0';
#endif
}

/* hn_nccl_check() with a card filled in by the caller. */
static inline hn_status hn_nccl_check_card(hn_group *group, const hn_nccl_card *mine,
                                           int64_t timeout_ms)
{
        int n = hn_get_world_size(group);
        hn_nccl_card *all;
        hn_status status;

        if (n < 1)
                return HN_ERR_NOT_LAUNCHED;
        all = (hn_nccl_card *)calloc((size_t)n, sizeof(*all));
        if (!all)
                return hn_set_error(HN_ERR_NOMEM, "out of memory");
        status = hn_all_gather_bytes(group, mine, sizeof(*mine), all, timeout_ms);
        if (status == HN_OK)
                status = hn_nccl_compare_cards(group, all, n);
        free(all);
        return status;
}

/* Finds different NCCLs and shared GPUs, by name, before NCCL hangs on them. */
HN_INLINE hn_status hn_nccl_check(hn_group *group, int64_t timeout_ms)
{
        hn_nccl_card mine;

        hn_nccl_fill_card(&mine);
        return hn_nccl_check_card(group, &mine, timeout_ms);
}

static inline hn_status hn_nccl_make_id(ncclUniqueId *id)
{
        ncclResult_t result = ncclGetUniqueId(id);

        return result == ncclSuccess ? HN_OK : hn_nccl_failed("ncclGetUniqueId", result);
}

/* The key of id @i of the communicator number @turn. */
static inline const char *hn_nccl_key(char *to, size_t size, int64_t turn, int i)
{
        snprintf(to, size, "hn/nccl/%lld/%d", (long long)turn, i);
        return to;
}

/* Gives every rank all @n_ids ids, through the store when there are several. *turn is the number of
 * the communicator then. */
static inline hn_status hn_nccl_share_ids(hn_group *group, ncclUniqueId *ids, int n_ids,
                                          int64_t timeout_ms, int64_t *turn)
{
        int mine = hn_nccl_id_of(hn_get_rank(group), hn_get_world_size(group), n_ids);
        int64_t begun = hn_nccl_now();
        hn_store *store = hn_store_default();
        hn_status status = mine >= 0 ? hn_nccl_make_id(&ids[mine]) : HN_OK;
        char key[64];

        if (status != HN_OK)
                return status;
        if (n_ids == 1)
                return hn_broadcast_bytes(group, ids, sizeof(*ids), 0, timeout_ms);
        if (mine == 0)
                status = hn_store_add(store, "hn/nccl", 1, turn);
        if (status == HN_OK)
                status = hn_broadcast_bytes(group, turn, sizeof(*turn), 0, timeout_ms);
        if (status == HN_OK && mine >= 0)
                status = hn_store_set(store, hn_nccl_key(key, sizeof(key), *turn, mine), &ids[mine],
                                      sizeof(ids[mine]));
        for (int i = 0; i < n_ids && status == HN_OK; i++) {
                size_t len = sizeof(ids[i]);

                status = hn_store_get(store, hn_nccl_key(key, sizeof(key), *turn, i), &ids[i], &len,
                                      hn_nccl_rest(begun, timeout_ms));
        }
        return status;
}

/* Once NCCL has connected all ranks the ids are not needed any more. */
static inline void hn_nccl_drop_ids(hn_group *group, int n_ids, int64_t turn)
{
        int mine = hn_nccl_id_of(hn_get_rank(group), hn_get_world_size(group), n_ids);
        char key[64];

        if (n_ids > 1 && mine >= 0)
                hn_store_delete(hn_store_default(), hn_nccl_key(key, sizeof(key), turn, mine),
                                NULL);
}

static inline ncclResult_t hn_nccl_start(hn_group *group, ncclUniqueId *ids, int n_ids,
                                         ncclConfig_t *config, ncclComm_t *out)
{
        int rank = hn_get_rank(group), n = hn_get_world_size(group);

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
        if (n_ids > 1)
                return ncclCommInitRankScalable(out, n, rank, n_ids, ids, config);
#endif
        (void)n_ids;
        return ncclCommInitRankConfig(out, n, ids[0], rank, config);
}

/* Non-blocking and named, unless the caller's config says otherwise. */
static inline ncclConfig_t hn_nccl_config(hn_group *group, const ncclConfig_t *given)
{
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

        config.blocking = 0;
        if (given)
                config = *given;
#ifdef NCCL_CONFIG_UNDEF_INT /* before 2.17 a config always decides blocking */
        if (config.blocking == NCCL_CONFIG_UNDEF_INT)
                config.blocking = 0;
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
        if (!config.commName)
                config.commName = hn_get_name(group);
#endif
        (void)group;
        return config;
}

/* Old NCCLs take one id, and so does an address fixed by NCCL_COMM_ID. @version: of the NCCL at run
 * time, the same in all ranks. */
static inline int hn_nccl_count_ids(hn_group *group, int version)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
        if (version >= NCCL_VERSION(2, 23, 0) && !getenv("NCCL_COMM_ID"))
                return hn_nccl_ids_for(hn_get_world_size(group));
#endif
        (void)group;
        (void)version;
        return 1;
}

/* hn_nccl_comm_init() with a card filled in by the caller. */
static inline hn_status hn_nccl_comm_init_card(hn_group *group, const hn_nccl_card *card,
                                               const ncclConfig_t *config, int64_t timeout_ms,
                                               ncclComm_t *out)
{
        ncclConfig_t used = hn_nccl_config(group, config);
        int64_t begun = hn_nccl_now(), turn = 0;
        hn_status status = hn_nccl_check_card(group, card, timeout_ms);
        int n_ids = hn_nccl_count_ids(group, card->version);
        ncclResult_t result;
        ncclUniqueId *ids;
        ncclComm_t *comm; /* not on the stack: NCCL's threads write to it */

        if (status != HN_OK)
                return status;
        ids = (ncclUniqueId *)calloc((size_t)n_ids, sizeof(*ids));
        comm = (ncclComm_t *)calloc(1, sizeof(ncclComm_t));
        status = ids && comm ? HN_OK : hn_set_error(HN_ERR_NOMEM, "out of memory");
        if (status == HN_OK)
                status = hn_nccl_share_ids(group, ids, n_ids, hn_nccl_rest(begun, timeout_ms),
                                           &turn);
        if (status == HN_OK) {
                result = hn_nccl_start(group, ids, n_ids, &used, comm);
                status = hn_nccl_done("ncclCommInitRank", result, *comm,
                                      hn_nccl_rest(begun, timeout_ms));
        }
        free(ids);
        if (status == HN_OK) {
                hn_nccl_drop_ids(group, n_ids, turn);
                *out = *comm;
        } else if (comm && *comm && !hn_nccl_undo(*comm)) {
                return status; /* still used by NCCL: not freed */
        }
        free(comm);
        return status;
}

/*
 * Makes a communicator of @group (NULL = the world); all members call. @config NULL = the defaults.
 * @timeout_ms limits the whole; undoing a failure may take a second more. After a failure
 * everything is undone and *out untouched: HN_ERR_MISMATCH (different NCCLs, or two ranks on one
 * GPU: found and reported with ranks, hosts and device before NCCL could hang), HN_ERR_TIMEOUT,
 * HN_ERR_PEER, HN_ERR_BACKEND, HN_ERR_NOMEM. An NCCL that takes longer to give up (2.22 goes on
 * connecting to a dead rank for some 20 s) does so in a separate thread, after the return. End the
 * communicator with ncclCommFinalize() and ncclCommDestroy(), or ncclCommAbort().
 */
HN_INLINE hn_status hn_nccl_comm_init(hn_group *group, const ncclConfig_t *config,
                                      int64_t timeout_ms, ncclComm_t *out)
{
        hn_nccl_card card;

        hn_nccl_fill_card(&card);
        return hn_nccl_comm_init_card(group, &card, config, timeout_ms, out);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
/*
 * Makes communicators of parts of @parent; all its ranks call. Ranks with the same group @child get
 * a communicator of that group, to be ended as after hn_nccl_comm_init(); ranks with @child NULL
 * get *out = NULL. Faster than hn_nccl_comm_init() of the child. @config NULL = the defaults.
 * @timeout_ms limits the whole. HN_ERR_TIMEOUT, HN_ERR_PEER, HN_ERR_BACKEND, HN_ERR_NOMEM: *out is
 * untouched, and the split may still go on inside NCCL: end it with ncclCommAbort() of @parent,
 * which cannot be used any more. Until then NCCL holds the unfinished child.
 */
HN_INLINE hn_status hn_nccl_comm_split(hn_group *child, ncclComm_t parent,
                                       const ncclConfig_t *config, int64_t timeout_ms,
                                       ncclComm_t *out)
{
        ncclConfig_t used = hn_nccl_config(child, config);
        /* The first member's world rank tells the children of one split apart. */
        int color = child ? hn_get_global_rank(child, 0) : NCCL_SPLIT_NOCOLOR;
        int key = child ? hn_get_rank(child) : 0;
        int64_t begun = hn_nccl_now();
        /* Not on the stack: NCCL's thread writes to it when the split ends, failed or not. */
        ncclComm_t *comm = (ncclComm_t *)calloc(1, sizeof(ncclComm_t));
        ncclResult_t result;
        hn_status status;

        if (!comm)
                return hn_set_error(HN_ERR_NOMEM, "out of memory");
        result = ncclCommSplit(parent, color, key, comm, &used);
        /* A non-blocking split returns ncclSuccess as soon as it has begun. The child exists when
         * nothing is in progress on the parent any more. */
        status = hn_nccl_done("ncclCommSplit", result == ncclSuccess ? ncclInProgress : result,
                              parent, hn_nccl_rest(begun, timeout_ms));
        if (status != HN_OK)
                return status; /* @comm may still be used by NCCL: not freed */
        if (*comm)
                status = hn_nccl_wait(*comm, hn_nccl_rest(begun, timeout_ms));
        if (status == HN_OK)
                *out = *comm;
        else if (!hn_nccl_undo(*comm))
                return status; /* the same */
        free(comm);
        return status;
}
#endif

#ifdef __cplusplus
}
#endif

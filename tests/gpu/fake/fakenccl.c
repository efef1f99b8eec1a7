/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fakenccl: what NCCL's kernels would do, done by the CPU
 *
 * Linked into libnccl.so.2 with the real NCCL, whose public names are weak (the strong ones begin
 * with pnccl). Communicators are the real NCCL's from their ids to their ends: bootstrap, topology,
 * transports, errors. Only the calls that move data are ours: they run in the order of fakegpu's
 * streams, and data goes from rank to rank through a file in /dev/shm with one ring of bytes for
 * each pair of ranks, or between hosts in a folder that all of them see. As on a GPU, work that
 * waits for an absent rank waits until the communicator is aborted. The first such call on a
 * non-blocking communicator stays ncclInProgress for three looks, as when the real one connects
 * late.
 *
 *   FAKENCCL_DIR=DIR     instead of /dev/shm; files of ranks that were killed stay there
 *   FAKENCCL_SLOW=FILE   where there is one, its rank waits a millisecond before each piece of data
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fakegpu.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 24, 0)
#define ncclBfloat16 9 /* the header has it for C++ only */
#endif

enum { RING = 1 << 16, LOOKS = 3 };

struct ring { /* one writer, one reader */
        _Atomic size_t written, taken;
        char bytes[RING];
};

struct fabric {
        _Atomic int attached;
        struct ring rings[]; /* from * n + to */
};

struct comm {
        struct comm *next;
        ncclComm_t id;
        ncclComm_t *slot; /* of a split: NCCL will write it there */
        unsigned long long key;
        int rank, n, splits, users; /* users: the program, and each task; the last one frees it */
        _Atomic int in_progress, aborted;
        bool non_blocking, was_busy; /* non-blocking; has been so once */
        struct fabric *fabric;
};

struct flow {
        bool send;
        int peer;
        char *at;
        size_t n, done;
};

enum what { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, EXCHANGE };

struct task {
        struct task *next;
        enum what what;
        struct comm *comm;
        cudaStream_t stream;
        const char *in;
        char *out;
        size_t count;
        ncclDataType_t type;
        ncclRedOp_t op;
        int root, n_flows;
        struct flow *flows;
};

static struct comm *comms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int depth;
static __thread struct task *group, **group_end;

/* --- communicators ---------------------------------------------------------------------------- */

static unsigned long long add_hash(unsigned long long h, const void *at, size_t n)
{
        const unsigned char *p = at;

        h = h ? h : 14695981039346656037ULL;
        while (n--)
                h = (h ^ *p++) * 1099511628211ULL;
        return h;
}

static void add_comm(ncclComm_t id, ncclComm_t *slot, unsigned long long key,
                     const ncclConfig_t *config)
{
        struct comm *c = calloc(1, sizeof(*c));

        c->id = id;
        c->slot = slot;
        c->key = key;
        c->rank = -1;
        c->users = 1;
        c->non_blocking = config && config->blocking == 0;
        pthread_mutex_lock(&lock);
        c->next = comms;
        comms = c;
        pthread_mutex_unlock(&lock);
}

/* What lies at @at, which may be gone by now. */
static ncclComm_t read_slot(ncclComm_t *at)
{
        ncclComm_t is = NULL;
        struct iovec to = { &is, sizeof(is) }, from = { at, sizeof(is) };

        return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(is) ? is : NULL;
}

static struct comm *find_comm(ncclComm_t id)
{
        struct comm *c;

        pthread_mutex_lock(&lock);
        for (c = comms; c && c->id != id; c = c->next)
                ;
        for (struct comm *d = comms; d && !c; d = d->next)
                if (!d->id && d->slot && read_slot(d->slot) == id) {
                        c = d;
                        c->id = id;
                }
        pthread_mutex_unlock(&lock);
        return c;
}

static size_t fabric_size(const struct comm *c)
{
        return sizeof(struct fabric) + sizeof(struct ring) * (size_t)c->n * (size_t)c->n;
}

static void hold_comm(struct comm *c)
{
        pthread_mutex_lock(&lock);
        c->users++;
        pthread_mutex_unlock(&lock);
}

static void drop_comm(struct comm *c)
{
        struct comm **p = &comms;
        bool last;

        pthread_mutex_lock(&lock);
        last = --c->users == 0;
        while (last && *p != c)
                p = &(*p)->next;
        if (last)
                *p = c->next;
        pthread_mutex_unlock(&lock);
        if (!last)
                return;
        if (c->fabric)
                munmap(c->fabric, fabric_size(c));
        free(c);
}

static ncclResult_t attach_fabric(struct comm *c)
{
        const char *dir = getenv("FAKENCCL_DIR");
        char path[300];
        size_t size;
        int fd;

        if (c->fabric)
                return ncclSuccess;
        if (pncclCommUserRank(c->id, &c->rank) != ncclSuccess ||
            pncclCommCount(c->id, &c->n) != ncclSuccess)
                return ncclInvalidArgument;
        size = fabric_size(c);
        snprintf(path, sizeof(path), "%s/fakenccl-%016llx", dir ? dir : "/dev/shm", c->key);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
                return ncclSystemError;
        c->fabric = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (c->fabric == MAP_FAILED)
                abort();
        if (atomic_fetch_add(&c->fabric->attached, 1) == c->n - 1)
                unlink(path);
        return ncclSuccess;
}

/* --- bytes from rank to rank ------------------------------------------------------------------ */

static size_t move_bytes(struct comm *c, struct flow *f)
{
        int from = f->send ? c->rank : f->peer, to = f->send ? f->peer : c->rank;
        struct ring *r = &c->fabric->rings[from * c->n + to];
        size_t written = atomic_load(&r->written), taken = atomic_load(&r->taken);
        size_t can = f->send ? RING - (written - taken) : written - taken;
        size_t at = (f->send ? written : taken) % RING;
        const char *slow = getenv("FAKENCCL_SLOW");

        can = can > f->n - f->done ? f->n - f->done : can;
        can = can > RING - at ? RING - at : can;
        if (!can)
                return 0;
        if (slow && access(slow, F_OK) == 0)
                usleep(1000);
        if (f->send) {
                memcpy(r->bytes + at, f->at + f->done, can);
                atomic_store(&r->written, written + can);
        } else {
                memcpy(f->at + f->done, r->bytes + at, can);
                atomic_store(&r->taken, taken + can);
        }
        f->done += can;
        return can;
}

/* In the same direction with the same rank: one after the other. */
static bool its_turn(const struct flow *flows, int i)
{
        for (int k = 0; k < i; k++)
                if (flows[k].done < flows[k].n && flows[k].send == flows[i].send &&
                    flows[k].peer == flows[i].peer)
                        return false;
        return flows[i].done < flows[i].n;
}

/* Returns false when the communicator was aborted. */
static bool run_flows(struct comm *c, struct flow *flows, int n)
{
        unsigned idle = 0;

        for (;;) {
                size_t moved = 0, left = 0;

                for (int i = 0; i < n; i++) {
                        if (its_turn(flows, i))
                                moved += move_bytes(c, &flows[i]);
                        left += flows[i].n - flows[i].done;
                }
                if (!left)
                        return true;
                if (atomic_load(&c->aborted))
                        return false;
                idle = moved ? 0 : idle + 1;
                if (idle > 20)
                        usleep(idle > 2000 ? 2000 : 50);
        }
}

/* --- sums and the like ------------------------------------------------------------------------ */

static size_t size_of(ncclDataType_t type)
{
        switch ((int)type) {
        case ncclInt8:
        case ncclUint8:
                return 1;
        case ncclFloat16:
        case ncclBfloat16:
                return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32:
                return 4;
        case ncclInt64:
        case ncclUint64:
        case ncclFloat64:
                return 8;
        default:
                return 0;
        }
}

static float from_bf16(unsigned short bits)
{
        unsigned wide = (unsigned)bits << 16;
        float x;

        memcpy(&x, &wide, sizeof(x));
        return x;
}

static unsigned short to_bf16(float x)
{
        unsigned wide;

        memcpy(&wide, &x, sizeof(wide));
        return (unsigned short)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

#define COMBINE(a, b)                                                                              \
        (op == ncclProd  ? (a) * (b)                                                               \
         : op == ncclMax ? ((a) > (b) ? (a) : (b))                                                 \
         : op == ncclMin ? ((a) < (b) ? (a) : (b))                                                 \
                         : (a) + (b))
/* LOAD and STORE turn what lies in memory, @T, into what is added, @W. Integers wrap (-fwrapv). */
#define REDUCE_AS(T, W, LOAD, STORE)                                                               \
        do {                                                                                       \
                for (size_t i = 0; i < count; i++) {                                               \
                        W a = (W)LOAD(((const T *)all)[i]);                                        \
                        for (int r = 1; r < n; r++) {                                              \
                                W b = (W)LOAD(((const T *)(all + (size_t)r * stride))[i]);         \
                                a = (W)COMBINE(a, b);                                              \
                        }                                                                          \
                        if (op == ncclAvg)                                                         \
                                a = (W)(a / (W)n);                                                 \
                        ((T *)out)[i] = (T)STORE(a);                                               \
                }                                                                                  \
                return;                                                                            \
        } while (0)
#define SAME(x) (x)

/* @n arrays lie @stride bytes apart in @all. The order is that of the ranks: all get the same bits.
 */
static void reduce_arrays(char *out, const char *all, size_t stride, int n, size_t count,
                          ncclDataType_t type, ncclRedOp_t op)
{
        switch ((int)type) {
        case ncclInt8:
                REDUCE_AS(signed char, signed char, SAME, SAME);
        case ncclUint8:
                REDUCE_AS(unsigned char, unsigned char, SAME, SAME);
        case ncclInt32:
                REDUCE_AS(int, int, SAME, SAME);
        case ncclUint32:
                REDUCE_AS(unsigned, unsigned, SAME, SAME);
        case ncclInt64:
                REDUCE_AS(long long, long long, SAME, SAME);
        case ncclUint64:
                REDUCE_AS(unsigned long long, unsigned long long, SAME, SAME);
        case ncclFloat16:
                REDUCE_AS(_Float16, float, SAME, SAME);
        case ncclFloat32:
                REDUCE_AS(float, float, SAME, SAME);
        case ncclFloat64:
                REDUCE_AS(double, double, SAME, SAME);
        case ncclBfloat16:
                REDUCE_AS(unsigned short, float, from_bf16, to_bf16);
        default:
                abort();
        }
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void add_flow(struct flow **f, bool send, int peer, const void *at, size_t n)
{
        *(*f)++ = (struct flow){ .send = send, .peer = peer, .at = (char *)at, .n = n };
}

static void run_reduction(struct task *t)
{
        struct comm *c = t->comm;
        size_t size = t->count * size_of(t->type);
        bool mine = t->what != REDUCE || t->root == c->rank;
        char *all = malloc(size * (size_t)c->n + 1);
        struct flow flows[2 * c->n], *f = flows;

        for (int r = 0; r < c->n; r++) {
                if (t->what != REDUCE || r == t->root)
                        add_flow(&f, true, r,
                                 t->in + (t->what == REDUCE_SCATTER ? (size_t)r * size : 0), size);
                if (mine)
                        add_flow(&f, false, r, all + (size_t)r * size, size);
        }
        if (run_flows(c, flows, (int)(f - flows)) && mine)
                reduce_arrays(t->out, all, size, c->n, t->count, t->type, t->op);
        free(all);
}

static void run_move(struct task *t)
{
        struct comm *c = t->comm;
        size_t size = t->count * size_of(t->type);
        bool gather = t->what == ALL_GATHER;
        struct flow flows[2 * c->n], *f = flows;
        char *own = malloc(size + 1); /* in and out may be one */

        memcpy(own, t->in, gather || t->root == c->rank ? size : 0);
        for (int r = 0; r < c->n; r++) {
                if (gather || t->root == c->rank)
                        add_flow(&f, true, r, own, size);
                if (gather || t->root == r)
                        add_flow(&f, false, r, t->out + (gather ? (size_t)r * size : 0), size);
        }
        run_flows(c, flows, (int)(f - flows));
        free(own);
}

static void run_task(void *arg)
{
        struct task *t = arg;

        if (t->what == EXCHANGE)
                run_flows(t->comm, t->flows, t->n_flows);
        else if (t->what == BROADCAST || t->what == ALL_GATHER)
                run_move(t);
        else
                run_reduction(t);
        drop_comm(t->comm);
        free(t->flows);
        free(t);
}

static ncclResult_t first_answer(struct comm *c)
{
        if (!c->non_blocking || c->was_busy)
                return ncclSuccess;
        c->was_busy = true;
        atomic_store(&c->in_progress, LOOKS);
        return ncclInProgress;
}

static ncclResult_t enqueue_task(struct task *t)
{
        struct comm *c = t->comm;

        hold_comm(c);
        fakegpu_enqueue(t->stream, run_task, t);
        return first_answer(c);
}

static ncclResult_t check_call(ncclComm_t id, ncclDataType_t type, struct comm **ret)
{
        ncclResult_t state, asked = ncclCommGetAsyncError(id, &state);

        if (asked != ncclSuccess)
                return asked;
        if (state != ncclSuccess) /* as the real one says it */
                return state == ncclInProgress ? ncclInvalidArgument : state;
        *ret = find_comm(id);
        if (!*ret || !size_of(type))
                return ncclInvalidArgument;
        return attach_fabric(*ret);
}

static ncclResult_t submit_call(enum what what, const void *in, void *out, size_t count,
                                ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t id,
                                cudaStream_t stream)
{
        struct comm *c;
        ncclResult_t result = check_call(id, type, &c);
        struct task *t;

        if (result != ncclSuccess)
                return result;
        t = calloc(1, sizeof(*t));
        *t = (struct task){ .what = what,
                            .comm = c,
                            .stream = stream,
                            .in = in,
                            .out = out,
                            .count = count,
                            .type = type,
                            .op = op,
                            .root = root };
        if (!depth)
                return enqueue_task(t);
        *group_end = t;
        group_end = &t->next;
        return ncclSuccess;
}

static ncclResult_t submit_transfer(bool send, const void *at, size_t count, ncclDataType_t type,
                                    int peer, ncclComm_t id, cudaStream_t stream)
{
        struct comm *c;
        ncclResult_t result = check_call(id, type, &c);
        struct task *t;

        if (result != ncclSuccess)
                return result;
        for (t = depth ? group : NULL; t && (t->what != EXCHANGE || t->comm != c); t = t->next)
                ;
        if (!t) {
                t = calloc(1, sizeof(*t));
                *t = (struct task){ .what = EXCHANGE, .comm = c, .stream = stream };
                if (depth) {
                        *group_end = t;
                        group_end = &t->next;
                }
        }
        t->flows = realloc(t->flows, sizeof(*t->flows) * (size_t)(t->n_flows + 1));
        t->flows[t->n_flows++] = (struct flow){
                .send = send, .peer = peer, .at = (char *)at, .n = count * size_of(type)
        };
        return depth ? ncclSuccess : enqueue_task(t);
}

/* --- the calls -------------------------------------------------------------------------------- */

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *to, int n, ncclUniqueId id, int rank,
                                        ncclConfig_t *config)
{
        ncclResult_t result = pncclCommInitRankConfig(to, n, id, rank, config);

        if (to && *to)
                add_comm(*to, NULL, add_hash(0, &id, sizeof(id)), config);
        return result;
}

API ncclResult_t ncclCommInitRank(ncclComm_t *to, int n, ncclUniqueId id, int rank)
{
        ncclResult_t result = pncclCommInitRank(to, n, id, rank);

        if (to && *to)
                add_comm(*to, NULL, add_hash(0, &id, sizeof(id)), NULL);
        return result;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
API ncclResult_t ncclCommInitRankScalable(ncclComm_t *to, int n, int rank, int n_ids,
                                          ncclUniqueId *ids, ncclConfig_t *config)
{
        ncclResult_t result = pncclCommInitRankScalable(to, n, rank, n_ids, ids, config);

        if (to && *to)
                add_comm(*to, NULL, add_hash(0, ids, sizeof(*ids) * (size_t)n_ids), config);
        return result;
}
#endif

API ncclResult_t ncclCommSplit(ncclComm_t id, int color, int key, ncclComm_t *to,
                               ncclConfig_t *config)
{
        struct comm *parent = find_comm(id);
        unsigned long long h = parent ? add_hash(parent->key, &color, sizeof(color)) : 0;

        if (parent) {
                parent->splits++;
                h = add_hash(h, &parent->splits, sizeof(parent->splits));
                if (color != NCCL_SPLIT_NOCOLOR) {
                        add_comm(NULL, to, h, config);
                        comms->non_blocking = config ? config->blocking == 0 : parent->non_blocking;
                }
        }
        return pncclCommSplit(id, color, key, to, config);
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t id, ncclResult_t *state)
{
        ncclResult_t result = pncclCommGetAsyncError(id, state);
        struct comm *c = result == ncclSuccess && *state == ncclSuccess ? find_comm(id) : NULL;

        if (c && atomic_load(&c->in_progress) > 0) {
                atomic_fetch_sub(&c->in_progress, 1);
                *state = ncclInProgress;
        }
        return result;
}

static void forget_comm(ncclComm_t id, bool aborted)
{
        struct comm *c = id ? find_comm(id) : NULL;

        if (!c)
                return;
        c->id = NULL; /* the address may come again */
        c->slot = NULL;
        if (aborted)
                atomic_store(&c->aborted, 1);
        drop_comm(c);
}

API ncclResult_t ncclCommAbort(ncclComm_t id)
{
        forget_comm(id, true);
        return pncclCommAbort(id);
}

API ncclResult_t ncclCommDestroy(ncclComm_t id)
{
        forget_comm(id, false);
        return pncclCommDestroy(id);
}

API ncclResult_t ncclGroupStart(void)
{
        if (!depth++)
                group_end = &group;
        return pncclGroupStart();
}

API ncclResult_t ncclGroupEnd(void)
{
        ncclResult_t result = pncclGroupEnd();
        struct task *t = group;

        if (!depth || --depth)
                return result;
        group = NULL;
        for (struct task *next; t; t = next) {
                ncclResult_t one;

                next = t->next;
                one = enqueue_task(t);
                result = result == ncclSuccess ? one : result;
        }
        return result;
}

API ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t id, cudaStream_t s)
{
        return submit_call(ALL_REDUCE, in, out, n, type, op, 0, id, s);
}

API ncclResult_t ncclReduce(const void *in, void *out, size_t n, ncclDataType_t type,
                            ncclRedOp_t op, int root, ncclComm_t id, cudaStream_t s)
{
        return submit_call(REDUCE, in, out, n, type, op, root, id, s);
}

API ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t type,
                                   ncclRedOp_t op, ncclComm_t id, cudaStream_t s)
{
        return submit_call(REDUCE_SCATTER, in, out, n, type, op, 0, id, s);
}

API ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t type, int root,
                               ncclComm_t id, cudaStream_t s)
{
        return submit_call(BROADCAST, in, out, n, type, ncclSum, root, id, s);
}

API ncclResult_t ncclBcast(void *at, size_t n, ncclDataType_t type, int root, ncclComm_t id,
                           cudaStream_t s)
{
        return ncclBroadcast(at, at, n, type, root, id, s);
}

API ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t type,
                               ncclComm_t id, cudaStream_t s)
{
        return submit_call(ALL_GATHER, in, out, n, type, ncclSum, 0, id, s);
}

API ncclResult_t ncclSend(const void *at, size_t n, ncclDataType_t type, int peer, ncclComm_t id,
                          cudaStream_t s)
{
        return submit_transfer(true, at, n, type, peer, id, s);
}

API ncclResult_t ncclRecv(void *at, size_t n, ncclDataType_t type, int peer, ncclComm_t id,
                          cudaStream_t s)
{
        return submit_transfer(false, at, n, type, peer, id, s);
}

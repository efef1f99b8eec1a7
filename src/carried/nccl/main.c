/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch-nccl: bandwidth and latency between the first GPUs of two nodes, started by the agents
 *
 * A dynamic program, because NCCL and CUDA's driver belong to the node and no static program can
 * load a library; and a separate process, because either may hang or abort. One helper runs on each
 * of the two nodes. A TCP connection, made by the agents, carries the id of the communicator to the
 * second helper, and the reason of a failure there back. The first helper writes a record to
 * descriptor 0, which is a pipe to the agent. NCCL may print to the others.
 *
 * A signal tells of bytes on the connection, or of the end, while NCCL works: NCCL waits for ever
 * for a peer that has failed. SIGALRM ends a helper that takes too long.
 *
 * Names, signatures and numbers of NCCL and the driver are written by hand from NVIDIA's references
 * of the APIs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/loader/old_glibc.h"
#include "base/macros.h"
#include "wire/helper/nccl_record.h"

enum {
        AGENT = 0,
        NCCL_BYTES = 0, /* ncclInt8 */
        ROUND_TRIPS = 20,
        TRIAL = 1 << 20,
        PIECE_MAX = 64 << 20,
        PIECES_MAX = 64,
        SEND_NS = 100000000, /* each way */
        WORD = 4,            /* bytes of what is no data */
};

struct nccl_id {
        char bytes[128]; /* ncclUniqueId */
};

typedef unsigned long long device_address;

/* Each returns 0 for success, but the texts. */
static struct {
        int (*get_id)(struct nccl_id *id);
        int (*init_rank)(void **comm, int n, struct nccl_id id, int rank);
        int (*send)(const void *from, size_t n, int type, int peer, void *comm, void *stream);
        int (*recv)(void *to, size_t n, int type, int peer, void *comm, void *stream);
        int (*destroy)(void *comm);
        const char *(*explain)(int error);
        const char *(*last_error)(void *comm); /* NULL before 2.13 */
} nccl;

static struct {
        int (*init)(unsigned flags);
        int (*get_device)(int *device, int index);
        int (*retain)(void **context, int device);
        int (*set_current)(void *context);
        int (*create_stream)(void **stream, unsigned flags);
        int (*await)(void *stream);
        int (*alloc)(device_address *at, size_t n);
        int (*copy_in)(device_address to, const void *from, size_t n);
        int (*copy_out)(void *to, device_address from, size_t n);
        int (*explain)(int error, const char **text);
} cuda;

/* What a helper has. Signal handlers read both descriptors. */
static struct {
        int rank; /* 0 measures, 1 serves */
        int peer; /* the connection */
        void *comm, *stream;
        device_address data, word; /* PIECE_MAX and 2 * WORD bytes */
} own;

/* --- the end ---------------------------------------------------------------------------------- */

/* Tells the agent, or the first helper, why nothing can be measured. Async-signal-safe. */
static _Noreturn void give_up(const char *why, const char *more)
{
        struct nccl_record r = { .mark = NCCL_RECORD_MARK };
        size_t n = 0;

        for (; *why && n < sizeof(r.why) - 1; why++)
                r.why[n++] = *why;
        for (; *more && *more != '\n' && n < sizeof(r.why) - 1; more++)
                r.why[n++] = *more;
        if (own.rank == 0)
                _exit(write(AGENT, &r, sizeof(r)) != sizeof(r));
        /* The first helper closes the connection when the reason is read. */
        if (write(own.peer, r.why, sizeof(r.why)) == sizeof(r.why))
                while (read(own.peer, r.why, sizeof(r.why)) > 0)
                        ;
        _exit(1);
}

static void on_time_over(int signo UNUSED)
{
        give_up("NCCL has not connected the GPUs in time", "");
}

/* The connection has bytes only when the second helper has failed, and ends with either helper. */
static void on_peer(int signo UNUSED)
{
        char why[NCCL_RECORD_WHY];
        int before = errno; /* of NCCL's thread */
        ssize_t n = recv(own.peer, why, sizeof(why), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
                errno = before;
                return;
        }
        if (own.rank == 1)
                _exit(0);
        if (n <= 0)
                give_up("the test program of the peer has ended", "");
        why[n - 1] = '\0';
        give_up("", why);
}

/* Bytes on the connection, and the end, raise a signal from now on. */
static void watch_peer(void)
{
        struct sigaction a = { .sa_handler = on_peer, .sa_flags = SA_RESTART };

        sigaction(SIGIO, &a, NULL);
        fcntl(own.peer, F_SETOWN, getpid());
        fcntl(own.peer, F_SETFL, O_ASYNC | O_NONBLOCK);
        on_peer(SIGIO); /* what came before */
}

/* --- calls of the libraries ------------------------------------------------------------------- */

static void expect_nccl(int error)
{
        const char *text = error && nccl.last_error ? nccl.last_error(NULL) : NULL;

        if (error)
                give_up("", text && *text ? text : nccl.explain(error));
}

static void expect_cuda(const char *what, int error)
{
        const char *text = NULL;

        if (!error)
                return;
        if (cuda.explain(error, &text) != 0 || !text)
                text = "an error of CUDA";
        give_up(what, text);
}

struct library_function {
        const char *name;
        void *to;
};

/* The last @optional functions may be absent. */
static void open_functions(const char *path, const struct library_function *v, size_t n,
                           size_t optional)
{
        void *library = library_open(path, RTLD_NOW | RTLD_GLOBAL), *function;

        if (!library)
                give_up("", library_error());
        for (size_t i = 0; i < n; i++) {
                function = library_symbol(library, v[i].name);
                if (!function && i < n - optional)
                        give_up("the library lacks ", v[i].name);
                memcpy(v[i].to, &function, sizeof(function));
        }
}

static void open_libraries(const char *nccl_path)
{
        const struct library_function cuda_table[] = {
                { "cuInit", &cuda.init },
                { "cuDeviceGet", &cuda.get_device },
                { "cuDevicePrimaryCtxRetain", &cuda.retain },
                { "cuCtxSetCurrent", &cuda.set_current },
                { "cuStreamCreate", &cuda.create_stream },
                { "cuStreamSynchronize", &cuda.await },
                { "cuMemAlloc_v2", &cuda.alloc },
                { "cuMemcpyHtoD_v2", &cuda.copy_in },
                { "cuMemcpyDtoH_v2", &cuda.copy_out },
                { "cuGetErrorString", &cuda.explain },
        };
        const struct library_function nccl_table[] = {
                { "ncclGetUniqueId", &nccl.get_id },
                { "ncclCommInitRank", &nccl.init_rank },
                { "ncclSend", &nccl.send },
                { "ncclRecv", &nccl.recv },
                { "ncclCommDestroy", &nccl.destroy },
                { "ncclGetErrorString", &nccl.explain },
                { "ncclGetLastError", &nccl.last_error },
        };

        open_functions("libcuda.so.1", cuda_table, ARRAY_SIZE(cuda_table), 0);
        open_functions(nccl_path, nccl_table, ARRAY_SIZE(nccl_table), 1);
}

/* Takes the first GPU, in the context that NCCL uses, too. */
static void open_device(void)
{
        void *context;
        int device;

        expect_cuda("", cuda.init(0));
        expect_cuda("", cuda.get_device(&device, 0));
        expect_cuda("GPU 0: ", cuda.retain(&context, device));
        expect_cuda("GPU 0: ", cuda.set_current(context));
        expect_cuda("GPU 0: ", cuda.create_stream(&own.stream, 1)); /* CU_STREAM_NON_BLOCKING */
        expect_cuda("GPU 0: ", cuda.alloc(&own.data, PIECE_MAX));
        expect_cuda("GPU 0: ", cuda.alloc(&own.word, 2 * WORD));
}

/* --- the connection --------------------------------------------------------------------------- */

/* Returns an address as one of IPv6; false = of another kind. */
static bool read_as_ipv6(const struct sockaddr *from, struct in6_addr *to)
{
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;

        if (!from || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
                return false;
        *to = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } }; /* mapped */
        if (from->sa_family == AF_INET6)
                *to = v6->sin6_addr;
        else
                memcpy(&to->s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
        return true;
}

/* NCCL shall use the interface of the connection, as ranks use that of MASTER_ADDR. A choice of the
 * user stays. */
static void choose_interface(void)
{
        struct sockaddr_storage local;
        struct in6_addr here, its;
        socklen_t len = sizeof(local);
        struct ifaddrs *all;
        char text[IF_NAMESIZE + 1];

        if (getenv("NCCL_SOCKET_IFNAME") ||
            getsockname(own.peer, (struct sockaddr *)&local, &len) < 0 ||
            !read_as_ipv6((struct sockaddr *)&local, &here) || getifaddrs(&all) < 0)
                return;
        for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
                if (!read_as_ipv6(i->ifa_addr, &its) || memcmp(&its, &here, sizeof(its)) != 0)
                        continue;
                snprintf(text, sizeof(text), "=%s", i->ifa_name);
                setenv("NCCL_SOCKET_IFNAME", text, 0);
        }
        freeifaddrs(all);
}

/* Makes the communicator of the two. */
static void join_peer(void)
{
        struct nccl_id id;
        size_t have = 0;
        ssize_t n;

        if (own.rank == 0) {
                expect_nccl(nccl.get_id(&id));
                if (write(own.peer, &id, sizeof(id)) != sizeof(id))
                        give_up("the test program of the peer has ended", "");
        }
        for (; own.rank == 1 && have < sizeof(id); have += (size_t)n)
                if ((n = read(own.peer, id.bytes + have, sizeof(id) - have)) <= 0)
                        _exit(0); /* the first helper has failed */
        watch_peer();
        expect_nccl(nccl.init_rank(&own.comm, 2, id, own.rank));
}

/* --- measuring -------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void send_to_peer(device_address at, size_t n)
{
        expect_nccl(nccl.send((void *)at, n, NCCL_BYTES, !own.rank, own.comm, own.stream));
}

static void recv_from_peer(device_address at, size_t n)
{
        expect_nccl(nccl.recv((void *)at, n, NCCL_BYTES, !own.rank, own.comm, own.stream));
}

/* Waits for all that was begun. */
static void await_stream(void)
{
        expect_cuda("GPU 0: ", cuda.await(own.stream));
}

/* One round trip of a word, begun by helper 0. */
static int64_t time_round_trip(void)
{
        int64_t began = now_ns();

        if (own.rank == 0)
                send_to_peer(own.word, WORD);
        recv_from_peer(own.word, WORD);
        if (own.rank == 1)
                send_to_peer(own.word, WORD);
        await_stream();
        return now_ns() - began;
}

/* Sends @n pieces from helper @from to the other one. A word goes the other way: behind the pieces
 * of helper 0, before those of helper 1, so that helper 0 has the whole time. */
static int64_t time_pieces(int from, size_t size, uint32_t n)
{
        int64_t began = now_ns();

        if (from == 1 && own.rank == 0)
                send_to_peer(own.word, WORD);
        if (from == 1 && own.rank == 1)
                recv_from_peer(own.word, WORD);
        for (uint32_t i = 0; i < n; i++)
                if (own.rank == from)
                        send_to_peer(own.data, size);
                else
                        recv_from_peer(own.data, size);
        if (from == 0 && own.rank == 1)
                send_to_peer(own.word, WORD);
        if (from == 0 && own.rank == 0)
                recv_from_peer(own.word, WORD);
        await_stream();
        return now_ns() - began;
}

static uint64_t rate_of(size_t size, uint32_t n, int64_t ns)
{
        return (uint64_t)((double)size * n * 1e9 / (double)MAX(ns, INT64_C(1000)));
}

/* Chooses the pieces that take SEND_NS, by a trial, and tells helper 1. */
static void choose_pieces(uint32_t *ret_size, uint32_t *ret_n)
{
        uint32_t plan[2];
        uint64_t bytes;

        time_pieces(0, TRIAL, 1); /* NCCL connects at the first one */
        time_pieces(1, TRIAL, 1);
        bytes = rate_of(TRIAL, 1, time_pieces(0, TRIAL, 1)) * (SEND_NS / 1000000) / 1000;
        plan[0] = (uint32_t)MIN(MAX(bytes, (uint64_t)TRIAL), (uint64_t)PIECE_MAX);
        plan[1] = (uint32_t)MIN(MAX(bytes / plan[0], UINT64_C(1)), (uint64_t)PIECES_MAX);
        if (own.rank == 0) {
                expect_cuda("GPU 0: ", cuda.copy_in(own.word, plan, sizeof(plan)));
                send_to_peer(own.word, sizeof(plan));
        } else {
                recv_from_peer(own.word, sizeof(plan));
        }
        await_stream();
        if (own.rank == 1)
                expect_cuda("GPU 0: ", cuda.copy_out(plan, own.word, sizeof(plan)));
        *ret_size = MIN(plan[0], (uint32_t)PIECE_MAX);
        *ret_n = MIN(plan[1], (uint32_t)PIECES_MAX);
}

static void measure_pair(struct nccl_record *r)
{
        int64_t best = INT64_MAX;
        uint32_t size, n;

        choose_pieces(&size, &n);
        for (int i = 0; i < ROUND_TRIPS; i++) {
                int64_t ns = time_round_trip();

                best = MIN(best, ns);
        }
        r->latency_us = (uint32_t)MAX(best / 1000, INT64_C(1));
        r->sent = rate_of(size, n, time_pieces(0, size, n));
        r->received = rate_of(size, n, time_pieces(1, size, n));
}

/* The argument is "RANK DESCRIPTOR LIBRARY". */
int main(int argc, char **argv)
{
        struct sigaction late = { .sa_handler = on_time_over };
        struct nccl_record record = { .mark = NCCL_RECORD_MARK };
        char *at;

        /* The name of a program in memory would be the number of a descriptor. */
        prctl(PR_SET_NAME, "hnlaunch-nccl");
        if (argc < 2)
                _exit(1);
        own.rank = (int)strtol(argv[1], &at, 10);
        own.peer = (int)strtol(at, &at, 10);
        fcntl(own.peer, F_SETFL, 0);
        fcntl(own.peer, F_SETFD, FD_CLOEXEC);
        signal(SIGPIPE, SIG_IGN);
        sigaction(SIGALRM, &late, NULL);
        alarm(NCCL_PAIR_S);
        setenv("CUDA_VISIBLE_DEVICES", "0",
               0); /* the driver begins with one GPU sooner than with all */
        open_libraries(at + 1);
        open_device();
        choose_interface();
        join_peer();
        measure_pair(&record);
        if (own.rank == 0 && write(AGENT, &record, sizeof(record)) != sizeof(record))
                _exit(1);
        /* The record stands. The end of the peer tells nothing any more. */
        signal(SIGIO, SIG_IGN);
        signal(SIGALRM, SIG_DFL);
        nccl.destroy(own.comm);
        /* A GPU may be for one process at a time: helper 0 ends when both are free of theirs. */
        fcntl(own.peer, F_SETFL, 0);
        while (own.rank == 0 && read(own.peer, record.why, sizeof(record.why)) > 0)
                ;
        _exit(0);
}

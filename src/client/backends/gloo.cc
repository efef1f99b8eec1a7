/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gloo over TCP: C++ inside, the C struct of client/backend.h outside. The ranks find each other
 * through the store; a dead member shows as a closed connection, a hanging one by the timeout.
 */
#include <arpa/inet.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/backend.h"
#include "client/backends/gloo_math.h"

namespace
{

using std::chrono::milliseconds;

/* Longer than this Gloo's clocks overflow; thirty days are for ever. */
constexpr int64_t kForever = int64_t(30) * 86400 * 1000;

class Store : public gloo::rendezvous::Store
{
      public:
        Store(hn_store *store, int64_t timeout_ms) : store_(store), timeout_ms_(timeout_ms)
        {
        }

        void set(const std::string &key, const std::vector<char> &data) override
        {
                check(hn_store_set(store_, key.c_str(), data.data(), data.size()));
                keys_.push_back(key);
        }

        /* Once all ranks are connected the keys are not needed any more. */
        void clear()
        {
                for (const auto &key : keys_)
                        check(hn_store_delete(store_, key.c_str(), nullptr));
        }

        std::vector<char> get(const std::string &key) override
        {
                void *value = nullptr;
                size_t len = 0;

                check(hn_store_get_alloc(store_, key.c_str(), &value, &len, timeout_ms_));
                std::vector<char> data(static_cast<char *>(value),
                                       static_cast<char *>(value) + len);
                hn_free(value);
                return data;
        }

        void wait(const std::vector<std::string> &keys) override
        {
                wait(keys, milliseconds(timeout_ms_));
        }

        void wait(const std::vector<std::string> &keys, const milliseconds &timeout) override
        {
                std::vector<const char *> names;

                for (const auto &key : keys)
                        names.push_back(key.c_str());
                check(hn_store_wait(store_, names.data(), names.size(), timeout.count()));
        }

      private:
        static void check(hn_status status)
        {
                if (status != HN_OK)
                        throw std::runtime_error(hn_last_error());
        }

        hn_store *store_;
        int64_t timeout_ms_;
        std::vector<std::string> keys_;
};

struct Comm {
        std::shared_ptr<gloo::transport::Device> device;
        std::shared_ptr<gloo::rendezvous::Context> context;
};

/* Our address on the way to @host; a UDP socket is asked, nothing is sent. "" = unknown. */
std::string address_towards(const char *host)
{
        addrinfo hints{}, *found = nullptr;
        sockaddr_storage mine{};
        socklen_t len = sizeof(mine);
        char text[NI_MAXHOST] = "";

        hints.ai_socktype = SOCK_DGRAM;
        if (!host || getaddrinfo(host, "9", &hints, &found) != 0)
                return "";
        int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
            getsockname(fd, reinterpret_cast<sockaddr *>(&mine), &len) == 0)
                getnameinfo(reinterpret_cast<sockaddr *>(&mine), len, text, sizeof(text), nullptr,
                            0, NI_NUMERICHOST);
        if (fd >= 0)
                close(fd);
        freeaddrinfo(found);
        return text;
}

gloo::transport::tcp::attr network()
{
        gloo::transport::tcp::attr attr;
        const char *iface = getenv("GLOO_SOCKET_IFNAME");
        char host[256] = "";

        if (iface && *iface) {
                attr.iface = iface;
                return attr;
        }
        if (hn_num_nodes() == 1) {
                attr.hostname = "127.0.0.1";
                return attr;
        }
        attr.hostname = address_towards(getenv("MASTER_ADDR"));
        if (attr.hostname.empty()) {
                gethostname(host, sizeof(host) - 1);
                attr.hostname = host;
        }
        return attr;
}

/*
 * Gloo writes to sockets without MSG_NOSIGNAL, so a dead peer would kill this process, too. While
 * the object lives, neither this thread nor the threads started by it get SIGPIPE; the program's
 * own handling of the signal stays as it is.
 */
class NoSigpipe
{
      public:
        NoSigpipe()
        {
                sigset_t pending;

                sigemptyset(&pipe_);
                sigaddset(&pipe_, SIGPIPE);
                sigpending(&pending);
                not_ours_ = sigismember(&pending, SIGPIPE) == 1;
                pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
        }

        ~NoSigpipe()
        {
                const timespec now{};

                if (!not_ours_)
                        sigtimedwait(&pipe_, nullptr, &now);
                pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        }

        NoSigpipe(const NoSigpipe &) = delete;
        NoSigpipe &operator=(const NoSigpipe &) = delete;

      private:
        sigset_t pipe_, before_;
        bool not_ours_;
};

/* Runs @work; an exception becomes a status. */
template <typename Work> hn_status guarded(Work work)
{
        NoSigpipe quiet;

        try {
                work();
                return HN_OK;
        } catch (const std::exception &e) {
                return hn_set_error(HN_ERR_BACKEND, "gloo: %s", e.what());
        } catch (...) {
                return hn_set_error(HN_ERR_BACKEND, "gloo failed");
        }
}

void meet(const std::shared_ptr<gloo::Context> &context)
{
        gloo::BarrierOptions opts(context);

        gloo::barrier(opts);
}

hn_status create(hn_group *group, hn_store *store, int64_t timeout_ms, void **ret)
{
        return guarded([&] {
                auto comm = std::make_unique<Comm>();
                int64_t timeout = timeout_ms < kForever ? timeout_ms : kForever;
                Store view(store, timeout);

                comm->device = gloo::transport::tcp::CreateDevice(network());
                comm->context = std::make_shared<gloo::rendezvous::Context>(
                        hn_get_rank(group), hn_get_world_size(group));
                comm->context->setTimeout(milliseconds(timeout));
                comm->context->connectFullMesh(view, comm->device);
                meet(comm->context);
                view.clear();
                *ret = comm.release();
        });
}

void destroy(void *self)
{
        guarded([&] { delete static_cast<Comm *>(self); });
}

/* Gloo takes no const pointer, but does not write to an input. */
char *bytes_of(const void *in)
{
        return static_cast<char *>(const_cast<void *>(in));
}

template <typename T> T *as(T *, void *p)
{
        return static_cast<T *>(p);
}

/* Calls @work with a null pointer to a type of @size bytes: Gloo only needs the size. */
template <typename Work> void with_size(size_t size, Work work)
{
        switch (size) {
        case 1:
                return work(static_cast<uint8_t *>(nullptr));
        case 2:
                return work(static_cast<uint16_t *>(nullptr));
        case 4:
                return work(static_cast<uint32_t *>(nullptr));
        case 8:
                return work(static_cast<uint64_t *>(nullptr));
        }
        throw std::invalid_argument("no such type");
}

hn_status all_reduce(void *self, const void *in, void *out, size_t n, hn_dtype type, hn_op op)
{
        const auto &context = static_cast<Comm *>(self)->context;
        size_t size = hn_dtype_size(type);

        return guarded([&] {
                gloo::AllreduceOptions opts(context);

                if (in != out)
                        memmove(out, in, n * size);
                with_size(size, [&](auto *t) { opts.setOutput(as(t, out), n); });
                opts.setReduceFunction(gloo_reduction(type, op));
                gloo::allreduce(opts);
                gloo_finish(type, op, out, n, context->size);
        });
}

/* Gloo works in the output of every rank, so ranks without a result pass temporary memory. */
hn_status reduce(void *self, const void *in, void *out, size_t n, hn_dtype type, hn_op op, int root)
{
        const auto &context = static_cast<Comm *>(self)->context;
        size_t size = hn_dtype_size(type);

        return guarded([&] {
                gloo::ReduceOptions opts(context);
                std::vector<uint64_t> lent(context->rank == root ? 0 : (n * size + 7) / 8);
                void *to = context->rank == root ? out : lent.data();

                if (in != to)
                        memmove(to, in, n * size);
                with_size(size, [&](auto *t) { opts.setOutput(as(t, to), n); });
                opts.setReduceFunction(gloo_reduction(type, op));
                opts.setRoot(root);
                gloo::reduce(opts);
                if (context->rank == root)
                        gloo_finish(type, op, out, n, context->size);
        });
}

void swap_blocks(const std::shared_ptr<gloo::Context> &context, const void *in, void *out,
                 size_t bytes)
{
        gloo::AlltoallOptions opts(context);

        opts.setInput(bytes_of(in), bytes * size_t(context->size));
        opts.setOutput(static_cast<char *>(out), bytes * size_t(context->size));
        gloo::alltoall(opts);
}

/* Gloo's own reduce-scatter is tied to float and has no timeout. */
hn_status reduce_scatter(void *self, const void *in, void *out, size_t n, hn_dtype type, hn_op op)
{
        const auto &context = static_cast<Comm *>(self)->context;
        size_t bytes = n * hn_dtype_size(type);

        return guarded([&] {
                auto fold = gloo_reduction(type, op);
                std::vector<uint64_t> blocks((bytes * size_t(context->size) + 7) / 8);
                char *first = reinterpret_cast<char *>(blocks.data());

                swap_blocks(context, in, first, bytes);
                memcpy(out, first, bytes);
                for (int i = 1; i < context->size; i++)
                        fold(out, out, first + size_t(i) * bytes, n);
                gloo_finish(type, op, out, n, context->size);
        });
}

hn_status all_to_all(void *self, const void *in, void *out, size_t bytes)
{
        return guarded([&] { swap_blocks(static_cast<Comm *>(self)->context, in, out, bytes); });
}

/* A wait after the deadline throws; a wait ended from outside returns false. */
void wait_for(bool done)
{
        if (!done)
                throw std::runtime_error("the wait was ended");
}

hn_status exchange(void *self, const void *in, int to, void *out, int from, size_t bytes)
{
        const auto &context = static_cast<Comm *>(self)->context;
        constexpr uint64_t slot = uint64_t(0x80) << 56; /* above Gloo's own */

        return guarded([&] {
                auto sent = in ? context->createUnboundBuffer(bytes_of(in), bytes) : nullptr;
                auto got = out ? context->createUnboundBuffer(out, bytes) : nullptr;

                if (got)
                        got->recv(from, slot);
                if (sent)
                        sent->send(to, slot);
                if (sent)
                        wait_for(sent->waitSend(context->getTimeout()));
                if (got)
                        wait_for(got->waitRecv(context->getTimeout()));
        });
}

hn_status broadcast(void *self, void *buf, size_t bytes, int root)
{
        return guarded([&] {
                gloo::BroadcastOptions opts(static_cast<Comm *>(self)->context);

                opts.setOutput(static_cast<char *>(buf), bytes);
                opts.setRoot(root);
                gloo::broadcast(opts);
        });
}

hn_status all_gather(void *self, const void *in, void *out, size_t bytes)
{
        const auto &context = static_cast<Comm *>(self)->context;

        return guarded([&] {
                gloo::AllgatherOptions opts(context);

                opts.setInput(bytes_of(in), bytes);
                opts.setOutput(static_cast<char *>(out), bytes * size_t(context->size));
                gloo::allgather(opts);
        });
}

hn_status barrier(void *self)
{
        return guarded([&] { meet(static_cast<Comm *>(self)->context); });
}

} // namespace

extern "C" HN_API const struct backend hn_backend;
const struct backend hn_backend = {
        BACKEND_ABI,    "gloo",    create,     destroy,    all_reduce, reduce,
        reduce_scatter, broadcast, all_gather, all_to_all, exchange,   barrier,
};

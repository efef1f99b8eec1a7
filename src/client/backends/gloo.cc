/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gloo over TCP: C++ inside, the C struct of client/backend.h outside. The ranks find each other
 * through the store; a member that dies is seen as a closed connection, one that hangs by the
 * timeout.
 */
#include <arpa/inet.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>
#include <netdb.h>
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

/* Runs @work; an exception becomes a status. */
template <typename Work> hn_status guarded(Work work)
{
        try {
                work();
                return HN_OK;
        } catch (const std::exception &e) {
                return hn_set_error(HN_ERR_BACKEND, "gloo: %s", e.what());
        } catch (...) {
                return hn_set_error(HN_ERR_BACKEND, "gloo failed");
        }
}

hn_status create(hn_store *store, int rank, int size, int64_t timeout_ms, void **ret)
{
        return guarded([&] {
                auto comm = std::make_unique<Comm>();
                int64_t timeout = timeout_ms < kForever ? timeout_ms : kForever;
                Store view(store, timeout);

                comm->device = gloo::transport::tcp::CreateDevice(network());
                comm->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
                comm->context->setTimeout(milliseconds(timeout));
                comm->context->connectFullMesh(view, comm->device);
                *ret = comm.release();
        });
}

void destroy(void *self)
{
        guarded([&] { delete static_cast<Comm *>(self); });
}

using Reduce = void (*)(void *, const void *, const void *, size_t);

template <typename T> Reduce reduction(hn_op op)
{
        switch (op) {
        case HN_SUM:
                return static_cast<Reduce>(gloo::sum<T>);
        case HN_PROD:
                return static_cast<Reduce>(gloo::product<T>);
        case HN_MIN:
                return static_cast<Reduce>(gloo::min<T>);
        case HN_MAX:
                return static_cast<Reduce>(gloo::max<T>);
        }
        throw std::invalid_argument("no such operation");
}

template <typename T> void reduce(Comm *comm, const void *in, void *out, size_t n, hn_op op)
{
        gloo::AllreduceOptions opts(comm->context);

        if (in != out)
                memcpy(out, in, n * sizeof(T));
        opts.setOutput(static_cast<T *>(out), n);
        opts.setReduceFunction(reduction<T>(op));
        gloo::allreduce(opts);
}

hn_status all_reduce(void *self, const void *in, void *out, size_t n, hn_dtype type, hn_op op)
{
        auto comm = static_cast<Comm *>(self);

        return guarded([&] {
                switch (type) {
                case HN_FLOAT32:
                        return reduce<float>(comm, in, out, n, op);
                case HN_FLOAT64:
                        return reduce<double>(comm, in, out, n, op);
                case HN_INT32:
                        return reduce<int32_t>(comm, in, out, n, op);
                case HN_INT64:
                        return reduce<int64_t>(comm, in, out, n, op);
                case HN_UINT8:
                        return reduce<uint8_t>(comm, in, out, n, op);
                case HN_FLOAT16:
                        return reduce<gloo::float16>(comm, in, out, n, op);
                }
                throw std::invalid_argument("no such type");
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

                /* Gloo takes no const pointer, but does not write here. */
                opts.setInput(static_cast<char *>(const_cast<void *>(in)), bytes);
                opts.setOutput(static_cast<char *>(out), bytes * size_t(context->size));
                gloo::allgather(opts);
        });
}

hn_status barrier(void *self)
{
        return guarded([&] {
                gloo::BarrierOptions opts(static_cast<Comm *>(self)->context);

                gloo::barrier(opts);
        });
}

} // namespace

extern "C" HN_API const struct backend hn_backend;
const struct backend hn_backend = {
        BACKEND_ABI, "gloo", create, destroy, all_reduce, broadcast, all_gather, barrier,
};

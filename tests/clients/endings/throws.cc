/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 1 ends by an exception of C++; the others wait. usage: throws HOW */
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace c10
{
struct Error : std::runtime_error {
        using std::runtime_error::runtime_error;
};
} // namespace c10

static std::string frames(int n)
{
        std::string text = "\nException raised from check at cuda.cpp:44 (most recent call first):";

        for (int i = 0; i < n; i++)
                text += "\nframe #" + std::to_string(i) +
                        ": at::native::launch(at::Tensor const&) + 0x44 (0x7f5a9616c1b6 in "
                        "libtorch.so)";
        return text;
}

static const char advice[] =
        "\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect."
        "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
        "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n";

int main(int argc, char **argv)
{
        struct rlimit no_core = { 0, 0 };
        std::string how = argc > 1 ? argv[1] : "", error = "CUDA error: out of memory";
        const char *rank = getenv("RANK");

        setrlimit(RLIMIT_CORE, &no_core);
        if (!rank || std::string(rank) != "1")
                sleep(60);
        if (how == "seven")
                throw c10::Error(error + frames(7));
        if (how == "hundreds")
                throw c10::Error(error + advice + frames(200));
        if (how == "advice")
                throw c10::Error(error + advice + frames(3));
        if (how == "lines")
                throw std::runtime_error("the mesh is empty\nin mesh.csv\nof solver 2");
        if (how == "number")
                throw 42;
        if (how == "thread") {
                std::thread t([] { sleep(60); });

                fprintf(stderr, "solver: the mesh is empty\n");
                return 0; /* t is still joinable */
        }
        throw std::out_of_range("the mesh is empty");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: ending_cxx VICTIM
 *
 * One rank throws; its handler of std::terminate() prints the reason, makes the file "gone", works
 * for a second and a half and aborts. The others see the file and throw, too.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

static void end_slowly()
{
        try {
                std::rethrow_exception(std::current_exception());
        } catch (const std::exception &e) {
                fprintf(stderr,
                        "terminate called after throwing an instance of 'std::out_of_range'\n  "
                        "what():  %s\n",
                        e.what());
        }
        close(open("gone", O_CREAT | O_WRONLY, 0600));
        usleep(1500000);
        abort();
}

int main(int argc, char **argv)
{
        if (argc > 1 && !strcmp(getenv("RANK"), argv[1])) {
                usleep(200000);
                std::set_terminate(end_slowly);
                throw std::out_of_range("no tensor 'layer.7'");
        }
        while (access("gone", F_OK) < 0)
                usleep(10000);
        throw std::runtime_error("[pair.cc:534] Connection closed by peer [192.0.2.7]:4711");
}

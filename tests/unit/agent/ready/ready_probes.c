/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "agent/ready/ready_probes.h"
#include "base/fd.h"
#include "lib/unit.h"
#include "lib/wait_for.h"

static uint32_t ready_bits;

static void on_world_ready(void *ctx UNUSED, uint32_t rank)
{
        assert_int_equal(ready_bits & 1U << rank, 0);
        ready_bits |= 1U << rank;
}

static uint32_t turn(uv_loop_t *loop)
{
        uv_run(loop, UV_RUN_NOWAIT);
        return ready_bits;
}

TEST(a_port_is_a_number_or_a_name_of_the_rank)
{
        struct launch_ready by_name = { READY_TCP, false, (char *)"http", (char *)"" };
        struct launch_ready by_number = { READY_TCP, false, NULL, (char *)"" };
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        socklen_t len = sizeof(at);
        struct ready_probes *p;
        struct error err;
        char number[8];
        uv_loop_t loop;

        uv_loop_init(&loop);
        assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
        assert_int_equal(listen(fd, 8), 0);
        getsockname(fd, (struct sockaddr *)&at, &len);
        snprintf(number, sizeof(number), "%u", ntohs(at.sin_port));
        by_number.port = number;
        p = ready_probes_create(&loop, false, on_world_ready, NULL);
        assert_int_equal(ready_probes_add(p, 1, &by_name, &env, "", &err), -EINVAL);
        assert_non_null(strstr(err.text, "the port `http`"));
        strv_env_set(&env, "HN_PORT_HTTP", number);
        assert_int_equal(ready_probes_add(p, 1, &by_name, &env, "", &err), 0);
        assert_int_equal(ready_probes_add(p, 2, &by_number, &env, "", &err), 0);
        assert_int_equal(ready_probes_add(p, 3, &by_number, &env, "", &err), 0);
        ready_probes_start(p, 1);
        ready_probes_start(p, 2);
        ready_probes_start(p, 3);
        ready_probes_end(p, 3); /* the rank has ended */
        ready_probes_start(p, 4);
        ready_probes_end(p, 4);
        wait_for_equal(turn(&loop), 6);
        strv_env_set(&env, "HN_PORT_HTTP", "http");
        assert_int_equal(ready_probes_add(p, 5, &by_name, &env, "", &err), -EINVAL);
        ready_probes_destroy(p);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(ready_bits, 6);
        assert_int_equal(uv_loop_close(&loop), 0);
}

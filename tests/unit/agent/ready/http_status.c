/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ready/http_status.h"
#include "lib/unit.h"

TEST(the_status_is_read_from_the_first_bytes)
{
        static const struct {
                const char *answer;
                int status;
        } cases[] = {
                { "HTTP/1.1 200 OK\r\n", 200 },
                { "HTTP/1.0 404 Not Found", 404 },
                { "HTTP/1.1 204\r\n", 204 },
                { "HTTP/1.1 301\n", 301 },
                { "", 0 },
                { "HTT", 0 },
                { "HTTP/1.1 200", 0 },
                { "HTTP/2 200 OK", -1 },
                { "HTTP/1.1 2000", -1 },
                { "HTTP/1.1 20 OK", -1 },
                { "HTTP/1.1  200 OK", -1 },
                { "HTTP/1.1 099 OK", -1 },
                { "HTTP/1.x 200 OK", -1 },
                { "SSH-2.0-OpenSSH", -1 },
                { "http/1.1 200 OK", -1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (http_status_read(cases[i].answer, strlen(cases[i].answer)) != cases[i].status)
                        fail_msg("%s", cases[i].answer);
        assert_int_equal(http_status_read("HTTP/1.1 200\0", 13), -1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ready/http_status.h"

#include <stdbool.h>
#include <string.h>

/* Source: RFC 9112, section 4; the reason behind the digits may be missing with its blank. */
int http_status_read(const char *answer, size_t len)
{
        static const char form[HTTP_STATUS_BYTES + 1] = "HTTP/1.# ### ";
        int status = 0;

        for (size_t i = 0; i < HTTP_STATUS_BYTES; i++) {
                /* The last byte is the blank behind the digits, or the end of the line in its
                 * place. */
                bool end = i == HTTP_STATUS_BYTES - 1, fits;

                if (i == len)
                        return 0;
                if (form[i] == '#')
                        fits = answer[i] >= '0' && answer[i] <= '9';
                else
                        fits = answer[i] == form[i] || (end && memchr("\r\n", answer[i], 2));
                if (!fits)
                        return -1;
                if (form[i] == '#' && i > strlen("HTTP/1.#"))
                        status = status * 10 + (answer[i] - '0');
        }
        return status >= 100 ? status : -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of whatever listens at a port that a probe asks. The status does not depend on how the
 * bytes are cut, and is found in the first HTTP_STATUS_BYTES.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "agent/ready/http_status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int whole = http_status_read((const char *)data, size);
        size_t n = 0;
        int found = 0;

        for (; n <= size && !found; n++) {
                char *piece = malloc(n ? n : 1); /* reads behind the piece are found */

                require(piece);
                memcpy(piece, data, n);
                found = http_status_read(piece, n);
                free(piece);
        }
        require(found == whole && n <= HTTP_STATUS_BYTES + 1);
        require(size < HTTP_STATUS_BYTES || whole);
        require(whole <= 0 || (whole >= 100 && whole <= 999 && memcmp(data, "HTTP/1.", 7) == 0));
        return 0;
}

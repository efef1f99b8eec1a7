/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest stderr of a rank, behind one byte with its exit code. Whatever it is, the reader finds
 * a text without control characters if there is a visible line, and no other.
 */
#include "fuzz.h"

#include <string.h>

#include "base/memory.h"
#include "head/reason/reason.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(free_textp)
        char *text = xstrndup(size ? (const char *)data + 1 : "", size ? size - 1 : 0);
        struct reason r, first;

        reason_find(&r, text, size ? data[0] : 0);
        reason_first_line(&first, text);
        require((r.source == REASON_NONE) == !*r.text && strlen(r.text) < sizeof(r.text));
        require(!*first.text || r.source != REASON_NONE);
        for (const char *p = r.text; *p; p++)
                require((unsigned char)*p >= ' ' || *p == '\t' || *p == '\r');
        return 0;
}

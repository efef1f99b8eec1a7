/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a tool that prints stacks. Whatever it is, the reader finds at most 64 frames with
 * names, and a call that waits is one of them.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/why/stack_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(free_textp) char *text = xstrndup((const char *)data, size);
        char *line;
        struct stack_wait w;
        CLEANUP(stack_finish) struct stack s;

        stack_parse(&s, text);
        require(s.n <= 64 && (!stack_find_wait(&s, &w) || (w.frame < s.n && *w.operation)));
        for (size_t i = 0; i < s.n; i++)
                require(*s.v[i].function);
        line = stack_line(&s, 0, 5);
        free(line);
        line = stack_where(&s, 0);
        require(!s.n || *line);
        free(line);
        return 0;
}

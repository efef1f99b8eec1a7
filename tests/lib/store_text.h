/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store text: requests and replies of the store as text, for tests that compare them
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "store/engine/store.h"
#include "wire/store_msg.h"

/* Returns the word of a status. */
static inline const char *store_status_word(uint8_t status)
{
        static const char *const names[] = {
                [STORE_OK] = "ok",           [STORE_TIMEOUT] = "timeout", [STORE_PEER] = "peer",
                [STORE_INVALID] = "invalid", [STORE_MISMATCH] = "differ", [STORE_TOO_BIG] = "big",
                [STORE_NOMEM] = "nomem",     [STORE_FULL] = "full",
        };

        return names[status];
}

/* Splits @text at blanks; returns how many words there are, which are kept in @room. */
static inline uint32_t store_words(struct bytes *ret, char *room, size_t size, const char *text)
{
        uint32_t n = 0;

        snprintf(room, size, "%s", text ? text : "");
        for (char *w = strtok(room, " "); w; w = strtok(NULL, " "))
                ret[n++] = bytes_of(w);
        return n;
}

/* Host of all ranks: a callback of store_create(). */
static inline const char *store_one_host(void *ctx UNUSED, int rank UNUSED)
{
        return "node";
}

/* Fits CLEANUP(). */
static inline void destroy_store(struct store **s)
{
        store_destroy(*s);
}

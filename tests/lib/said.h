/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Said: what callbacks were told, as text in the words of a test
 */
#pragma once

#include "base/buf.h"
#include "lib/unit.h"

static struct buf said;

/* Requires that the callbacks since the last call said @want. */
static inline void expect_said(const char *want)
{
        buf_append(&said, "", 1);
        assert_string_equal((const char *)buf_data(&said), want);
        buf_clear(&said);
}

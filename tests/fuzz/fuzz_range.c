/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes as a pattern of names, a list of numbers, an argument of -w and a filter. Errors
 * point into the text, results stay within their limits.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "head/hosts/filter.h"
#include "head/hosts/hostfile.h"
#include "head/hosts/range.h"
#include "head/term/diag.h"

enum { MAX_NUMBER = 1023 };

static void check_error(const struct range_error *e, size_t size)
{
        require(e->at <= size && e->len >= 1 && e->at + e->len <= size + 1 && *e->text);
}

static void names(const char *text, size_t size)
{
        CLEANUP(strv_finish) struct strv got = STRV_INIT;
        struct range_error e;

        if (range_expand(text, size, &got, &e) < 0) {
                require(!got.n);
                check_error(&e, size);
        } else {
                require(got.n && got.n <= RANGE_MAX_NAMES);
                for (size_t i = 0; i < got.n; i++)
                        require(strlen(got.v[i]) <= RANGE_MAX_NAME);
        }
}

static void numbers(const char *text, size_t size)
{
        CLEANUP(intlist_finish) struct intlist got = { 0 };
        struct range_error e;

        if (range_numbers(text, size, MAX_NUMBER, &got, &e) < 0) {
                require(!got.n);
                check_error(&e, size);
        }
        for (size_t i = 0; i < got.n; i++)
                require(got.v[i] >= 0 && got.v[i] <= MAX_NUMBER);
}

static void list_and_filter(const char *text, size_t size)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        CLEANUP(strv_finish) struct strv spec = STRV_INIT;

        strv_push_mem(&spec, text, size);
        require((hostlist_parse(&h, spec.v[0], &d) < 0) == (diags_errors(&d) > 0));
        diags_finish(&d);
        if (!hosts_find(&h, "gpu1"))
                hostlist_parse(&h, "gpu1", &d);
        if (filter_apply(&h, &spec, NULL, 0, &d) == 0)
                require(h.n > 0);
        else
                require(diags_errors(&d) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        /* An exact allocation: reads behind the end are found. */
        char *text = malloc(size ? size : 1);

        if (size)
                memcpy(text, data, size);
        names(text, size);
        numbers(text, size);
        list_and_filter(text, size);
        free(text);
        return 0;
}

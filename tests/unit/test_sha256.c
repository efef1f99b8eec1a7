/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macros.h"

enum { MOST = 300 };

/* The one example that the standard itself gives for one block. */
static void test_abc(void **state UNUSED)
{
        char hex[2 * SHA256_BYTES + 1];
        unsigned char got[SHA256_BYTES];

        sha256(got, "abc", 3);
        sodium_bin2hex(hex, sizeof(hex), got, sizeof(got));
        assert_string_equal(hex,
                            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_every_length_and_cut_is_as_libsodium_says(void **state UNUSED)
{
        unsigned char data[MOST], got[SHA256_BYTES], want[SHA256_BYTES];
        struct sha256 s;

        randombytes_buf(data, sizeof(data));
        for (size_t n = 0; n <= MOST; n++) {
                size_t cut = n ? randombytes_uniform((uint32_t)n) : 0;

                crypto_hash_sha256(want, data, n);
                sha256_begin(&s);
                s.fast = s.fast && n % 2; /* both ways, where there are two */
                sha256_add(&s, data, cut);
                sha256_add(&s, data + cut, n - cut);
                sha256_end(&s, got);
                assert_memory_equal(got, want, sizeof(want));
        }
}

static void test_large_data_is_as_libsodium_says(void **state UNUSED)
{
        unsigned char got[SHA256_BYTES], want[SHA256_BYTES], *data;
        size_t n = (8 << 20) + 13;

        data = malloc(n);
        assert_non_null(data);
        randombytes_buf(data, n);
        crypto_hash_sha256(want, data, n);
        sha256(got, data, n);
        assert_memory_equal(got, want, sizeof(want));
        free(data);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_abc),
                cmocka_unit_test(test_every_length_and_cut_is_as_libsodium_says),
                cmocka_unit_test(test_large_data_is_as_libsodium_says),
        };

        return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

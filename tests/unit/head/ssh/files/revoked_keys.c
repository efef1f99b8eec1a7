/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/buf.h"
#include "head/ssh/files/revoked_keys.h"
#include "lib/files.h"
#include "lib/unit.h"

/* Blobs begin with their type; the rest may be anything. A and B are ed25519, R is RSA. */
#define A "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define B "AAAAC3NzaC1lZDI1NTE5AAAAIBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define R "AAAAB3NzaC1yc2EAAAADAQAB"
#define E "ssh-ed25519"

/* Hashes of A's blob, computed with another program. */
#define SHA1_A "\xb4\x14\xae\x69\x84\x20\x86\x6f\x34\x61\xfc\xa5\xbf\xf5\x4a\xd3\xbc\x47\xf5\xcd"
#define SHA256_A                                                                                   \
        "\x92\x66\x1c\xbd\xd8\xb6\x1a\x43\xde\x5b\x10\x7a\x5c\xb8\xeb\x64\x1f\x09\x1e\xcc\xb6\x1e" \
        "\x6f\x25\xb8\x73\x05\xa7\xd1\x8c\xbe\xa9"

static char path[] = "/tmp/test_revoked_keys.XXXXXX";

static struct revoked_keys *load_bytes(const void *data, size_t len)
{
        struct strv files = STRV_INIT;
        struct revoked_keys *rk;

        write_bytes(path, "w", data, len);
        strv_push(&files, path);
        rk = revoked_keys_load(&files);
        strv_finish(&files);
        return rk;
}

/* The line that names A: 0 = none, -1 = the file cannot be used, -2 = named by a KRL. */
static int line_of_a(struct revoked_keys *rk)
{
        char where[512] = "";
        int line = 0;

        if (revoked_keys_trouble(rk)) {
                assert_memory_equal(revoked_keys_trouble(rk), path, strlen(path));
                line = -1;
        } else if (revoked_keys_has(rk, A, where, sizeof(where))) {
                assert_memory_equal(where, path, strlen(path));
                line = where[strlen(path)] ? atoi(where + strlen(path) + 1) : -2;
        }
        revoked_keys_free(rk);
        return line;
}

static const struct {
        const char *text;
        int line;
} lists[] = {
        { "", 0 },
        { "\n# " E " " A "\n \t\n", 0 },
        { E " " A, 1 },
        { E " " A "\r\n", 1 },
        { "# one\n\n  " E "\t" A " a comment\n", 3 },
        { E " " B "\nssh-rsa " R "\n", 0 },
        { E " " B "\n" E " " A "\n" E " " A "\n", 2 },
        { "garbage\n", -1 },
        { E " " A "\n" E " " B "!\n", -1 },
        { E "\n", -1 },
        { "ssh-rsa " A "\n", -1 },
        { "n1 " E " " A "\n", -1 },
        { "SSHKRL\n", -1 },
};

TEST(a_list_names_keys_or_is_useless)
{
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                int line = line_of_a(load_bytes(lists[i].text, strlen(lists[i].text)));

                if (line != lists[i].line)
                        fail_msg("list %zu (%s): %d", i, lists[i].text, line);
        }
        assert_int_equal(line_of_a(load_bytes(E " " B "\n\0" E " " A "\n", 140)), -1);
}

static void put_u32(struct buf *b, uint32_t n)
{
        const unsigned char bytes[] = { n >> 24, n >> 16 & 255, n >> 8 & 255, n & 255 };

        buf_append(b, bytes, sizeof(bytes));
}

static void put_string(struct buf *b, const void *data, size_t len)
{
        put_u32(b, (uint32_t)len);
        buf_append(b, data, len);
}

static void put_section(struct buf *b, int type, const struct buf *data)
{
        buf_append(b, &(char){ (char)type }, 1);
        put_string(b, buf_data(data), buf_len(data));
}

/* A KRL with one section of one string. */
static struct buf krl(uint32_t version, int type, const void *data, size_t len)
{
        struct buf b = BUF_INIT, section = BUF_INIT;

        buf_append(&b, "SSHKRL\n", 8);
        put_u32(&b, version);
        buf_append(&b, (char[24]){ 0 }, 24);
        put_string(&b, "", 0);
        put_string(&b, "a comment", 9);
        put_string(&section, data, len);
        put_section(&b, type, &section);
        buf_finish(&section);
        return b;
}

static int line_in_krl(struct buf b)
{
        int line = line_of_a(load_bytes(buf_data(&b), buf_len(&b)));

        buf_finish(&b);
        return line;
}

static const char blob_a[] = "\0\0\0\x0bssh-ed25519\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\0\0\0\0\0\0\0";

TEST(a_krl_names_keys_and_their_hashes)
{
        assert_int_equal(line_in_krl(krl(1, 2, blob_a, 51)), -2);
        assert_int_equal(line_in_krl(krl(1, 3, SHA1_A, 20)), -2);
        assert_int_equal(line_in_krl(krl(1, 5, SHA256_A, 32)), -2);
        assert_int_equal(line_in_krl(krl(1, 2, blob_a, 50)), 0);
        assert_int_equal(line_in_krl(krl(1, 5, "01234567890123456789012345678901", 32)), 0);
        /* Certificates are not our subject. */
        assert_int_equal(line_in_krl(krl(1, 1, blob_a, 51)), 0);
}

TEST(a_krl_that_is_not_understood_is_useless)
{
        CLEANUP(buf_finish) struct buf whole = krl(1, 2, blob_a, 51);

        assert_int_equal(line_in_krl(krl(2, 2, blob_a, 51)), -1);
        assert_int_equal(line_in_krl(krl(1, 6, blob_a, 51)), -1);
        assert_int_equal(line_in_krl(krl(1, 3, SHA256_A, 32)), -1);
        assert_int_equal(line_in_krl(krl(1, 5, SHA1_A, 20)), -1);
        for (size_t n = 8; n < buf_len(&whole); n++) {
                int line = line_of_a(load_bytes(buf_data(&whole), n));

                /* Its header alone is a KRL without entries. */
                if (line != (n == 8 + 4 + 24 + 4 + 4 + 9 ? 0 : -1))
                        fail_msg("cut behind %zu bytes: %d", n, line);
        }
}

TEST(extensions_count_when_they_are_critical)
{
        for (int critical = 0; critical < 2; critical++) {
                struct buf b = krl(1, 2, blob_a, 51), section = BUF_INIT;

                put_string(&section, "name", 4);
                buf_append(&section, &(char){ (char)critical }, 1);
                put_string(&section, "", 0);
                put_section(&b, 255, &section);
                buf_finish(&section);
                assert_int_equal(line_in_krl(b), critical ? -1 : -2);
        }
}

TEST(every_file_counts)
{
        CLEANUP(strv_finish) struct strv files = STRV_INIT;
        struct revoked_keys *rk;

        assert_null(revoked_keys_load(&files));
        assert_null(revoked_keys_trouble(NULL));
        assert_false(revoked_keys_has(NULL, A, NULL, 0));
        strv_push(&files, "/dev/null");
        strv_push(&files, "/no/such/file");
        rk = revoked_keys_load(&files);
        assert_string_equal(revoked_keys_trouble(rk), "/no/such/file: No such file or directory");
        revoked_keys_free(rk);
}

int main(void)
{
        int fd = mkstemp(path), r;

        close(fd);
        r = unit_run(NULL, NULL);
        unlink(path);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "head/ssh/files/known_hosts.h"
#include "lib/files.h"
#include "lib/unit.h"

/* Blobs begin with their type; the rest may be anything. A and B are ed25519, R is RSA. */
#define A "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define B "AAAAC3NzaC1lZDI1NTE5AAAAIBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define R "AAAAB3NzaC1yc2EAAAADAQAB"
#define E "ssh-ed25519"

/* "n1" hashed with the salt 0, 1, ... 19: computed with another HMAC-SHA1. */
#define HASHED_N1 "|1|AAECAwQFBgcICQoLDA0ODxAREhM=|lUEcUUPZAbbEFu+qHoflhqg17Mc="

static char path[] = "/tmp/test_known_hosts.XXXXXX";

TEST(a_file_that_cannot_be_read_is_named)
{
        CLEANUP(strv_finish) struct strv files = STRV_INIT;
        struct known_set set;
        struct known_hosts *kh;

        strv_push(&files, "/no/such/file");
        strv_push(&files, "/"); /* EISDIR */
        kh = known_hosts_load(&files);
        known_hosts_find(kh, "n1", 22, &set);
        assert_string_equal(set.unread, "/");
        assert_int_equal(set.error, EISDIR);
        known_set_finish(&set);
        known_hosts_free(kh);
}

static struct known_hosts *load(const char *text)
{
        struct strv files = STRV_INIT;
        struct known_hosts *kh;

        write_file(path, text);
        strv_push(&files, "/no/such/file");
        strv_push(&files, path);
        kh = known_hosts_load(&files);
        strv_finish(&files);
        return kh;
}

static const struct {
        const char *text, *name;
        int port;
        enum known_verdict verdict; /* of the ed25519 key A */
        int line;
} cases[] = {
        { "n1 " E " " A, "n1", 22, KNOWN_OK, 1 },
        { "n1 " E " " A, "N1", 0, KNOWN_OK, 1 },
        { "N1 " E " " A "\r\n", "n1", 22, KNOWN_OK, 1 },
        { "n1 " E " " A " a comment", "n1", 22, KNOWN_OK, 1 },
        { "n1 " E " " A, "n2", 22, KNOWN_UNKNOWN, 0 },
        { "n1 " E " " A, "n11", 22, KNOWN_UNKNOWN, 0 },
        { "# n1\n\n  n1\t" E "  " A, "n1", 22, KNOWN_OK, 3 },
        { "n1 " E " " B, "n1", 22, KNOWN_CHANGED, 1 },
        { "n1 ssh-rsa " R, "n1", 22, KNOWN_CHANGED, 1 },
        { "n1 ssh-rsa " R "\nn1 " E " " B, "n1", 22, KNOWN_CHANGED, 2 },
        { "n1 " E " " B "\nn1 " E " " A, "n1", 22, KNOWN_OK, 2 },
        { "n0,n1,n2 " E " " A, "n1", 22, KNOWN_OK, 1 },
        { "n?,!n1 " E " " A, "n1", 22, KNOWN_UNKNOWN, 0 },
        { "n?,!n1 " E " " A, "n2", 22, KNOWN_OK, 1 },
        { "*.lan " E " " A, "a.b.lan", 22, KNOWN_OK, 1 },
        { "*a*a*b " E " " A, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 22, KNOWN_UNKNOWN, 0 },
        { "[n1]:2222 " E " " A, "n1", 2222, KNOWN_OK, 1 },
        { "[n1]:2222 " E " " A, "n1", 22, KNOWN_UNKNOWN, 0 },
        { "n1 " E " " A, "n1", 2222, KNOWN_OK, 1 },
        { "n1 " E " " B, "n1", 2222, KNOWN_UNKNOWN, 1 },
        { "[n1]:2222 " E " " B "\nn1 " E " " A, "n1", 2222, KNOWN_CHANGED, 1 },
        { "@revoked * " E " " B "\nn1 " E " " A, "n1", 2222, KNOWN_OK, 2 },
        { "@revoked [n1]:2222 " E " " B "\nn1 " E " " A, "n1", 2222, KNOWN_OK, 2 },
        { "@revoked [n1]:2222 " E " " A "\nn1 " E " " A, "n1", 2222, KNOWN_REVOKED, 1 },
        { "@revoked * " E " " A "\nn1 " E " " A, "n1", 2222, KNOWN_REVOKED, 1 },
        { "@revoked * ssh-rsa " R "\nn1 " E " " B, "n1", 2222, KNOWN_UNKNOWN, 1 },
        { "* " E " " B "\nn1 " E " " A, "n1", 2222, KNOWN_CHANGED, 1 },
        { "@revoked * " E " " A "\nn1 " E " " A, "n1", 22, KNOWN_REVOKED, 1 },
        { "n1 " E " " A "\n@revoked n1 " E " " A, "n1", 22, KNOWN_REVOKED, 2 },
        { "@revoked n1 " E " " B "\nn1 " E " " A, "n1", 22, KNOWN_OK, 2 },
        { "@cert-authority * " E " " A, "n1", 22, KNOWN_UNKNOWN, 0 },
        { "n1 ssh-rsa " A "\nn1 " E " " A, "n1", 22, KNOWN_OK, 2 },
        { "n1 " E " A!\nn1 " E "\nn1\n \nn1 " E " " A, "n1", 22, KNOWN_OK, 5 },
        { HASHED_N1 " " E " " A, "n1", 22, KNOWN_OK, 1 },
        { HASHED_N1 " " E " " A, "N1", 22, KNOWN_OK, 1 },
        { HASHED_N1 " " E " " B, "n1", 22, KNOWN_CHANGED, 1 },
        { HASHED_N1 " " E " " A, "n2", 22, KNOWN_UNKNOWN, 0 },
        { "|1|xx|yy " E " " A, "n1", 22, KNOWN_UNKNOWN, 0 },
        { "", "n1", 22, KNOWN_UNKNOWN, 0 },
};

TEST(every_state_is_told_with_its_line)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct known_hosts *kh = load(cases[i].text);
                struct known_set set;
                char where[512], expect[512] = "";
                enum known_verdict verdict;

                known_hosts_find(kh, cases[i].name, cases[i].port, &set);
                verdict = known_set_check(&set, E, A, where, sizeof(where), NULL);
                if (verdict != cases[i].verdict)
                        fail_msg("case %zu (%s): %d", i, cases[i].text, (int)verdict);
                if (verdict != KNOWN_UNKNOWN) {
                        snprintf(expect, sizeof(expect), "%s:%d", path, cases[i].line);
                        assert_string_equal(where, expect);
                }
                known_set_finish(&set);
                known_hosts_free(kh);
        }
}

TEST(known_types_lead_the_algorithms)
{
        struct known_hosts *kh = load("n1 ssh-rsa " R "\n@revoked n1 " E " " A);
        struct known_set set;
        CLEANUP(free_textp) char *list = NULL;

        known_hosts_find(kh, "n1", 22, &set);
        list = known_set_algorithms(&set, "ssh-ed25519,rsa-sha2-512,rsa-sha2-256");
        assert_string_equal(list, "rsa-sha2-512,rsa-sha2-256,ssh-ed25519");
        known_set_finish(&set);
        known_hosts_free(kh);
}

/* Reads the file anew and returns the line with the key of a host; 0 = the host is unknown. */
static int known_line(const char *name, int port, const char *blob)
{
        struct strv files = STRV_INIT;
        struct known_hosts *kh;
        struct known_set set;
        char where[512];
        int line = 0;

        strv_push(&files, path);
        kh = known_hosts_load(&files);
        known_hosts_find(kh, name, port, &set);
        if (set.n) {
                assert_int_equal(known_set_check(&set, E, blob, where, sizeof(where), NULL),
                                 KNOWN_OK);
                line = atoi(strrchr(where, ':') + 1);
        }
        known_set_finish(&set);
        known_hosts_free(kh);
        strv_finish(&files);
        return line;
}

TEST(appended_keys_are_found)
{
        struct error err;

        known_hosts_free(load("n1 " E " " A)); /* no newline at the end */
        assert_int_equal(known_hosts_append(path, "N2", 2222, false, E, B, &err), 2);
        assert_int_equal(known_line("n1", 22, A), 1);
        assert_int_equal(known_line("n2", 2222, B), 2);
        assert_int_equal(known_hosts_append(path, "N3", 2222, true, E, A, &err), 3);
        assert_int_equal(known_line("n3", 2222, A), 3);
        assert_int_equal(known_line("n3", 22, A), 0);
        assert_true(known_hosts_append("/no/such/folder/file", "n", 22, false, E, A, &err) < 0);
}

int main(void)
{
        int fd = mkstemp(path), r;

        close(fd);
        r = unit_run(NULL, NULL);
        unlink(path);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are a known_hosts file and a list of revoked keys, which may be a KRL. Every key that
 * is found is known or revoked, and the lines that nodes of a tree get name the same keys.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "head/ssh/files/known_hosts.h"
#include "head/ssh/files/revoked_keys.h"

static const char blob[] = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/* Writes the bytes to memory and returns the only path to them. */
static int write_files(const uint8_t *data, size_t size, struct strv *ret)
{
        int fd = memfd_create("known_hosts", MFD_CLOEXEC);

        require(fd >= 0 && fd_write_all(fd, data, size) == 0);
        strv_pushf(ret, "/proc/self/fd/%d", fd);
        return fd;
}

static void check_name(const struct known_hosts *kh, const struct revoked_keys *rk,
                       const char *name, int port)
{
        static const char defaults[] = "ssh-ed25519,rsa-sha2-512";
        CLEANUP(buf_finish) struct buf lines = BUF_INIT;
        CLEANUP(known_set_finish) struct known_set set;
        const char *decisive;
        char where[64], *algorithms;
        enum known_verdict v;

        known_hosts_find(kh, name, port, &set);
        require(set.strict <= set.n);
        v = known_set_check(&set, "ssh-ed25519", blob, where, sizeof(where), &decisive);
        require(memchr(where, '\0', sizeof(where)) != NULL);
        require(v == KNOWN_UNKNOWN || (set.n > 0 && *where && *decisive));
        require(v != KNOWN_OK || strcmp(decisive, blob) == 0);
        algorithms = known_set_algorithms(&set, defaults);
        require(strstr(algorithms, "ssh-ed25519") && strstr(algorithms, "rsa-sha2-512"));
        known_set_lines(&set, rk, name, &lines);
        require((buf_len(&lines) > 0) == (set.n > 0));
        free(algorithms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(strv_finish) struct strv files = STRV_INIT;
        CLEANUP(fd_closep) int fd = write_files(data, size, &files);
        struct known_hosts *kh = known_hosts_load(&files);
        struct revoked_keys *rk = revoked_keys_load(&files);
        char where[64];

        if (!revoked_keys_trouble(rk) && revoked_keys_has(rk, blob, where, sizeof(where)))
                require(memchr(where, '\0', sizeof(where)) != NULL);
        check_name(kh, rk, "node1", 22);
        check_name(kh, rk, "node1", 2222);
        check_name(kh, rk, "10.0.0.1", 22);
        check_name(kh, rk, "Node2.example.com", 22);
        known_hosts_free(kh);
        revoked_keys_free(rk);
        return 0;
}

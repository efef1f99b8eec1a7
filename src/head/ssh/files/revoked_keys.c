/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry is the blob of a key or a hash of the blob (SHA-1, SHA-256), so that a key is looked up
 * under three names. The lists are short and each host asks once: a linear search is enough.
 *
 * A KRL is a header and sections of length-prefixed strings (PROTOCOL.krl of OpenSSH). Sections for
 * certificates do not concern plain keys, the only keys accepted here. Any other unknown section
 * makes the file unusable, since ignoring the section would shorten the list.
 */
#include "head/ssh/files/revoked_keys.h"

#include <errno.h>
#include <openssl/sha.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fd.h"
#include "head/ssh/files/key_line.h"

#define FILE_MAX    (64u << 20)
#define KRL_MAGIC   "SSHKRL\n" /* and the NUL */
#define KRL_VERSION 1

enum {
        KRL_CERTIFICATES = 1,
        KRL_KEYS = 2,
        KRL_SHA1 = 3,
        KRL_SIGNATURE = 4,
        KRL_SHA256 = 5,
        KRL_EXTENSION = 255
};

struct revoked_entry {
        const char *file; /* in revoked_keys.files */
        int line;         /* 0 = of a KRL */
        unsigned char *data;
        size_t len;
};

struct revoked_keys {
        struct strv files;
        struct revoked_entry *v;
        size_t n, cap;
        char *trouble;
};

/* The rest of a KRL or of a section. */
struct krl_cursor {
        const unsigned char *at;
        size_t left;
        bool short_of; /* the end was passed */
};

/* Returns the next @n bytes, or NULL. After the first shortage nothing is returned any more, so one
 * check at the end suffices. */
static const unsigned char *take_krl_bytes(struct krl_cursor *c, size_t n)
{
        const unsigned char *p = c->at;

        if (c->short_of || n > c->left) {
                c->short_of = true;
                c->left = 0;
                return NULL;
        }
        c->at += n;
        c->left -= n;
        return p;
}

/* Returns the next number, or 0 with c->short_of. */
static uint32_t take_krl_u32(struct krl_cursor *c)
{
        const unsigned char *p = take_krl_bytes(c, 4);

        return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

/* Returns the next string as a cursor of its own; short_of: there is none. */
static struct krl_cursor take_krl_string(struct krl_cursor *c)
{
        size_t n = take_krl_u32(c);
        const unsigned char *p = take_krl_bytes(c, n);

        return (struct krl_cursor){ .at = p, .left = p ? n : 0, .short_of = !p };
}

/* Adds a copy of a key or hash. @line 0: from a KRL. */
static void add_revoked(struct revoked_keys *rk, const char *file, int line,
                        const unsigned char *data, size_t len)
{
        struct revoked_entry e = {
                .file = file, .line = line, .data = xcalloc(1, len + 1), .len = len
        };

        memcpy(e.data, data, len);
        rk->v = xgrow(rk->v, rk->n, &rk->cap, sizeof(*rk->v));
        rk->v[rk->n++] = e;
}

/* Adds all strings of a section, each of length @len, or of any length if 0. */
static int load_krl_strings(struct revoked_keys *rk, const char *file, struct krl_cursor *c,
                            size_t len, struct error *err)
{
        while (c->left) {
                struct krl_cursor one = take_krl_string(c);

                if (c->short_of || !one.left || (len && one.left != len))
                        return err_set(err, EINVAL, "a damaged KRL");
                add_revoked(rk, file, 0, one.at, one.left);
        }
        return 0;
}

/* Reads a section of keys or hashes. Certificates of hosts are not accepted at all, so their
 * section is passed over; an unknown section is an error, since a revoked key must not pass. */
static int load_krl_section(struct revoked_keys *rk, const char *file, unsigned type,
                            struct krl_cursor c, struct error *err)
{
        const unsigned char *critical;

        switch (type) {
        case KRL_CERTIFICATES:
                return 0;
        case KRL_KEYS:
                return load_krl_strings(rk, file, &c, 0, err);
        case KRL_SHA1:
                return load_krl_strings(rk, file, &c, SHA_DIGEST_LENGTH, err);
        case KRL_SHA256:
                return load_krl_strings(rk, file, &c, crypto_hash_sha256_BYTES, err);
        /* An extension says itself whether a reader may pass over it. */
        case KRL_EXTENSION:
                take_krl_string(&c);
                critical = take_krl_bytes(&c, 1);
                if (critical && !*critical)
                        return 0;
                return err_set(err, ENOTSUP, "a KRL with a critical extension");
        default:
                return err_set(err, ENOTSUP, "a KRL with a section of type %u", type);
        }
}

/* Reads a KRL (OpenSSH's PROTOCOL.krl). Signatures are passed over. */
static int load_krl(struct revoked_keys *rk, const char *file, struct krl_cursor c,
                    struct error *err)
{
        uint32_t version;
        int r = 0;

        take_krl_bytes(&c, sizeof(KRL_MAGIC)); /* with the NUL */
        version = take_krl_u32(&c);
        if (!c.short_of && version != KRL_VERSION)
                return err_set(err, ENOTSUP, "a KRL of version %u", (unsigned)version);
        take_krl_bytes(&c, 3 * sizeof(uint64_t)); /* number, date, flags */
        take_krl_string(&c);                      /* reserved */
        take_krl_string(&c);                      /* comment */
        while (c.left && r == 0) {
                /* c.left is not 0, so there is a byte. */
                unsigned type = *take_krl_bytes(&c, 1);
                struct krl_cursor section = take_krl_string(&c);

                if (!c.short_of && type == KRL_SIGNATURE)
                        take_krl_string(&c); /* @section was the signer's key */
                else if (!c.short_of)
                        r = load_krl_section(rk, file, type, section, err);
        }
        return r == 0 && c.short_of ? err_set(err, EINVAL, "a damaged KRL") : r;
}

/* Reads lines of public keys. Any other line makes the whole file unusable. */
static int load_revoked_text(struct revoked_keys *rk, const char *file, char *text, size_t len,
                             struct error *err)
{
        if (memchr(text, '\0', len)) /* a KRL of another magic, or any binary file */
                return err_set(err, EINVAL, "neither public keys nor a KRL");
        for (int line = 1; text; line++) {
                char *rest = strsep(&text, "\n");
                const char *type = key_line_word(&rest), *word = key_line_word(&rest);
                unsigned char *blob;
                size_t blob_len;

                if (!type || *type == '#')
                        continue;
                blob = word ? key_line_blob(word, type, &blob_len) : NULL;
                if (!blob)
                        return err_set(err, EINVAL, "line %d is not a public key", line);
                add_revoked(rk, file, line, blob, blob_len);
                free(blob);
        }
        return 0;
}

/* Reads a file of RevokedHostKeys; a failure is kept, and refuses every key. */
static void load_revoked_file(struct revoked_keys *rk, const char *file)
{
        struct error err = { 0 };
        char *text = NULL;
        size_t len;
        int r = fd_read_file(file, FILE_MAX, &text, &len);

        if (r < 0)
                err_set(&err, -r, "%s", strerror(-r));
        else if (len >= sizeof(KRL_MAGIC) && memcmp(text, KRL_MAGIC, sizeof(KRL_MAGIC)) == 0)
                r = load_krl(rk, file, (struct krl_cursor){ .at = (void *)text, .left = len },
                             &err);
        else
                r = load_revoked_text(rk, file, text, len, &err);
        if (r < 0 && !rk->trouble)
                rk->trouble = xasprintf("%s: %s", file, err.text);
        free(text);
}

struct revoked_keys *revoked_keys_load(const struct strv *files)
{
        struct revoked_keys *rk;

        if (!files->n)
                return NULL;
        rk = xcalloc(1, sizeof(*rk));
        strv_copy(&rk->files, files);
        for (size_t i = 0; i < rk->files.n; i++)
                load_revoked_file(rk, rk->files.v[i]);
        return rk;
}

void revoked_keys_free(struct revoked_keys *rk)
{
        if (!rk)
                return;
        for (size_t i = 0; i < rk->n; i++)
                free(rk->v[i].data);
        free(rk->v);
        free(rk->trouble);
        strv_finish(&rk->files);
        free(rk);
}

const char *revoked_keys_trouble(const struct revoked_keys *rk)
{
        return rk ? rk->trouble : NULL;
}

/* Returns the entry with exactly these bytes, or NULL. */
static const struct revoked_entry *find_revoked(const struct revoked_keys *rk,
                                                const unsigned char *data, size_t len)
{
        for (size_t i = 0; i < rk->n; i++)
                if (rk->v[i].len == len && memcmp(rk->v[i].data, data, len) == 0)
                        return &rk->v[i];
        return NULL;
}

/* Says nothing of unusable files: the caller asks revoked_keys_trouble() first. */
bool revoked_keys_has(const struct revoked_keys *rk, const char *blob, char *ret_where, size_t size)
{
        unsigned char sha1[SHA_DIGEST_LENGTH], sha256[crypto_hash_sha256_BYTES], *raw;
        const struct revoked_entry *e = NULL;
        size_t len;

        if (!rk)
                return false;
        raw = key_line_blob(blob, NULL, &len);
        if (raw) {
                SHA1(raw, len, sha1);
                crypto_hash_sha256(sha256, raw, len);
                e = find_revoked(rk, raw, len);
                e = e ? e : find_revoked(rk, sha256, sizeof(sha256));
                e = e ? e : find_revoked(rk, sha1, sizeof(sha1));
        }
        free(raw);
        /* A caller without interest passes @size 0, and snprintf() writes nothing. */
        if (e && e->line)
                snprintf(ret_where, size, "%s:%d", e->file, e->line);
        else if (e)
                snprintf(ret_where, size, "%s", e->file);
        return e != NULL;
}

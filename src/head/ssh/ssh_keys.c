/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are loaded on first use under one mutex and kept in a hash table, by path or by path and
 * certificate, until the end. A missing or unusable key is an entry too, with a state, so that each
 * file is read once.
 */
#include "head/ssh/ssh_keys.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

struct key_entry {
        char *name; /* key path, or "key path\ncertificate path" */
        struct ssh_identity identity;
        UT_hash_handle hh;
};

struct ssh_keys {
        pthread_mutex_t mutex;
        struct key_entry *entries;
};

struct ssh_keys *ssh_keys_create(void)
{
        struct ssh_keys *keys = xcalloc(1, sizeof(*keys));

        pthread_mutex_init(&keys->mutex, NULL);
        return keys;
}

void ssh_keys_free(struct ssh_keys *keys)
{
        struct key_entry *e, *next;

        if (!keys)
                return;
        HASH_ITER(hh, keys->entries, e, next)
        {
                HASH_DEL(keys->entries, e);
                ssh_key_free(e->identity.key);
                free(e->identity.path);
                free((void *)e->identity.blob.data);
                free(e->name);
                free(e);
        }
        pthread_mutex_destroy(&keys->mutex);
        free(keys);
}

/* Returns the type as ssh-keygen(1) prints the type behind a fingerprint. */
static const char *key_type_name(ssh_key key)
{
        static const char *const names[] = {
                [SSH_KEYTYPE_ED25519] = "ED25519",
                [SSH_KEYTYPE_ED25519_CERT01] = "ED25519-CERT",
                [SSH_KEYTYPE_RSA] = "RSA",
                [SSH_KEYTYPE_RSA_CERT01] = "RSA-CERT",
                [SSH_KEYTYPE_ECDSA_P256] = "ECDSA",
                [SSH_KEYTYPE_ECDSA_P384] = "ECDSA",
                [SSH_KEYTYPE_ECDSA_P521] = "ECDSA",
                [SSH_KEYTYPE_ECDSA_P256_CERT01] = "ECDSA-CERT",
                [SSH_KEYTYPE_ECDSA_P384_CERT01] = "ECDSA-CERT",
                [SSH_KEYTYPE_ECDSA_P521_CERT01] = "ECDSA-CERT",
                [SSH_KEYTYPE_SK_ED25519] = "ED25519-SK",
                [SSH_KEYTYPE_SK_ECDSA] = "ECDSA-SK",
        };
        size_t type = (size_t)ssh_key_type(key);

        return type < ARRAY_SIZE(names) && names[type] ? names[type] : "key";
}

void ssh_key_describe(ssh_key key, struct ssh_key_name *ret)
{
        unsigned char *hash = NULL;
        size_t len;
        char *text;

        *ret = (struct ssh_key_name){ 0 };
        snprintf(ret->type, sizeof(ret->type), "%s", key_type_name(key));
        if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &len) != 0)
                return;
        text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, len);
        if (text)
                snprintf(ret->print, sizeof(ret->print), "%s", text);
        ssh_string_free_char(text);
        ssh_clean_pubkey_hash(&hash);
}

/* Called by libssh for the passphrase of an encrypted key: notes the call and has none. */
static int refuse_passphrase(const char *prompt UNUSED, char *buf UNUSED, size_t len UNUSED,
                             int echo UNUSED, int verify UNUSED, void *ctx)
{
        *(bool *)ctx = true;
        return -1;
}

/* Returns the public key's blob, malloc'ed; empty on failure. */
static struct key_blob export_blob(ssh_key key)
{
        struct key_blob blob = { 0 };
        char *text;

        if (ssh_pki_export_pubkey_base64(key, &text) != SSH_OK)
                return blob;
        blob.data = key_line_blob(text, NULL, &blob.len);
        ssh_string_free_char(text);
        return blob;
}

/* Finds the public half of a key that cannot be used from its file: the agent may have it. A
 * private key of OpenSSH has it in clear, and the file may be a public key itself. */
static void load_public_half(struct ssh_identity *id, const char *path)
{
        char *beside = xasprintf("%s.pub", path);
        ssh_key public;

        /* The file beside it first: reading the key itself may fail. */
        if (ssh_pki_import_pubkey_file(beside, &public) == SSH_OK ||
            ssh_pki_import_pubkey_file(path, &public) == SSH_OK) {
                ssh_key_describe(public, &id->name);
                id->blob = export_blob(public);
                ssh_key_free(public);
        }
        free(beside);
}

/* As ssh(1) does, refuses a key of the user that other users may access. */
static bool is_exposed(struct ssh_identity *id, const char *path)
{
        struct stat st;

        /* A key of another user, such as root, is taken as it is. */
        if (stat(path, &st) < 0 || st.st_uid != getuid() || !(st.st_mode & 077))
                return false;
        id->mode = st.st_mode & 0777;
        return true;
}

/* Reads a private key, or at least the public half. */
static void load_private_key(struct ssh_identity *id, const char *path)
{
        bool asked = false;

        if (access(path, F_OK) != 0) {
                id->state = IDENTITY_MISSING;
        } else if (is_exposed(id, path)) {
                id->state = IDENTITY_EXPOSED;
        } else if (ssh_pki_import_privkey_file(path, NULL, refuse_passphrase, &asked, &id->key) ==
                   SSH_OK) {
                id->state = IDENTITY_GOOD;
                ssh_key_describe(id->key, &id->name);
                return;
        } else {
                id->key = NULL;
                id->state = asked ? IDENTITY_ENCRYPTED : IDENTITY_UNREADABLE;
        }
        /* Not reached with a good key: the public half is in there. */
        load_public_half(id, path);
}

/* ssh_key_cmp() finds a key and its certificate different because of the type. */
static bool cert_is_of_key(ssh_key cert, ssh_key key)
{
        struct key_blob c = export_blob(cert), k = export_blob(key);
        bool same = c.data && k.data && key_blob_is_of(c, k);

        free((void *)c.data);
        free((void *)k.data);
        return same;
}

/* Loads a key with a certificate. MISSING stands for every failure: the plain key is tried in any
 * case. */
static void load_certificate(struct ssh_identity *id, const char *path, const char *cert_path)
{
        ssh_key cert = NULL;

        if (access(cert_path, R_OK) != 0 || ssh_pki_import_cert_file(cert_path, &cert) != SSH_OK) {
                id->state = IDENTITY_MISSING;
                return;
        }
        load_private_key(id, path);
        if (id->key && cert_is_of_key(cert, id->key) &&
            ssh_pki_copy_cert_to_privkey(cert, id->key) == SSH_OK)
                /* The type alone changes; the print stays that of the key. */
                snprintf(id->name.type, sizeof(id->name.type), "%s", key_type_name(cert));
        else
                id->state = IDENTITY_MISSING;
        ssh_key_free(cert);
}

const struct ssh_identity *ssh_keys_get(struct ssh_keys *keys, const char *path, const char *cert)
{
        char *name = cert ? xasprintf("%s\n%s", path, cert) : xstrdup(path);
        struct key_entry *e;

        /* Held while the file is read: other threads that ask for the same key wait for the
         * result. */
        pthread_mutex_lock(&keys->mutex);
        HASH_FIND_STR(keys->entries, name, e);
        if (!e) {
                e = xcalloc(1, sizeof(*e));
                e->name = name;
                e->identity.path = xstrdup(cert ? cert : path);
                if (cert)
                        load_certificate(&e->identity, path, cert);
                else
                        load_private_key(&e->identity, path);
                /* Also a failure: the file is not read again for the next host. */
                HASH_ADD_KEYPTR(hh, keys->entries, e->name, strlen(e->name), e);
        } else {
                free(name);
        }
        pthread_mutex_unlock(&keys->mutex);
        return &e->identity;
}

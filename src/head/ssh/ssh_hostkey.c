/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_hostkey_session() sets the algorithm lists of the target. ssh_hostkey_check()
 * compares the offered key in this order: revoked (by RevokedHostKeys, or an unreadable list),
 * known, changed or marked as revoked, unknown. Only an unknown key may be accepted: when it is the
 * user's own login key, or with --host-key accept-new, which appends a line to known_hosts. Every
 * refusal names cause, fact, evidence and help of struct link_failure. ssh_hostkey_fetch() compares
 * alike, for a host that is asked for its key only, and accepts none.
 */
#include "head/ssh/ssh_hostkey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

/* Hands the lists of algorithms to libssh. 0, or negative with @err: libssh knows none of a
 * list. */
static int set_session_algorithms(ssh_session s, const struct ssh_target *target, struct error *err)
{
        static const struct {
                enum algorithm_kind kind;
                enum ssh_options_e option;
        } lists[] = {
                { ALGORITHM_KEX, SSH_OPTIONS_KEY_EXCHANGE },
                { ALGORITHM_CIPHER, SSH_OPTIONS_CIPHERS_C_S },
                { ALGORITHM_CIPHER, SSH_OPTIONS_CIPHERS_S_C },
                { ALGORITHM_MAC, SSH_OPTIONS_HMAC_C_S },
                { ALGORITHM_MAC, SSH_OPTIONS_HMAC_S_C },
                { ALGORITHM_HOST_KEY, SSH_OPTIONS_HOSTKEYS },
                { ALGORITHM_PUBKEY, SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES },
        };

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                const char *list = target->algorithms[lists[i].kind];

                if (ssh_options_set(s, lists[i].option, list) < 0)
                        return err_set(err, EINVAL, "%s %s: libssh has none of these",
                                       algorithms_keyword(lists[i].kind), list);
        }
        if (target->host.algorithms.rsa_bits > 0 &&
            ssh_options_set(s, SSH_OPTIONS_RSA_MIN_SIZE, &target->host.algorithms.rsa_bits) < 0)
                return err_set(err, EINVAL, "RequiredRSASize %d: libssh cannot use it",
                               target->host.algorithms.rsa_bits);
        return 0;
}

ssh_session ssh_hostkey_session(const struct ssh_target *target, int fd, struct error *err)
{
        const struct ssh_host *h = &target->host;
        ssh_session s = ssh_new();
        bool no = false;

        if (!s) {
                err_set(err, ENOMEM, "libssh: out of memory");
                return NULL;
        }
        /* The configuration is read by files/ssh_config.c, in a stricter way. */
        ssh_options_set(s, SSH_OPTIONS_PROCESS_CONFIG, &no);
        if (ssh_options_set(s, SSH_OPTIONS_HOST, h->hostname) < 0 ||
            ssh_options_set(s, SSH_OPTIONS_PORT, &h->port) < 0 ||
            ssh_options_set(s, SSH_OPTIONS_USER, h->user) < 0 ||
            ssh_options_set(s, SSH_OPTIONS_FD, &fd) < 0) {
                err_set(err, EINVAL, "%s", ssh_get_error(s));
                ssh_free(s);
                return NULL;
        }
        /* ssh_hostkey_check() compares the keys, not libssh. */
        ssh_options_set(s, SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
        ssh_options_set(s, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
        /* The agent compresses what is worth it: see ssh_keywords.c. */
        ssh_options_set(s, SSH_OPTIONS_COMPRESSION, "no");
        if (target->agent)
                ssh_options_set(s, SSH_OPTIONS_IDENTITY_AGENT, target->agent);
        if (set_session_algorithms(s, target, err) < 0) {
                ssh_free(s);
                return NULL;
        }
        ssh_set_blocking(s, 0);
        return s;
}

struct offered_key {
        ssh_key key;
        const char *type;
        char *blob;
        struct ssh_key_name name;
};

/* Names a key. The blob begins with the type, but libssh needs the type as well. */
static void describe_key_blob(const char *blob, struct ssh_key_name *ret)
{
        static const enum ssh_keytypes_e types[] = { SSH_KEYTYPE_ED25519, SSH_KEYTYPE_RSA,
                                                     SSH_KEYTYPE_ECDSA_P256, SSH_KEYTYPE_ECDSA_P384,
                                                     SSH_KEYTYPE_ECDSA_P521 };
        ssh_key key;

        *ret = (struct ssh_key_name){ .type = "key" };
        /* Keys of tokens have no place here: they stay "key". */
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (ssh_pki_import_pubkey_base64(blob, types[i], &key) == SSH_OK) {
                        ssh_key_describe(key, ret);
                        ssh_key_free(key);
                        return;
                }
}

static void describe_unknown_key(const struct ssh_target *target, const struct offered_key *key,
                                 struct link_failure *why)
{
        struct buf out = BUF_INIT;

        buf_printf(&out, "offered %s %s\nlooked ", key->name.type, key->name.print);
        if (strcmp(target->known_name, target->host.alias) != 0)
                buf_printf(&out, "for %s ", target->known_name);
        buf_appends(&out, "in");
        for (size_t i = 0; i < target->host.known_hosts.n; i++)
                buf_printf(&out, "%s %s", i ? "," : "", target->host.known_hosts.v[i]);
        buf_appends(&out, "\n");
        snprintf(why->evidence, sizeof(why->evidence), "%.*s", (int)buf_len(&out),
                 (const char *)buf_data(&out));
        buf_finish(&out);
}

/* Explains why the key is not accepted, with both keys to compare. Returns -1. */
static int refuse_hostkey(const struct ssh_target *target, const struct offered_key *key,
                          enum known_verdict verdict, const char *where, const char *known_blob,
                          struct link_failure *why)
{
        static const struct {
                enum link_cause cause;
                const char *fact, *help;
        } refusals[] = {
                [KNOWN_CHANGED] = { LINK_KEY_CHANGED, "the host key has CHANGED",
                                    "a reinstalled node, or someone in the middle: ask your admin "
                                    "before you replace the line; accept-new does not cover this" },
                [KNOWN_REVOKED] = { LINK_KEY_REVOKED, "the host key is revoked",
                                    "ask your admin for the new key" },
                [KNOWN_UNKNOWN] = { LINK_KEY_UNKNOWN, "the host key is not known",
                                    "compare the key with your admin's list and add it: hnlaunch "
                                    "trust; or for throw-away nodes: --host-key accept-new" },
        };
        struct ssh_key_name known;

        why->cause = refusals[verdict].cause;
        snprintf(why->fact, sizeof(why->fact), "%s", refusals[verdict].fact);
        snprintf(why->help, sizeof(why->help), "%s", refusals[verdict].help);
        /* There is no known key to compare with. */
        if (verdict == KNOWN_UNKNOWN) {
                describe_unknown_key(target, key, why);
                return -1;
        }
        describe_key_blob(known_blob, &known);
        snprintf(why->evidence, sizeof(why->evidence), "known   %s %s  %s\noffered %s %s\n",
                 known.type, known.print, where, key->name.type, key->name.print);
        return -1;
}

/* Refuses a key in RevokedHostKeys, or every key if the file is unusable. */
static int refuse_revoked_key(const struct offered_key *key, const char *where, const char *trouble,
                              struct link_failure *why)
{
        why->cause = trouble ? LINK_KEY_UNCHECKED : LINK_KEY_REVOKED;
        snprintf(why->fact, sizeof(why->fact), "%s",
                 trouble ? "RevokedHostKeys cannot be used" : "the host key is revoked");
        snprintf(why->evidence, sizeof(why->evidence), "%s %.700s\noffered %s %s\n",
                 trouble ? "reason " : "revoked", trouble ? trouble : where, key->name.type,
                 key->name.print);
        snprintf(
                why->help, sizeof(why->help), "%s",
                trouble ? "repair the file, or remove RevokedHostKeys from the ssh config; if only "
                          "OpenSSH can read it: --ssh-command ssh"
                        : "ask your admin for the new key");
        return -1;
}

/* Refuses an unknown key beside a file that cannot be read: it may have another key, or revoke this
 * one. */
static int refuse_unread(const struct ssh_target *target, const struct offered_key *key,
                         struct link_failure *why)
{
        refuse_hostkey(target, key, KNOWN_UNKNOWN, "", "", why);
        snprintf(why->fact, sizeof(why->fact), "cannot read %.200s: %s", target->known.unread,
                 strerror(target->known.error));
        return -1;
}

/* Whether the server has proved that it has a private key with which the user logs in: the user, or
 * what has made the job (MPI Operator), has given it the key. */
static bool is_users_key(const struct ssh_target *target, ssh_key key)
{
        for (size_t i = 0; i < target->offers_n; i++)
                if (!ssh_key_cmp(key, target->offers[i]->key, SSH_KEY_CMP_PUBLIC))
                        return true;
        return false;
}

/* Decides on the offered key; stores a new key with --host-key accept-new, and writes the line to
 * @ret_stored. 0, or -1 with @why. */
static int classify_hostkey(struct ssh_site *site, const struct ssh_target *target,
                            const struct offered_key *key, char *ret_stored, size_t size,
                            struct link_failure *why)
{
        const char *trouble = revoked_keys_trouble(target->revoked);
        struct error err = { 0 };
        char where[512];
        const char *known_blob;
        enum known_verdict verdict;
        int line;

        snprintf(why->detail, sizeof(why->detail), "%s  %s", key->name.type, key->name.print);
        if (trouble || revoked_keys_has(target->revoked, key->blob, where, sizeof(where)))
                return refuse_revoked_key(key, where, trouble, why);
        /* Revocation is checked first: a revoked key may still stand in known_hosts. */
        verdict = known_set_check(&target->known, key->type, key->blob, where, sizeof(where),
                                  &known_blob);
        if (verdict == KNOWN_OK ||
            (verdict == KNOWN_UNKNOWN && !target->known.unread && is_users_key(target, key->key)))
                return 0;
        if (verdict != KNOWN_UNKNOWN ||
            (!ssh_site_options(site)->accept_new && !target->known.unread))
                return refuse_hostkey(target, key, verdict, where, known_blob, why);
        if (target->known.unread)
                return refuse_unread(target, key, why);
        line = ssh_site_accept(site, target, key->type, key->blob, &err);
        if (line > 0)
                snprintf(ret_stored, size, "%s  %s %s  %s:%d", target->known_name, key->name.type,
                         key->name.print, target->host.known_hosts.v[0], line);
        if (line >= 0)
                return 0;
        refuse_hostkey(target, key, verdict, where, known_blob, why);
        snprintf(why->fact, sizeof(why->fact), "cannot store the new host key: %.200s", err.text);
        return -1;
}

/* 0, or -1 with @why. finish_offered_key() in both cases. */
static int read_offered_key(ssh_session session, struct offered_key *ret, struct link_failure *why)
{
        *ret = (struct offered_key){ 0 };
        if (ssh_get_server_publickey(session, &ret->key) != SSH_OK ||
            ssh_pki_export_pubkey_base64(ret->key, &ret->blob) != SSH_OK) {
                why->cause = LINK_OTHER;
                snprintf(why->fact, sizeof(why->fact), "cannot read the host key");
                return -1;
        }
        ret->type = ssh_key_type_to_char(ssh_key_type(ret->key));
        ssh_key_describe(ret->key, &ret->name);
        return 0;
}

static void finish_offered_key(struct offered_key *key)
{
        ssh_string_free_char(key->blob);
        ssh_key_free(key->key);
}

int ssh_hostkey_check(struct ssh_site *site, const struct ssh_target *target, ssh_session session,
                      char *ret_stored, size_t size, struct link_failure *why)
{
        struct offered_key offered;
        int r;

        *ret_stored = '\0';
        r = read_offered_key(session, &offered, why);
        if (r == 0)
                r = classify_hostkey(site, target, &offered, ret_stored, size, why);
        finish_offered_key(&offered);
        return r;
}

/* 0: the key is known, or may be stored. -1 with @why. The order of classify_hostkey(), without a
 * decision to store. */
static int judge_offered_key(const struct ssh_target *target, const struct offered_key *key,
                             bool *ret_known, struct link_failure *why)
{
        const char *trouble = revoked_keys_trouble(target->revoked);
        enum known_verdict verdict;
        const char *known_blob;
        char where[512];

        snprintf(why->detail, sizeof(why->detail), "%s  %s", key->name.type, key->name.print);
        if (trouble || revoked_keys_has(target->revoked, key->blob, where, sizeof(where)))
                return refuse_revoked_key(key, where, trouble, why);
        verdict = known_set_check(&target->known, key->type, key->blob, where, sizeof(where),
                                  &known_blob);
        *ret_known = verdict == KNOWN_OK;
        if (verdict == KNOWN_CHANGED || verdict == KNOWN_REVOKED)
                return refuse_hostkey(target, key, verdict, where, known_blob, why);
        if (verdict == KNOWN_UNKNOWN && target->known.unread)
                return refuse_unread(target, key, why);
        if (verdict == KNOWN_UNKNOWN && !target->host.user_files) {
                refuse_hostkey(target, key, verdict, where, known_blob, why);
                snprintf(why->fact, sizeof(why->fact),
                         "the ssh config names no known_hosts file of the user");
                return -1;
        }
        return 0;
}

struct link_host_key *ssh_hostkey_fetch(const struct ssh_target *target, ssh_session session,
                                        struct link_failure *why)
{
        const struct ssh_host *h = &target->host;
        struct link_host_key *key = NULL;
        struct offered_key offered;
        bool known = false;

        if (read_offered_key(session, &offered, why) == 0 &&
            judge_offered_key(target, &offered, &known, why) == 0) {
                key = xcalloc(1, sizeof(*key) + strlen(offered.blob) + 1);
                key->end = (struct link_failure){ .phase = LINK_HOSTKEY, .cause = LINK_ENDED };
                key->known = known;
                /* An alias stands for the host at any port. */
                key->port = h->host_key_alias ? 22 : h->port;
                key->hashed = h->hash_names;
                snprintf(key->label, sizeof(key->label), "%s", offered.name.type);
                snprintf(key->print, sizeof(key->print), "%s", offered.name.print);
                snprintf(key->type, sizeof(key->type), "%s", offered.type);
                snprintf(key->name, sizeof(key->name), "%s", target->known_name);
                if (h->user_files)
                        snprintf(key->file, sizeof(key->file), "%s", h->known_hosts.v[0]);
                strcpy(key->blob, offered.blob);
        }
        finish_offered_key(&offered);
        return key;
}

int host_key_store(const struct link_host_key *key, struct error *err)
{
        return known_hosts_append(key->file, key->name, key->port, key->hashed, key->type,
                                  key->blob, err);
}

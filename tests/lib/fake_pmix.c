/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libpmix.so.2 for tests of what goes wrong with one: it registers everything and serves nothing.
 * FAKE_PMIX=fail makes PMIx_server_init() fail, =hang makes it never return.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void done_fn(int status, void *cbdata);

const char *PMIx_Get_version(void);
const char *PMIx_Error_string(int status);
int PMIx_server_init(void *module, void *info, size_t n);
int PMIx_server_finalize(void);
int PMIx_server_register_nspace(const char *nspace, int n, void *info, size_t n_info, done_fn *done,
                                void *cbdata);
int PMIx_server_register_client(const void *proc, uid_t uid, gid_t gid, void *object, done_fn *done,
                                void *cbdata);
int PMIx_server_setup_fork(const void *proc, char ***env);
int PMIx_server_dmodex_request(const void *proc, void *done, void *cbdata);

const char *PMIx_Get_version(void)
{
        return "fake 9.9.9";
}

const char *PMIx_Error_string(int status)
{
        return status == -1 ? "ERROR" : "?";
}

int PMIx_server_init(void *module, void *info, size_t n)
{
        const char *how = getenv("FAKE_PMIX");

        (void)module;
        (void)info;
        (void)n;
        if (how && !strcmp(how, "hang"))
                for (;;)
                        pause();
        return how && !strcmp(how, "fail") ? -1 : 0;
}

int PMIx_server_finalize(void)
{
        return 0;
}

int PMIx_server_register_nspace(const char *nspace, int n, void *info, size_t n_info, done_fn *done,
                                void *cbdata)
{
        (void)nspace;
        (void)n;
        (void)info;
        (void)n_info;
        done(0, cbdata);
        return 0;
}

int PMIx_server_register_client(const void *proc, uid_t uid, gid_t gid, void *object, done_fn *done,
                                void *cbdata)
{
        (void)proc;
        (void)uid;
        (void)gid;
        (void)object;
        done(0, cbdata);
        return 0;
}

int PMIx_server_setup_fork(const void *proc, char ***env)
{
        unsigned rank;

        memcpy(&rank, (const char *)proc + 256, sizeof(rank));
        *env = calloc(3, sizeof(char *));
        if (asprintf(&(*env)[0], "PMIX_RANK=%u", rank) < 0 ||
            asprintf(&(*env)[1], "PMIX_NAMESPACE=%s", (const char *)proc) < 0)
                return -1;
        return 0;
}

int PMIx_server_dmodex_request(const void *proc, void *done, void *cbdata)
{
        (void)proc;
        (void)done;
        (void)cbdata;
        return -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libhnlaunch-pmi.so: PMI-1 as a library, for Open MPI 3 and 4
 *
 * Open MPI's component "flux" loads the library named by FLUX_PMI_LIBRARY_PATH and finds these
 * functions by name (Open MPI 4.1, opal/mca/pmix/flux; Slurm's slurm/pmi.h has the prototypes). The
 * functions speak PMI-1 with the agent over the descriptor PMI_FD: a line is sent, a line answers.
 *
 * The library runs inside a rank with any C library. Therefore the library is linked with no other,
 * and uses no function with different names in different versions. Only the thread of MPI_Init
 * calls these functions.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { PMI_SUCCESS, PMI_FAIL = -1, PMI_ERR_INVALID_ARG = 3, PMI_ERR_INVALID_LENGTH = 10 };
/* Lengths of PMI-1, equal to the lengths announced by the agent (agent/pmi); the line holds a whole
 * put. */
enum { LINE_MAX_LEN = 4096, NAME_MAX_LEN = 256, KEY_MAX_LEN = 64, VALUE_MAX_LEN = 1024 };

EXPORT int PMI_Init(int *spawned);
EXPORT int PMI_Initialized(int *initialized);
EXPORT int PMI_Finalize(void);
EXPORT int PMI_Abort(int code, const char *text);
EXPORT int PMI_Get_rank(int *rank);
EXPORT int PMI_Get_size(int *size);
EXPORT int PMI_Get_universe_size(int *size);
EXPORT int PMI_Get_appnum(int *number);
EXPORT int PMI_Barrier(void);
EXPORT int PMI_KVS_Get_my_name(char *name, int size);
EXPORT int PMI_KVS_Get_name_length_max(int *length);
EXPORT int PMI_KVS_Get_key_length_max(int *length);
EXPORT int PMI_KVS_Get_value_length_max(int *length);
EXPORT int PMI_KVS_Put(const char *kvs, const char *key, const char *value);
EXPORT int PMI_KVS_Commit(const char *kvs);
EXPORT int PMI_KVS_Get(const char *kvs, const char *key, char *value, int size);
EXPORT int PMI_Get_clique_size(int *size);
EXPORT int PMI_Get_clique_ranks(int *ranks, int size);

static struct {
        int fd, rank, size;
        bool open;
        char kvs[NAME_MAX_LEN];
        char line[LINE_MAX_LEN]; /* the last answer */
} pmi = { .fd = -1 };

/* --- lines ------------------------------------------------------------------------------------ */

/* Reads a number without a sign, and moves *@at behind the number. -1: no number. */
static int read_number(const char **at)
{
        const char *p = *at;
        int n = 0;

        while (*p >= '0' && *p <= '9' && n < 100000000) /* no overflow; no rank is larger */
                n = n * 10 + (*p++ - '0');
        if (p == *at)
                return -1;
        *at = p;
        return n;
}

static int env_number(const char *name)
{
        const char *value = getenv(name);

        return value ? read_number(&value) : -1;
}

/* Sends the @len bytes in pmi.line, and reads the answer there, without the LF. */
static int exchange_line(int len)
{
        size_t got = 0;

        /* snprintf() has cut a longer line. */
        if (!pmi.open || len < 0 || len >= LINE_MAX_LEN)
                return PMI_FAIL;
        for (int sent = 0; sent < len;) {
                ssize_t n = write(pmi.fd, pmi.line + sent, (size_t)(len - sent));

                if (n < 0 && errno == EINTR) /* by a handler of the program */
                        continue;
                if (n <= 0)
                        return PMI_FAIL;
                sent += (int)n;
        }
        while (got < LINE_MAX_LEN - 1) {
                /* Nothing follows an answer before the next question. */
                ssize_t n = read(pmi.fd, pmi.line + got, LINE_MAX_LEN - 1 - got);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return PMI_FAIL;
                got += (size_t)n;
                if (pmi.line[got - 1] != '\n')
                        continue;
                pmi.line[got - 1] = '\0';
                /* An answer without rc is an error, too. */
                return strstr(pmi.line, " rc=0") ? PMI_SUCCESS : PMI_FAIL;
        }
        /* No LF in a whole buffer. */
        return PMI_FAIL;
}

static int ask_agent(const char *command)
{
        return exchange_line(snprintf(pmi.line, LINE_MAX_LEN, "cmd=%s\n", command));
}

/* Returns the text from behind @field, for example " value=", to the end of the answer; or NULL. */
static const char *find_field(const char *field)
{
        const char *at = strstr(pmi.line, field);

        return at ? at + strlen(field) : NULL;
}

static int copy_text(char *to, int size, const char *text)
{
        size_t len;

        if (!to || size <= 0 || !text)
                return PMI_ERR_INVALID_ARG;
        len = strlen(text);
        if (len >= (size_t)size)
                return PMI_ERR_INVALID_LENGTH;
        memcpy(to, text, len + 1);
        return PMI_SUCCESS;
}

static int set_number(int *to, int n)
{
        if (!to)
                return PMI_ERR_INVALID_ARG;
        *to = n;
        return n < 0 ? PMI_FAIL : PMI_SUCCESS;
}

/* --- begin and end ---------------------------------------------------------------------------- */

EXPORT int PMI_Init(int *spawned)
{
        const char *name;

        pmi.fd = env_number("PMI_FD");
        pmi.rank = env_number("PMI_RANK");
        pmi.size = env_number("PMI_SIZE");
        pmi.open = pmi.fd >= 0 && pmi.rank >= 0 && pmi.size > 0;
        if (ask_agent("init pmi_version=1 pmi_subversion=1") != PMI_SUCCESS ||
            ask_agent("get_my_kvsname") != PMI_SUCCESS || !(name = find_field(" kvsname=")) ||
            copy_text(pmi.kvs, sizeof(pmi.kvs), name) != PMI_SUCCESS) {
                pmi.open = false;
                return PMI_FAIL;
        }
        if (spawned)
                *spawned = 0;
        return PMI_SUCCESS;
}

EXPORT int PMI_Initialized(int *initialized)
{
        return set_number(initialized, pmi.open);
}

EXPORT int PMI_Finalize(void)
{
        int ret = ask_agent("finalize");

        pmi.open = false;
        return ret;
}

/* The agent ends the job: nothing is read. */
EXPORT int PMI_Abort(int code, const char *text)
{
        char line[64];
        int len = snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", code);

        if (text)
                fprintf(stderr, "%s\n", text);
        if (pmi.open && write(pmi.fd, line, (size_t)len) < 0)
                fprintf(stderr, "PMI_Abort: the launcher is gone\n");
        exit(code);
}

/* --- rank and size ---------------------------------------------------------------------------- */

EXPORT int PMI_Get_rank(int *rank)
{
        return set_number(rank, pmi.rank);
}

EXPORT int PMI_Get_size(int *size)
{
        return set_number(size, pmi.size);
}

EXPORT int PMI_Get_universe_size(int *size)
{
        return set_number(size, pmi.size);
}

EXPORT int PMI_Get_appnum(int *number)
{
        const char *text;

        if (ask_agent("get_appnum") != PMI_SUCCESS || !(text = find_field(" appnum=")))
                return PMI_FAIL;
        return set_number(number, (int)strtol(text, NULL, 10));
}

/* --- the ranks of this node ------------------------------------------------------------------- */

/* Copies the list of numbers in HNLAUNCH_PMI_CLIQUE to @ranks, which may be NULL, and returns how
 * many there are. */
static int read_clique(int *ranks, int size)
{
        const char *at = getenv("HNLAUNCH_PMI_CLIQUE");
        int n = 0;

        for (int rank; at && (rank = read_number(&at)) >= 0; n++) {
                if (ranks && n < size)
                        ranks[n] = rank;
                at += *at == ',';
        }
        return n;
}

EXPORT int PMI_Get_clique_size(int *size)
{
        return set_number(size, read_clique(NULL, 0));
}

EXPORT int PMI_Get_clique_ranks(int *ranks, int size)
{
        if (!ranks)
                return PMI_ERR_INVALID_ARG;
        return read_clique(ranks, size) > size ? PMI_ERR_INVALID_LENGTH : PMI_SUCCESS;
}

/* --- keys and values -------------------------------------------------------------------------- */

EXPORT int PMI_Barrier(void)
{
        return ask_agent("barrier_in");
}

EXPORT int PMI_KVS_Get_my_name(char *name, int size)
{
        return copy_text(name, size, pmi.kvs);
}

EXPORT int PMI_KVS_Get_name_length_max(int *length)
{
        return set_number(length, NAME_MAX_LEN);
}

EXPORT int PMI_KVS_Get_key_length_max(int *length)
{
        return set_number(length, KEY_MAX_LEN);
}

EXPORT int PMI_KVS_Get_value_length_max(int *length)
{
        return set_number(length, VALUE_MAX_LEN);
}

EXPORT int PMI_KVS_Put(const char *kvs, const char *key, const char *value)
{
        if (!kvs || !key || !value)
                return PMI_ERR_INVALID_ARG;
        return exchange_line(snprintf(pmi.line, LINE_MAX_LEN,
                                      "cmd=put kvsname=%s key=%s value=%s\n", kvs, key, value));
}

/* Does nothing: the agent has all keys of put, and the barrier spreads the keys. */
EXPORT int PMI_KVS_Commit(const char *kvs)
{
        return kvs ? PMI_SUCCESS : PMI_ERR_INVALID_ARG;
}

EXPORT int PMI_KVS_Get(const char *kvs, const char *key, char *value, int size)
{
        int ret;

        if (!kvs || !key)
                return PMI_ERR_INVALID_ARG;
        ret = exchange_line(
                snprintf(pmi.line, LINE_MAX_LEN, "cmd=get kvsname=%s key=%s\n", kvs, key));
        return ret == PMI_SUCCESS ? copy_text(value, size, find_field(" value=")) : ret;
}

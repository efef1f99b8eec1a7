/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All servers of a set share one mutex, held for moments only. @inside counts handshakes, @limit
 * bounds them: unlimited at first, lowered to the present number by a drop, to one by a penalty,
 * and raised after GOOD_ROW decided logins in a row. Waiting hops poll: each gets a slightly random
 * time to wait.
 */
#include "head/ssh/ssh_server_limits.h"

#include <limits.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/macros.h"
#include "base/memory.h"

/* A waiting hop asks again after this time, up to three times as long. */
#define TURN_MS     20
#define AWAY_MS     2000
#define AWAY_MAX_MS 16000
#define GOOD_ROW    8     /* decided logins in a row that raise the limit by one */
#define DENIED_MS   15000 /* OpenSSH's penalties begin to count at 15 s */

struct ssh_server {
        char *name; /* "host:port" */
        pthread_mutex_t *mutex;
        int inside, limit;   /* handshakes now, and the most allowed */
        int good_row;        /* decided logins since the last drop */
        int away_ms;         /* the last pause after a penalty */
        uint64_t away_until; /* 0 = no penalty */
        uint64_t last_good;  /* 0 = never */
        char *denied_user;   /* NULL = none */
        uint64_t denied_at;
        struct link_failure denied_why;
        UT_hash_handle hh;
};

struct ssh_servers {
        pthread_mutex_t mutex; /* of the table and of all servers: held for moments only */
        struct ssh_server *table;
};

struct ssh_servers *ssh_servers_create(void)
{
        struct ssh_servers *servers = xcalloc(1, sizeof(*servers));

        pthread_mutex_init(&servers->mutex, NULL);
        return servers;
}

void ssh_servers_free(struct ssh_servers *servers)
{
        struct ssh_server *s, *next;

        if (!servers)
                return;
        HASH_ITER(hh, servers->table, s, next)
        {
                HASH_DEL(servers->table, s);
                free(s->denied_user);
                free(s->name);
                free(s);
        }
        pthread_mutex_destroy(&servers->mutex);
        free(servers);
}

struct ssh_server *ssh_server_get(struct ssh_servers *servers, const char *host, int port)
{
        char *name = xasprintf("%s:%d", host, port);
        struct ssh_server *s;

        pthread_mutex_lock(&servers->mutex);
        HASH_FIND_STR(servers->table, name, s);
        if (!s) {
                s = xcalloc(1, sizeof(*s));
                s->name = name;
                s->mutex = &servers->mutex;
                s->limit = INT_MAX; /* no limit before the first drop */
                HASH_ADD_KEYPTR(hh, servers->table, s->name, strlen(s->name), s);
                name = NULL;
        }
        pthread_mutex_unlock(&servers->mutex);
        free(name);
        return s;
}

int ssh_server_enter(struct ssh_server *s, uint64_t now)
{
        int wait = 0;

        pthread_mutex_lock(s->mutex);
        if (now < s->away_until)
                wait = (int)(s->away_until - now);
        else if (s->inside >= s->limit)
                wait = TURN_MS;
        else
                s->inside++;
        pthread_mutex_unlock(s->mutex);
        /* A random time more, so that not all hops ask at the same moment. */
        return wait ? wait + (int)randombytes_uniform(2 * TURN_MS) : 0;
}

void ssh_server_leave(struct ssh_server *s, enum ssh_server_answer answer, uint64_t now)
{
        pthread_mutex_lock(s->mutex);
        s->inside--;
        if (answer == SERVER_DECIDED) {
                /* Refused logins count as well: the server has taken the time to decide. */
                s->last_good = now;
                s->away_ms = 0;
                s->away_until = 0;
                if (s->limit < INT_MAX && ++s->good_row >= GOOD_ROW) {
                        s->good_row = 0;
                        s->limit++;
                }
        } else if (answer == SERVER_DROPPED) {
                s->good_row = 0;
                /* The others inside were not dropped, so so many are allowed; one in any case. */
                s->limit = MIN(s->limit, MAX(s->inside, 1));
        } else if (answer == SERVER_PENALIZED) {
                s->good_row = 0;
                s->limit = 1;
                if (now >= s->away_until) { /* else a handshake from before the penalty was known */
                        s->away_ms = s->away_ms ? MIN(2 * s->away_ms, AWAY_MAX_MS) : AWAY_MS;
                        s->away_until = now + (uint64_t)s->away_ms;
                }
        }
        pthread_mutex_unlock(s->mutex);
}

uint64_t ssh_server_last_good(struct ssh_server *s)
{
        uint64_t when;

        pthread_mutex_lock(s->mutex);
        when = s->last_good;
        pthread_mutex_unlock(s->mutex);
        return when;
}

void ssh_server_deny(struct ssh_server *s, const char *user, const struct link_failure *why,
                     uint64_t now)
{
        pthread_mutex_lock(s->mutex);
        free(s->denied_user);
        s->denied_user = xstrdup(user);
        s->denied_at = now;
        s->denied_why = *why;
        pthread_mutex_unlock(s->mutex);
}

bool ssh_server_denied(struct ssh_server *s, const char *user, uint64_t now,
                       struct link_failure *why)
{
        bool denied;

        pthread_mutex_lock(s->mutex);
        /* Only the last refusal is kept: hosts of a job have one user name, as a rule. */
        denied = s->denied_user && strcmp(s->denied_user, user) == 0 &&
                 now < s->denied_at + DENIED_MS;
        if (denied)
                *why = s->denied_why;
        pthread_mutex_unlock(s->mutex);
        return denied;
}

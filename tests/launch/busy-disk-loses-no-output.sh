#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An order to end at once drops what a reader has not taken, but not what a file gets in the same moment: threads that
# write are late on a busy machine. A file that takes nothing for a second is given up, and what it lacks is told.
# Without sanitizers, because a library is preloaded.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

type -P cc >/dev/null || skip_all 'no compiler here'
HNLAUNCH=$PLAIN/hnlaunch
cat >late.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A thread that has waited goes on late. */
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
        int (*real)(pthread_cond_t *, pthread_mutex_t *) = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
        int r;

        if (!real)
                real = dlsym(RTLD_NEXT, "pthread_cond_wait");
        r = real(c, m);
        pthread_mutex_unlock(m);
        usleep(150000);
        pthread_mutex_lock(m);
        return r;
}

/* With STUCK a write to the file of a rank does not return. */
ssize_t write(int fd, const void *data, size_t n)
{
        ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
        char link[64], path[4096] = "";

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        while (getenv("STUCK") && readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/rank-0"))
                pause();
        return real(fd, data, n);
}
END
cc -shared -fPIC -o late.so late.c -ldl || skip_all 'the compiler makes no libraries'

# More than the pipe of the reader and the window of a rank hold: the rest stays in the rank's own pipe.
cat >rank <<'END'
#!/bin/sh
seq -f 'line %.0f' 1 50000
: >ended
END
chmod +x rank
./rank >whole
mkfifo pipe

stopped() { # LOG-DIR: one order ends a run whose rank has ended, and whose reader does not read
    exec 9<>pipe
    rm -f ended
    env --default-signal LD_PRELOAD="$PWD/late.so" "$HNLAUNCH" -q --local 1 --log-dir "$1" ./rank >&9 2>"$ERR" &
    PID=$!
    ok 'the rank has ended' wait_for test -e ended
    sleep 0.5
    kill -TERM "$PID"
    finish
    exec 9>&-
    exits 'the order decides' 143
    has 'what the reader lacks is told' "$ERR" 'bytes of rank 0 were not written: hnlaunch was told to end'
}

stopped late
same 'a file that is written late is whole' late/latest/rank-00000.out whole
lacks 'nothing else is missing' "$ERR" 'HN901'

export STUCK=yes
stopped stuck
unset STUCK
has 'a disk that takes nothing is not waited for' "$ERR" "bytes of output are missing in stuck/"
nothing_left 'nothing is left'
done_testing

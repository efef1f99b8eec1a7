/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libuv and libsodium mention and the agent never reaches
 *
 * libuv's objects hold name look-ups, home directories, plug-ins and readers of /proc beside the
 * loop. Linked statically, their names would bring the resolver, the name service and a second way
 * to load libraries into a program that goes over the wire to every node: 190 kB, half of which
 * could not even work, because a static glibc loads those parts from the machine where it was
 * built. libsodium's SHA-256 names its random numbers and, for misuse, the part that knows all its
 * algorithms: 190 kB more. Defined here, they end the search of the linker. Whoever reaches one has
 * made a mistake.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <pwd.h>
#include <sodium/core.h>
#include <sodium/randombytes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/macros.h"

int getaddrinfo(const char *node UNUSED, const char *service UNUSED,
                const struct addrinfo *hints UNUSED, struct addrinfo **res UNUSED)
{
        abort();
}

void freeaddrinfo(struct addrinfo *res UNUSED)
{
        abort();
}

const char *gai_strerror(int code UNUSED)
{
        abort();
}

int getnameinfo(const struct sockaddr *sa UNUSED, socklen_t len UNUSED, char *host UNUSED,
                socklen_t host_len UNUSED, char *service UNUSED, socklen_t service_len UNUSED,
                int flags UNUSED)
{
        abort();
}

int getpwuid_r(uid_t uid UNUSED, struct passwd *pwd UNUSED, char *buf UNUSED, size_t len UNUSED,
               struct passwd **result UNUSED)
{
        abort();
}

void *dlopen(const char *file UNUSED, int mode UNUSED)
{
        abort();
}

void *dlsym(void *handle UNUSED, const char *name UNUSED)
{
        abort();
}

int dlclose(void *handle UNUSED)
{
        abort();
}

char *dlerror(void)
{
        abort();
}

long pathconf(const char *path UNUSED, int name UNUSED)
{
        abort(); /* glibc's reads the table of mounts for it */
}

/* Under their plain names, which <stdio.h> gives another meaning. */
int plain_sscanf(const char *text, const char *format, ...) __asm__("sscanf");
int plain_fscanf(void *file, const char *format, ...) __asm__("fscanf");

int plain_sscanf(const char *text UNUSED, const char *format UNUSED, ...)
{
        abort();
}

int plain_fscanf(void *file UNUSED, const char *format UNUSED, ...)
{
        abort();
}

void randombytes_buf(void *buf UNUSED, size_t size UNUSED)
{
        abort();
}

void sodium_misuse(void)
{
        abort();
}

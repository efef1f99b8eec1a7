/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libuv mentions and the agent never reaches
 *
 * libuv's objects hold name look-ups, home directories and plug-ins beside the loop. Linked
 * statically, their names would bring the resolver, the name service and a second way to load
 * libraries into a program that goes over the wire to every node: 90 kB that could not even work,
 * because a static glibc loads those parts from the machine where it was built. Defined here, they
 * end the search of the linker. Whoever reaches one has made a mistake.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>

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

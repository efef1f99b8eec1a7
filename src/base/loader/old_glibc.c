/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a program run on nodes with glibc 2.28 although it was linked with a newer one
 *
 * A program that is linked with glibc 2.34 or later asks for the versions of __libc_start_main,
 * dlopen and dlsym of that release. The functions of the older releases are still there under their
 * old versions, and are bound here by name. The start file crt1.o calls __libc_start_main(), which
 * the linker turns into __wrap___libc_start_main() (--wrap).
 * tests/launch/carried-programs-are-portable.sh looks at the result.
 */
#include "base/loader/old_glibc.h"

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__riscv)
#define OLDEST "GLIBC_2.27"
#else
#define OLDEST "GLIBC_2.17"
#endif

__asm__(".symver old_start,__libc_start_main@" OLDEST);
__asm__(".symver old_dlopen,dlopen@" OLDEST);
__asm__(".symver old_dlsym,dlsym@" OLDEST);
__asm__(".symver old_dlerror,dlerror@" OLDEST);

int old_start(int (*program)(int, char **, char **), int argc, char **argv, void (*init)(void),
              void (*fini)(void), void (*loader_fini)(void), void *stack_end);
int __wrap___libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                             void (*init)(void), void (*fini)(void), void (*loader_fini)(void),
                             void *stack_end);
void *old_dlopen(const char *file, int mode);
void *old_dlsym(void *handle, const char *name);
char *old_dlerror(void);

int __wrap___libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                             void (*init)(void), void (*fini)(void), void (*loader_fini)(void),
                             void *stack_end)
{
        return old_start(program, argc, argv, init, fini, loader_fini, stack_end);
}

void *library_open(const char *file, int mode)
{
        return old_dlopen(file, mode);
}

void *library_symbol(void *handle, const char *name)
{
        return old_dlsym(handle, name);
}

const char *library_error(void)
{
        return old_dlerror();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qemu's user emulation knows every system call of the agent but one: PR_SET_CHILD_SUBREAPER. The
 * agent of the test is linked with --wrap=prctl and this, which forgoes it: what the ranks leave
 * behind is then init's.
 */
#include <stdarg.h>
#include <sys/prctl.h>

int __real_prctl(int op, ...);
int __wrap_prctl(int op, ...);

int __wrap_prctl(int op, ...)
{
        unsigned long v[4];
        va_list args;

        va_start(args, op);
        for (int i = 0; i < 4; i++)
                v[i] = va_arg(args, unsigned long);
        va_end(args);
        return op == PR_SET_CHILD_SUBREAPER ? 0 : __real_prctl(op, v[0], v[1], v[2], v[3]);
}

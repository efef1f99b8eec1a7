/* SPDX-License-Identifier: Apache-2.0 */
/* A library with a run path, for test_elf_libs. */
int linked_answer(void);

int linked_answer(void)
{
        return 42;
}

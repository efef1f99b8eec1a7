/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack text: the main thread's frames from the output of a tool
 *
 * Reads the output of `py-spy dump`, eu-stack, gdb (`thread apply all bt`) and /proc/PID/stack,
 * told apart by their lines. Untrusted text: any bytes are fine. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct stack_frame {
        char *function;
        char *place;  /* "train.py:88"; "" = not known */
        bool library; /* of the C or C++ library, the loader, Python, or one of their headers */
        bool module;  /* the tool has told the file of the code */
};

/* The innermost frame first, without frames of the interpreter and of the C library's start. */
struct stack {
        struct stack_frame *v;
        size_t n;
};

void stack_parse(struct stack *ret, const char *text);
void stack_finish(struct stack *s);

/* Returns "load (train.py:8) <- main (train.py:20)", malloc'ed; at most @most frames from @from on.
 */
char *stack_line(const struct stack *s, size_t from, size_t most);
/* Returns "load_batch (train.py:88)", malloc'ed: the innermost frame at or after @from with a known
 * place outside of PyTorch, else the first that is no system call, nor of a library, else the
 * first;
 * "" = there is none. */
char *stack_where(const struct stack *s, size_t from);

/* Returns "load (w.c:8) calling memcpy, called in main (w.c:20)" from the stack of a crash,
 * malloc'ed: the innermost frame of the program, what it has called there, and up to two frames in
 * all with a known place. "" = there is none. */
char *stack_crash(const struct stack *s);

/* A call that waits for other ranks. */
struct stack_wait {
        char operation[64];  /* "all_reduce" */
        const char *library; /* "torch.distributed" */
        size_t frame;        /* index in the stack; the caller is the next */
        bool weak;           /* the call computes, too */
};

/* Finds the outermost call that waits. */
bool stack_find_wait(const struct stack *s, struct stack_wait *ret);

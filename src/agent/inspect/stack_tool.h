/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack_tool: programs of the node to print the stacks of a process
 *
 * - py-spy, for Python: reads memory and never stops the process
 * - eu-stack, gdb: stop the process for the time of the reading, by ptrace; or read a core file
 *
 * Tools run with a time limit and bounded output; at the limit the whole group is killed. The
 * kernel lets a process go on after the death of the tracer. A stop signal of the tracer may be
 * left over, so SIGCONT follows a kill.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum stack_tool { STACK_TOOL_PY_SPY, STACK_TOOL_EU_STACK, STACK_TOOL_GDB, STACK_TOOLS };

const char *stack_tool_name(enum stack_tool tool);

/* The object of a tool. */
struct stack_target {
        pid_t pid;                  /* a running process */
        const char *core, *program; /* else a core file, and the program ("" = not known) */
};

struct stack_run {
        pid_t pid;            /* of the tool; 0 = none runs */
        pid_t traced;         /* the process under inspection; 0 = none */
        uint64_t start_ticks; /* of that process; 0 = it had ended before the tool began */
        bool was_stopped;     /* before the tool began */
        int out, err;         /* streams of the tool, -1 = at the end */
        int64_t until;        /* clock_ms() */
        struct buf text, errors;
};

/* Whether the process is an interpreter of Python. */
bool stack_tool_is_python(pid_t pid);

/* Finds @tool for the process: py-spy also in PATH and virtual environment from the start of a
 * process of our user. Returns the path, malloc'ed; NULL = not installed. */
char *stack_tool_find(enum stack_tool tool, pid_t pid);

/* Starts the tool at @path. False: the start failed, with the reason in .errors. */
bool stack_run_start(struct stack_run *r, enum stack_tool tool, const char *path,
                     const struct stack_target *of, int64_t until);
/* Reads all available output. True: the tool has ended, or was killed at the time limit, told in
 * .errors. */
bool stack_run_step(struct stack_run *r);
/* Kills a running tool, and frees all. */
void stack_run_finish(struct stack_run *r);

/* Whether the process under inspection has ended. */
bool stack_run_is_late(const struct stack_run *r);
/* Why there is no stack: writes a sentence without numbers of processes: equal reasons of many
 * ranks are equal texts. */
void stack_run_explain(const struct stack_run *r, enum stack_tool tool, char *to, size_t size);

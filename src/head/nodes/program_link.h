/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program link: how a program of the site starts agents (--start-with), for example srun inside a
 * Slurm job
 *
 * The program runs a command on a node and joins stdin and stdout of the program to the command's,
 * as `ssh HOST COMMAND` does. A template is the program and the arguments, with {host} for the
 * node:
 *
 *   docker exec -i {host}
 *
 * A few names stand for templates of hnlaunch's own. The command is /bin/sh, which reads the
 * bootstrap line from stdin, so no program's own quoting counts; or, where one start serves all
 * nodes, the agent itself.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strv.h"
#include "head/nodes/transport.h"

struct program_link {
        const char *name; /* for messages: the name of the way, or the program; borrowed */
        struct strv words;
        const char *const *unset; /* patterns of variables to be hidden from the program, or NULL */
        const char *variable;     /* exists inside the manager's jobs only; NULL = none */
        const char *manager;      /* "Slurm", with @variable */
};

#define PROGRAM_LINK_INIT                                                                          \
        {                                                                                          \
                .words = STRV_INIT                                                                 \
        }

/* Whether @via, the value of --start-with, means ssh: NULL, "auto" and "ssh" do. */
bool program_link_is_ssh(const char *via);

/* Returns the value of --start-with for agents in the jobs of a manager ("Slurm"), NULL = none. */
const char *program_link_of_manager(const char *manager);

/* Reads the value of --start-with, which stays borrowed; words are split by a shell's rules for
 * blanks, quotes and backslashes. -EINVAL: a quote is not closed, {host} is missing, or there is no
 * program. @p begins as PROGRAM_LINK_INIT. */
int program_link_parse(const char *via, struct program_link *p, struct error *err);
void program_link_finish(struct program_link *p);

/* Values of the place-holders in the words. Borrowed. */
struct program_marks {
        const char *host;  /* {host}: the node */
        const char *hosts; /* {hosts}: all nodes, with commas between */
        size_t count;      /* {count}: ... their number */
        const char *copy;  /* {copy}: path for a copy of the agent on the nodes; NULL = a way of
                            * hnlaunch's own leaves the word out */
};

/* Appends the arguments, with place-holders replaced. */
void program_link_arguments(const struct program_link *p, const struct program_marks *marks,
                            struct strv *argv);

/* Whether one start of the program serves all nodes: the agents call the head then
 * (head/dial_in/transport_call.h). */
bool program_link_calls(const char *via);

/* Whether the program copies the agent to the nodes: the template has {copy}. */
bool program_link_copies(const struct program_link *p);

/* Sets fact and help of @why if the evidence, the program's stderr, says that the manager has ended
 * the agents. Returns whether the evidence says so. */
bool program_link_classify(const struct program_link *p, struct link_failure *why);

/* Appends this process's environment without the variables of @p->unset. */
void program_link_environment(const struct program_link *p, struct strv *env);

/* Whether the agents of @via live in a job of a manager, which may send signals to the agents. */
bool program_link_is_managed(const char *via);

/* Creates a transport with processes of the program as links. @via and @command, the bootstrap line
 * (head/nodes/bootstrap.h), are borrowed for the transport's life. NULL with an -EINVAL of
 * program_link_parse(). */
struct transport *transport_program_create(uv_loop_t *loop, const char *via, const char *command,
                                           struct error *err);

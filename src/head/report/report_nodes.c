/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_nodes() sorts the failed nodes into sections, by the step that a user has to take, and
 * prints a message per section; within a section, nodes with equal facts share a row.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/strv.h"
#include "head/core/shell_words.h"
#include "head/hosts/hosts.h"
#include "head/hosts/own_machine.h"
#include "head/nodes/program_link.h"
#include "head/report/report.h"

/* Failures with the same next step share a message. In the order of printing: possible attacks
 * first. */
enum section {
        CONFIG,
        KEY_CHANGED,
        KEY_REVOKED,
        KEY_UNCHECKED,
        KEY_UNKNOWN,
        DENIED,
        VERSION,
        MALFORMED,
        NO_AGENT,
        AGENT_CANNOT_RUN,
        NO_CONTAINER,
        UNREACHABLE,
        ABSENT,            /* --dial-in */
        CHILD_KEY_UNKNOWN, /* between nodes (--tree) */
        CHILD_DENIED,
        CHILD_UNREACHABLE,
        CHILD_UNTRIED,
        SECTIONS
};

/* Returns the section of a failed node. A refusal by the agent goes before the cause of the link,
 * which ended because of the refusal. Logins between nodes (a parent in the tree) have sections of
 * their own where the next step differs from that of a login from here. */
static enum section failure_section(const struct node *n)
{
        static const enum section by_cause[LINK_CAUSES] = {
                [LINK_NO_NAME] = UNREACHABLE,
                [LINK_TIMED_OUT] = UNREACHABLE,
                [LINK_REFUSED] = UNREACHABLE,
                [LINK_UNREACHABLE] = UNREACHABLE,
                [LINK_DROPPED] = UNREACHABLE,
                [LINK_KEY_UNKNOWN] = KEY_UNKNOWN,
                [LINK_KEY_CHANGED] = KEY_CHANGED,
                [LINK_KEY_REVOKED] = KEY_REVOKED,
                [LINK_KEY_UNCHECKED] = KEY_UNCHECKED,
                [LINK_DENIED] = DENIED,
                [LINK_SPAWN] = AGENT_CANNOT_RUN,
                [LINK_ENDED] = UNREACHABLE,
                [LINK_HOLD] = UNREACHABLE,
                [LINK_OTHER] = UNREACHABLE,
                [LINK_PARENT] = CHILD_UNTRIED,
                [LINK_ABSENT] = ABSENT,
                [LINK_CONFIG] = CONFIG,
        };
        static const enum section by_refusal[] = {
                [NODE_WRONG_VERSION] = VERSION,     [NODE_MALFORMED] = MALFORMED,
                [NODE_NO_AGENT] = NO_AGENT,         [NODE_CANNOT_RUN] = AGENT_CANNOT_RUN,
                [NODE_NO_CONTAINER] = NO_CONTAINER,
        };
        static const enum section between[SECTIONS] = {
                [CONFIG] = CONFIG,
                [KEY_UNKNOWN] = CHILD_KEY_UNKNOWN,
                [KEY_CHANGED] = KEY_CHANGED,
                [KEY_REVOKED] = KEY_REVOKED,
                [KEY_UNCHECKED] = KEY_UNCHECKED,
                [DENIED] = CHILD_DENIED,
                [UNREACHABLE] = CHILD_UNREACHABLE,
                [AGENT_CANNOT_RUN] = CHILD_UNREACHABLE,
                [CHILD_UNTRIED] = CHILD_UNTRIED,
        };

        if (n->refusal != NODE_NOT_REFUSED)
                return by_refusal[n->refusal];
        return n->parent ? between[by_cause[n->failure->cause]] : by_cause[n->failure->cause];
}

static const struct {
        int id, exit;
        const char *one, *many; /* the fact about host %s, about %zu nodes */
        const char *help;       /* NULL = none, or add_section_help() knows more */
} sections[SECTIONS] = {
        [CONFIG] = { HN_SSH_CONFIG_OF_NODE, EX_CONFIG,
                     "the ssh configuration for %s cannot be obeyed",
                     "the ssh configuration for %zu nodes cannot be obeyed" },
        [KEY_CHANGED] = { HN_HOST_KEY_CHANGED, EX_NOPERM, "the host key of %s has CHANGED",
                          "host keys of %zu nodes have CHANGED",
                          "a reinstalled node, or someone in the middle: ask your admin; "
                          "accept-new does not cover this" },
        [KEY_REVOKED] = { HN_HOST_KEY_REVOKED, EX_NOPERM, "the host key of %s is revoked",
                          "host keys of %zu nodes are revoked" },
        [KEY_UNCHECKED] = { HN_HOST_KEY_UNCHECKED, EX_NOPERM,
                            "the host key of %s cannot be checked",
                            "host keys of %zu nodes cannot be checked" },
        [KEY_UNKNOWN] = { HN_HOST_KEY_UNKNOWN, EX_NOPERM, "the host key of %s is not known",
                          "host keys of %zu nodes are not known",
                          "compare with your admin's list and add them to ~/.ssh/known_hosts: "
                          "hnlaunch "
                          "trust; for throw-away nodes: --host-key accept-new" },
        [DENIED] = { HN_LOGIN_REFUSED, EX_NOPERM, "ssh login refused on %s",
                     "ssh login refused on %zu nodes" },
        [VERSION] = { HN_WRONG_VERSION, EX_PROTOCOL,
                      "the agent on %s speaks another protocol version",
                      "agents on %zu nodes speak another protocol version" },
        [MALFORMED] = { HN_MALFORMED_MESSAGE, EX_FAILED, "the agent on %s sent a malformed message",
                        "agents on %zu nodes sent malformed messages" },
        [NO_AGENT] = { HN_NO_AGENT_FOR_MACHINE, EX_UNAVAILABLE,
                       "no agent is installed for the machine of %s",
                       "no agent is installed for the machines of %zu nodes",
                       "build hnlaunch-agent on such a machine, or cross-build it, and put it "
                       "beside the others as hnlaunch-agent-TYPE; hnlaunch(1), FILES" },
        [AGENT_CANNOT_RUN] = { HN_AGENT_CANNOT_RUN, EX_UNAVAILABLE, "the agent cannot run on %s",
                               "the agent cannot run on %zu nodes" },
        [NO_CONTAINER] = { HN_NO_CONTAINER, EX_UNAVAILABLE, "the container of %s cannot be entered",
                           "the containers of %zu nodes cannot be entered",
                           "try it there by hand; hnlaunch pulls no image and starts no daemon; "
                           "hnlaunch-containers(7)" },
        [UNREACHABLE] = { HN_UNREACHABLE, EX_NOHOST, "%s cannot be reached",
                          "%zu nodes cannot be reached" },
        [ABSENT] = { HN_NOT_DIALED_IN, EX_NOHOST, "%s has not dialed in",
                     "%zu nodes have not dialed in",
                     "each node says itself what keeps it; -o net.dial_timeout=1h waits longer" },
        [CHILD_KEY_UNKNOWN] = { HN_CHILD_KEY_UNKNOWN, EX_NOPERM,
                                "the host key of %s is not trusted by its parent in the tree",
                                "host keys of %zu nodes are not trusted by their parents in the "
                                "tree" },
        [CHILD_DENIED] = { HN_CHILD_LOGIN_REFUSED, EX_NOPERM,
                           "%s rejects the login from its parent in the tree",
                           "%zu nodes reject the logins from their parents in the tree" },
        [CHILD_UNREACHABLE] = { HN_CHILD_UNREACHABLE, EX_NOHOST,
                                "%s cannot be reached from its parent in the tree",
                                "%zu nodes cannot be reached from their parents in the tree" },
        [CHILD_UNTRIED] = { HN_CHILD_UNTRIED, EX_NOHOST,
                            "%s was not tried: its parent in the tree cannot be reached",
                            "%zu nodes were not tried: their parents in the tree cannot be "
                            "reached" },
};

/* Adds the rows of a section. On an unknown host key the built-in ssh lists the files searched, as
 * a rule the same for all nodes: each key gets a row, and each list of files a note. */
static void add_section_rows(struct diag *d, const struct job *j, const struct hosts *hosts,
                             const struct host_groups *groups)
{
        CLEANUP(strv_finish) struct strv places = STRV_INIT;

        for (const struct host_group *g = groups->v; g < groups->v + groups->n; g++) {
                const struct link_failure *w = job_node(j, g->hosts[0])->failure;
                /* head/ssh/ssh_hostkey.c writes this line. */
                const char *place = strstr(w->evidence, "\nlooked ");
                CLEANUP(free_textp) char *names = hosts_fold(hosts, g->hosts, g->n);
                CLEANUP(free_textp) char *evidence = xstrdup(w->evidence);
                char *rest = evidence, *line;
                /* The evidence on a host key repeats the detail. Of several nodes each has another
                 * detail. */
                const char *detail = g->n == 1 && !*evidence ? w->detail : "";

                if (place && !strcmp(w->fact, "the host key is not known")) {
                        diag_row(d, "%-16s %.*s", names, (int)(place - w->evidence), evidence);
                        if (!strv_has(&places, place + 1))
                                strv_push(&places, place + 1);
                        continue;
                }
                diag_row(d, "%-16s %s%s%s", names, w->fact, *detail ? "  " : "", detail);
                while ((line = strsep(&rest, "\n")))
                        if (*line)
                                diag_row(d, "%s", line);
        }
        for (size_t i = 0; i < places.n; i++)
                diag_note(d, "%.*s", (int)strcspn(places.v[i], "\n"), places.v[i]);
}

/* Whether two nodes of a section share a row. Details differ per host, but the detail of a host key
 * is the key. */
static bool is_same_link_failure(const void *ctx, size_t a, size_t b)
{
        const struct node *x = job_node(ctx, a), *y = job_node(ctx, b);
        enum section s = failure_section(x);
        bool by_detail =
                s == KEY_UNKNOWN || s == KEY_CHANGED || s == KEY_REVOKED || s == KEY_UNCHECKED;

        return !strcmp(x->failure->fact, y->failure->fact) &&
               (!by_detail || !strcmp(x->failure->detail, y->failure->detail));
}

/* Tells whether the address that did not answer is one of this machine. A port other than 22 may be
 * a tunnel to another machine. The detail begins with the address. */
static bool is_this_machine(const struct link_failure *why)
{
        CLEANUP(free_textp) char *address = xstrndup(why->detail, strcspn(why->detail, " ,"));
        CLEANUP(own_machine_finish) struct own_machine m = { 0 };

        if (!*address || why->at_jump_host || (why->port && why->port != 22))
                return false;
        own_machine_read(&m);
        return own_machine_is(&m, address);
}

/* Whether the only group of failures is a closed port. */
static bool is_wrong_port(const struct host_groups *groups, const struct link_failure *first)
{
        return groups->n == 1 && first->cause == LINK_REFUSED && first->port &&
               !first->at_jump_host;
}

/* Adds the way to see on the node why the agent does not run there. */
static void help_with_agent(struct diag *d, const char *host, const struct options *o)
{
        if (program_link_is_ssh(o->via))
                diag_help(d, "try ssh %s true: it ends with 0 and prints nothing where agents run",
                          host);
        else
                diag_help(d, "try the program of --start-with by hand: %s", o->via);
}

/* Adds the next step, and between two nodes (--tree) the login to try. @excludes: other nodes are
 * left to start with. Nodes behind a failed parent are no reason to exclude any. */
static void add_section_help(struct diag *d, enum section s, const struct node *first,
                             const char *names, size_t count, bool excludes,
                             const struct options *o)
{
        const char *to = first->host->name, *from = first->parent ? first->parent->host->name : "";
        const char *config = o->ssh_config ? o->ssh_config : "~/.ssh/config";
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        CLEANUP(free_textp) char *quoted = NULL;

        if (s == CHILD_KEY_UNKNOWN)
                diag_help(d,
                          "add its key to ~/.ssh/known_hosts here, or on %s: ssh %s; or without "
                          "--tree",
                          from, from);
        else if (s == CHILD_DENIED && !*first->failure->help)
                diag_help(d,
                          "%s needs a key of its own for %s: try ssh -oBatchMode=yes %s true on "
                          "%s; or -o ssh.tree_auth=forward; or without --tree",
                          from, to, to, from);
        else if (s == CHILD_UNREACHABLE)
                diag_help(d, "try ssh %s true on %s; or without --tree", to, from);
        else if (s == UNREACHABLE && is_this_machine(first->failure))
                diag_help(d, "%s is this machine: under the name localhost it needs no ssh", to);
        else if (s == UNREACHABLE && first->failure->cause == LINK_NO_NAME &&
                 first->failure->at_jump_host)
                diag_help(d,
                          "check the name of the jump host with getent hosts, or give it a "
                          "HostName in %s",
                          config);
        else if (s == UNREACHABLE && first->failure->at_jump_host && o->jump)
                diag_help(d, "try ssh -J %s %s true", o->jump, to);
        else if (s == UNREACHABLE && first->failure->at_jump_host)
                diag_help(d, "try ssh %s true", to);
        else if (s == UNREACHABLE && first->failure->cause == LINK_NO_NAME)
                diag_help(d, "check the name with `getent hosts %s`, or give it a HostName in %s",
                          to, config);
        if (*first->failure->help)
                diag_help(d, "%s", first->failure->help);
        else if (sections[s].help)
                diag_help(d, "%s", sections[s].help);
        else if (s == AGENT_CANNOT_RUN)
                help_with_agent(d, to, o);
        if (!excludes || s == CHILD_UNTRIED || s == ABSENT)
                return;
        strv_push(&words, names);
        quoted = shell_words_join(&words); /* brackets */
        diag_help(d, "start without %s: --exclude %s", count == 1 ? "it" : "them", quoted);
}

/* Adds the message of a section, none without failed nodes in the section. The first node stands
 * for all where the texts need one. */
static void report_section(struct diags *d, const struct job *j, const struct hosts *hosts,
                           enum section s, const struct options *o, bool excludes)
{
        CLEANUP(host_groups_finish) struct host_groups groups = { 0 };
        CLEANUP(host_group_finish) struct host_group all = { 0 };
        CLEANUP(free_textp) char *names = NULL, *where = NULL;
        const struct link_failure *w;
        const struct node *first;
        struct diag *di;

        for (size_t i = 0; i < hosts->n; i++)
                if (job_node(j, i)->state == NODE_FAILED && failure_section(job_node(j, i)) == s) {
                        host_groups_add(&groups, i, is_same_link_failure, j);
                        host_group_add(&all, i);
                }
        if (!all.n)
                return;
        first = job_node(j, all.hosts[0]);
        names = hosts_fold(hosts, all.hosts, all.n);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        di = all.n == 1 ? diag_add(d, sections[s].id, sections[s].exit, sections[s].one, names)
                        : diag_add(d, sections[s].id, sections[s].exit, sections[s].many, all.n);
#pragma GCC diagnostic pop
        w = first->failure;
        where = hosts_locate(hosts, all.hosts, all.n);
        if (w->port && *w->user)
                diag_place(di, "%s, port %d, user %s", where, w->port, w->user);
        else
                diag_place(di, "%s", where);
        add_section_rows(di, j, hosts, &groups);
        if (s == UNREACHABLE && all.n == hosts->n && is_wrong_port(&groups, w))
                diag_help(di,
                          "nothing listens on port %d there: -p PORT (--ssh-port) is that of "
                          "the ssh servers",
                          w->port);
        add_section_help(di, s, first, names, all.n, excludes && all.n < hosts->n, o);
}

void report_nodes(struct diags *d, const struct job *j, const struct hosts *hosts,
                  const struct options *o, bool excludes)
{
        for (enum section s = 0; s < SECTIONS; s++)
                report_section(d, j, hosts, s, o, excludes);
}

/* Buffers, queues and rings of NCCL and MPI for one rank of a large job; the default limit of Linux
 * is 8 MiB, before 5.16 64 KiB. */
#define LOCKED_MEMORY_LOW (UINT64_C(1) << 30)

/* Returns the hard limit of locked memory that ranks get on a host, in bytes, from HELLO. */
static uint64_t locked_limit(const struct job *j, size_t host)
{
        return job_node(j, host)->hello.locking.memlock;
}

static bool is_same_limit(const void *ctx, size_t a, size_t b)
{
        return locked_limit(ctx, a) == locked_limit(ctx, b);
}

void report_locked_memory(struct diags *d, const struct job *j, const struct hosts *hosts)
{
        struct host_groups groups = { 0 };

        for (size_t i = 0; i < hosts->n; i++)
                if (job_node(j, i)->hello.locking.infiniband &&
                    locked_limit(j, i) < LOCKED_MEMORY_LOW)
                        host_groups_add(&groups, i, is_same_limit, j);
        for (size_t i = 0; i < groups.n; i++) {
                const struct host_group *g = &groups.v[i];
                char *names = hosts_fold(hosts, g->hosts, g->n);
                struct diag *di =
                        diag_warn(d, HN_LOCKED_MEMORY,
                                  "ranks can lock only %" PRIu64
                                  " KiB of memory on %zu node%s with InfiniBand",
                                  locked_limit(j, g->hosts[0]) >> 10, g->n, g->n == 1 ? "" : "s");

                diag_place(di, "%s", names);
                diag_note(di, "RDMA locks its buffers: NCCL and MPI fail with \"Cannot allocate "
                              "memory\", or do without");
                diag_help(di, "raise the limit there: `* - memlock unlimited` in "
                              "/etc/security/limits.conf, LimitMEMLOCK=infinity for sshd or "
                              "containers");
                free(names);
        }
        host_groups_finish(&groups);
}

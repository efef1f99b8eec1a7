/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text is plain prose: `hnlaunch explain` wraps each text to the terminal, docs/errors.py makes a
 * manual page. A meaning with "(warning)" at its end belongs to a number that never ends a launch.
 *
 * An entry stands at the place of its number, so that lists are printed in ascending order. The
 * hundred of a number gives the section (error_ids_title()); within a hundred a number tells only
 * when it was given, and a group may have later members further below.
 * tests/launch/every-error-is-explained.sh compares the table with base/error_number.h and with
 * what the sources use.
 */
#include "head/term/error_ids.h"

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/macros.h"

/* clang-format off */
const struct error_id error_ids[] = {
        /* 1xx: hosts and environment. First the installed parts, and numbers out of range. */
        { HN_AGENT_UNUSABLE,
          "the agent's program is missing or cannot be used",
          "The file hnlaunch-agent-TYPE was not found beside hnlaunch or in its folder of parts, cannot be read, or "
          "is not a program for the machine type in its name.",
          "Install hnlaunch again." },
        { HN_NO_CONNECTIONS,
          "the connections to the nodes cannot be prepared",
          "hnlaunch-ssh.so is missing or cannot be loaded, the ssh configuration cannot be read, or the text of "
          "--ssh-command cannot be split into words. The message tells which.",
          "Correct the file or option in the message. Without hnlaunch-ssh.so, --ssh-command ssh uses the ssh "
          "program of this machine." },
        { HN_NO_SUCH_RANK,
          "an option names ranks that the job does not have",
          "--show or --ranks names a rank that is not below the number of ranks in all.",
          "Name ranks from 0 to the number in the message, or use --show all." },
        { HN_TOO_MANY_HOSTS,
          "the hosts are too many",
          "The hostfiles and lists name more hosts than one launch may have.",
          "Name fewer hosts, or start several jobs." },
        /* Hostfiles and the lists of -w (head/hosts). The message has the line
         * of the text and a caret. */
        { HN_HOSTFILE_UNREADABLE,
          "a hostfile cannot be read",
          "The file of -H does not exist, may not be read, or is larger than a hostfile may be.",
          "Check the path. A list of hosts is given with -w; -H takes a file." },
        { HN_HOSTFILE_NOT_TEXT,
          "a hostfile is not a text file",
          "The file has NUL bytes, or is written in UTF-16.",
          "Save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE." },
        { HN_HOSTFILE_EMPTY,
          "a hostfile names no hosts",
          "The file is empty, or has only comments.",
          "Write one host on each line: gpu001 slots=8." },
        { HN_OPEN_COMMENT,
          "a comment in a hostfile has no end",
          "A comment that begins with /* is not closed, so all following lines would be part of it.",
          "Write */ behind it, or begin the comment with #." },
        { HN_UNKNOWN_HOST_KEY,
          "a hostfile has an unknown key",
          "The word before the equals sign is none of slots, max_slots, gpus, port, user, addr, iface, numa and "
          "tags. Keys of other launchers that mean nothing here, such as sockets, are errors, too.",
          "Correct the spelling, or remove the key. hnlaunch-hostfile(5) describes the keys." },
        { HN_BAD_HOST_NUMBER,
          "a number in a list of hosts is wrong",
          "The value of slots, max_slots or port, or the number behind the colon of a host, is not a number, too "
          "small, or too large.",
          "Write a number within the limits in the message. slots also takes auto." },
        { HN_BAD_HOST_NAME,
          "a host, user or address is not written correctly",
          "A name is missing, is too long, or has a character that no name may have; an IPv6 address has no "
          "brackets; or a line begins with a key and not with a host.",
          "Write NAME, USER@NAME, NAME:SLOTS or [IPV6]:SLOTS. One host stands on a line of a file; commas separate "
          "hosts in -w." },
        { HN_BAD_RANGE,
          "a range of names or numbers is wrong",
          "What stands in brackets, or a list of numbers, cannot be read: a number is missing, a range runs "
          "backwards, its ends have different numbers of digits, a bracket has no partner, or it stands for too many "
          "names.",
          "Write ranges as in gpu[01-16], gpu[001-064,070] or gpu[0-8/2]." },
        { HN_HOST_REPEATED,
          "a host is given twice, and the two disagree",
          "A host that is repeated without slots gains one slot each time. Here one of its lines has slots, or the "
          "lines differ in gpus, port, user, addr or iface.",
          "Give the host once, with slots=N." },
        { HN_STRAY_WORD,
          "a hostfile has a word that is not key=value",
          "Behind the host, a line has only keys with values and the word spare.",
          "Write slots=8 in place of 8, and one host on each line." },
        { HN_HOST_KEY_EMPTY,
          "a key in a hostfile has no value",
          "Nothing follows the equals sign.",
          "Write the value behind it, or remove the key." },
        { HN_BAD_HOST_VALUE,
          "a value in a hostfile is wrong",
          "gpus names a GPU twice or with too high a number; or iface, numa or tags has a character that is not "
          "allowed there.",
          "Correct the value. hnlaunch-hostfile(5) describes the keys." },
        { HN_HOST_KEYS_DISAGREE,
          "two keys of a host disagree",
          "max_slots is below slots, gpus names another number of GPUs than there are slots, or a range of hosts has "
          "another number of addresses.",
          "Correct one of the two, or leave it out." },
        { HN_HOST_KEY_TWICE,
          "a key is given twice for one host",
          "The line has the same key twice, or slots both behind a colon and as a key.",
          "Remove one of the two." },
        /* The environment of ranks (head/options/export_env.c), and the other inputs of a launch. */
        { HN_ENV_FILE_UNREADABLE,
          "a file of variables cannot be read",
          "The file of --env-file does not exist; or it, or ~/.deepspeed_env with --compat deepspeed, may not be read or "
          "is too large.",
          "Check the path. In a configuration file it is relative to that file's folder." },
        { HN_ENV_FILE_LINE,
          "a line of a file of variables is not NAME=VALUE",
          "The line of --env-file, or of ~/.deepspeed_env with --compat deepspeed, has no equals sign, or no name before "
          "it.",
          "Write one NAME=VALUE on each line. # begins a comment; quotes are part of the value." },
        { HN_ENV_UNSET,
          "a variable of -x or --export is not set in this shell (warning)",
          "-x NAME, or NAME in a list of --export, exports the value that this shell has, and it has none; or no name fits a "
          "pattern of the command line. The ranks do not get the variable.",
          "Give a value: -x NAME=VALUE, or export the variable in this shell." },
        { HN_STDIN_UNREADABLE,
          "the file of --stdin cannot be read",
          "The file does not exist, may not be read, or is a folder. As a warning: a read has failed while the ranks ran; "
          "they have got the bytes before, and then the end of input, and go on.",
          "Check the path, or choose --stdin none, 0 or all. After the warning check the disk or the file server, and do "
          "not trust results that depend on the rest." },
        { HN_NO_DIRECTORY,
          "the working directory of the ranks cannot be determined",
          "The current directory was deleted, or cannot be read.",
          "Change to another directory, or give an absolute one with --chdir DIR." },
        { HN_LIST_IS_FILE,
          "-w names a file",
          "-w takes names of hosts, and there is a file of the given name.",
          "Use -H FILE. A host with the name of a file is given as HOST:SLOTS or USER@HOST." },
        { HN_ENV_OF_RANK,
          "-x or --export sets a variable that hnlaunch sets for each rank (warning)",
          "RANK, WORLD_SIZE, MASTER_ADDR and others have a value that hnlaunch computes; the given value has no "
          "effect.",
          "Remove it from the line. hnlaunch plan --ranks 0 ... shows the environment of a rank." },
        /* --include, --exclude and --nodes (head/hosts/filter.c): options that
         * choose among the hosts. */
        { HN_UNKNOWN_HOST,
          "an option names a host that the list does not have",
          "--include, --exclude, or -w beside -H names a host that is in no hostfile. Names are compared as they are "
          "written.",
          "Correct the name. A second -H adds hosts; -w without -H is the whole list." },
        { HN_NO_SUCH_SLOT,
          "an option names a slot that the host does not have",
          "--include or --exclude names slots of a host, counted from 0, beyond the slots that its line gives.",
          "Name lower slots, or give the host more slots in the hostfile." },
        { HN_NO_HOST_LEFT,
          "no host is left",
          "--include and --exclude leave out every host.",
          "Exclude fewer hosts, or add some." },
        { HN_FEW_HOSTS,
          "--nodes, --min-nodes or --spares asks for more hosts than there are",
          "The list has fewer hosts than that, after --include and --exclude. Spare hosts do not count.",
          "Lower the number, or add hosts." },
        { HN_FEW_SLOTS,
          "-w takes more slots of a host than it has",
          "Beside -H, HOST:N in -w takes N of the slots that the hostfile gives the host.",
          "Take fewer slots, or raise slots= in the hostfile." },
        /* The lists of resource managers (head/alloc). A cause in the output of a manager's program
         * is in the message, not here: each manager has its own words. */
        { HN_ALLOC_MISSING,
          "a variable or file of an allocation is missing",
          "Variables of a resource manager are set, but the one with the nodes is not; or the file with the nodes "
          "cannot be read. The manager writes it on the first node of the job only.",
          "Start hnlaunch in the job's script or shell, or name the hosts with -H or -w." },
        { HN_ALLOC_TEXT,
          "a variable of an allocation cannot be read",
          "The text is none that the resource manager writes: a number is missing or too large, or a list has other "
          "words than names of nodes.",
          "Find what sets the variable to another text, or name the hosts with -H or -w." },
        { HN_ALLOC_COUNTS,
          "counts of an allocation contradict each other",
          "The list of nodes has other nodes than the number of nodes or the counts of tasks say. The size of the job "
          "may have changed, or some of the variables come from another job.",
          "After a change of a Slurm job's size source the script that scontrol wrote, or name the hosts with -H or "
          "-w." },
        { HN_ALLOC_NOT_INSIDE,
          "hnlaunch does not run inside the allocation that --scheduler names",
          "A variable that the resource manager sets in every job is not set.",
          "Start hnlaunch inside the allocation, or name the hosts with -H or -w." },
        { HN_ALLOC_OUTSIDE,
          "hosts lie outside the allocation (warning)",
          "Hosts from options or configuration win over the allocation around hnlaunch, which lacks some of them.",
          "Name no hosts to run on the nodes of the allocation, or say --scheduler none if the others are meant." },
        { HN_ALLOC_ORIGIN,
          "the variables of an allocation are not of this session",
          "This machine is neither a node of the job nor the one that submitted it, or the job's time has ended: ssh, "
          "or an old shell, has handed the variables on.",
          "Start hnlaunch inside the allocation, name the hosts, or take the allocation with --scheduler." },
        { HN_ALLOC_COPIES,
          "several copies of hnlaunch were started",
          "srun or flux started hnlaunch once for each task, or SageMaker on each host, and each copy would start the "
          "whole job.",
          "Start hnlaunch once, without srun in front; or one on each node, with --dial-in auto." },
        { HN_ALLOC_COMMAND,
          "the command that lists the nodes of an allocation failed",
          "The resource manager's program is not in PATH, cannot reach its server, or does not answer. Of Ray it is "
          "python3, which needs the modules ray and hnlaunch.",
          "Read what the program says in the message, or name the hosts with -H or -w." },
        { HN_ALLOC_SHARED,
          "another hnlaunch uses the allocation (warning)",
          "Two launches without a choice of nodes run on all nodes of the same allocation, and share cores and GPUs.",
          "Give each a part: --nodes, --include, --exclude or -w." },
        /* Devices and terminals of ranks, which are checked when the plan is known. */
        { HN_FEW_DEVICES,
          "a list of devices has fewer entries than a node has ranks (warning)",
          "A variable such as HIP_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES, from -x, --env-file or --export, names the "
          "devices that ranks see. Ranks that choose one by LOCAL_RANK find none behind its end.",
          "Start fewer ranks on a node with --ppn, or name more devices." },
        { HN_NO_TERMINAL,
          "--pty without a terminal",
          "--pty makes the terminal of hnlaunch that of a rank: its keys go there, and its size. Standard input of "
          "hnlaunch is no terminal but a pipe, a file or nothing, as in CI and under ssh without -t.",
          "Start hnlaunch in a terminal (ssh -t), or leave --pty out; --stdin FILE gives ranks input." },
        /* Topology files (head/hosts/topology_file.c). */
        { HN_TOPOLOGY_UNREADABLE,
          "a topology file cannot be read",
          "The file of --topology is missing, or this user may not read it. As a warning: Slurm's topology.conf beside "
          "$SLURM_CONF cannot be used, and the order does without it.",
          "Correct the path. Without --topology the nodes tell their NVLink domains, and in a step of Slurm their switches." },
        { HN_TOPOLOGY_LINE,
          "a line of a topology file is wrong",
          "A line is `switch: hosts`, with hosts as in gpu[001-016] or names of other switches, or one of Slurm's "
          "topology.conf: SwitchName=leaf1 Nodes=gpu[001-016], SwitchName=core Switches=leaf[1-4], BlockName=b1 Nodes=... "
          "A file has a switch with hosts at least.",
          "Correct the place that the message shows. `scontrol show topology` writes such lines." },
        { HN_TOPOLOGY_TWICE,
          "a topology file has a host or a switch twice",
          "A host is at one switch and in one block; a switch has one line.",
          "Take the name out of one of the two places that the message shows." },
        { HN_TOPOLOGY_CIRCLE,
          "a switch of a topology file is below itself",
          "The members of a switch, or members of these, name the switch again; or more than 32 switches are above it.",
          "Let each switch name those below it only." },
        /* 2xx: reaching nodes, and pushed files. Most numbers from here to HN223 are made from
         * the cause of a failed link (head/report/report_nodes.c), and hosts with the same
         * cause share a message. */
        { HN_UNREACHABLE,
          "nodes cannot be reached",
          "The name does not resolve, the connection was refused, there is no route, the server closed the "
          "connection, or a step took longer than --connect-timeout.",
          "Try ssh HOST true. If all nodes refuse, name the port with -p. Leave the node out with --exclude, or raise --connect-timeout. --nodes MIN:MAX starts without nodes "
          "that fail, --spares N replaces them." },
        { HN_LOGIN_REFUSED,
          "ssh login refused",
          "The server rejected every key that was tried, or allows no login of this user. The message lists what was "
          "tried.",
          "Try ssh -oBatchMode=yes USER@HOST true. Load a key with ssh-add, name one with --identity, or name the "
          "user with --user. Passwords are not asked for." },
        { HN_HOST_KEY_UNKNOWN,
          "a host key is not known",
          "No known_hosts file has a key of this host, and --host-key strict, the default, accepts only known keys.",
          "Compare the key with your administrator's list and add it to ~/.ssh/known_hosts: hnlaunch trust shows the keys "
          "of hosts, and adds them. For throw-away nodes use --host-key accept-new." },
        { HN_HOST_KEY_CHANGED,
          "a host key has changed",
          "known_hosts has another key for this host. The node was reinstalled, the address belongs to another "
          "machine now, or the connection is being intercepted.",
          "Ask your administrator. Remove the old key (ssh-keygen -R HOST) only when the new one is confirmed; "
          "--host-key accept-new does not accept changed keys." },
        { HN_HOST_KEY_REVOKED,
          "a host key is revoked",
          "@revoked in known_hosts, or a file of RevokedHostKeys, names the key that the host offers.",
          "Do not log in. The host needs a new key; ask your administrator." },
        { HN_HOST_KEY_UNCHECKED,
          "a host key cannot be checked for revocation",
          "A file of RevokedHostKeys in the ssh configuration cannot be read or is damaged. With --tree, it can also "
          "be that no known key is left for the nodes to check.",
          "Correct the file, or take RevokedHostKeys out of the configuration. With --tree, add the keys of the "
          "hosts to known_hosts on this machine." },
        { HN_SSH_CONFIG_WRITABLE,
          "an ssh configuration file may be written by others",
          "~/.ssh/config, or a file that it includes, belongs to another user or can be written by others, who could "
          "start programs as you.",
          "chmod go-w FILE, or chown it to yourself. --ssh-config none reads no file." },
        { HN_AGENT_CANNOT_RUN,
          "the agent cannot run on a node",
          "The node was reached, but the agent did not start or did not answer within --start-timeout: no folder there "
          "can hold a program that may be executed, a limit is too low, or a login file asks, starts another shell, ends or "
          "prints too much. Of a hold: its agents end on all nodes before a run takes them.",
          "Read the rows below the message; they quote the node. Try ssh HOST true, or the command of --start-with. Login files "
          "such as ~/.bashrc return early for commands: [[ $- == *i* ]] || return. "
          "XDG_CACHE_HOME on the node can name a folder for the agent." },
        { HN_WRONG_VERSION,
          "the agent on a node speaks another protocol version",
          "hnlaunch and the hnlaunch-agent files on this machine come from different versions.",
          "Install hnlaunch again, so that both have one version." },
        { HN_SSH_CONFIG_UNREADABLE,
          "the file of --ssh-config cannot be read",
          "The file does not exist, or may not be read.",
          "Check the path. --ssh-config none reads no file." },
        { HN_SSH_COMMAND,
          "the program of --ssh-command cannot be started",
          "The first word of --ssh-command is not in PATH, or is not an executable file.",
          "Name the ssh program with its path: --ssh-command '/usr/bin/ssh -o ...'." },
        { HN_IDENTITY_UNREADABLE,
          "a file of --identity cannot be read (warning)",
          "Neither the key nor its public half FILE.pub can be read. The login goes on with other keys.",
          "Check the path." },
        { HN_HOST_KEYS_ACCEPTED,
          "new host keys were accepted and stored (warning)",
          "--host-key accept-new stored the keys of hosts that were seen for the first time. The rows tell the file "
          "and line of each.",
          "Compare the keys with your administrator's list if the network is not trusted." },
        { HN_NO_AGENT_FOR_MACHINE,
          "no agent is installed for the machine type of a node",
          "The node is of a type (uname -m) for which no hnlaunch-agent-TYPE lies beside the others.",
          "Build hnlaunch-agent for that type and put it there as hnlaunch-agent-TYPE; see FILES in hnlaunch(1)." },
        { HN_MALFORMED_MESSAGE,
          "the agent sent a malformed message",
          "Bytes that do not follow the protocol came from the node before the ranks were started. The agent or the "
          "connection is damaged, or another program answers in its place.",
          "Start again. If it comes back, remove ~/.cache/hnlaunch/agent-* on the node, leave the node out, and "
          "report it." },
        { HN_PER_NODE_CONFLICT,
          "an option contradicts --per-node",
          "--per-node starts one process on each node, which gets all GPUs, starts its own ranks and serves PyTorch's "
          "store itself. The option in the message says otherwise.",
          "Leave one of the two out. In a configuration file, --per-node on the command line has precedence." },
        { HN_MORE_THAN_NODES,
          "-n is above the number of nodes of --per-node",
          "With --per-node there is one process per node, and -n chooses how many nodes take part.",
          "Give a smaller number, or more hosts. The number of ranks that the program starts on each node is an "
          "option of the program." },
        { HN_CHILD_UNREACHABLE,
          "a node cannot be reached from its parent in the tree",
          "With --tree, a node logs in to others with its own ssh, and that failed: the name does not resolve there, "
          "the connection failed, or the agent did not start.",
          "Try ssh HOST true on the parent. Leave the node out, or start without --tree." },
        { HN_CHILD_UNTRIED,
          "a node was not tried, because its parent in the tree failed",
          "With --tree, the way to the node leads through another node that could not be reached.",
          "Correct the error of the other node, which is told as well, or leave that node out." },
        { HN_CHILD_KEY_UNKNOWN,
          "a host key is not trusted by the parent in the tree",
          "With --tree, a node uses the host keys that are known on this machine and those that the node itself "
          "knows; neither has the key.",
          "Add the key to ~/.ssh/known_hosts on this machine, or on the parent; or start without --tree." },
        { HN_CHILD_LOGIN_REFUSED,
          "a node rejects the login from its parent in the tree",
          "With --tree, nodes log in to each other with keys of their own, and the parent has none that the node "
          "accepts.",
          "Give the nodes a key (one in a shared home will do), forward your ssh-agent with -o ssh.tree_auth=forward, or "
          "start without --tree." },
        { HN_NO_SSH_AGENT,
          "-o ssh.tree_auth=forward without an ssh-agent",
          "SSH_AUTH_SOCK is not set, or no ssh-agent answers there.",
          "Start one: eval $(ssh-agent) && ssh-add. Or use -o ssh.tree_auth=own." },
        { HN_KEYS_NOT_ADDED,
          "new host keys were not added",
          "hnlaunch trust has shown host keys that known_hosts does not have, and the answer was not yes, or standard "
          "input is no terminal and --yes is not given. No key was stored.",
          "Compare the fingerprints with your administrator's list, then answer yes, or add --yes." },
        { HN_KEYS_NOT_STORED,
          "a host key cannot be stored",
          "hnlaunch trust cannot write to the known_hosts file of the user, which the message names with the reason.",
          "Make the file writable, or choose another with UserKnownHostsFile in ~/.ssh/config." },
        /* --push: faults of a path found before the start (head/push/manifest.c), then faults of a
         * node that stores the files (head/report/report_push.c). */
        { HN_PUSH_MISSING,
          "a file of --push or --stage does not exist",
          "There is no file at the path. Paths are relative to the current directory.",
          "Check the path, and that --push stands before the program." },
        { HN_PUSH_UNREADABLE,
          "a file of --push cannot be read",
          "You may not read the file, or a folder on the way to the file; or a read failed.",
          "Make the file readable for you: ls -l PATH." },
        { HN_PUSH_SPECIAL,
          "--push cannot push a file of this kind",
          "Only files, folders and links to files can be sent. Pipes, sockets, devices, links to folders elsewhere and links "
          "to nothing cannot.",
          "Remove it from the folder, or push the files of the folder one by one." },
        { HN_PUSH_CLASH,
          "two files of --push would have the same path on the nodes",
          "Files outside of the current directory land under their last name, and two files have the same last name.",
          "Rename one of them, or push a folder that has both." },
        { HN_PUSH_NOT_STORED,
          "the pushed files cannot be stored on a node",
          "No folder of the node's cache can be written to: its file system is read-only, or its permissions do not "
          "allow it.",
          "Name a writable folder in HNLAUNCH_STAGE_DIR of the node, or make the files reachable there and leave --push "
          "out." },
        { HN_PUSH_NO_ROOM,
          "a node has no room for the files",
          "The file system of the node's cache is full, or the quota is used up.",
          "Make room there (hnlaunch stage --gc), or name a larger file system in HNLAUNCH_STAGE_DIR of the node." },
        { HN_PUSH_DAMAGED,
          "a pushed file arrived damaged",
          "The SHA-256 of the received bytes differs from the SHA-256 of the sent bytes.",
          "Start again. If the error comes back, suspect the memory or the disk of the node." },
        { HN_PUSH_CHANGED,
          "a pushed file changed while it was read",
          "Size or contents of the file changed between the search for files and the transfer.",
          "Start again when no program writes to the file." },
        { HN_PUSH_TOO_MANY,
          "--push names too many files",
          "A launch cannot push as many files, or the names of the files take too much memory. The message has the "
          "limits.",
          "Pack the files into one (tar, WebDataset, HDF5) and push that." },
        { HN_NOT_PUSHED,
          "an argument names a file that is not pushed (warning)",
          "With --push the ranks start among the pushed files on the nodes, and a file that an argument names is "
          "only here.",
          "Add --push FILE, or name the file with an absolute path that the nodes have." },
        /* The ssh configuration again, PMIx, MPI and containers: later members of the hundred. */
        { HN_SSH_CONFIG_IGNORED,
          "lines of the ssh configuration are not obeyed (warning)",
          "The rows tell the file, the line and the keyword. The login is the one that ssh(1) would make, but ssh "
          "would do more with it, such as set a variable of ranks. Each line is told once; a line that ranks do not miss, "
          "such as ForwardAgent, only with -v or when a login fails.",
          "Nothing has to be done when the job does not need it. --ssh-command ssh obeys all keywords; hnlaunch-ssh(5) "
          "lists them." },
        { HN_SSH_CONFIG_OF_NODE,
          "the ssh configuration of a node cannot be obeyed",
          "With the line in the message, ssh(1) would refuse the login or reach another place, and hnlaunch cannot do "
          "so; or the line has a token or a variable without a value, or RefuseConnection holds for the node.",
          "Use --ssh-command ssh, which obeys all keywords, or take the line out for this host: a Host or Match line "
          "before it. hnlaunch-ssh(5) lists the keywords." },
        { HN_SSH_CONFIG_LINE,
          "a line of an ssh configuration file is wrong",
          "ssh(1) refuses the line, too: the keyword is unknown, the value is none of its values, a quote is not "
          "closed, or an included file cannot be read. Lines are checked in all blocks, also in those of other hosts.",
          "Correct the line in the message. IgnoreUnknown KEYWORD lets ssh and hnlaunch pass over a keyword. "
          "--ssh-config none reads no file." },
        { HN_NO_PMIX,
          "a node cannot serve PMIx",
          "Ranks of Open MPI find each other through PMIx, and hnlaunch serves it with the node's own libpmix.so.2. "
          "None could be loaded: the message names where it was looked for. It is looked for in $PMIX_PREFIX, beside "
          "the Open MPI that the program would load, and where the loader of the node looks.",
          "Install libpmix on the node (libpmix2 of Debian), or name the folder above its lib with -x "
          "PMIX_PREFIX=DIR. For a program of MPICH, and for Open MPI 3 and 4 with their component for Flux (ompi_info "
          "names it), --mpi pmi1." },
        { HN_PMIX_ENDED,
          "the PMIx service of a node has ended before its ranks (warning)",
          "The process hnlaunch-pmix was killed, or failed inside libpmix. Ranks that wait for it would wait for ever, "
          "so the job is aborted.",
          "dmesg on the node tells of a process that ran out of memory. Another libpmix may be named with -x "
          "PMIX_PREFIX=DIR." },
        { HN_TWO_MPIS,
          "a program has two MPI libraries that exclude each other (warning)",
          "The program, or a library that it needs or has loaded, was built with Open MPI, and another with MPICH, "
          "Intel MPI or one more of MPICH's ABI. Both come into the same process: calls go to the first, with handles and types of the "
          "second, so that ranks crash, hang or are worlds of one.",
          "Build the program and all its libraries with one MPI. ldd PROGRAM lists the libraries; often one of "
          "LD_LIBRARY_PATH or of a module was built with the other MPI." },
        { HN_NODE_LIST_TOO_LONG,
          "the list of nodes does not fit in a variable",
          "--compat slurm gives ranks the names of all nodes, for example in SLURM_JOB_NODELIST. The kernel limits a "
          "variable to 128 KiB, and the list is longer although neighbours are folded, as in gpu[001-064].",
          "Use fewer nodes, or host names that end in a number." },
        { HN_KEY_OPEN_TO_OTHERS,
          "a private key is ignored, since others may access it (warning)",
          "The file of a key of the ssh configuration or of --identity belongs to you, and its permissions let other "
          "users read or change it. ssh(1) ignores such a key, too. The login goes on with other keys and with the "
          "ssh-agent.",
          "chmod 600 FILE. If others could read the file, make a new key." },
        { HN_LIBSSH_TOO_OLD,
          "libssh is too old",
          "The libssh that this machine loads is older than 0.10.6. Such versions can be made to skip the check of a "
          "signature, to run a command from a host name, and to lose messages of a handshake.",
          "Update libssh on this machine. --ssh-command ssh uses the site's ssh in its place." },
        { HN_NO_CONTAINER,
          "the container of a node cannot be entered",
          "The program of --container is not installed on the node, its daemon does not answer, the user may not use "
          "it, it has no such image or container, or the image is for another type of machine.",
          "Read the words of that program in the message, and try it on the node by hand. Pull or build the image on "
          "every node; hnlaunch does neither." },
        /* 3xx: plan and start. First plans that do not fit the nodes (head/model/plan_faults.c). */
        { HN_TOO_MANY_RANKS,
          "the ranks are more than the slots",
          "-n asks for more ranks than the hosts have slots, or --include and --exclude left no slot.",
          "Lower -n, add a host or slots, or use --oversubscribe. Hosts without slots= count as one in a plan; "
          "--probe asks them." },
        { HN_PPN_TOO_LARGE,
          "--ppn is larger than a node allows",
          "A node has fewer slots than --ppn, or with --gpus-per-rank room for fewer ranks.",
          "Lower --ppn, leave the node out, or use --oversubscribe." },
        { HN_NO_SLOT_ON_NODE,
          "a node does not have a slot that an option names",
          "--include or --exclude names a slot of a host whose slots became known only from the node itself.",
          "Name lower slots, which are counted from 0." },
        { HN_NO_GPU,
          "--ppn gpu on a node without GPUs",
          "The agent found no GPU that ranks may use on the node; CUDA_VISIBLE_DEVICES of the node's environment can "
          "hide them.",
          "Use --ppn with a number or --ppn cpu, or leave the node out." },
        { HN_GPUS_LEFT,
          "a node has GPUs that no rank uses (warning)",
          "--gpus-per-rank does not divide the number of its GPUs.",
          "Choose another --gpus-per-rank if the GPUs are to be used." },
        { HN_WORLD_TOO_LARGE,
          "the job has too many ranks",
          "The number of ranks is above the largest that hnlaunch can start.",
          "Lower -n, --ppn or slots." },
        { HN_ONLY_SPARES,
          "only spare hosts are left",
          "Every host is marked spare. A spare host gets ranks only in place of a node that was lost.",
          "Take the word spare out of a line, or add a host." },
        { HN_RANK_TOO_LARGE,
          "a rank needs more GPUs than any node has",
          "--gpus-per-rank is larger than the slots of the largest node.",
          "Lower --gpus-per-rank, or use --oversubscribe." },
        /* One machine under several names, then faults of nodes and programs of a running job. */
        { HN_SAME_MACHINE,
          "one machine has several names in the list",
          "Hosts are one machine (one boot, one network namespace), so the GPUs would be used twice.",
          "Keep one of the names, or use --oversubscribe." },
        { HN_NODE_LOST,
          "a node was lost",
          "The connection to its agent ended, nothing was heard from the node for longer than --node-timeout (cable, "
          "power, kernel hang), its agent sent a malformed message, or Slurm cancelled the step of the agents. The message "
          "tells which.",
          "Look at the node, and start without it: --exclude HOST. --max-restarts with a spare host goes on by "
          "itself." },
        { HN_NETWORK_FAILED,
          "the network of this machine failed",
          "All nodes that are reached through the network fell silent at the same time, so the cause is likelier "
          "here than there.",
          "Look at ip addr on this machine and ping a node. The ranks end by themselves when their nodes hear "
          "nothing for as long." },
        { HN_NOT_STARTED,
          "a program could not be started",
          "The program does not exist on the node or cannot be executed; its interpreter, its loader or the target of a link "
          "is missing; the working directory does not exist there; or a limit on processes or open files was reached.",
          "The message tells which and what to try. --push brings the program to nodes that do not share this "
          "folder; --chdir names another one." },
        { HN_LONE_WORLDS,
          "the ranks of an MPI program would not find each other (warning)",
          "The program is linked with Open MPI, whose ranks speak neither PMI-1 nor PMI-2, or --mpi none was given for a "
          "program that is linked with an MPI library or a script that imports mpi4py. Each rank is a world of one then.",
          "Start programs of Open MPI with its mpirun; leave out --mpi none for others." },
        { HN_FILES_LEFT,
          "files of the job are left on a node (warning)",
          "Ranks wrote files beside pushed files, and such files are never removed; or a file or folder of the job cannot be "
          "removed, for the reason in the message. The exit code stays.",
          "Save your files, and remove the folder named in the message when none of your jobs runs on the node. "
          "Ranks should write their files outside of the pushed folder." },
        { HN_ROLE_NODES,
          "the roles need other nodes than there are",
          "The nodes that the roles ask for, with --nodes or by their ranks, are more than the hosts of the list; or a list names a "
          "node for two roles, or --on a node that the other role does not have. The message has the sum, role by role.",
          "Add hosts, lower --nodes, or let a role stand on the nodes of another: --on ROLE." },
        { HN_ROLE_GPUS,
          "two roles ask for the same GPUs",
          "A role with --on asks for GPUs, or slots, of a node, and another role has them: each is given once over all roles.",
          "Give the role no GPUs (--gpus-per-rank 0) or the other role fewer ranks, or let both have them: --share-gpus." },
        { HN_NO_SPARE,
          "no host is left to take the place of one that was put out (warning)",
          "With --restart auto the evidence put a host out, and no unused host of the list has enough slots and GPUs "
          "to take its place; with --nodes MIN:MAX, fewer than MIN nodes would be left. The message lists the hosts that "
          "were put out, and why.",
          "Look at these hosts, and add others, marked spare in the hostfile." },
        { HN_NOT_BOUND,
          "ranks are not bound as --bind says (warning)",
          "The ranks have fewer allowed cores than OMP_NUM_THREADS or core:N want, none of the processors of list: is "
          "allowed on the node, the NUMA node of a GPU is not known, or the "
          "kernel refused the call, as some containers do. The message says which. The ranks run on all processors that are allowed there.",
          "Ask for fewer cores or threads, or leave --bind out. `hnlaunch -v` shows the processors of each rank." },
        { HN_NO_NIC,
          "--nic near sets no NICs (warning)",
          "No port of InfiniBand or RoCE below /sys/class/infiniband of the node is active: there is none, its link is down, or a "
          "container hides them. NCCL_IB_HCA and UCX_NET_DEVICES stay as they are; NCCL and UCX choose a network themselves.",
          "Leave --nic out on such nodes, or look at the ports with `hnlaunch check` and ibstat." },
        { HN_NO_MASTER_ADDRESS,
          "no address for PyTorch's store can be chosen",
          "The network of --iface, or iface= or addr= of the hostfile, has no address on the node of rank 0, or "
          "addr= does not resolve here.",
          "Choose an interface or address that the node has; the message lists them." },
        /* --dial-in (head/dial_in): the secret, the place of a node, and the
         * connections of both sides. */
        { HN_NO_SECRET,
          "nodes dial in without a secret (warning)",
          "--dial-secret none was given. Any program that reaches the port of node 0 can take the place of a node that "
          "is not there yet, and one that takes the port first can run programs as the user on the other nodes.",
          "Give every node the same secret, a new one for each job: openssl rand -hex 32." },
        { HN_DIAL_PLACE,
          "the place of a node that dials in is not complete",
          "--dial-in is not HOST:PORT, --nodes or --node-rank is missing, or the node rank is not below the number of "
          "nodes.",
          "Write --dial-in HOST:PORT --nodes N --node-rank R: the same on every node but for R." },
        { HN_NO_DIAL_PORT,
          "node 0 cannot open the port for the other nodes",
          "Another program uses the port of --dial-in, perhaps another job on this machine, or the user may not open "
          "it.",
          "Choose another port above 1023, the same on every node." },
        { HN_NOT_DIALED_IN,
          "nodes have not dialed in",
          "Node 0 waited for net.dial_timeout, and the nodes in the message did not connect: hnlaunch was not started "
          "there, cannot reach the port, or has another secret.",
          "Look at what hnlaunch says on these nodes. -o net.dial_timeout=1h waits longer." },
        { HN_HEAD_UNREACHED,
          "a node cannot reach node 0",
          "Within net.dial_timeout, the name of node 0 did not resolve, its port could not be reached, another program "
          "answered there, or node 0 has another secret. The message has what happened last.",
          "See that hnlaunch runs on node 0 and that its port is open between the nodes; compare the secrets." },
        { HN_HEAD_REFUSED,
          "node 0 refused a node",
          "The node was told of another number of nodes, has a node rank that the job has not, or another version of "
          "hnlaunch. The exit code is 64 or 76.",
          "Start the same hnlaunch with the same --nodes on every node." },
        { HN_HEAD_LOST,
          "a node lost node 0",
          "The connection to node 0 ended before the job did: hnlaunch was killed there, its machine or the network "
          "failed. The ranks of this node were stopped.",
          "Look at the end of node 0." },
        { HN_SECRET_UNUSABLE,
          "the secret for dialing in cannot be used",
          "The file cannot be read (66), belongs to another user or can be written by others (77), or the secret is "
          "shorter than 16 characters (78).",
          "Make a secret for each job, in a file for you alone: (umask 077; openssl rand -hex 32 >FILE)." },
        { HN_NO_PLATFORM,
          "the platform does not say which node this is",
          "--dial-in auto found no platform in the environment, or the variables of one are incomplete or contradict "
          "each other: the message names them. A step of Slurm with several tasks on a node is one such case.",
          "Start one hnlaunch on each node, or give --dial-in HOST:PORT, --nodes and --node-rank yourself." },
        { HN_STARTED_TWICE,
          "hnlaunch was started several times for one job",
          "A step of Slurm or a platform started hnlaunch on several nodes, and without --dial-in each of them would be "
          "a launch of its own.",
          "Add --dial-in auto, or start hnlaunch once: outside of srun, on one node." },
        { HN_FOREIGN_CONNECTIONS,
          "other programs connected to the port of --dial-in (warning)",
          "Connections to node 0 were no node's of the job: they sent another protocol, another secret, nothing, or "
          "a repeated message. They were closed and did the job no harm; port scanners and health checks do so.",
          "If a node is missing as well, compare its secret with that of node 0." },
        /* --progress-re and --metrics: the expression, the address and the server. */
        { HN_BAD_PROGRESS_RE,
          "the expression of --progress-re cannot be used",
          "It is no extended regular expression (POSIX, as for grep -E), or has no group, in parentheses, that could be the "
          "step. There are no \\d and no (?:...) in these expressions.",
          "Write [0-9]+ for a number, and a backslash in front of a bracket that stands for itself: "
          "--progress-re 'step ([0-9]+)/([0-9]+)'." },
        { HN_BAD_METRICS_ADDRESS,
          "the address of --metrics cannot be used",
          "It is none of PORT, HOST:PORT and [V6]:PORT, with a port from 0 to 65535.",
          "--metrics 9400 serves this machine only; 0.0.0.0:9400, or [::]:9400, every machine that can reach it." },
        { HN_NO_METRICS,
          "the metrics cannot be served",
          "Another program listens at the port of --metrics, the port is below 1024, or the address is none of this "
          "machine. Nothing was started.",
          "Take another port, or port 0, which is any free one: a line at the start has the address then." },
        { HN_NO_STEP_LINE,
          "no line had a step for --progress-re (warning)",
          "The ranks have written lines, and none matched the expression with a number in a group. The run has no "
          "steps, in the line at the bottom, in top and in the report.",
          "Compare the expression with a line of hnlaunch logs. There are no \\d and no (?:...) in it." },
        { HN_DID_NOT_RUN,
          "hnlaunch did not run for a while",
          "This process was stopped (SIGSTOP), or this machine slept or was overloaded. The nodes heard nothing for longer "
          "than they wait, and ended their ranks. No node is at fault.",
          "Stop hnlaunch with Ctrl-Z: it asks the nodes to wait. A longer --node-timeout lets them wait longer. "
          "--max-restarts starts the ranks again." },
        /* --start-with (head/launch/launch_hosts.c), then later numbers of --dial-in. */
        { HN_BAD_START_WITH,
          "the value of --start-with cannot be used",
          "It is none of the names that hnlaunch knows (ssh, srun, sge, ray), and as a command it has no {host}, or a quote is not closed.",
          "Write the program with its arguments, and {host} for the node: --start-with 'docker exec -i {host}'." },
        { HN_TREE_BESIDE_START_WITH,
          "--tree beside --start-with",
          "With --tree nodes log in to nodes by ssh; the programs of --start-with start each agent from this machine.",
          "Leave one of the two out." },
        { HN_START_PROGRAM,
          "the program of --start-with cannot be started",
          "The first word of the command is not in PATH here, or is not an executable file.",
          "Name the program with its path, or load the module with the program. --start-with ssh logs in by ssh." },
        { HN_NO_JOB_OF_MANAGER,
          "--start-with names a manager, but hnlaunch runs in none of its jobs",
          "The variable of the manager (SLURM_JOB_ID, PE_HOSTFILE) is not set. ssh, sudo and env -i lose it.",
          "Start hnlaunch in a job (salloc, sbatch, qsub -pe), or use --start-with ssh." },
        { HN_LOGIN_NOT_USED,
          "a login of the host list is not used (warning)",
          "With --start-with a program starts the agents. A user or a port of a host means something to ssh only.",
          "Take them out of the host list; what a program needs stands in its command." },
        { HN_SECRET_REFUSED,
          "--dial-in has no secret",
          "Without a secret a program that takes the port of node 0 first could run programs as the user on the other "
          "nodes, so that none is started. The message lists the ways to give one. None is needed in jobs of Slurm "
          "with munge; by itself it is made in a job of a resource manager, for nodes that share a home.",
          "Make a secret for each job (openssl rand -hex 32) and give it to every node; --dial-secret none goes without." },
        { HN_SECRET_SEEN,
          "others can read the secret for dialing in (warning)",
          "The mode of the --dial-secret FILE lets other users of the machine read it. Who has read it can join the job.",
          "Make a new secret in a file for you alone: (umask 077; openssl rand -hex 32 >FILE)." },
        { HN_SECRET_UNREAD,
          "the secret in the home cannot be shared",
          "No secret was given, so node 0 makes one for the job in a file below ${XDG_STATE_HOME:-~/.local/state}"
          "/hnlaunch/dial-in, and the other nodes read it there. It could not be written, did not come within "
          "net.dial_timeout because the nodes do not share this home, or is no file of the user alone.",
          "Give every node the same secret: --dial-secret FILE, or HNLAUNCH_DIAL_SECRET." },
        { HN_NODE_RANK_TAKEN,
          "a second node came for a node rank that is taken (warning)",
          "Another hnlaunch was started with the --node-rank of a node that is connected. It waits, and takes the place "
          "when the connection of the first one ends: a node that was started again, before its loss is known, is such a case.",
          "If no node was started again, give every node a rank of its own." },
        /* The order of nodes by topology (head/launch/launch_order.c). */
        { HN_SEGMENTS,
          "segments of --segment N nodes do not fit into the domains",
          "Each N consecutive nodes of the job have to lie within one NVLink domain, or block or switch of the topology "
          "file, and the number of nodes has to be a multiple of N. The message names the domains with their nodes.",
          "Give a smaller N, fewer nodes (--nodes chooses those that fit), more hosts, or a topology file that has all "
          "hosts. `hnlaunch plan --order topology --probe` shows the domains." },
        { HN_NO_DOMAIN,
          "the domain of hosts is not known (warning)",
          "With --order topology hosts stand by NVLink domain and switch. The driver of these hosts tells no domain, and no "
          "topology file has the hosts: they come last, in the order of their names.",
          "Name the hosts in the file of --topology. With `plan`, add --probe to ask the nodes." },
        /* 4xx: PyTorch's store, and how ranks join the job. */
        { HN_STORE_UNREACHED,
          "nodes cannot reach PyTorch's store",
          "Every node connects to MASTER_ADDR and MASTER_PORT before a rank starts, and some failed: a firewall "
          "between the nodes, an interface of another network, or a program that answers in place of the store.",
          "Open the ports between the nodes, choose a network with --iface, or use --store-listen loopback, which "
          "needs no connection between nodes." },
        { HN_NOT_JOINED,
          "ranks did not join in time",
          "They did not connect to the store within --start-timeout, while others did. They are still loading data, "
          "hang before they connect, or never use the store. A warning unless the time was given by you.",
          "Ctrl-\\ shows what each rank does. Raise --start-timeout, or set it to never." },
        { HN_NO_STORE_PORT,
          "a node cannot open a port for PyTorch's store",
          "The agent could not listen: no descriptor or port is free, or a rule of the node forbids it. The rows "
          "have the reason of the node.",
          "Correct it on the node. --store-listen none leaves the store to rank 0's own process." },
        { HN_LONG_WAIT,
          "ranks have been waiting in the store for long (warning)",
          "Ranks wait in a barrier, a collective or for keys for longer than --wait-warn, and others have not come, "
          "or all wait for each other.",
          "Look at the ranks that have not come: Ctrl-\\ shows the state of each. --wait-warn TIME sets when this is "
          "told; 0 turns it off." },
        { HN_STORE_FULL,
          "the store of the job is full (warning)",
          "Keys, values, queues, and requests without an answer of all ranks take the memory of net.store_size on this "
          "machine (1 GiB unless set). Calls that need more fail with HN_ERR_NO_SPACE, connections of PyTorch's store "
          "are closed. The message names the rank or the node that was refused first.",
          "Delete keys that are no longer needed; the store is for addresses and small state, not for tensors. "
          "-o net.store_size=SIZE sets the limit." },
        { HN_UNFINALIZED,
          "a rank left without MPI_Finalize()",
          "The process had called MPI_Init() and exited with code 0 before MPI_Finalize(). The other ranks would wait "
          "for it for ever, so this counts as a failure with code 1, as with the launchers of MPI libraries.",
          "Look for a path that returns from main(), or calls exit(0), before MPI_Finalize()." },
        { HN_LONE_RANK,
          "a rank of an MPI program did not ask for the other ranks (warning)",
          "The program is linked with an MPI library, is a script that imports mpi4py, or has loaded an MPI later, and a "
          "rank has exited with 0 without speaking PMI or PMIx to hnlaunch. Its MPI found no launcher that it knows, and made a world of one: "
          "every rank did the whole work. Or the rank did not call MPI_Init().",
          "Name the way of its MPI: --mpi pmix for Open MPI (also for mpi4py with Open MPI), --mpi pmi1 for MPICH and "
          "Intel MPI." },
        { HN_KNOWN_BAD,
          "this version of NCCL has a known fault (warning)",
          "A rank has loaded a version of NCCL of which NVIDIA says that it hangs or corrupts data on such nodes. "
          "hnlaunch sees the library in the memory map of the first rank of a node; a statically linked NCCL is not "
          "seen.",
          "Install the version that the message names, or set the variable that it names." },
        { HN_NO_FREE_PORT,
          "there is no free port for the ranks",
          "A port that the ranks need on rank 0's node, for {port:NAME}, HN_PORT_NAME or MASTER_PORT, could not be "
          "bound: all ports for programs are in use there, or the limit of open files is reached. The message has "
          "the reason of the system.",
          "End programs that hold many connections on that node, or widen sysctl net.ipv4.ip_local_port_range." },
        { HN_NO_SUCH_SOCKET,
          "a node does not know the socket of a connection to PyTorch's store (warning)",
          "With -o net.store_peers=user the agent of the connecting node is asked for the owner of the socket. It sees no "
          "such socket: ranks in containers with a network of their own, or addresses that are translated between "
          "the nodes. The connection was closed.",
          "-o net.store_peers=node admits every connection from the job's nodes, of any user. Or give containers the "
          "network of their node, or use --store-listen loopback." },
        /* Place-holders in the arguments of ranks, such as {port:NAME}. */
        { HN_BAD_PORT_NAME,
          "a place-holder {port:NAME} has no valid name, or no role, or a port is not reserved",
          "The name of a port is a lower-case letter and up to 31 lower-case letters, digits and underscores, and a "
          "job, or a role, may have 64 ports. The message names the argument. In a job of roles {port:NAME} stands in "
          "the texts of a role; elsewhere it is {ROLE.port:NAME}. A port that --ready asks by its name is reserved by a text of the "
          "role with {port:NAME}, by a text of another role with {ROLE.port:NAME}, or named by the variable HN_PORT_NAME.",
          "Correct the name. A backslash in front keeps the text as it is: \\{port:X}. Write {port:NAME} where the program takes its port." },
        { HN_OTHER_STORE,
          "no rank has come to PyTorch's store, and a process below a rank looks for another one (warning)",
          "A program that starts ranks of its own runs as a rank. Its processes have a MASTER_PORT of their own, and "
          "TORCHELASTIC_USE_AGENT_STORE=True, which they inherit, makes PyTorch wait for a store that does not exist "
          "there.",
          "Start the program with --per-node: one process on each node, without the variables of a rank." },
        { HN_NO_PLACEHOLDER,
          "a word in braces is no place-holder of --subst (warning)",
          "The word is close to the name of a place-holder, or is one of another launcher. It stays as it is.",
          "Use the name in the message. The number of ranks is WORLD_SIZE in the environment of each rank." },
        { HN_ROLE_REFERENCE,
          "a reference to a role cannot be replaced",
          "{ROLE.addr}, {ROLE.hosts}, {ROLE.port:NAME}, {ROLE.urls:NAME} and {ROLE.each:TEXT} are addresses and ports "
          "of a role. The job has no role of this name, the word behind the dot is none of these, or the brace has no "
          "end. A caret marks the place.",
          "Correct the name. A backslash in front keeps the text as it is: \\{ROLE.addr}; so does a $, as in "
          "${ROLE.addr}." },
        { HN_ROLES_TOO_LONG,
          "HN_ROLES is not set, as the addresses of all roles are too long for a variable (warning)",
          "HN_ROLES has an entry for each instance of each role. The kernel starts no program with a variable of more "
          "than 128 KiB.",
          "Programs that read HN_ROLES need another way, such as {ROLE.addr} in their arguments. Fewer instances and "
          "ports make the list shorter: with --replicas a replica has one entry, not one for each rank." },
        /* 5xx: ranks that ended badly, or stand still at their end
         * (head/report/report.c, head/status). */
        { HN_RANK_SIGNALED,
          "a rank was killed by a signal",
          "The rank crashed (SIGSEGV, SIGABRT, SIGBUS), or another process or the kernel's out-of-memory killer "
          "ended it. The notes tell of the latter, and of the core file, or why there is none.",
          "Read the last lines of the rank's standard error below the message. Out of memory: start fewer ranks on "
          "the node (--ppn)." },
        { HN_RANK_EXITED,
          "a rank exited with a code other than 0",
          "The program failed or ended itself. hnlaunch stopped the other ranks (--on-failure stop) and ends with "
          "the same code. A rank that has told why it fails, and then ended with 0 or not at all, gives the reason, and "
          "the first rank that failed after it the code. If a rank ended with 0, and the others failed only because they "
          "still needed it, that rank is named.",
          "Read the report: the reason that the rank gave, its traceback, or its last lines. --log-dir DIR keeps the "
          "whole output of every rank." },
        { HN_RANK_ABORTED,
          "a rank ended the job with hn_abort()",
          "The program called hn_abort(3) with a code and a reason, which the message quotes.",
          "Correct what the reason names." },
        { HN_RANK_FINALIZES,
          "a rank waits in MPI_Finalize() while the others go on (warning)",
          "A rank of an MPI program ends, and the others have not. Python's mpi4py calls MPI_Finalize() at the exit of the "
          "interpreter, also after an exception and after sys.exit(); it returns only when all ranks have called it, and "
          "the others may wait for the rank in a collective: then nothing happens any more.",
          "Start the program with python3 -m mpi4py, which ends the job when a rank raises an exception or exits with "
          "another code than 0. If the rank has done its part and the others still compute, all is well." },
        /* Ranks of MPI that have not found each other: the job would do the
         * same work several times. */
        { HN_WORLDS_OF_ONE,
          "ranks of a job were worlds of one",
          "At least two ranks, or programs that they started, have called MPI_Init(), whose MPI found no launcher that it "
          "knows: each rank was a world of one and did the whole work. hnlaunch sees the files that MPI_Init() of Open MPI and "
          "of MPICH opens, in the first two ranks of each node. Ranks that have met in the store are left alone.",
          "Name the way that the message tells: --mpi pmix for Open MPI. A program that clears its environment, or closes "
          "descriptors, hides hnlaunch from its MPI. --mpi none says that each rank is to be a world of one." },
        { HN_WORLD_OF_ONE,
          "a rank is a world of one (warning)",
          "A rank, or a program that it started, has called MPI_Init() and has not asked for the other ranks in 20 s. If it "
          "needs them, it will never find them; the job fails at its end (HN510) if a second rank is alone, too.",
          "Stop the job and name the way of its MPI: --mpi pmix for Open MPI. --mpi none says that each rank is to be a world "
          "of one." },
        /* 6xx: GPUs of the plan, and PMI. The hundred was meant for checks of
         * nodes before the start. */
        { HN_SLOTS_ABOVE_GPUS,
          "a node has fewer GPUs than its line gives slots",
          "The agent found fewer usable GPUs than slots=. A GPU failed, or CUDA_VISIBLE_DEVICES of the node's "
          "environment hides some.",
          "Look at nvidia-smi there. Leave the node out with --exclude, or lower its slots." },
        { HN_NO_SUCH_GPU,
          "a node does not have a GPU that gpus= names",
          "The number in gpus= of the hostfile is none of the GPUs that the agent found.",
          "Correct gpus= of that line; nvidia-smi -L on the node lists the numbers." },
        { HN_PMI_BROKEN,
          "a rank broke the rules of PMI (warning)",
          "The rank sent bytes to hnlaunch that are no message of PMI-1 or PMI-2, or one that its state does not "
          "allow. Its connection was closed; an MPI library aborts then. A child of the rank that also calls "
          "MPI_Init() speaks over the same descriptor: two programs at once cannot.",
          "Start one MPI program per rank at a time. Unset PMI_FD, PMI_RANK and PMI_SIZE for others." },
        { HN_PMI_REFUSED, "a connection to PMI_PORT was refused (warning)",
          "With --mpi pmi-port, a process at the port of its node is under another user, names no rank of the node or one "
          "that is served already, or speaks PMI-2 or no PMI. The message tells which.",
          "Run MPI programs, also in containers, under the job's user, one per rank at a time; PMI-2 needs --mpi auto." },
        /* fitness of nodes */
        { HN_UNFIT_NODES,
          "nodes are not fit for the job",
          "With --preflight a check of a node failed before the ranks started, and no spare host could replace the node, or "
          "--on-bad-node stop was given. A row names the check, the nodes, their value and the expected value.",
          "Repair the node, or leave the node out with --exclude; --spares N keeps hosts that replace such nodes. "
          "`hnlaunch check` with the same options shows all checks." },
        { HN_ODD_NODES,
          "nodes are not as they should be (warning)",
          "With --preflight a check of a node warns: a limit is low, or the node differs from most others; or the node has "
          "not answered in time. The launch goes on.",
          "`hnlaunch check` with the same options shows all checks and the next steps." },
        { HN_VENV_NOT_ONE,
          "the folder of --venv is not a virtual environment",
          "The folder does not exist, or has no pyvenv.cfg, or its bin/python leads nowhere.",
          "Name the folder made by python -m venv or uv venv." },
        { HN_VENV_CONDA,
          "the folder of --venv is an environment of conda",
          "Files of such an environment have the path of the environment in them, so a copy elsewhere does not work.",
          "Make a virtual environment with its Python (python -m venv DIR), or unpack it with conda-pack on the nodes." },
        { HN_VENV_LEADS_OUT,
          "the environment of --venv leads to files outside of it (warning)",
          "An editable install, a .pth file or a link names a path outside, which is not sent; or a library names the path "
          "of the environment. The message has the files.",
          "Install the package without -e, or bring the files with --push." },
        { HN_VENV_NO_PYTHON,
          "a node does not have the Python of the environment",
          "A virtual environment uses the Python that made it, from outside of the environment. The node has no file at this "
          "path, or a file of another size or SHA-256.",
          "Add --stage with the folder of the Python (PREFIX of PREFIX/bin/python3), which sends this Python along. Or install the same "
          "Python at the same path, or make the environment with a Python that all nodes have." },
        { HN_VENV_OTHER_MACHINE,
          "the environment of --venv is for another kind of machine",
          "The libraries of the environment are for the architecture of this machine, and a node has another.",
          "Leave the node out, or start hnlaunch on a machine of its kind." },
        { HN_VENV_SET_USER_ID,
          "set-user-ID files are sent without this right (warning)",
          "A copy belongs to you and has no more rights than you.",
          "Install a program that needs other rights on the nodes." },
        { HN_STAGE_NO_PLACE,
          "a node has no folder for staged files",
          "hnlaunch can write to none of HNLAUNCH_STAGE_DIR, /tmp, /var/tmp and the cache folder of the node, or the folder "
          "hnlaunch-stage-UID there is a link or belongs to another user, or programs cannot be run there (noexec). "
          "The message has the first of these folders with the reason.",
          "Name a folder of your own in HNLAUNCH_STAGE_DIR of the node." },
        { HN_PUSH_SLOW,
          "a node gets its files much more slowly than the others (warning)",
          "All other nodes have the files of --push, --stage or --venv, and the job waits for this one. Its network or "
          "its disk is slow, or its agent does not run.",
          "Leave the node out (--exclude), or name spare hosts with --spares: a spare host then replaces a node that would "
          "take longer than all others together." },
        /* holds */
        { HN_HOLD_USED,
          "a run uses the hold of these hosts",
          "There is a hold of the same hosts and settings (`hnlaunch hold`), and another run has at least one of the hosts. "
          "A node of a hold serves one run at a time.",
          "Wait for that run (`hnlaunch wait RUN`), or start beside it with --hold none: the new run then logs in." },
        { HN_NO_HOLD,
          "there is no such hold",
          "--hold or `hnlaunch release` names a hold that does not exist: the hold has ended after its time without a run, was "
          "released, or is on another machine.",
          "hnlaunch ps lists your holds. --hold auto uses a hold of the same hosts, if any." },
        { HN_HOLD_DIFFERS,
          "the hold has other settings or hosts",
          "The hold of --hold would start agents in another way than this run, or lacks a host of this run. The message names "
          "the different options and files, or the host.",
          "Give hold and run the same options, or leave --hold out." },
        { HN_HOLD_SILENT,
          "a hold does not answer",
          "The process of the hold runs, but does not answer, or refuses the request.",
          "hnlaunch ps names the process: kill -CONT PID continues a stopped process, kill -KILL PID ends the hold. "
          "--hold none starts a run without the hold." },
        { HN_HOLD_EXISTS,
          "a hold of these hosts exists already",
          "`hnlaunch hold` was given the hosts and settings of another hold of yours.",
          "Start runs on the same hosts: they use the other hold. Or end that hold with hnlaunch release." },
        { HN_HOLD_SOCKET,
          "a hold cannot listen",
          "The socket where runs find the hold cannot be made in XDG_RUNTIME_DIR, or in /tmp.",
          "Set XDG_RUNTIME_DIR to a folder of your own, or unset it." },
        { HN_HOLD_NO_NODE,
          "all hosts of a hold are this machine",
          "A hold saves the login to other machines. On this machine a run starts the agent at once.",
          "Name other hosts, or start the run without a hold." },
        { HN_WARM_VALUE,
          "--warm has no interpreter, no modules, or a malformed name",
          "The value of --warm is an interpreter of Python, a colon, and names of modules with commas between.",
          "Write --warm python3:torch,numpy: the interpreter as in the command of the runs." },
        { HN_NOT_WARM,
          "interpreters cannot be prepared on a node (warning)",
          "The interpreter of --warm cannot import the modules on a node, or must not wait after the import: a module has "
          "started a thread, or has opened a GPU. Runs start there as without --warm.",
          "Try the import on the node: python3 -c 'import MODULE'. Leave modules out that start threads or open a GPU. "
          "Where the interpreter is a script, name the Python that it starts." },
        /* options and configuration */
        { HN_UNKNOWN_OPTION,
          "unknown option",
          "hnlaunch has no option of this name or letter, or it belongs to another launcher and has another name "
          "here.",
          "hnlaunch --help lists all options; the message names the nearest one." },
        { HN_OPTION_ARGUMENT,
          "an option lacks its argument, or has one too many",
          "The option needs a value and none follows, or an option follows in its place; or a switch was given a "
          "value.",
          "Write the value behind the option. A value that looks like an option is written --NAME=VALUE." },
        { HN_OPTION_VALUE,
          "the value of an option is wrong",
          "The value of an option, of -o or of a variable HNLAUNCH_SECTION_KEY cannot be read, or is out of its "
          "range.",
          "The message tells what is expected." },
        { HN_OPTION_CONFLICT,
          "options that do not fit together",
          "Two options exclude each other, or one needs another: --local beside -H or -w, --push-keep without --push, "
          "ssh.tree_auth without --tree. Or the command does not have the option: --probe without plan, --ppn with logs. As a warning: --spares auto without --nodes and -n.",
          "Leave one of them out, or add the one that is missing. hnlaunch COMMAND -h lists the options of a command." },
        { HN_NO_PROGRAM,
          "no program to start",
          "No word follows the options and no job file names a program, or the word is empty because a variable of the "
          "shell is.",
          "Write the program behind the options: hnlaunch -H hosts.txt ./a.out. Or name a job file with --job FILE, and the "
          "program in its section [run]: program = ./a.out." },
        { HN_UNKNOWN_COMMAND,
          "unknown or misplaced command",
          "The first word nearly is a command of hnlaunch, or a command stands behind options, and there is no "
          "program of that name. Or the first word is a command of other tools, such as kill, status or nodes.",
          "Write the command as the first word. hnlaunch run WORD starts a program whose name is that of a command." },
        { HN_AMBIGUOUS_LETTER,
          "an ambiguous letter",
          "The letter means different things in other launchers, so hnlaunch does not take it.",
          "Use the long option that the message names." },
        { HN_NO_HOSTS,
          "no hosts given",
          "Neither -H, -w nor --local was given, no configuration names hosts, and this is no allocation that --scheduler "
          "knows. Options behind the program belong to the program.",
          "Say where to run: -H FILE, -w LIST or --local, before the program." },
        { HN_HOSTFILE_TWICE,
          "a hostfile is given twice",
          "Two -H name the same file.",
          "Leave one of them out; slots= gives a host more slots." },
        { HN_NO_TOPIC,
          "there is no help on this topic",
          "help and --help have topics, and the word is none of them.",
          "Use all, hostfile, env, exit or config. hnlaunch explain NUMBER explains errors." },
        /* Configuration files, and variables in their place. The key is the same word for both. */
        { HN_CONFIG_KEY,
          "unknown configuration key",
          "A key of a configuration file, a variable HNLAUNCH_SECTION_KEY or a word of hnlaunch config is none that hnlaunch has. Of a "
          "file or variable it is a warning unless it stands in a job file, or -o run.strict_config=yes is given.",
          "hnlaunch config lists all keys. A key stands below its [section]." },
        { HN_CONFIG_VALUE,
          "the value of a configuration key is wrong",
          "The value in a configuration file or job file cannot be read, or is out of its range.",
          "The message shows the line and tells what is expected." },
        { HN_CONFIG_LINE,
          "a line of a configuration file cannot be read",
          "The line is neither key = value nor [section], is too long, or has a NUL byte; or the file is written in UTF-16.",
          "Correct the line, or save the file as UTF-8. A value that is too long can be given on the command line, or as a variable "
          "HNLAUNCH_SECTION_KEY." },
        { HN_CONFIG_UNREADABLE,
          "a configuration file cannot be read",
          "The file exists, but may not be read, is not a regular file, or is too large.",
          "Correct its permissions, or remove it." },
        { HN_CONFIG_SET,
          "-o does not name a configuration key",
          "The text behind -o is not SECTION.KEY=VALUE, or hnlaunch has no such key.",
          "hnlaunch config lists all keys." },
        { HN_NO_NUMBER,
          "unknown error number or exit code",
          "The word behind explain is neither HN and a number of this list nor an exit code from 0 to 255.",
          "hnlaunch explain lists all numbers." },
        { HN_CONFIG_NOT_READ,
          "a file .hnlaunch.ini is not read (warning)",
          "Earlier versions read settings from the nearest .hnlaunch.ini. It can come with a cloned repository, so no file is "
          "read that you have not named.",
          "If you trust the file, name it: --job FILE. Else ignore or remove it." },
        /* Job files, --multi-prog, and roles: a role is a part of a command line or a
         * section of a job file. */
        { HN_JOB_FILE_UNREADABLE,
          "the job file cannot be read",
          "The file of --job does not exist, may not be read, is too large, or is not a regular file: paths in it start at its "
          "folder, and hnlaunch rerun reads it again.",
          "Check the path. Write what comes from a pipe to a file first." },
        { HN_JOB_OPTION,
          "--job cannot be obeyed",
          "The option was given twice, its value is empty, or - for standard input, or the command starts no run.",
          "Name one file. Settings for all runs belong in ~/.config/hnlaunch/config.ini." },
        { HN_STRAY_PROGRAM,
          "a program where none may be named",
          "The key `program` stands in a configuration file that is not a job file, twice in a section, or in [run] of a job file "
          "with roles.",
          "Name one program in the section [run] of a job file, or behind the options; or one under each [role NAME]." },
        { HN_CONFIG_SECTION,
          "an unknown section in a job file",
          "The name in brackets is no section that hnlaunch has. It is not passed over: what stands in it is part of the job.",
          "Sections are run, env, ssh, net, log, role NAME and env NAME. hnlaunch config lists all keys." },
        { HN_MULTI_PROG,
          "a mistake in a file of --multi-prog",
          "Each line of the file has ranks, as 0,3-5, a program and its arguments. A rank has two programs or none, the job does not "
          "have it, or a line has no program. The line and a mark are shown. With --multi-prog the only word of the command line is "
          "the file.",
          "Correct the line. `* PROGRAM` is for the ranks of no other line." },
        { HN_SECOND_PROGRAM,
          "a second program behind a colon",
          "A lone colon in front of an option begins another program of the same world, as in hnlaunch -n 1 ./a : -n 3 ./b. "
          "It has -n, -x and --chdir of its own; the other options stand in front of the first program and hold for the job. "
          "One of the programs may leave out -n: it has the slots that the others leave.",
          "Write -n N behind the colon. To pass the colon on, write -- in front of the program: hnlaunch -n 2 -- ./a : ./b." },
        { HN_NO_ROLE,
          "no role has this name",
          "--on, --after, --main, or the section [env NAME] of a job file, names a role that the job does not have.",
          "The message lists the roles. --on takes ROLE, ROLE:INDEX or ROLE:last; --after and --main take ROLE,ROLE." },
        { HN_ROLE_TWICE,
          "two roles have the same name",
          "The name of a role is its address in the job.",
          "Give one of them another name. --replicas R makes R equal worlds of one role." },
        { HN_ROLE_CIRCLE,
          "roles stand on each other or wait for each other, in a circle",
          "--on leads from a role back to itself, so that none of these roles has nodes of its own; or --after does, so that "
          "none can start first.",
          "Give one of the roles nodes with --nodes, in place of --on; or leave one --after out." },
        { HN_ROLE_OPTION,
          "an option that the role cannot have",
          "Two options of a role exclude each other, two roles take the rest of the nodes, a program has no --role in a line with "
          "roles, an option of a role stands where no role is, roles of one world meet in two ways, or the job is to go on with fewer nodes or with spare hosts of no number.",
          "hnlaunch-job(5) has the options of a role. What stands in front of the first --role holds for the job." },
        { HN_ROLE_ENDED,
          "a role has ended beside those of --main",
          "The program of the role has ended by itself while the roles of --main run. If another role is --after it, the "
          "job fails, with code 1 when the program exited with 0. If no role needs it, this is a warning.",
          "If the role may end, give it --ends ok. If its end is the end of the job, name it with --main." },
        { HN_ROLE_UNREADY,
          "a role was not ready",
          "A role ended before it was ready, or was not ready in --ready-timeout, and another role waits for it.",
          "Look at the output of the role: hnlaunch logs RUN. A server that loads for long needs a longer --ready-timeout." },
        /* 8xx: runs. Most belong to commands such as logs and stop (head/commands). */
        { HN_NO_RUN,
          "no such run",
          "No run of yours has this id, or several begin with it. A run is found while it goes on on this machine, and "
          "afterwards by its records, until newer runs take their place (log.keep).",
          "hnlaunch ps lists your runs. A beginning of an id is enough where it is the only one." },
        { HN_RUN_ENDED,
          "the run has ended",
          "A run that has ended takes no orders. The message has its verdict.",
          "hnlaunch rerun RUN starts it once more." },
        { HN_RUN_SILENT,
          "the run does not answer",
          "Its hnlaunch was killed or is stopped (SIGSTOP), this machine is very busy, or the socket of the run was removed. "
          "Exit code 125 if it was killed: then its ranks have ended, too.",
          "hnlaunch ps shows whether it goes on. The signal TERM to the process that the message names stops it." },
        { HN_RUN_ELSEWHERE,
          "the run is on another machine",
          "The home is shared with another login node, where the run was started. Orders are obeyed only there.",
          "Give the command on the machine that the message names." },
        { HN_RECORDS_INCOMPLETE,
          "the records of the run are incomplete (warning)",
          "They could not be written to the user's state folder: it is full, read-only or too slow. The ranks, their output on the "
          "terminal, and the exit code are not affected. Where output came faster than 8 MiB in a second, the gap is only marked in "
          "the records.",
          "Make room in ${XDG_STATE_HOME:-~/.local/state}/hnlaunch, name another folder with --log-dir, or keep no records "
          "with --log-dir none." },
        { HN_NO_SOCKET,
          "other commands cannot see the run (warning)",
          "hnlaunch cannot make the socket for `hnlaunch ps`, `stop`, `signal` and `wait` in $XDG_RUNTIME_DIR/hnlaunch or "
          "/tmp/hnlaunch-UID: the folder belongs to another user, or the file system is full. The run goes on.",
          "Remove what is in the way." },
        { HN_NO_RERUN,
          "the run cannot be started once more",
          "Its records have no command line, the folder in which it was started is gone, or no host is known for "
          "--without-bad to leave out.",
          "Start it by its own command." },
        { HN_COMMAND_WORDS,
          "the command takes other words",
          "ps, stop, signal, wait, why, top and rerun are commands of hnlaunch, with the words that the message shows.",
          "A program of such a name is started by hnlaunch run NAME." },
        { HN_NO_RECORDED_OUTPUT,
          "there is no such recorded output",
          "The run was started with --log-dir none, or has no rank as chosen by --ranks and --host. One with --log-dir DIR of "
          "an older version has only a file for each rank, without times: --follow, --since, --timestamps and --fold do not "
          "work for it.",
          "The message names the ranks of the run, or the option to leave out." },
        { HN_BAD_PATTERN,
          "a pattern cannot be used",
          "The text behind --grep is no extended regular expression.",
          "Put a backslash in front of a bracket that stands for itself." },
        { HN_HANG,
          "the ranks hang (warning)",
          "For --hang-after no rank has written, reported a step, joined or ended, and no rank has got from the store what it "
          "waits for. Two looks a second apart then found ranks that wait for others, and none that computes, reads or writes. "
          "The message names the ranks that wait, what for, the ranks that do not, and where these are.",
          "Look at the odd ranks first: hang.txt in the records of the run has the stacks of all. --on-hang stop ends such a run, "
          "--on-hang restart starts it again, --hang-after 0 never looks." },
        { HN_ENDLESS_PATTERN,
          "a regular expression would take too long",
          "The expression behind --progress-re or --grep has a back reference (\\1 to \\9), or too many parts when its repeats, like "
          "x{1,255}, are written out: more than 1000, or with --progress-re 64 more than it has characters. "
          "Such an expression may take seconds or minutes for a line.",
          "Write the part once more in place of a back reference; use + or * in place of large repeats." },
        { HN_UNWRITTEN,
          "output of ranks was not written (warning)",
          "hnlaunch was told to end (a second Ctrl-C or SIGTERM, or the first one after all ranks had ended) while the reader of "
          "its standard output or error did not read: a paused terminal, a pager, a full pipe. The message and the last line "
          "count the bytes of ranks that the reader did not get.",
          "hnlaunch logs RUN has the recorded output of the run, the files of --log-dir have all of it. Without an order to end "
          "hnlaunch waits for its readers." },
        { HN_ORDER_REFUSED,
          "the run does not follow the order",
          "The message has the reason. hnlaunch drain needs a host of the run with ranks that run now, and a run that can go on "
          "without it: with --restart auto, --max-restarts, --spares, --min-nodes or --requeue-exit.",
          "hnlaunch top RUN shows the hosts; hnlaunch stop RUN ends the run." },
        /* --detach, and the folder of the records at the start of a run. */
        { HN_DETACH_IN_ALLOCATION,
          "--detach inside an allocation",
          "The resource manager ends the allocation, with all that runs in it, when the script or shell of the allocation "
          "ends.",
          "Leave --detach out, and let the script wait for hnlaunch. Outside of an allocation, start the run on a login node." },
        { HN_LOGIND,
          "logind ends the run when you log out (warning)",
          "KillUserProcesses=yes in logind.conf has systemd-logind end all processes of a login session with it.",
          "loginctl enable-linger once, then start the run outside of the session: systemd-run --user --scope hnlaunch ..." },
        { HN_NO_PLACE,
          "the output of a run without a terminal has no place",
          "With --detach and --on-hup detach only the records in the home have the output. The user has no home, or the "
          "records cannot be written there; the message has the reason.",
          "Set HOME or XDG_STATE_HOME to a folder that can be written, or leave --detach out." },
        { HN_NO_FORK,
          "a process for --detach cannot be started",
          "The kernel refuses another process or pipe. The message has its reason.",
          "Raise the limit of processes or descriptors (ulimit -u, ulimit -n)." },
        { HN_RECORDS_WRITABLE,
          "others may replace the records of a run (warning)",
          "The folder of --log-dir may be written by a group or by everybody and has no sticky bit, so that another user "
          "can put other records in the place of this run's. hnlaunch reads records only from folders of the user in "
          "which no other user may write.",
          "chmod go-w the folder, or chmod +t it." },
        /* Views and reports of a run. */
        { HN_NO_SCREEN,
          "top has no screen (warning)",
          "hnlaunch-top.so, the part that draws on the terminal, is missing or cannot be loaded: hnlaunch was built without "
          "ncursesw, or the library is not installed. A table is printed once instead.",
          "Install libncurses-dev (on Debian; ncursesw elsewhere), build and install hnlaunch again. hnlaunch top --json has all "
          "figures." },
        { HN_NO_REPORT,
          "a run has no report",
          "The records of the run, or its file events.ndjson, are missing or cannot be read: it was started with --log-dir none, "
          "or a file was removed.",
          "Run it again with records, which is the default; --trace keeps traces also of a run that does not fail." },
        { HN_NO_PAGE,
          "the page of a report cannot be written",
          "The file of --html cannot be opened for writing, or its disk is full.",
          "Name another file; --html - writes to standard output." },
        { HN_TABLE_PLAIN,
          "columns of tables are not aligned (warning)",
          "hnlaunch-table.so, the part that lays tables out, is missing or cannot be loaded: the installation is incomplete, or "
          "libsmartcols is not installed. The rows of a table are printed all the same, with two blanks between cells.",
          "Install hnlaunch again, with libsmartcols (libsmartcols1 on Debian)." },
        /* The list of bad hosts (head/run/bad_hosts.c), which `hnlaunch bad` prints and clears. */
        { HN_BAD_HOSTS_FILE,
          "the list of bad hosts cannot be read or written (a warning of a run)",
          "The file of --bad-hosts, or hosts.bad in the state folder, is no regular file, may not be read or written, or has "
          "lines that are no entries.",
          "The message names the file and the reason. Remove or mend it, or use --bad-hosts FILE." },
        { HN_BAD_HOST_USED,
          "a host was put out by an earlier run (warning)",
          "The host is in the list of bad hosts, and this run uses it all the same: without --restart auto, --spares "
          "and --nodes MIN:MAX, or because -w names it.",
          "Look at the host; hnlaunch bad clear HOST takes it back, --exclude HOST leaves it out." },
        { HN_NOT_BAD,
          "the host is not in the list of bad hosts",
          "`hnlaunch bad clear` got a host that no run has put out, or whose entry has ended.",
          "hnlaunch bad lists the hosts." },
        { HN_ALL_HOSTS_BAD,
          "every host, or too many, were put out by earlier runs or left out",
          "With --restart auto, --spares and --nodes MIN:MAX bad hosts are left out, and no host would be left, or fewer "
          "than MIN. Or run.leave_out names them, which hnlaunch rerun --without-bad gives.",
          "hnlaunch bad lists hosts put out with reasons; hnlaunch bad clear HOST takes one back, --bad-hosts none uses "
          "all. Without run.leave_out its hosts are used." },
        { HN_BASELINE,
          "the baseline of a check cannot be read or written",
          "The file of --baseline is missing, may not be read, or was not written by `hnlaunch check --save`; or the file "
          "of --save cannot be written.",
          "Check the path and the permissions; hnlaunch check --pairs --save FILE writes a baseline." },
        { HN_OUTPUT_LOST,
          "output of ranks is missing in the log folder",
          "Writing to files of the log folder failed: the file system is full, or an error occurred. The ranks and "
          "the terminal were not affected. A warning when the job failed for another reason.",
          "Make room, or choose another --log-dir." },
        { HN_RECORD_INCOMPLETE,
          "the record of the run is incomplete (warning)",
          "events.ndjson, the events of --json, or summary.json could not be written to its end. The exit code is 73 "
          "when all ranks exited 0.",
          "Make room on the file system of --log-dir or of the file of --json." },
        { HN_NO_LOG_FOLDER,
          "the log folder or the events cannot be created",
          "The folder of --log-dir, run.json in it, or the file of --json cannot be created or written.",
          "Check the path, its permissions and the free space." },
        { HN_LIMIT_TOO_LOW,
          "a limit of this machine is too low",
          "hnlaunch needs more open files, threads or memory than this shell or machine allows.",
          "Raise the limit that the message names: ulimit -n, -u or -v, or sysctl fs.file-max." },
        { HN_STDOUT_UNWRITTEN,
          "standard output cannot be written",
          "What hnlaunch was asked to print could not be written, for example because the file system is full.",
          "Make room, or write to another file." },
        { HN_LOCKED_MEMORY,
          "too little memory can be locked on nodes with InfiniBand (warning)",
          "The hard limit of locked memory (ulimit -H -l) is below 1 GiB there. RDMA locks its buffers: NCCL and MPI "
          "fail with \"Cannot allocate memory\", or use slower ways. hnlaunch raises soft limits of ranks to the hard "
          "ones, and cannot raise these.",
          "Have the limit raised on the node: memlock in /etc/security/limits.conf, LimitMEMLOCK= of the service of "
          "sshd, --ulimit memlock=-1 of a container." },
        { HN_NO_LINK,
          "the link to the newest run could not be replaced (warning)",
          "DIR/latest of --log-dir still leads to an earlier run, or is not there. All files of the run are in the folder "
          "that the message names.",
          "Check the permissions of the log folder and the free space." },
        { HN_ABORTED,
          "hnlaunch cannot go on",
          "The kernel refused memory or a descriptor that the event loop cannot be without. All agents and ranks end when "
          "their connection closes. Exit code 125.",
          "Raise the limit that the error means: ulimit -n for open files, ulimit -v for memory. If it is an internal "
          "error, report it." },
        { HN_DUMPS_MISSING,
          "dumps of PyTorch's flight recorder are missing (warning)",
          "A dump that a rank has written could not be stored below --log-dir, or is larger than 32 MiB. Other dumps, "
          "logs and the exit code are not affected.",
          "Make room on the file system of --log-dir, or set TORCH_FR_BUFFER_SIZE to a smaller number than 2000." },
        /* --pull: files that are brought home after the end of the ranks. */
        { HN_NOT_PULLED,
          "files of --pull could not be brought home",
          "A node was lost, a path is on no node, a file could not be read there or not be written here, or the transfer was "
          "interrupted. The message names the first of them. Other files came. A warning when the job failed for "
          "another reason.",
          "Make room at DEST, or copy the files from the nodes by hand." },
        { HN_PULL_LEFT,
          "something below a path of --pull stayed on its node (warning)",
          "Pipes, sockets, devices, and links that do not stay within the path are not brought home.",
          "Give the file that a link leads to as a path of its own." },
        { HN_PULL_PATH,
          "a path of --pull cannot be used",
          "The path has no last name, as / or a path that ends in .., PATH and DEST are the same folder, or two paths would "
          "have the same place in one DEST.",
          "Name a file or folder, or . for the whole working directory; give another DEST: --pull PATH:DEST." },
        { HN_PULL_DEST,
          "the folder of --pull cannot be written to",
          "DEST, or the folder in which it would be made, cannot be written to. Nothing was started.",
          "Choose another folder: --pull PATH:DEST." },
};

/* Exit codes in ascending order. The two last entries stand for all codes that a rank or a signal
 * gives; a row of sysexits.h keeps the meaning of that file where one is near. */
const struct error_id exit_ids[] = {
        { 0,
          "every rank exited with 0",
          "The job, the plan or the command was done.",
          "Nothing." },
        /* 64 to 78 are the codes of sysexits(3). A script can tell a mistake in its own call (64,
         * 65, 66, 78) from a fault of the machines (68, 69, 75, 76). */
        { EX_USAGE,
          "wrong use",
          "The command line has an error.",
          "Read the message, or hnlaunch --help." },
        { EX_DATAERR,
          "wrong hostfile, or one machine under several names",
          "A hostfile or a file of --env-file has an error, or two hosts are the same machine (HN309).",
          "Correct the lines that the messages show." },
        { EX_NOINPUT,
          "a file cannot be read, or there is no such run",
          "A hostfile, a file of --env-file, --stdin, --ssh-config or --push, or the current directory cannot be "
          "read; or stop, signal, wait or rerun name a run that is not known.",
          "Check the path in the message, or see hnlaunch ps." },
        { EX_NOHOST,
          "a node cannot be reached",
          "Nodes did not answer, or closed the connection. Nothing was started.",
          "Try ssh HOST true, and leave nodes out that are down: --exclude HOST." },
        { EX_UNAVAILABLE,
          "too few slots or GPUs, a node cannot reach PyTorch's store or is not fit (hnlaunch check, --preflight), or a run takes no orders",
          "The plan does not fit the hosts, a node lacks what the job needs (an agent, room for pushed files, the "
          "working directory), or the nodes do not reach the store. Of stop and signal: the run has ended, or is on another "
          "machine.",
          "The error above the last line names the node and the next step." },
        /* Lost output changes the exit code of a job whose ranks all exited 0: half a log must not
         * pass for a whole one. */
        { EX_CANTCREAT,
          "logs, events, standard output or error cannot be written, also when all ranks exited 0",
          "A file system is full, a file cannot be created, or hnlaunch was told to end before its output was read. When the ranks "
          "failed, their code is the exit code.",
          "Make room, or choose another place for --log-dir, --json or standard output." },
        { EX_TEMPFAIL,
          "ranks did not join within a --start-timeout that was given, and others waited for them",
          "HN402: ranks did not connect to the store in time.",
          "Ctrl-\\ shows what the ranks do. Raise --start-timeout." },
        { EX_PROTOCOL,
          "an agent of another version",
          "HN211: the agent on a node does not belong to this hnlaunch.",
          "Install hnlaunch again, so that both have one version." },
        { EX_NOPERM,
          "login or host key refused, or --dial-in without a secret",
          "ssh refused the login, the host key is unknown, changed or revoked, or there is no ssh-agent for "
          "-o ssh.tree_auth=forward; or --dial-in has no secret, or one that others may change (HN328, HN346, HN348).",
          "The error above the last line tells what was tried, and the next step." },
        { EX_CONFIG,
          "wrong or unsafe configuration, or ranks of MPI that were worlds of one",
          "A configuration file, a variable HNLAUNCH_SECTION_KEY or an ssh configuration file has an error or is not "
          "safe to use.",
          "hnlaunch config shows every value with its origin, and the errors." },
        /* 124 to 127 are the codes of timeout(1) and env(1): a shell gives the last two, too. */
        { EX_TIME_LIMIT,
          "--timeout passed, or the ranks hung (--on-hang)",
          "The job took longer than --timeout, or its ranks hung (HN811) with --on-hang stop or restart. The ranks were stopped.",
          "The last line tells which of the two it was. After --timeout: raise it, or let the program save its state when "
          "SIGTERM comes. After a hang: hnlaunch report names the rank that kept the others waiting." },
        /* What hnlaunch cannot do itself, where env(1) and timeout(1) give 125 as well. */
        { EX_FAILED,
          "a node was lost, an agent sent a malformed message, or hnlaunch itself failed",
          "HN310, HN311 and HN217; HN904 when a limit on open files, threads or memory is too low for hnlaunch; or a "
          "rank could not be forked on its node (HN312).",
          "The error above the last line names the node or the limit." },
        { EX_NOT_EXECUTABLE,
          "the program cannot be executed",
          "HN312: the program is on the node, but is not executable, has an unknown format, or is a folder.",
          "chmod +x PROGRAM, or start a script with its interpreter." },
        { EX_NOT_FOUND,
          "the program was not found",
          "HN312: the program, or the interpreter in its first line, does not exist on the node. Also the program of "
          "--ssh-command on this machine.",
          "Give a path that is valid on every node, or bring the program there with --push." },
        /* 128 + SIGPIPE. A shell gives the code to a program in front of head(1), too. */
        { 141,
          "standard output or error is a pipe that its reader has closed",
          "The reader, such as head or less, ended before all output was written. All ranks exited with 0, or were "
          "stopped for that reason.",
          "Let the reader read to the end, or write to a file." },
        /* The entry of all codes from 129 to 192: exit_id_find() takes it for a
         * code without an own entry. */
        { EXIT_SIGNAL,
          "this signal killed the rank that failed first, or ended hnlaunch",
          "HN501: a rank was killed. Or hnlaunch was told to stop: by Ctrl-C (130), by SIGTERM (143), as from hnlaunch stop or from a "
          "batch system at its time limit, or by SIGHUP (129).",
          "The last line tells which it was: \"failed after\" is a rank, read the report above it; \"stopped after\" names the "
          "signal that hnlaunch got." },
        { EXIT_OF_RANK,
          "the exit code of the rank that failed first",
          "HN502 or HN503. A program that exits with a code of this list itself gives that code as well; the last "
          "line on standard error tells which of the two it was.",
          "Read the report above the last line." },
};
/* clang-format on */
const size_t error_id_count = ARRAY_SIZE(error_ids);
const size_t exit_id_count = ARRAY_SIZE(exit_ids);

/* The largest signal number of Linux: real-time signals end at 64 on most machine types. */
enum { SIGNALS = 64 };

/* The titles are those of hnlaunch-errors(7), too, which has a section for each hundred. */
const char *error_ids_title(int number)
{
        static const char *const titles[] = {
                [1] = "Hosts and environment",
                [2] = "Reaching nodes, and pushed files",
                [3] = "Plan and start",
                [4] = "PyTorch's store",
                [5] = "Ranks",
                [6] = "GPUs, nodes, staged files, holds",
                [7] = "Options and configuration",
                [8] = "Runs",
                [9] = "Records and limits",
        };
        size_t i = (size_t)number / 100;

        return i < ARRAY_SIZE(titles) && titles[i] ? titles[i] : "Other";
}

/* A process looks up a number or two, so the table is searched from its beginning. */
const struct error_id *error_id_find(int number)
{
        for (size_t i = 0; i < error_id_count; i++)
                if (error_ids[i].number == number)
                        return &error_ids[i];
        return NULL;
}

/* Returns the entry with exactly this number, EXIT_SIGNAL and EXIT_OF_RANK among them, or NULL. */
static const struct error_id *find_exit(int number)
{
        for (size_t i = 0; i < exit_id_count; i++)
                if (exit_ids[i].number == number)
                        return &exit_ids[i];
        return NULL;
}

/* Searches an entry of the code itself first: 141 has one, although it is 128 + SIGPIPE. */
const struct error_id *exit_id_find(int code)
{
        /* The number of EXIT_SIGNAL marks a range. As a code of its own, 128 is one of a rank. */
        const struct error_id *own = code == EXIT_SIGNAL ? NULL : find_exit(code);

        if (code < 0 || code > EXIT_MAX)
                return NULL;
        if (own)
                return own;
        /* A shell gives 128 + N for signal N; any other code comes from the program. */
        return find_exit(code > EXIT_SIGNAL && code <= EXIT_SIGNAL + SIGNALS ? EXIT_SIGNAL
                                                                             : EXIT_OF_RANK);
}

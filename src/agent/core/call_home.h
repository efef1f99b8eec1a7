/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call home: an agent started by a resource manager connects to the head (hnlaunch-agent --call)
 *
 * A start command, such as srun, runs this program on many nodes, and gives the program no stream
 * to the head. So the program connects to a port of the head, over Noise (wire/noise/dial.h), and
 * starts the agent as a child, with a socket as standard input and output. This process carries the
 * bytes, and passes the manager's signals on.
 *
 * Variables, which neither agent nor ranks see:
 *
 *   HNLAUNCH_CALL         "PORT ADDRESS..." of the head, tried in this order
 *   HNLAUNCH_CALL_SECRET  of this start
 *   HNLAUNCH_CALL_NAME    name of this node in the host list; else SLURMD_NODENAME, the host name
 *   HNLAUNCH_CALL_REMOVE  the path of this program, which is a copy to be removed
 *   HNLAUNCH_CALL_KEEP    the file name under which the program stays in the user's cache
 */
#pragma once

/* Runs @agent in a child until the job ends. Returns an exit code: 0, or that of <sysexits.h> with
 * the reason on stderr. Exits in the child with what @agent returns. */
int call_home(int (*agent)(void));

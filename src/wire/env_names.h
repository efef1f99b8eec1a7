/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: the variables that hnlaunch gives to a worker and that libhnlaunch reads
 */
#pragma once

#define HN_RANK             "HN_RANK"
#define HN_WORLD_SIZE       "HN_WORLD_SIZE"
#define HN_LOCAL_RANK       "HN_LOCAL_RANK"
#define HN_LOCAL_WORLD_SIZE "HN_LOCAL_WORLD_SIZE"
#define HN_NODE_RANK        "HN_NODE_RANK"
#define HN_NUM_NODES        "HN_NUM_NODES"
#define HN_RUN_ID           "HN_RUN_ID"   /* the job's name, the same on every node */
#define HN_RESTART          "HN_RESTART"  /* 0 in the first attempt */
#define HN_PUSH_DIR         "HN_PUSH_DIR" /* with --push: the folder that holds the pushed files */
/* Path of the node's Unix socket, unique to this agent on this machine: it also marks a process
 * as belonging to the job. */
#define HN_STORE "HN_STORE"

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Env_names: the variables set by hnlaunch for a worker and read by libhnlaunch
 */
#pragma once

#define HN_RANK             "HN_RANK"
#define HN_WORLD_SIZE       "HN_WORLD_SIZE"
#define HN_LOCAL_RANK       "HN_LOCAL_RANK"
#define HN_LOCAL_WORLD_SIZE "HN_LOCAL_WORLD_SIZE"
#define HN_NODE_RANK        "HN_NODE_RANK"
#define HN_NUM_NODES        "HN_NUM_NODES"
#define HN_RUN_ID           "HN_RUN_ID"      /* the job's name, the same on every node */
#define HN_RESTART          "HN_RESTART"     /* 0 in the first attempt */
#define HN_MASTER_ADDR      "HN_MASTER_ADDR" /* rank 0's node on the network of the ranks */
#define HN_PORT_PREFIX      "HN_PORT_"       /* and the name of a port kept free */
#define HN_ROLE             "HN_ROLE"        /* in a job of several roles */
#define HN_ROLE_INDEX       "HN_ROLE_INDEX"  /* of the replica */
#define HN_ROLES            "HN_ROLES"       /* addresses and ports of all roles: JSON */
#define HN_JOB_RANK         "HN_JOB_RANK"    /* number in the job, over all roles */
#define HN_WORLD_ROLES      "HN_WORLD_ROLES" /* ranks of each role of the world: "a:0-3,b:4" */
#define HN_PUSH_DIR         "HN_PUSH_DIR"    /* with --push: the folder of the pushed files */
#define HN_STAGE_DIR        "HN_STAGE_DIR"   /* with --stage: the folder of the staged files */
#define HN_VENV             "HN_VENV"        /* with --venv: the environment on the node */
/* Path of the node's Unix socket, unique to this agent on this machine; marks a process as part of
 * the job, too. */
#define HN_STORE "HN_STORE"

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: the limit of open files, high for the agent's many connections, unchanged for workers
 */
#pragma once

/* Raises the soft limit of open files to the hard one. Once, before any thread or child. */
void limits_raise(void);
/* Restores the limit, in a child; async-signal-safe. Programs rely on a low soft limit: select()
 * supports no more, and closing all descriptors up to the limit must not take long. */
void limits_restore(void);

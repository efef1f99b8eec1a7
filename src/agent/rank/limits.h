/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: the agent needs descriptors for thousands of connections, its workers what they had
 */
#pragma once

/* Raises the soft limit of open files to the hard one. Once, before any thread or child. */
void limits_raise(void);
/* In a child, async-signal-safe: the limit from before limits_raise(). Programs take the soft limit
 * for granted: select() cannot use more, and closing all descriptors up to it must not take ages.
 */
void limits_restore(void);

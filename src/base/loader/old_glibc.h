/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old_glibc: the dynamic loader, under versions that every glibc since 2.28 has
 */
#pragma once

/* dlopen(), dlsym() and dlerror(). */
void *library_open(const char *file, int mode);
void *library_symbol(void *handle, const char *name);
const char *library_error(void);

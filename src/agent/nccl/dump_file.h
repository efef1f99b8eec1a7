/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump_file: reads a dump of PyTorch's flight recorder in the parts of a MSG_DUMP
 *
 * Ranks may put anything in place of a dump: links, devices and empty files are not read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct dump_file {
        int fd; /* -1 = not open */
        uint64_t size, at;
};

#define DUMP_FILE_INIT                                                                             \
        {                                                                                          \
                .fd = -1                                                                           \
        }

/* Reads the rank in a name that is @start, the rank and @end. False: it is none. */
bool dump_file_parse_name(const char *name, const char *start, const char *end, uint32_t *ret_rank);

/* Opens a closed file. False: it is not a regular file, or empty. */
bool dump_file_open(struct dump_file *f, const char *path);
/* Reads the next part into @part, and sets size, place and data of @m. False: the file is shorter
 * than it was. */
bool dump_file_read(struct dump_file *f, unsigned char part[MSG_DUMP_PART], struct dump *m);
void dump_file_close(struct dump_file *f); /* also when it is closed */

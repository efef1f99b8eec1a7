/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_text: the messages of PMI-1 and PMI-2 as lists of fields
 *
 * PMI-1 is lines "cmd=NAME KEY=VALUE ...", PMI-2 bodies "cmd=NAME;KEY=VALUE;..." behind six bytes
 * with their length in decimal. Sources: MPICH's src/pmi (the "simple" wire), Flux's RFC 13,
 * Slurm's contribs/pmi2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
        PMI_FIELDS_MAX = 64,
        PMI_MESSAGE_MAX = 128 << 10, /* a line or a body */
        PMI2_LENGTH_SIZE = 6,
};

struct pmi_field {
        const char *key, *value;
};

/* Points into the parsed text. */
struct pmi_command {
        const char *name;
        struct pmi_field fields[PMI_FIELDS_MAX];
        size_t n;
};

/* Parse @text in place, without the LF or the length. -EPROTO: a NUL inside, no cmd= (or, in
 * PMI-1, mcmd=) in front, a field without a name, or too many fields. In PMI-1, "value=" and
 * "message=" take the rest of the line, and a word without "=" belongs to the value before: values
 * may contain spaces. In PMI-2, ";;" is no separator and stays in the value. */
int pmi1_parse(struct pmi_command *c, char *text, size_t len);
int pmi2_parse(struct pmi_command *c, char *text, size_t len);

/* Returns the value of a field; NULL = none. */
const char *pmi_find_field(const struct pmi_command *c, const char *key);
/* Reads a decimal number of a field; false: none, or no number of an int. */
bool pmi_find_number(const struct pmi_command *c, const char *key, int *ret);

/* Finds the first whole message in @in: returns 1 with @ret_begin and @ret_len of the message in
 * the buffer and the bytes to consume in @ret_all; 0: not whole yet; -EPROTO: too long, or no
 * length. */
int pmi1_frame(const struct buf *in, size_t *ret_len, size_t *ret_all);
int pmi2_frame(const struct buf *in, size_t *ret_len, size_t *ret_all);

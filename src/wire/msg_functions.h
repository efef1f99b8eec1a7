/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Msg_private: makes the functions of a message from the one that visits its fields
 *
 * code_NAME(codec, message) is static and visits the fields with the codec_* of wire/codec.h.
 */
#pragma once

#include <errno.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/msg.h"

/* The end of every decoder: 0, or -EPROTO when something failed or is left over. */
int msg_done(const struct codec *c, const struct frame *f, struct error *err);

#define DEFINE_ENCODE(name, record, type)                                                          \
        void name##_encode(struct buf *b, const struct record *m)                                  \
        {                                                                                          \
                struct codec c = CODEC_TO(b);                                                      \
                size_t mark = frame_begin(b, type);                                                \
                                                                                                   \
                code_##name(&c, (struct record *)m);                                               \
                frame_end(b, mark);                                                                \
        }

#define DEFINE_DECODE(name)                                                                        \
        int name##_decode(struct name *m, const struct frame *f, struct error *err)                \
        {                                                                                          \
                struct codec c = CODEC_FROM(f->body, f->len);                                      \
                                                                                                   \
                memset(m, 0, sizeof(*m));                                                          \
                code_##name(&c, m);                                                                \
                if (msg_done(&c, f, err) == 0)                                                     \
                        return 0;                                                                  \
                code_##name(&CODEC_FREEING, m);                                                    \
                return -EPROTO;                                                                    \
        }

#define DEFINE_FINISH(name)                                                                        \
        void name##_finish(struct name *m)                                                         \
        {                                                                                          \
                code_##name(&CODEC_FREEING, m);                                                    \
                memset(m, 0, sizeof(*m));                                                          \
        }

/* The functions of a message without and with memory of its own. */
#define DEFINE_PLAIN_MESSAGE(name, type)                                                           \
        DEFINE_ENCODE(name, name, type)                                                            \
        DEFINE_DECODE(name)
#define DEFINE_OWNING_MESSAGE(name, type)                                                          \
        DEFINE_PLAIN_MESSAGE(name, type)                                                           \
        DEFINE_FINISH(name)

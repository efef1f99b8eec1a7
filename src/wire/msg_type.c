/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/msg_type.h"

static const struct {
        const char *name;
        uint8_t from, states;
} types[256] = {
#define MSG_ROW(name, number, from, states) [number] = { #name, MSG_FROM_##from, MSG_IN_##states },
        MSG_TYPES(MSG_ROW)
#undef MSG_ROW
};

const char *msg_name(uint8_t type)
{
        return types[type].name ? types[type].name : "?";
}

bool msg_comes_from(uint8_t type, enum msg_from from)
{
        return types[type].from & from;
}

bool msg_comes_in(uint8_t type, enum msg_states state)
{
        return types[type].states & state;
}

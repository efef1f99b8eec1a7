/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code_x() visits the fields of a message, as in wire/msg.c. Counts are limited before memory is
 * taken: an endpoint is asked about connections of strangers, and an answer has a row for each.
 */
#include "wire/endpoint_msg.h"

#include <arpa/inet.h>
#include <string.h>

#include "wire/msg_functions.h"

/* An IPv6 address with the name of an interface has 39 + 1 + 15 characters. */
enum { ADDRESS_MAX = 64 };

static void code_endpoint_order(struct codec *c, struct endpoint_order *m)
{
        codec_u8(c, &m->mode);
        codec_require(c, m->mode == ENDPOINT_LOOPBACK || m->mode == ENDPOINT_NETWORK);
        codec_text(c, m->token, sizeof(m->token));
        codec_u32(c, &m->value_max);
        codec_bool(c, &m->ask_owners);
        codec_strv(c, &m->peers, ENDPOINT_PEERS_MAX, ADDRESS_MAX);
}

static void code_endpoint_opened(struct codec *c, struct endpoint_opened *m)
{
        codec_u32(c, &m->port);
        codec_text(c, m->text, sizeof(m->text));
}

/* An answer without numbers has a reason in @text. Port 0 is no port that can be held. */
static void code_ports_held(struct codec *c, struct ports_held *m)
{
        codec_u32_array(c, &m->numbers, &m->n, PORT_NUMBERS_MAX);
        for (uint32_t i = 0; i < m->n; i++)
                codec_require(c, m->numbers[i] && m->numbers[i] <= UINT16_MAX);
        codec_text(c, m->text, sizeof(m->text));
}

static void code_probe_order(struct codec *c, struct probe_order *m)
{
        codec_text(c, m->token, sizeof(m->token));
        codec_u32(c, &m->port);
        codec_u32(c, &m->timeout_ms);
        codec_strv(c, &m->addrs, ENDPOINT_CANDIDATES_MAX, ADDRESS_MAX);
}

static void code_probe_result(struct codec *c, struct probe_result *r)
{
        codec_u32(c, &r->error);
        codec_text(c, r->iface, sizeof(r->iface));
        codec_u32(c, &r->us);
}

static void code_probed(struct codec *c, struct probed *m)
{
        CODEC_ARRAY(c, m->results, m->n, ENDPOINT_CANDIDATES_MAX, code_probe_result);
}

/* Both addresses have 16 bytes, an IPv4 address in its IPv6 form. */
static void code_owners_request(struct codec *c, struct owners_request *m)
{
        codec_u32(c, &m->number);
        codec_raw(c, m->ends.from, sizeof(m->ends.from));
        codec_raw(c, m->ends.to, sizeof(m->ends.to));
        codec_u32(c, &m->port);
        codec_u32_array(c, &m->ports, &m->n, OWNERS_MAX);
}

static void code_owner(struct codec *c, struct owner *o)
{
        codec_u8(c, &o->verdict);
        codec_require(c, o->verdict && o->verdict < OWNER_VERDICTS);
        codec_u32(c, &o->uid);
}

static void code_owners(struct codec *c, struct owners *m)
{
        codec_u32(c, &m->number);
        codec_text(c, m->nodes, sizeof(m->nodes));
        CODEC_ARRAY(c, m->owners, m->n, OWNERS_MAX, code_owner);
}

/* inet_pton() of glibc writes nothing unless it succeeds, so the prefix ::ffff: stays only in front
 * of an IPv4 address. */
bool owner_ends_address(const char *text, unsigned char ret[16])
{
        memset(ret, 0, 10);
        memset(ret + 10, 0xff, 2);
        return inet_pton(AF_INET, text, ret + 12) == 1 || inet_pton(AF_INET6, text, ret) == 1;
}

DEFINE_OWNING_MESSAGE(endpoint_order, MSG_ENDPOINT)
DEFINE_PLAIN_MESSAGE(endpoint_opened, MSG_ENDPOINT_OPENED)
DEFINE_OWNING_MESSAGE(ports_held, MSG_PORTS_HELD)
DEFINE_OWNING_MESSAGE(probe_order, MSG_PROBE)
DEFINE_OWNING_MESSAGE(probed, MSG_PROBED)
DEFINE_OWNING_MESSAGE(owners_request, MSG_OWNERS_REQUEST)
DEFINE_OWNING_MESSAGE(owners, MSG_OWNERS)

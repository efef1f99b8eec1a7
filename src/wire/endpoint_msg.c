/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/endpoint_msg.h"

#include "wire/msg_private.h"

enum { ADDRESS_MAX = 64 };

static void code_endpoint_order(struct codec *c, struct endpoint_order *m)
{
        codec_u8(c, &m->mode);
        codec_require(c, m->mode == ENDPOINT_LOOPBACK || m->mode == ENDPOINT_NETWORK);
        codec_text(c, m->token, sizeof(m->token));
        codec_u32(c, &m->value_max);
        codec_strv(c, &m->peers, ENDPOINT_PEERS_MAX, ADDRESS_MAX);
}

static void code_endpoint_opened(struct codec *c, struct endpoint_opened *m)
{
        codec_u32(c, &m->port);
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

DEFINE_OWNING_MESSAGE(endpoint_order, MSG_ENDPOINT)
DEFINE_PLAIN_MESSAGE(endpoint_opened, MSG_ENDPOINT_OPENED)
DEFINE_OWNING_MESSAGE(probe_order, MSG_PROBE)
DEFINE_OWNING_MESSAGE(probed, MSG_PROBED)

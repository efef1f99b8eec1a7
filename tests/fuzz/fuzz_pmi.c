/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four ranks on two nodes speak PMI to the engines of their agents, in front of relays and a real
 * store. The input is steps: a byte with a rank (bits 0 and 1) and a kind (bits 6 and 7: bytes for
 * the rank's engine, as long as the next byte says; the rank leaves; all messages are carried).
 * With bit 5, bytes are instead the first line of a connection to PMI_PORT. At the end everything
 * is carried and dropped. Whatever comes: answers are whole messages, a rank that has left or was
 * cut off gets none, and all that goes up decodes (lib/relays.c).
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "agent/pmi/pmi.h"
#include "agent/pmi/pmi_text.h"
#include "base/buf.h"
#include "lib/relays.h"

enum { NODES = 2, PER_NODE = 2, RANKS = NODES * PER_NODE };

static const uint32_t nodes[RANKS] = { 0, 0, 1, 1 }, ranks[RANKS] = { 0, 1, 2, 3 };

static struct side {
        struct pmi *pmi;
        bool gone[PER_NODE];
} sides[NODES];

static void on_send(void *ctx, uint32_t index, const void *bytes, size_t len)
{
        struct side *s = ctx;
        const char *p = bytes;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t body, all;

        require(!s->gone[index] && len);
        buf_append(&b, bytes, len);
        require(p[len - 1] == '\n' || (pmi2_frame(&b, &body, &all) == 1 && all == len));
}

/* A connection to PMI_PORT, as pmi_link.c takes it. */
static void claim(struct side *s, const uint8_t *data, size_t n)
{
        char line[256];
        struct error err;
        int index;

        memcpy(line, data, n);
        line[n] = '\0';
        index = pmi_parse_claim(s->pmi, line, n, &err);
        if (index >= 0 && pmi_may_begin(s->pmi, (uint32_t)index)) {
                require(!s->gone[index]);
                pmi_begin(s->pmi, (uint32_t)index);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct relays *rs = relays_create(NODES, PER_NODE);
        const uint8_t *end = data + size;
        struct error err;

        for (uint32_t i = 0; i < NODES; i++) {
                struct pmi_config config = { .relay = relays_at(rs, (int)i),
                                             .world = { nodes, RANKS, NODES, i },
                                             .ranks = ranks + i * PER_NODE,
                                             .n_ranks = PER_NODE,
                                             .job = "fuzz",
                                             .mapping = "(vector,(0,2,2))" };

                sides[i] = (struct side){ 0 };
                sides[i].pmi = pmi_create(&config, (struct pmi_ops){ on_send }, &sides[i]);
        }
        while (data < end) {
                uint8_t step = *data++, kind = step >> 6, index = step & 1;
                struct side *s = &sides[step >> 1 & 1];
                size_t n;

                if (kind == 3) {
                        relays_settle(rs);
                } else if (kind == 2) {
                        s->gone[index] = true;
                        pmi_left(s->pmi, index);
                } else if (data < end) {
                        n = *data++;
                        n = n < (size_t)(end - data) ? n : (size_t)(end - data);
                        if (step & 32)
                                claim(s, data, n);
                        else if (!s->gone[index] && pmi_receive(s->pmi, index, data, n, &err) < 0) {
                                s->gone[index] = true;
                                pmi_left(s->pmi, index);
                        }
                        data += n;
                }
        }
        relays_settle(rs);
        for (int i = 0; i < NODES; i++)
                pmi_destroy(sides[i].pmi);
        relays_settle(rs);
        relays_destroy(rs);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What listens at the address of NCCL's RAS has answered: any bytes. What is kept of it are
 * differences: of each operation at least two counts, the fewest first. The same answer again keeps
 * all of it, an empty one nothing.
 */
#include "fuzz.h"

#include <string.h>

#include "head/why/ras_text.h"

static void check_comm(const struct ras_comm *c)
{
        require(c->n_counts || c->n_missing);
        for (size_t i = 0; i < c->n_counts; i++) {
                const struct ras_count *k = &c->counts[i];
                bool as_before = i && !strcmp(k->operation, k[-1].operation);
                bool as_next = i + 1 < c->n_counts && !strcmp(k->operation, k[1].operation);

                require((as_before || as_next) && (!as_before || k[-1].launched < k->launched));
                for (size_t j = 0; j < k->n; j++)
                        require(k->v[j].rank >= -1 && k->v[j].world == -1);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct ras_answer a, b, none = { 0 };

        ras_parse(&a, (const char *)data, size);
        ras_parse(&b, (const char *)data, size);
        for (size_t i = 0; i < a.n_comms; i++)
                check_comm(&a.comms[i]);
        ras_keep_lasting(&a, &b);
        for (size_t i = 0; i < a.n_comms; i++)
                check_comm(&a.comms[i]);
        ras_keep_lasting(&b, &none);
        require(!b.n_comms);
        ras_finish(&a);
        ras_finish(&b);
        return 0;
}

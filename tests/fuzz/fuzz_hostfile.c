/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostfile from anywhere. Whatever it is, the parser answers with hosts or with errors, the
 * messages hold no control bytes, names come from the allow-list, and the hosts, folded and read
 * again as a list, are the same ones.
 */
#include "../lib/fuzz_messages.h"

#include <stdlib.h>
#include <string.h>

#include "head/hosts/hostfile.h"

static void check_host(const struct host *h)
{
        static const char allowed[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        bool ipv6 = strchr(h->name, ':');

        require(*h->name && *h->name != '-');
        require(ipv6 || !h->name[strspn(h->name, allowed)]);
        require(!h->user || (*h->user && *h->user != '-' && !h->user[strspn(h->user, allowed)]));
        require(h->slots >= 0 && h->slots <= SLOTS_MAX && h->port >= 0 && h->port <= 65535);
        require(h->line > 0 && h->col > 0);
        require(!h->has_gpus || h->gpus.n > 0);
}

static void check_folding(const struct hosts *h)
{
        size_t *index = calloc(h->n, sizeof(*index));
        CLEANUP(hosts_finish) struct hosts again = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        CLEANUP(free_textp) char *folded = NULL;

        for (size_t i = 0; i < h->n; i++)
                index[i] = i;
        folded = hosts_fold(h, index, h->n);
        require(hostlist_parse(&again, folded, &d) == 0);
        require(again.n == h->n);
        for (size_t i = 0; i < h->n; i++)
                require(hosts_find(&again, h->v[i].name) != NULL);
        free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        int r = hostfile_parse(&h, "hosts.txt", (const char *)data, size, &d);

        require((r < 0) == (diags_errors(&d) > 0));
        require(r < 0 || h.n > 0);
        check_messages(&d);
        for (size_t i = 0; i < h.n; i++)
                check_host(&h.v[i]);
        if (h.n && h.n < 1000)
                check_folding(&h);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/node_facts.h"

#include <string.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

void node_facts_read_path(struct node_facts *m, const char *path)
{
        CLEANUP(free_textp) char *folder = xstrdup(path);
        char *slash = strrchr(folder, '/');
        struct statfs fs;
        uint32_t id[2];

        if (!slash)
                return;
        slash[slash == folder] = '\0';
        if (statfs(path, &fs) < 0 && statfs(folder, &fs) < 0)
                return;
        memcpy(id, &fs.f_fsid, sizeof(id));
        m->fs_type = (uint64_t)fs.f_type & UINT32_MAX;
        m->fs_id = (uint64_t)id[1] << 32 | id[0];
}

void node_facts_run(const struct inspect_order *o, int to)
{
        struct node_facts m = { .number = o->number };
        struct buf b = BUF_INIT;

        node_facts_read_path(&m, o->path);
        node_facts_encode(&b, &m);
        fd_write_all(to, buf_data(&b), buf_len(&b));
        buf_finish(&b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder renames a full `output` to `output.old` and begins a new `output`. At the end of a
 * file, a reader checks for the renaming, reads the bytes written just before, and goes on in the
 * new file.
 */
#include "head/run/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "head/run/run_records.h"
#include "wire/msg.h"

enum { PIECE_MAX = 64 << 20 }; /* larger than any piece of the recorder */

static bool open_output_part(struct output_file *f, const char *name)
{
        if (f->file)
                fclose(f->file);
        f->file = run_records_file(f->dir, name);
        return f->file;
}

static ino_t number_of(const struct output_file *f, const char *name)
{
        struct stat st;

        return fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

static ino_t number_of_open(const struct output_file *f)
{
        struct stat st;

        return f->file && fstat(fileno(f->file), &st) == 0 ? st.st_ino : 0;
}

/* Returns the name of the open file in a place. The inode is no name: the inode of a removed file
 * is soon reused. */
static int64_t name_of_open(const struct output_file *f)
{
        char head[32] = "";
        ssize_t n = f->file ? pread(fileno(f->file), head, sizeof(head) - 1, 0) : 0;

        /* The file begins with the time of its first piece. 1 is added because 0 is no name; a head
         * without a blank may have been written in part. */
        return n > 0 && strchr(head, ' ') ? strtoll(head, NULL, 10) + 1 : 0;
}

void output_file_open(struct output_file *f, int dir, struct output_place from)
{
        *f = (struct output_file){ .dir = dir };
        /* The place may be in the new file or, after one renaming, in the old one. Else all that is
         * kept is read, from the older file on. */
        if (!from.file || !open_output_part(f, "output") || name_of_open(f) != from.file)
                if (!open_output_part(f, "output.old"))
                        open_output_part(f, "output");
        if (from.file && name_of_open(f) == from.file)
                fseeko(f->file, from.at, SEEK_SET);
}

void output_file_finish(struct output_file *f)
{
        if (f->file)
                fclose(f->file);
        free(f->bytes);
        *f = (struct output_file){ .dir = -1 };
}

struct output_place output_file_tell(const struct output_file *f)
{
        return (struct output_place){ name_of_open(f), f->file ? ftello(f->file) : 0 };
}

bool output_file_is_cut(struct output_file *f)
{
        int c = f->file ? getc(f->file) : EOF;

        return c != EOF && ungetc(c, f->file) != EOF;
}

/* Reads the bytes of a piece and the newline behind. */
static bool read_piece_bytes(struct output_file *f, struct output_piece *p)
{
        char *bytes = p->len <= PIECE_MAX ? realloc(f->bytes, p->len + 1) : NULL;

        if (!bytes)
                return false;
        p->bytes = f->bytes = bytes;
        if (fread(bytes, 1, p->len + 1, f->file) != p->len + 1)
                return false;
        bytes[p->len] = '\0';
        return true;
}

/* Reads a piece. False = the file ends here or within the piece; the position is at the piece's
 * start. */
static bool read_output_piece(struct output_file *f, struct output_piece *p)
{
        off_t at = ftello(f->file);
        char head[96], word[16] = "";
        unsigned long long len = 0;
        long long us;

        *p = (struct output_piece){ .rank = -1 };
        /* A head without its newline is still being written. */
        if (fgets(head, sizeof(head), f->file) && strchr(head, '\n')) {
                /* A mark has "-" in place of the rank. "-1", the rank of hnlaunch, does not match:
                 * no letter follows. */
                if (sscanf(head, "%lld - %15[a-z] %llu", &us, word, &len) >= 2) {
                        p->kind = strcmp(word, "gap") ? OUTPUT_DETACHED : OUTPUT_GAP;
                        p->us = us;
                        p->len = len;
                        return true;
                }
                if (sscanf(head, "%lld %d %15s %llu", &us, &p->rank, word, &len) == 4) {
                        p->us = us;
                        p->stream = strcmp(word, "err") ? MSG_STDOUT : MSG_STDERR;
                        p->len = len;
                        if (read_piece_bytes(f, p))
                                return true;
                }
        }
        /* The end of the file is not final while the run goes on. */
        clearerr(f->file);
        fseeko(f->file, at, SEEK_SET);
        return false;
}

bool output_file_next(struct output_file *f, struct output_piece *p)
{
        ino_t mine;
        bool turned;

        if (!f->file && !open_output_part(f, "output"))
                return false;
        if (read_output_piece(f, p))
                return true;
        mine = number_of_open(f);
        turned = number_of(f, "output") != mine;
        /* Bytes may have been written after the first read and before the renaming. */
        if (!turned || read_output_piece(f, p))
                return turned;
        if (number_of(f, "output.old") == mine)
                return open_output_part(f, "output") && read_output_piece(f, p);
        /* A whole file was renamed and replaced meanwhile: its bytes are lost. */
        if (!open_output_part(f, "output.old") && !open_output_part(f, "output"))
                return false;
        *p = (struct output_piece){ .kind = OUTPUT_GAP, .rank = -1 };
        return true;
}

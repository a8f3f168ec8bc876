/* What an agent has changed in the folder where it works: git's status, counts and diff, or
 * without a repository the files that are newer than its session. Everything in it is foreign;
 * what may be shown was cleaned. Plain data. */
#ifndef CCT_MODEL_CHANGES_H
#define CCT_MODEL_CHANGES_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct change {
    char *path;      /* below the repository or the folder, as it is there */
    char *shown;
    char status[3];  /* git's two letters, "??" not known to it, "" no repository */
    long added, removed; /* lines; -1 = binary, -2 = not told */
    size_t line, lines;  /* in the diff; lines 0: nothing of it is there */
};
struct changes {
    char *folder;    /* of the repository, or the one that was looked into; as it is there */
    char *branch;    /* cleaned; NULL: no repository */
    bool no_git;     /* there is no git in the sandbox */
    struct change *v;
    size_t n;
    bool files_cut;  /* there are more of them */
    bool diff_cut;
    long added, removed; /* of all that are counted */
    char *diff;      /* raw, for who wants to apply it */
    size_t diff_len;
    char **line;     /* cleaned lines of the diff */
    size_t n_lines;
};
/* Of what the sandbox printed (FILE_OP_CHANGES); 0 or ERR_PROTO. */
int changes_parse(struct changes *c, const char *text, size_t len, struct err *e);
void changes_release(struct changes *c);
/* "modified", "new", "deleted" ... */
const char *change_word(const struct change *c);

#endif

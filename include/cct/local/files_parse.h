/* What a file request says: byte ranges, multipart forms, signatures. Pure
 * functions; nothing here touches a file. */
#ifndef CCT_LOCAL_FILES_PARSE_H
#define CCT_LOCAL_FILES_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum range_kind {
    RANGE_ALL,    /* no header, another unit, several ranges, or nonsense */
    RANGE_PART,   /* *first..*last inclusive, within the file */
    RANGE_OUTSIDE /* 416 */
};
/* A Range header against a file of `size` bytes: "bytes=a-b", "a-", "-n". */
enum range_kind files_range(const char *header, int64_t size, int64_t *first, int64_t *last);

enum files_coding {
    FILES_IDENTITY,  /* the bytes as they are */
    FILES_GZIP,      /* packed is preferred, plain would do */
    FILES_GZIP_ONLY, /* plain is refused */
    FILES_NONE       /* 406 */
};
/* What an Accept-Encoding header (NULL: absent) asks for, by quality and order. */
enum files_coding files_coding(const char *header);

/* The boundary parameter of a multipart content type; false when there is none
 * or it is longer than the standard's 70 bytes. dst has >= 71 bytes. */
bool files_boundary(const char *content_type, char *dst, size_t size);

struct files_part {
    char name[64];       /* form field */
    char filename[4096]; /* "" when absent */
    bool cut;            /* a name did not fit or holds a NUL */
};
/* The headers of one part, text up to and including the empty line. */
void files_part_head(const char *head, size_t len, struct files_part *part);

/* "v1_" + unpadded base64 of SHA-256 over path:op:user:token[:expiration]; new
 * string. `expiration` may be NULL. */
char *files_signature(const char *path, const char *op, const char *user, const char *token,
                      const char *expiration);
/* Value of a query parameter, percent-decoded with '+' as a space; NULL when it is
 * absent, or with *bad set when it holds a NUL. New string. */
char *files_query(const char *query, const char *name, bool *bad);
/* Does the query carry a signature of its path for `op` with this token, one that
 * has not expired at now_s (seconds since 1970)? */
bool files_signed(const char *query, const char *op, const char *token, int64_t now_s);

#endif

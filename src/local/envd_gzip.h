/* A file packed on its way to a reader; private to envd_files.c. */
#ifndef LOCAL_ENVD_GZIP_H
#define LOCAL_ENVD_GZIP_H

#include <stdint.h>

struct envd;
struct http_req;

/* Answer with `size` bytes of the file as gzip, at the reader's speed. A file that
 * became shorter meanwhile cuts the connection. */
void envd_gzip_reply(struct envd *e, struct http_req *req, const char *type, int take_fd,
                     int64_t size);

#endif

/* Bytes on their way to the sink of a request. */
#include <cct/jobs/session.h>

#include <cct/util/xalloc.h>
#include <stdlib.h>

static void chunk_free(struct msg *m)
{
    free(((struct ev_chunk *)m)->data);
    free(m);
}

void jobs_chunk(struct jobs *j, uint64_t req_id, int stream, char *take, size_t len)
{
    struct ev_chunk *c = xcalloc(1, sizeof(*c));

    msg_init(&c->m, EV_CHUNK, sizeof(*c) + len, chunk_free);
    c->m.req_id = req_id;
    c->stream = stream;
    c->data = take;
    c->len = len;
    jobs_post(j, c);
}

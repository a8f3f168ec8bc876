/* Logs of a sandbox. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>

#include <string.h>

/* Nothing is logged about a sandbox here; to say so as an empty list is what
 * clients can show. */
void ctl_logs(struct ctl_call *c)
{
    const char *json = c->v2 ? "{\"logs\":[]}" : "{\"logs\":[],\"logEntries\":[]}";
    http_reply(c->r, 200, json, strlen(json));
}

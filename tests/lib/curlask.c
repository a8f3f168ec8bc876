/* Requests by libcurl itself; see curlask.h. */
#include "curlask.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { GIVE_UP_MS = 20000 };

static size_t take(char *p, size_t size, size_t n, void *to)
{
    buf_add(to, p, size * n);
    return size * n;
}

static struct curl_slist *set_up(CURL *e, const struct ask *q, struct reply *r,
                                 struct curl_slist **resolve)
{
    struct curl_slist *head = curl_slist_append(NULL, "Expect:");

    for (size_t i = 0; q->head[i]; i++)
        head = curl_slist_append(head, q->head[i]);
    curl_easy_setopt(e, CURLOPT_URL, q->url);
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method ? q->method : "GET");
    curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->body);
    curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE,
                     (long)(!q->body ? -1
                            : q->len ? (long)q->len
                                     : (long)strlen(q->body)));
    if (!q->body)
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, head);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION,
                     (long)(q->h1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(q->give_up_ms ? q->give_up_ms : GIVE_UP_MS));
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    if (q->ca)
        curl_easy_setopt(e, CURLOPT_CAINFO, q->ca);
    if (q->resolve) {
        *resolve = curl_slist_append(NULL, q->resolve);
        curl_easy_setopt(e, CURLOPT_RESOLVE, *resolve);
    }
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, &r->body);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, &r->head);
    return head;
}

struct reply ask(CURL *easy, const struct ask *q)
{
    CURL *e = easy ? easy : curl_easy_init();
    struct reply r = {.rc = CURLE_OK};
    struct curl_slist *resolve = NULL, *head = set_up(e, q, &r, &resolve);

    r.rc = curl_easy_perform(e);
    curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &r.status);
    curl_easy_getinfo(e, CURLINFO_HTTP_VERSION, &r.version);
    curl_slist_free_all(head);
    curl_slist_free_all(resolve);
    if (!easy)
        curl_easy_cleanup(e);
    return r;
}

void reply_release(struct reply *r)
{
    buf_release(&r->head);
    buf_release(&r->body);
}

int ask_many(const struct ask *q, int n, long status)
{
    CURLM *m = curl_multi_init();
    CURL **e = xcalloc((size_t)n, sizeof(CURL *));
    struct reply r = {.rc = CURLE_OK}; /* all write to one heap */
    struct curl_slist *resolve = NULL, **head = xcalloc((size_t)n, sizeof(*head));
    int running = 1, good = 0, left;
    long got;

    curl_multi_setopt(m, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)n);
    /* before the server's settings came libcurl believes in 100 streams, and goes elsewhere */
    curl_multi_setopt(m, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    for (int i = 0; i < n; i++) {
        e[i] = curl_easy_init();
        head[i] = set_up(e[i], q, &r, &resolve);
        curl_multi_add_handle(m, e[i]);
    }
    while (running && curl_multi_perform(m, &running) == CURLM_OK)
        curl_multi_poll(m, NULL, 0, 1000, NULL);
    for (CURLMsg *msg; (msg = curl_multi_info_read(m, &left));) {
        curl_easy_getinfo(msg->easy_handle, CURLINFO_RESPONSE_CODE, &got);
        good += msg->data.result == CURLE_OK && got == status;
    }
    for (int i = 0; i < n; i++) {
        curl_multi_remove_handle(m, e[i]);
        curl_easy_cleanup(e[i]);
        curl_slist_free_all(head[i]);
    }
    curl_multi_cleanup(m);
    curl_slist_free_all(resolve);
    free(e);
    free(head);
    reply_release(&r);
    return good;
}

const char *reply_header(const struct reply *r, const char *name)
{
    static char value[256];
    size_t n = strlen(name);

    for (const char *p = r->head.p; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (strncasecmp(p, name, n) == 0 && p[n] == ':') {
            p += n + 1 + strspn(p + n + 1, " ");
            str_copy(value, sizeof(value), p);
            value[strcspn(value, "\r\n")] = '\0';
            return value;
        }
    return "";
}

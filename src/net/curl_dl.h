/* libcurl by dlopen: loading it costs milliseconds and 39 shared objects, which the
 * first paint does not wait for. Only src/net sees its types. */
#ifndef CCT_NET_CURL_DL_H
#define CCT_NET_CURL_DL_H

#include <cct/util/err.h>
#include <curl/curl.h>

struct curl_lib {
    CURLcode (*global_init_mem)(long flags, curl_malloc_callback m, curl_free_callback f,
                                curl_realloc_callback r, curl_strdup_callback s,
                                curl_calloc_callback c);
    curl_version_info_data *(*version_info)(CURLversion v);
    time_t (*getdate)(const char *p, const time_t *unused);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *h);
    CURLcode (*easy_setopt)(CURL *h, CURLoption o, ...);
    CURLcode (*easy_getinfo)(CURL *h, CURLINFO i, ...);
    CURLcode (*easy_pause)(CURL *h, int mask);
    const char *(*easy_strerror)(CURLcode c);
    struct curl_slist *(*slist_append)(struct curl_slist *l, const char *s);
    void (*slist_free_all)(struct curl_slist *l);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *m);
    CURLMcode (*multi_setopt)(CURLM *m, CURLMoption o, ...);
    CURLMcode (*multi_add_handle)(CURLM *m, CURL *h);
    CURLMcode (*multi_remove_handle)(CURLM *m, CURL *h);
    CURLMcode (*multi_socket_action)(CURLM *m, curl_socket_t s, int ev, int *running);
    CURLMcode (*multi_assign)(CURLM *m, curl_socket_t s, void *p);
    CURLMsg *(*multi_info_read)(CURLM *m, int *left);
    const char *(*multi_strerror)(CURLMcode c);
    CURLSH *(*share_init)(void);
    CURLSHcode (*share_setopt)(CURLSH *s, CURLSHoption o, ...);
    CURLSHcode (*share_cleanup)(CURLSH *s);
};

/* curl_needs.c: the libraries that the one of this name needs. */
void curl_needs_open(const char *name);

/* Load and start libcurl once in the process, on the net thread. The result stays
 * valid until the process ends: unloading it is not safe with OpenSSL. NULL with *e
 * set when it cannot be had. */
const struct curl_lib *curl_dl_get(struct err *e);

#endif

/* Loading of libcurl, and its allocator: everything it frees is overwritten, since
 * request heads with keys pass through its buffers. */
#include "curl_dl.h"
#include <cct/secrets/secret.h>
#include <cct/util/xalloc.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void wiping_free(void *p)
{
    if (!p)
        return;
    secret_wipe(p, malloc_usable_size(p));
    free(p);
}

static void *wiping_realloc(void *p, size_t n)
{
    void *q = xmalloc(n ? n : 1);

    if (p) {
        size_t had = malloc_usable_size(p);
        memcpy(q, p, had < n ? had : n);
        wiping_free(p);
    }
    return q;
}

static void *plain_malloc(size_t n)
{
    return xmalloc(n ? n : 1);
}

static void *plain_calloc(size_t n, size_t size)
{
    return xcalloc(n ? n : 1, size ? size : 1);
}

static struct curl_lib lib;
static struct err lib_err;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Old enough for Debian 11, new enough for what the transfers rely on. */
#define OLDEST 0x074200 /* 7.66.0 */

static void *open_library(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *h = NULL;

    curl_needs_open(names[0]);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !h; i++)
        h = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    return h;
}

static int find_all(void *h)
{
    const struct {
        const char *name;
        void *at;
    } want[] = {
        {"curl_global_init_mem", &lib.global_init_mem},
        {"curl_version_info", &lib.version_info},
        {"curl_getdate", &lib.getdate},
        {"curl_easy_init", &lib.easy_init},
        {"curl_easy_cleanup", &lib.easy_cleanup},
        {"curl_easy_setopt", &lib.easy_setopt},
        {"curl_easy_getinfo", &lib.easy_getinfo},
        {"curl_easy_pause", &lib.easy_pause},
        {"curl_easy_strerror", &lib.easy_strerror},
        {"curl_slist_append", &lib.slist_append},
        {"curl_slist_free_all", &lib.slist_free_all},
        {"curl_multi_init", &lib.multi_init},
        {"curl_multi_cleanup", &lib.multi_cleanup},
        {"curl_multi_setopt", &lib.multi_setopt},
        {"curl_multi_add_handle", &lib.multi_add_handle},
        {"curl_multi_remove_handle", &lib.multi_remove_handle},
        {"curl_multi_socket_action", &lib.multi_socket_action},
        {"curl_multi_assign", &lib.multi_assign},
        {"curl_multi_info_read", &lib.multi_info_read},
        {"curl_multi_strerror", &lib.multi_strerror},
        {"curl_share_init", &lib.share_init},
        {"curl_share_setopt", &lib.share_setopt},
        {"curl_share_cleanup", &lib.share_cleanup},
    };

    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        void *p = dlsym(h, want[i].name);
        if (!p)
            return err_set(&lib_err, ERR_UNSUPPORTED,
                           "cannot use libcurl: it lacks %s; install a newer libcurl4",
                           want[i].name);
        memcpy(want[i].at, &p, sizeof(p)); /* a data pointer holds a function's */
    }
    return 0;
}

static void load(void)
{
    void *h = open_library();

    if (!h) {
        const char *why = dlerror();
        err_set(&lib_err, ERR_UNSUPPORTED, "cannot load libcurl: %s; install the package libcurl4",
                why ? why : "it is not there");
        return;
    }
    if (find_all(h))
        return;
    CURLcode rc = lib.global_init_mem(CURL_GLOBAL_ALL, plain_malloc, wiping_free, wiping_realloc,
                                      xstrdup, plain_calloc);
    const curl_version_info_data *v = lib.version_info(CURLVERSION_NOW);
    if (rc != CURLE_OK)
        err_set(&lib_err, ERR_UNSUPPORTED, "cannot start libcurl: %s", lib.easy_strerror(rc));
    else if (v->version_num < OLDEST || !(v->features & CURL_VERSION_SSL))
        err_set(&lib_err, ERR_UNSUPPORTED,
                "cannot use libcurl %s: 7.66 or newer with TLS is needed; install libcurl4",
                v->version);
}

const struct curl_lib *curl_dl_get(struct err *e)
{
    pthread_once(&once, load);
    if (lib_err.code) {
        if (e)
            *e = lib_err;
        return NULL;
    }
    return &lib;
}

/* Floor: N deletes at once through libcurl's multi interface alone.
 * multi URL-PREFIX N [CA]: DELETE URL-PREFIX%014d for 0..N-1, all in flight together;
 * with a CA over TLS, HTTP/2 where the server has it. A 404 counts as an answer, too. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

static size_t drop(char *p, size_t size, size_t n, void *ctx)
{
    (void)p;
    (void)ctx;
    return size * n;
}

int main(int argc, char **argv)
{
    int n = argc >= 3 ? (int)strtol(argv[2], NULL, 10) : 0, running = 1, good = 0, left;
    char url[512];
    CURLMsg *m;
    if (n < 1) {
        fprintf(stderr, "usage: multi URL-PREFIX N [CA]\n");
        return 2;
    }
    curl_global_init(CURL_GLOBAL_ALL);
    CURLM *multi = curl_multi_init();
    for (int i = 0; i < n; i++) {
        CURL *c = curl_easy_init();
        snprintf(url, sizeof(url), "%s%014d", argv[1], i);
        curl_easy_setopt(c, CURLOPT_URL, url);
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, "DELETE");
        curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop);
        if (argc > 3)
            curl_easy_setopt(c, CURLOPT_CAINFO, argv[3]);
        if (argc > 3)
            curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        curl_multi_add_handle(multi, c);
    }
    while (running && curl_multi_perform(multi, &running) == CURLM_OK && running)
        curl_multi_poll(multi, NULL, 0, 1000, NULL);
    while ((m = curl_multi_info_read(multi, &left))) {
        long status = 0;
        curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        good += m->data.result == CURLE_OK && (status == 204 || status == 404 || status == 401);
        curl_multi_remove_handle(multi, m->easy_handle);
        curl_easy_cleanup(m->easy_handle);
    }
    curl_multi_cleanup(multi);
    curl_global_cleanup();
    return good == n ? 0 : 1;
}

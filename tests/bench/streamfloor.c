/* Floor: N process streams through curl_multi_socket_action and epoll alone; what comes
 * is counted and thrown away. streamfloor BASE-URL CA-FILE|- SANDBOX TOKEN N SECONDS
 * waits until all of them speak, then prints how it fared for so long:
 * "CPU-ms-per-s bytes-per-s kB-per-stream descriptors threads". */
#include "streamstat.h"
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

static CURLM *multi;
static int epfd, silent;
static size_t bytes;
static double due = -1;

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct epoll_event ev = {.data.fd = fd};
    (void)easy;
    (void)ctx;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    ev.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    epoll_ctl(epfd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev);
    curl_multi_assign(multi, fd, &epfd);
    return 0;
}

static int on_timer(CURLM *m, long ms, void *ctx)
{
    (void)m;
    (void)ctx;
    due = ms < 0 ? -1 : streamstat_now() + (double)ms / 1000;
    return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    char *spoke = ctx;
    (void)data;
    if (!*spoke) {
        *spoke = 1;
        silent--;
    }
    bytes += size * n;
    return size * n;
}

static void turn(double until)
{
    struct epoll_event ev[64];
    double now = streamstat_now(), next = due >= 0 && due < until ? due : until;
    int running, n = epoll_wait(epfd, ev, 64, next > now ? (int)((next - now) * 1000) + 1 : 0);
    for (int i = 0; i < n; i++)
        curl_multi_socket_action(multi, ev[i].data.fd,
                                 (ev[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                                     (ev[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                                     (ev[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_IN : 0),
                                 &running);
    if (due >= 0 && streamstat_now() >= due) {
        due = -1;
        curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static void add(const char *url, const char *ca, struct curl_slist *heads, const char *body,
                size_t len, char *spoke)
{
    CURL *c = curl_easy_init();
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)len);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, heads);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, spoke);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    if (ca)
        curl_easy_setopt(c, CURLOPT_CAINFO, ca);
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION,
                     (long)(ca ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(c, CURLOPT_PIPEWAIT, ca ? 1L : 0L);
    curl_multi_add_handle(multi, c);
}

int main(int argc, char **argv)
{
    static char url[512], id[128], token[256], body[512];
    struct rlimit rl;
    if (argc != 7) {
        fprintf(stderr, "usage: streamfloor BASE-URL CA-FILE|- SANDBOX TOKEN N SECONDS\n");
        return 2;
    }
    int n = (int)strtol(argv[5], NULL, 10), len;
    double seconds = strtod(argv[6], NULL), end = streamstat_now() + 60;
    const char *ca = strcmp(argv[2], "-") != 0 ? argv[2] : NULL;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    curl_global_init(CURL_GLOBAL_ALL);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
    snprintf(url, sizeof(url), "%s/process.Process/Start", argv[1]);
    snprintf(id, sizeof(id), "E2b-Sandbox-Id: %s", argv[3]);
    struct curl_slist *heads = curl_slist_append(NULL, id);
    snprintf(token, sizeof(token), "X-Access-Token: %s", argv[4]);
    heads = curl_slist_append(heads, token);
    heads = curl_slist_append(heads, "E2b-Sandbox-Port: 49983");
    heads = curl_slist_append(heads, "Connect-Protocol-Version: 1");
    heads = curl_slist_append(heads, "Content-Type: application/connect+json");
    len = snprintf(body + 5, sizeof(body) - 5, "%s", STREAM_START);
    memcpy(body, "\0\0\0\0", 4);
    body[4] = (char)len;
    char *spoke = calloc((size_t)n, 1);
    long kb = streamstat_kb();
    silent = n;
    for (int i = 0; i < n; i++)
        add(url, ca, heads, body, (size_t)len + 5, &spoke[i]);
    while (silent && streamstat_now() < end)
        turn(end);
    for (double t = streamstat_now() + 1; streamstat_now() < t;)
        turn(t);
    size_t had = bytes;
    double cpu = streamstat_cpu(), t0 = streamstat_now();
    while (streamstat_now() < t0 + seconds)
        turn(t0 + seconds);
    streamstat_print(silent ? 0 : n, cpu, t0, bytes - had, kb);
    return silent ? 1 : 0;
}

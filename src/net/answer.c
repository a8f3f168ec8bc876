/* What an ended transfer says: result codes, times, and sentences for people. */
#include "net_priv.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_AFTER_MAX_S = 86400 };

/* Seconds or a date; a date counts from the server's own clock when it told it. */
static int64_t retry_after(struct xfer *x, int64_t date_ms)
{
    const char *v = net_answer_header(x->net, x->id, "Retry-After");
    int64_t s, now = date_ms > 0 ? date_ms : clock_wall_ms();
    time_t at;

    if (!v)
        return -1;
    if (str_to_i64(v, 0, INT64_MAX, &s))
        return (s < RETRY_AFTER_MAX_S ? s : RETRY_AFTER_MAX_S) * 1000;
    at = x->net->lib->getdate(v, NULL);
    if (at == (time_t)-1)
        return -1;
    s = (int64_t)at * 1000 - now;
    return s < 0 ? 0 : s < RETRY_AFTER_MAX_S * 1000LL ? s : RETRY_AFTER_MAX_S * 1000LL;
}

static int64_t server_date(struct xfer *x)
{
    const char *v = net_answer_header(x->net, x->id, "Date");
    time_t at = v ? x->net->lib->getdate(v, NULL) : (time_t)-1;

    return at == (time_t)-1 ? 0 : (int64_t)at * 1000;
}

/* Only what is certain counts as "not sent". */
static bool may_have_arrived(struct xfer *x)
{
    long size = 0;
    curl_off_t pre = 0;

    if (!x->easy)
        return false;
    x->net->lib->easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &size);
    x->net->lib->easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &pre);
    return size > 0 || pre > 0 || x->status > 0;
}

static void host_of(const char *url, char *dst, size_t size)
{
    const char *at = strstr(url, "://");
    size_t n;

    at = at ? at + 3 : url;
    n = strcspn(at, "/?#");
    if (n >= size)
        n = size - 1;
    memcpy(dst, at, n);
    dst[n] = '\0';
}

/* libcurl quotes a proxy's address as it was given: what may be a name and a password
 * in front of an '@' goes, to the last one of the word. */
static void hide_login(char *text)
{
    char *out = text, *word = text, *at = NULL;

    for (const char *p = text;; p++) {
        bool ends = !*p || *p == ' ' || *p == '\'' || *p == '"' || *p == ',';
        if (*p == '@')
            at = out;
        if (ends && at) { /* word..at becomes **** */
            char *host = strstr(word, "://");
            char *from = host && host < at ? host + 3 : word;
            size_t rest = (size_t)(out - at), mark = (size_t)(at - from) < 4 ? (size_t)(at - from) : 4;
            memset(from, '*', mark);
            memmove(from + mark, at, rest);
            out = from + mark + rest;
        }
        *out = *p;
        if (!*p)
            return;
        out++;
        if (ends) {
            word = out;
            at = NULL;
        }
    }
}

/* What a refused certificate lacks, and who can mend it. */
static const char *trust_advice(const char *why)
{
    static const struct {
        const char *words, *advice;
    } known[] = {
        {"expired", "the service must renew it, or the clock of this machine is wrong"},
        {"not yet valid", "the clock of this machine is wrong, or that of who issued it"},
        {"subject name", "it is another host's: check the address"},
        {"does not match", "it is another host's: check the address"},
        {"purpose", "it is not meant for a server: the service needs another one"},
        {"too weak", "it is signed in a way that can be forged: the service needs another one"},
        {"revoked", "its issuer took it back: the service needs another one"},
        {"CAfile", "check the file that ca_file or SSL_CERT_FILE names"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(why, known[i].words))
            return known[i].advice;
    return "a private CA is named by ca_file or SSL_CERT_FILE";
}

static void describe(struct xfer *x, CURLcode rc, struct err *e)
{
    char host[200], why[CURL_ERROR_SIZE];

    str_copy(why, sizeof(why), x->curl_text[0] ? x->curl_text : x->net->lib->easy_strerror(rc));
    hide_login(why);
    host_of(x->req->url, host, sizeof(host));
    switch (rc) {
    case CURLE_OPERATION_TIMEDOUT:
        err_set(e, ERR_TIMEOUT, "no answer from \"%s\": %s; check the network and the service",
                host, why);
        break;
    case CURLE_SSL_CONNECT_ERROR:
        err_set(e, ERR_NETWORK, "cannot make a safe connection to \"%s\": %s; it must speak TLS 1.2 "
                "or newer", host, why);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        err_set(e, ERR_UNTRUSTED, "cannot trust \"%s\": %s; %s", host, why, trust_advice(why));
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        err_set(e, ERR_NETWORK, "cannot reach \"%s\": %s; check the network and the address",
                host, why);
        break;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
        err_set(e, ERR_NETWORK, "cannot reach \"%s\": the proxy failed: %s; check https_proxy",
                host, why);
        break;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (may_have_arrived(x)) /* HTTP/0.9, as libcurl calls whatever is no HTTP */
            err_set(e, ERR_NETWORK, "what answers at \"%s\" does not speak HTTP: %s; check the "
                    "address", host, why);
        else
            err_set(e, ERR_INVALID, "cannot call \"%s\": %s; check the address", host, why);
        break;
    default:
        err_set(e, ERR_NETWORK, "connection to \"%s\" broke: %s", host, why);
    }
}

void answer_fill(struct xfer *x, CURLcode rc, struct net_result *r)
{
    *r = (struct net_result){.status = x->status, .retry_after_ms = -1};
    r->elapsed_ms = clock_mono_ms() - x->start_ms;
    r->sent = may_have_arrived(x);
    r->again = x->again || x->sends > 1;
    r->body = buf_str(&x->answer);
    r->len = x->answer.len;
    if (x->fail.code)
        r->err = x->fail;
    else if (rc != CURLE_OK)
        describe(x, rc, &r->err);
    if (x->net->lib && x->status) {
        r->date_ms = server_date(x);
        r->retry_after_ms = retry_after(x, r->date_ms);
    }
}

/* Where calls may go: the account's addresses, and the derived ones of sandboxes. */
#include <cct/e2b.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const own_domains[] = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"};

void e2b_account_release(struct e2b_account *a)
{
    free(a->api_url);
    free(a->sandbox_url);
    free(a->domain);
    free(a->source);
    secret_free(a->key);
    *a = (struct e2b_account){0};
}

static int check_url(const char *url, const char *what, struct err *e)
{
    int rc = net_url_check(url, NULL, e);

    if (rc)
        return err_wrap(e, "%s", what);
    if (str_ends(url, "/") || strpbrk(url, "?#"))
        return err_set(e, ERR_INVALID, "%s: the address \"%.100s\" must be a base without a "
                       "trailing slash, query or fragment", what, url);
    return 0;
}

static bool is_domain(const char *s)
{
    size_t n = strlen(s), label = 0;

    if (n == 0 || n > 200)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool dash = s[i] == '-';
        if (s[i] == '.' ? label == 0 : !(isalnum((unsigned char)s[i]) || (dash && label)))
            return false;
        label = s[i] == '.' ? 0 : label + 1;
        if (label > 63)
            return false;
    }
    return label > 0;
}

static bool is_own(const char *domain)
{
    for (size_t i = 0; i < sizeof(own_domains) / sizeof(own_domains[0]); i++)
        if (str_eq_nocase(domain, own_domains[i]))
            return true;
    return false;
}

int e2b_account_check(const struct e2b_account *a, struct err *e)
{
    int rc;

    if (!a->api_url)
        return err_set(e, ERR_INVALID, "cannot use the account: it has no API address");
    rc = check_url(a->api_url, "API address", e);
    if (rc == 0 && a->sandbox_url)
        rc = check_url(a->sandbox_url, "sandbox address", e);
    if (rc)
        return rc;
    if (a->domain && !is_domain(a->domain))
        return err_set(e, ERR_INVALID, "cannot use the domain \"%.100s\": it is no host name",
                       a->domain);
    if (!a->key || secret_len(a->key) == 0)
        return err_set(e, ERR_AUTH, "no E2B key: set E2B_API_KEY or add a key");
    return 0;
}

static bool id_ok(const char *id)
{
    size_t n = strlen(id);

    if (n == 0 || n > 50) /* with the port it is one label of a host name */
        return false;
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)id[i]) && !isdigit((unsigned char)id[i]) && id[i] != '-')
            return false;
    return id[0] != '-' && id[n - 1] != '-';
}

static bool domain_allowed(const char *ours, const char *theirs)
{
    size_t n = strlen(ours), m = strlen(theirs);

    if (!is_domain(theirs))
        return false;
    if (str_eq_nocase(ours, theirs) || (is_own(ours) && is_own(theirs)))
        return true;
    return m > n + 1 && theirs[m - n - 1] == '.' && str_eq_nocase(theirs + m - n, ours);
}

char *e2b_sandbox_url(const struct e2b_account *a, const char *sandbox_id, const char *domain,
                      struct err *e)
{
    const char *ours = a->domain ? a->domain : own_domains[0];
    const char *use = domain && *domain ? domain : ours;
    bool loopback = false;

    if (a->sandbox_url)
        return xstrdup(a->sandbox_url);
    if (net_url_check(a->api_url, &loopback, e))
        return NULL;
    if (loopback) {
        err_set(e, ERR_INVALID, "no address for sandboxes: the API is on this machine, so set "
                "E2B_SANDBOX_URL too");
        return NULL;
    }
    if (!id_ok(sandbox_id)) {
        err_set(e, ERR_PROTO, "cannot address the sandbox \"%.60s\": its id fits no host name",
                sandbox_id);
        return NULL;
    }
    if (!domain_allowed(ours, use)) {
        err_set(e, ERR_PERM, "cannot address the sandbox \"%s\": the API names the foreign domain "
                "\"%.60s\", not one of %s; set E2B_SANDBOX_URL if that is meant",
                sandbox_id, use, ours);
        return NULL;
    }
    if (is_own(use))
        return xasprintf("https://sandbox.%s", use);
    return xasprintf("https://49983-%s.%s", sandbox_id, use);
}

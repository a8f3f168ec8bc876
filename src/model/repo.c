/* Addresses of repositories. What git would run (ext::, an option) is never passed on, a
 * password never kept. */
#include <cct/model/repo.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define GITHUB "github.com"
enum { ADDRESS_BYTES = 1000, BRANCH_BYTES = 200 };

/* The brackets are those of IPv6. */
static const char address_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789._~/-+@%=,:[]";

/* GitHub's own. */
static const char name_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
static const char owner_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void repo_release(struct repo *r)
{
    free(r->url);
    free(r->show);
    free(r->folder);
    *r = (struct repo){0};
}

static int refuse(struct err *e, const char *why)
{
    /* it may hold a password: it is not repeated */
    return err_set(e, ERR_INVALID, "the address of the repository is not possible: %s", why);
}

/* Last part of the path without ".git"; NULL when nothing usable is left. */
static char *folder_of(const char *path)
{
    size_t n = strlen(path), from;
    char *name;

    while (n && path[n - 1] == '/')
        n--;
    if (n > 4 && strncmp(path + n - 4, ".git", 4) == 0)
        n -= 4;
    while (n && path[n - 1] == '/') /* a work tree's own ".git" */
        n--;
    for (from = n; from && path[from - 1] != '/' && path[from - 1] != ':';)
        from--;
    name = xstrndup(path + from, n - from);
    if (*name && *name != '.' && *name != '-' && !strpbrk(name, "/:~[]"))
        return name;
    free(name);
    return NULL;
}

static char *lower(const char *s, size_t n)
{
    char *out = xstrndup(s, n);

    for (char *p = out; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return out;
}

static bool host_ok(const char *host)
{
    return *host && *host != '-' && *host != '.' &&
           strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") == strlen(host);
}

/* GitHub takes its key over https alone, whatever way in was written. */
static int to_github(struct repo *r, const char *path, struct err *e)
{
    size_t n;
    char *own;

    path += strspn(path, "/");
    own = xstrdup(path);
    for (n = strlen(own); n && own[n - 1] == '/';)
        own[--n] = 0;
    if (n > 4 && str_ends(own, ".git"))
        own[n - 4] = 0;
    r->github = true;
    r->url = xasprintf("https://" GITHUB "/%s.git", own);
    r->show = xasprintf(GITHUB "/%s", own);
    r->folder = folder_of(own);
    n = strspn(own, owner_chars);
    if (!n || own[n] != '/' || !own[n + 1] ||
        strspn(own + n + 1, name_chars) != strlen(own + n + 1) || !r->folder) {
        free(own);
        return refuse(e, "on " GITHUB " it is OWNER/NAME");
    }
    free(own);
    return 0;
}

/* SCHEME://[USER@]HOST/PATH */
static int by_url(struct repo *r, const char *scheme, const char *rest, struct err *e)
{
    bool web = str_eq(scheme, "https") || str_eq(scheme, "http");
    size_t n = strcspn(rest, "/");
    const char *at = memchr(rest, '@', n), *path = rest + n;
    char *host = lower(at ? at + 1 : rest, (size_t)(rest + n - (at ? at + 1 : rest)));
    bool ok = host_ok(host) && *path;
    int rc = 0;

    if (at && (web || memchr(rest, ':', (size_t)(at - rest))))
        rc = refuse(e, "a user name or a password stands in it; the GitHub key goes by itself, "
                       "store it with cc-tui keys add github");
    else if (!ok)
        rc = refuse(e, "it wants a host and a path");
    else if (str_eq(host, GITHUB) || str_eq(host, "www." GITHUB) || str_eq(host, "ssh." GITHUB ":443"))
        rc = str_eq(scheme, "http") ? refuse(e, "use https with " GITHUB) : to_github(r, path, e);
    else {
        r->url = xasprintf("%s://%.*s%s%s", scheme, at ? (int)(at + 1 - rest) : 0, rest, host, path);
        r->show = xasprintf("%s%s", host, path);
        r->folder = folder_of(path);
    }
    free(host);
    return rc;
}

/* USER@HOST:PATH, as ssh has it */
static int by_scp(struct repo *r, const char *address, const char *colon, struct err *e)
{
    const char *at = memchr(address, '@', (size_t)(colon - address));
    const char *from = at ? at + 1 : address;
    char *host = lower(from, (size_t)(colon - from));
    int rc = 0;

    if (!host_ok(host) || !colon[1])
        rc = refuse(e, "it wants a host and a path");
    else if (str_eq(host, GITHUB))
        rc = to_github(r, colon + 1, e);
    else {
        r->url = xstrdup(address);
        r->show = xasprintf("%s/%s", host, colon + 1 + strspn(colon + 1, "/"));
        r->folder = folder_of(colon + 1);
    }
    free(host);
    return rc;
}

static int by_path(struct repo *r, const char *path)
{
    r->url = xasprintf("file://%s", path);
    r->show = xstrdup(path);
    r->folder = folder_of(path);
    return 0;
}

/* The scheme, lower case, and what stands behind "://"; NULL when there is none. */
static char *scheme_of(const char *address, const char **rest)
{
    const char *sep = strstr(address, "://");
    size_t n = sep ? (size_t)(sep - address) : 0;

    if (!sep || strcspn(address, ":/@") != n)
        return NULL;
    *rest = sep + 3;
    return lower(address, n);
}

static int by_scheme(struct repo *r, const char *scheme, const char *rest, struct err *e)
{
    static const char *const known[] = {"https", "http", "ssh", "git"};

    if (str_eq(scheme, "file"))
        return *rest == '/' ? by_path(r, rest) : refuse(e, "file:// wants a path that begins with /");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_eq(scheme, known[i]))
            return by_url(r, scheme, rest, e);
    return refuse(e, "it is none of https, http, ssh, git and file");
}

int repo_parse(const char *address, struct repo *r, struct err *e)
{
    const char *rest = NULL, *colon, *slash;
    size_t n = strlen(address);
    char *scheme;
    int rc;

    *r = (struct repo){0};
    if (!n || n > ADDRESS_BYTES || *address == '-' || strstr(address, "::"))
        return refuse(e, !n ? "it is empty" : n > ADDRESS_BYTES ? "it is too long"
                                                                : "git would take it for a command");
    if (strspn(address, address_chars) != n)
        return refuse(e, "letters, digits and . _ ~ / - + @ % = , : alone");
    scheme = scheme_of(address, &rest);
    colon = strchr(address, ':');
    slash = strchr(address, '/');
    if (scheme)
        rc = by_scheme(r, scheme, rest, e);
    else if (*address == '/')
        rc = by_path(r, address);
    else if (colon && (!slash || colon < slash))
        rc = by_scp(r, address, colon, e);
    else if (str_starts(address, GITHUB "/"))
        rc = to_github(r, address + strlen(GITHUB), e);
    else if (slash && slash != address && slash[1] && !strchr(slash + 1, '/') && !strchr(address, '@'))
        rc = to_github(r, address, e);
    else
        rc = refuse(e, "write https://HOST/PATH, git@HOST:PATH or OWNER/NAME on " GITHUB);
    free(scheme);
    if (rc == 0 && !r->folder)
        rc = refuse(e, "its last part is no name for a folder");
    if (rc)
        repo_release(r);
    return rc;
}

int repo_branch_check(const char *branch, struct err *e)
{
    size_t n = strlen(branch);
    bool bad = !n || n > BRANCH_BYTES || *branch == '-' || *branch == '/' || *branch == '.' ||
               branch[n - 1] == '/' || branch[n - 1] == '.' || strstr(branch, "..") ||
               strstr(branch, "//") || strstr(branch, "@{") || strstr(branch, "/.") ||
               str_ends(branch, ".lock");

    for (const char *p = branch; *p && !bad; p++)
        bad = (unsigned char)*p <= ' ' || *p == 0x7f || strchr("~^:?*[\\", *p);
    if (bad)
        return err_set(e, ERR_INVALID, "the branch \"%.60s\" is not possible: git allows no such name",
                       branch);
    return 0;
}

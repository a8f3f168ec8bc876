/* Ranges, multipart heads, signatures: see the header. */
#include <cct/local/files_parse.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Digits at *p as a number; false without a digit or past 18 of them. */
static bool digits(const char **p, int64_t *out)
{
    int n = 0;
    for (*out = 0; **p >= '0' && **p <= '9'; (*p)++, n++) {
        if (n >= 18)
            return false;
        *out = *out * 10 + (**p - '0');
    }
    return n > 0;
}

enum range_kind files_range(const char *header, int64_t size, int64_t *first, int64_t *last)
{
    int64_t a, b;
    if (header == NULL || strncasecmp(header, "bytes=", 6) != 0)
        return RANGE_ALL;
    const char *p = header + 6;
    if (*p == '-') { /* the last n bytes */
        p++;
        if (!digits(&p, &b) || *p != '\0')
            return RANGE_ALL;
        if (b == 0 || size == 0)
            return RANGE_OUTSIDE;
        *first = b < size ? size - b : 0;
        *last = size - 1;
        return RANGE_PART;
    }
    if (!digits(&p, &a) || *p != '-')
        return RANGE_ALL;
    p++;
    if (*p == '\0')
        b = size - 1;
    else if (!digits(&p, &b) || *p != '\0' || b < a)
        return RANGE_ALL;
    if (a >= size)
        return RANGE_OUTSIDE;
    *first = a;
    *last = b < size ? b : size - 1;
    return RANGE_PART;
}

/* One element "name;q=0.5" up to the comma; its name's length, *q in thousandths (1000
 * when it is absent or no number). */
static size_t coding_item(const char *p, size_t len, int *q)
{
    size_t name = 0;
    *q = 1000;
    while (name < len && p[name] != ';' && p[name] != ' ' && p[name] != '\t')
        name++;
    for (size_t i = name; i + 2 < len; i++) {
        if ((p[i] != ';' && p[i] != ' ' && p[i] != '\t') || (p[i + 1] | 0x20) != 'q' ||
            p[i + 2] != '=')
            continue;
        const char *v = p + i + 3, *end = p + len;
        int scale = 1000, value = 0;
        if (v == end || ((*v < '0' || *v > '9') && *v != '.'))
            break;
        for (bool frac = false; v < end && ((*v >= '0' && *v <= '9') || *v == '.'); v++) {
            if (*v == '.')
                frac = true;
            else if (frac && (scale /= 10) > 0)
                value += (*v - '0') * scale;
            else if (!frac)
                value = (*v - '0') * 1000;
        }
        *q = value;
        break;
    }
    return name;
}

static bool is_named(const char *p, size_t len, const char *name)
{
    return len == strlen(name) && strncasecmp(p, name, len) == 0;
}

enum files_coding files_coding(const char *header)
{
    enum { IDENTITY, GZIP, ANY, KINDS };
    static const char *const names[KINDS] = {"identity", "gzip", "*"};
    int quality[KINDS] = {-1, -1, -1}, best = -1, q; /* -1: not named */
    if (header == NULL || *header == '\0')
        return FILES_IDENTITY;
    for (const char *p = header; *p != '\0';) {
        p += strspn(p, ", \t");
        size_t len = strcspn(p, ","), name = coding_item(p, len, &q);
        for (int k = 0; k < KINDS; k++)
            if (is_named(p, name, names[k])) {
                quality[k] = q;
                if (q > 0 && (best < 0 || q > quality[best]))
                    best = k;
            }
        p += len;
    }
    bool refused = quality[IDENTITY] == 0 || (quality[ANY] == 0 && quality[IDENTITY] < 0);
    if (best == GZIP || (best == ANY && refused))
        return refused ? FILES_GZIP_ONLY : FILES_GZIP;
    return best < 0 && refused ? FILES_NONE : FILES_IDENTITY;
}

/* Where the value after ";name=" starts, outside of quotes; NULL when absent. */
static const char *parameter_find(const char *p, const char *end, const char *name)
{
    size_t n = strlen(name);
    bool quoted = false;
    for (; p < end; p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (*p == '\\' && quoted)
            p++;
        else if (*p == ';' && !quoted) {
            const char *q = p + 1;
            while (q < end && (*q == ' ' || *q == '\t'))
                q++;
            if ((size_t)(end - q) > n && strncasecmp(q, name, n) == 0 && q[n] == '=')
                return q + n + 1;
        }
    }
    return NULL;
}

/* The value, quoted or not, backslash escapes undone; *cut when it does not fit. */
static bool parameter(const char *p, const char *end, const char *name, char *dst, size_t size,
                      bool *cut)
{
    size_t out = 0;
    dst[0] = '\0';
    p = parameter_find(p, end, name);
    if (p == NULL)
        return false;
    bool quoted = p < end && *p == '"';
    for (p += quoted; p < end; p++) {
        if (quoted ? *p == '"' : *p == ';' || *p == ' ' || *p == '\t')
            break;
        if (quoted && *p == '\\' && p + 1 < end && (p[1] == '"' || p[1] == '\\'))
            p++;
        if (out + 1 >= size || *p == '\0') {
            *cut = true;
            break;
        }
        dst[out++] = *p;
    }
    dst[out] = '\0';
    return true;
}

bool files_boundary(const char *content_type, char *dst, size_t size)
{
    bool cut = false;
    if (content_type == NULL || strncasecmp(content_type, "multipart/form-data", 19) != 0)
        return false;
    return parameter(content_type + 19, content_type + strlen(content_type), "boundary", dst,
                     size < 71 ? size : 71, &cut) &&
           !cut && dst[0] != '\0';
}

/* Browsers and FormData escape only the quote and line ends in a filename. */
static void undo_percent(char *s)
{
    char *out = s;
    for (; *s != '\0'; s++) {
        if (strncasecmp(s, "%22", 3) == 0)
            *out++ = '"', s += 2;
        else if (strncasecmp(s, "%0D", 3) == 0)
            *out++ = '\r', s += 2;
        else if (strncasecmp(s, "%0A", 3) == 0)
            *out++ = '\n', s += 2;
        else
            *out++ = *s;
    }
    *out = '\0';
}

void files_part_head(const char *head, size_t len, struct files_part *part)
{
    static const char want[] = "content-disposition:";
    const char *end = head + len;
    memset(part, 0, sizeof(*part));
    while (head < end) {
        const char *nl = memchr(head, '\n', (size_t)(end - head));
        const char *stop = nl != NULL ? nl : end;
        if (stop > head && stop[-1] == '\r')
            stop--;
        if ((size_t)(stop - head) > sizeof(want) - 1 &&
            strncasecmp(head, want, sizeof(want) - 1) == 0) {
            parameter(head, stop, "name", part->name, sizeof(part->name), &part->cut);
            parameter(head, stop, "filename", part->filename, sizeof(part->filename),
                      &part->cut);
            undo_percent(part->filename);
        }
        if (nl == NULL)
            break;
        head = nl + 1;
    }
}

char *files_signature(const char *path, const char *op, const char *user, const char *token,
                      const char *expiration)
{
    struct buf b = BUF_INIT, out = BUF_INIT;
    unsigned char hash[32];
    buf_addf(&b, "%s:%s:%s:%s", path, op, user, token);
    if (expiration != NULL)
        buf_addf(&b, ":%s", expiration);
    digest_sha256(hash, b.p, b.len);
    char *b64 = b64_encode(hash, sizeof(hash));
    b64[strcspn(b64, "=")] = '\0';
    buf_adds(&out, "v1_");
    buf_adds(&out, b64);
    free(b64);
    buf_release(&b);
    return buf_detach(&out, NULL);
}

static int hex_digit(char c)
{
    const char *at = c != '\0' ? strchr("0123456789abcdef", c | 0x20) : NULL;
    return c >= '0' && c <= '9' ? c - '0' : at != NULL && at[0] >= 'a' ? 10 + at[0] - 'a' : -1;
}

/* Percent escapes and '+' undone in place; malformed escapes stay. False when a NUL
 * came out: it would cut a path silently. */
static bool unescape(char *s)
{
    char *out = s;
    bool ok = true;
    for (; *s != '\0'; s++) {
        int hi = *s == '%' ? hex_digit(s[1]) : -1;
        int lo = hi >= 0 ? hex_digit(s[2]) : -1;
        if (lo >= 0) {
            *out = (char)(hi * 16 + lo);
            ok &= *out != '\0';
            s += 2;
        } else {
            *out = *s == '+' ? ' ' : *s;
        }
        out++;
    }
    *out = '\0';
    return ok;
}

char *files_query(const char *query, const char *name, bool *bad)
{
    size_t n = strlen(name);
    for (const char *q = query; *q != '\0';) {
        size_t len = strcspn(q, "&");
        if (len > n && q[n] == '=' && strncmp(q, name, n) == 0) {
            char *value = xstrndup(q + n + 1, len - n - 1);
            if (unescape(value))
                return value;
            *bad = true;
            free(value);
            return NULL;
        }
        q += len + (q[len] == '&');
    }
    return NULL;
}

bool files_signed(const char *query, const char *op, const char *token, int64_t now_s)
{
    bool bad = false, ok = false;
    int64_t until;
    char *given = files_query(query, "signature", &bad);
    char *path = files_query(query, "path", &bad);
    char *user = files_query(query, "username", &bad);
    char *expires = files_query(query, "signature_expiration", &bad);
    if (!bad && given != NULL && path != NULL) {
        char *right = files_signature(path, op, user != NULL ? user : "", token, expires);
        ok = digest_equal(given, strlen(given), right, strlen(right)) &&
             (expires == NULL || (str_to_i64(expires, 0, INT64_MAX, &until) && until >= now_s));
        free(right);
    }
    free(given);
    free(path);
    free(user);
    free(expires);
    return ok;
}

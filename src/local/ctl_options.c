/* What a create may ask for, both generations: types first, then what this machine
 * can do. A wish that cannot be fulfilled is refused, never dropped. Pure. */
#include <cct/local/ctl.h>
#include <cct/local/provider.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>

#include <arpa/inet.h>
#include <cJSON.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_PART_MAX (64u << 10)
#define ENV_MAX (512u << 10)
#define HOST_MAX 253

enum kind { BOOLEAN, NUMBER, OBJECT, STRINGS, STRING_MAP, STRING };

static const char *const kind_text[] = {
    "a boolean",           "a whole number",       "an object",
    "an array of strings", "an object of strings", "a string"};

struct field {
    const char *name;
    enum kind kind;
};

static bool all_strings(const struct cJSON *v, bool named)
{
    for (const struct cJSON *c = json_first(v); c; c = json_next(c))
        if (!json_is_string(c) || (named && !*json_name(c)))
            return false;
    return true;
}

static bool is_kind(const struct cJSON *v, enum kind kind)
{
    switch (kind) {
    case BOOLEAN:
        return cJSON_IsBool(v);
    case NUMBER: /* its range is looked at later */
        return cJSON_IsNumber(v);
    case OBJECT:
        return json_is_object(v);
    case STRINGS:
        return json_is_array(v) && all_strings(v, false);
    case STRING_MAP:
        return json_is_object(v) && all_strings(v, true);
    case STRING:
        return json_is_string(v);
    }
    return false;
}

/* Member that is there and not null. */
static const struct cJSON *member(const struct cJSON *o, const char *name)
{
    const struct cJSON *v = json_get(o, name);
    return cJSON_IsNull(v) ? NULL : v;
}

static int check_types(const struct cJSON *o, const char *prefix, const struct field *f,
                       size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct cJSON *v = member(o, f[i].name);
        if (v && !is_kind(v, f[i].kind))
            return err_set(e, ERR_INVALID, "%s%s must be %s", prefix, f[i].name,
                           kind_text[f[i].kind]);
    }
    return 0;
}

static size_t text_len(const struct cJSON *v)
{
    char *text = v ? json_text(v) : NULL;
    size_t len = text ? strlen(text) : 0;
    free(text);
    return len;
}

/* What is kept of a sandbox, or handed to its init, has a size. */
static int check_sizes(const struct sbox_new *n, struct err *e)
{
    if (text_len(n->metadata) > RECORD_PART_MAX || text_len(n->network) > RECORD_PART_MAX)
        return err_set(e, ERR_INVALID, "metadata and network must be less than %u KiB each",
                       RECORD_PART_MAX >> 10);
    if (text_len(n->env) > ENV_MAX)
        return err_set(e, ERR_INVALID, "envVars must be less than %u KiB", ENV_MAX >> 10);
    return 0;
}

static int check_env(const struct cJSON *env, struct err *e)
{
    for (const struct cJSON *c = json_first(env); c; c = json_next(c))
        if (strchr(json_name(c), '='))
            return err_set(e, ERR_INVALID, "envVars: '%.80s' is no name of a variable",
                           json_name(c));
    return 0;
}

/* Things of the cloud that one machine has not. */
static int check_lacks(const struct cJSON *body, struct err *e)
{
    static const struct {
        const char *name, *why;
    } lacks[] = {
        {"mcp", "the local provider starts no MCP gateway; run the servers in the sandbox"},
        {"iam", "the local provider gives out no identities; pass keys as envVars"},
        {"volumeMounts", "the local provider has no volumes; upload files instead"},
    };
    for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++)
        if (json_first(member(body, lacks[i].name)))
            return err_set(e, ERR_UNSUPPORTED, "%s: %s", lacks[i].name, lacks[i].why);
    return 0;
}

/* --- network -------------------------------------------------------------------- */

static bool is_all(const char *s)
{
    return strcmp(s, "0.0.0.0/0") == 0 || strcmp(s, "::/0") == 0;
}

/* An address, or a block of them. */
static bool is_address(const char *s)
{
    char text[64];
    unsigned char bin[16];
    int64_t bits;
    const char *slash = strchr(s, '/');
    size_t len = slash ? (size_t)(slash - s) : strlen(s);
    if (len >= sizeof(text) || (slash && !str_to_i64(slash + 1, 0, 128, &bits)))
        return false;
    memcpy(text, s, len);
    text[len] = '\0';
    return inet_pton(AF_INET, text, bin) == 1 || inet_pton(AF_INET6, text, bin) == 1;
}

struct lists {
    bool all, some, names; /* everything, something else, domains among it */
};

static struct lists look_at(const struct cJSON *list)
{
    struct lists l = {false, false, false};
    for (const struct cJSON *c = json_first(list); c; c = json_next(c)) {
        const char *s = json_str_of(c);
        l.all |= is_all(s);
        l.some |= !is_all(s);
        l.names |= !is_address(s);
    }
    return l;
}

/* All or nothing is what a network namespace can do. */
static int decide_internet(const struct cJSON *net, bool access, bool *internet, struct err *e)
{
    struct lists allow = look_at(member(net, "allowOut"));
    struct lists deny = look_at(member(net, "denyOut"));
    if (deny.names)
        return err_set(e, ERR_INVALID, "network.denyOut must hold addresses and blocks only");
    bool none = deny.all || !access;
    if (allow.names && !none)
        return err_set(e, ERR_INVALID,
                       "network.allowOut with domains needs '0.0.0.0/0' in network.denyOut");
    if (deny.some && !none)
        return err_set(e, ERR_UNSUPPORTED,
                       "network.denyOut: the local provider can only deny everything "
                       "('0.0.0.0/0'), not single destinations");
    if (allow.some && none && !allow.all)
        return err_set(e, ERR_UNSUPPORTED,
                       "network.allowOut: the local provider can only allow everything or "
                       "nothing, not single destinations");
    *internet = !none || allow.all;
    return 0;
}

/* What may stand in a Host header, and ${PORT}. */
static bool is_host(const char *s)
{
    if (strlen(s) > HOST_MAX)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || strchr("/?#@,\\\"", *s))
            return false;
    return true;
}

static int check_network(const struct cJSON *net, bool access, bool *internet, struct err *e)
{
    static const struct field fields[] = {
        {"allowPublicTraffic", BOOLEAN}, {"allowOut", STRINGS},   {"denyOut", STRINGS},
        {"maskRequestHost", STRING},     {"egressProxy", OBJECT}, {"rules", OBJECT},
    };
    static const struct {
        const char *name, *what;
    } lacks[] = {{"egressProxy", "a proxy for outgoing connections"},
                 {"rules", "rules for outgoing requests"},
                 {"httpsPorts", "ports that are spoken to with TLS"}};
    int rc = check_types(net, "network.", fields, sizeof(fields) / sizeof(fields[0]), e);
    for (size_t i = 0; rc == 0 && i < sizeof(lacks) / sizeof(lacks[0]); i++)
        if (json_first(member(net, lacks[i].name)))
            rc = err_set(e, ERR_UNSUPPORTED, "network.%s: the local provider has not %s",
                         lacks[i].name, lacks[i].what);
    if (rc == 0 && !is_host(json_str(net, "maskRequestHost", "")))
        rc = err_set(e, ERR_INVALID,
                     "network.maskRequestHost must be a host's name, with a port "
                     "or ${PORT} after it");
    return rc == 0 ? decide_internet(net, access, internet, e) : rc;
}

int ctl_options_update(const struct cJSON *body, bool *internet, struct err *e)
{
    static const struct field fields[] = {{"allow_internet_access", BOOLEAN}};
    int rc = check_types(body, "", fields, 1, e);
    return rc == 0 ? check_network(body, json_bool(body, "allow_internet_access", true),
                                   internet, e)
                   : rc;
}

/* --- the whole ------------------------------------------------------------------- */

static int take_lifecycle(const struct cJSON *body, struct sbox_new *n, struct err *e)
{
    n->auto_pause = json_bool(body, "autoPause", false);
    n->auto_pause_cold = !json_bool(body, "autoPauseMemory", true);
    const struct cJSON *resume = member(body, "autoResume");
    if (resume && !cJSON_IsBool(json_get(resume, "enabled")))
        return err_set(e, ERR_INVALID, "autoResume.enabled must be a boolean");
    n->auto_resume = json_bool(resume, "enabled", false);
    if (n->auto_pause_cold && !n->auto_pause)
        return err_set(e, ERR_INVALID, "autoPauseMemory false needs autoPause true");
    if (n->auto_pause_cold && n->auto_resume)
        return err_set(e, ERR_INVALID,
                       "autoPauseMemory false and autoResume exclude each other: a sandbox "
                       "without its memory is resumed by a request only");
    return 0;
}

int ctl_options_parse(const struct cJSON *body, bool v2, struct sbox_new *n, struct err *e)
{
    static const struct field fields[] = {
        {"timeout", NUMBER},    {"autoPause", BOOLEAN},   {"autoPauseMemory", BOOLEAN},
        {"autoResume", OBJECT}, {"secure", BOOLEAN},      {"allow_internet_access", BOOLEAN},
        {"network", OBJECT},    {"metadata", STRING_MAP}, {"envVars", STRING_MAP},
    };
    int rc = check_types(body, "", fields, sizeof(fields) / sizeof(fields[0]), e);
    if (rc != 0)
        return rc;
    const struct cJSON *access = member(body, "allow_internet_access");
    n->metadata = member(body, "metadata");
    n->env = member(body, "envVars");
    n->network = member(body, "network");
    n->internet_asked = access != NULL;
    n->timeout_s = member(body, "timeout") ? json_i64(body, "timeout", -1) : v2 ? 300 : 15;
    if (n->timeout_s < 1 || n->timeout_s > LIM_TIMEOUT_MAX_S)
        return err_set(e, ERR_INVALID, "timeout must be a whole number of seconds from 1 to %d",
                       LIM_TIMEOUT_MAX_S);
    if (!v2 && !json_bool(body, "secure", false) &&
        !json_bool(n->network, "allowPublicTraffic", true))
        return err_set(e, ERR_INVALID, "network.allowPublicTraffic false needs secure true");
    rc = check_sizes(n, e);
    if (rc == 0)
        rc = check_env(n->env, e);
    if (rc == 0)
        rc = check_lacks(body, e);
    if (rc == 0)
        rc = take_lifecycle(body, n, e);
    if (rc == 0)
        rc = check_network(n->network, json_bool(body, "allow_internet_access", true),
                           &n->internet, e);
    return rc;
}
